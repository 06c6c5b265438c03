/* ECC errors, remapped rows, retired pages. */
#include "player.h"

#include <stdio.h>

NVML_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(call, nvmlDeviceGetEccMode, device, SCOPE_GPU);
    nvmlReturn_t result = read_u32(&call, "ecc_mode", current);
    return result == NVML_SUCCESS ? read_u32(&call, "ecc_mode_pending", pending) : result;
}

NVML_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int error_type,
                                                  unsigned int counter_type, unsigned long long *count) {
    ENTER(call, nvmlDeviceGetTotalEccErrors, device, SCOPE_GPU);
    if (error_type > 1 || counter_type > 1) return NVML_ERROR_INVALID_ARGUMENT;
    char key[40];
    snprintf(key, sizeof key, "ecc.%u.%u", error_type, counter_type);
    return read_u64(&call, key, count);
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int error_type,
                                                      unsigned int counter_type, unsigned int location,
                                                      unsigned long long *count) {
    ENTER(call, nvmlDeviceGetMemoryErrorCounter, device, SCOPE_GPU_OR_MIG);
    if (error_type > 1 || counter_type > 1 || location > 7) return NVML_ERROR_INVALID_ARGUMENT;
    char key[40];
    snprintf(key, sizeof key, "ecc.%u.%u.%u", error_type, counter_type, location);
    return read_u64(&call, key, count);
}

NVML_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                                unsigned int *uncorrectable, unsigned int *pending,
                                                unsigned int *failed) {
    ENTER(call, nvmlDeviceGetRemappedRows, device, SCOPE_GPU);
    nvmlReturn_t result = read_u32(&call, "remapped_correctable", correctable);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remapped_uncorrectable", uncorrectable);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remapped_pending", pending);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remapped_failed", failed);
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                                        nvmlRowRemapperHistogramValues_t *values) {
    ENTER(call, nvmlDeviceGetRowRemapperHistogram, device, SCOPE_GPU);
    if (values == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = read_u32(&call, "remap_banks.max", &values->max);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remap_banks.high", &values->high);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remap_banks.partial", &values->partial);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remap_banks.low", &values->low);
    if (result == NVML_SUCCESS) result = read_u32(&call, "remap_banks.none", &values->none);
    return result;
}

/* A scenario gives the number of pages; their addresses are made up from their rank. */
static nvmlReturn_t retired_pages(const struct call *call, unsigned int cause, unsigned int *count,
                                  unsigned long long *addresses, unsigned long long *times) {
    if (count == NULL || cause > 1) return NVML_ERROR_INVALID_ARGUMENT;
    char key[40];
    snprintf(key, sizeof key, "retired_pages.%u", cause);
    unsigned int pages = 0, room = *count;
    nvmlReturn_t result = read_u32(call, key, &pages);
    if (result != NVML_SUCCESS) return result;
    *count = pages;
    if (pages > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (pages > 0 && addresses == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < pages; i++) {
        addresses[i] = 0x10000ull * (cause + 1) + 0x1000ull * i;
        if (times != NULL) times[i] = (unsigned long long)wall_of(0);
    }
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                                unsigned long long *addresses) {
    ENTER(call, nvmlDeviceGetRetiredPages, device, SCOPE_GPU);
    return retired_pages(&call, cause, count, addresses, NULL);
}

NVML_API nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                                   unsigned long long *addresses, unsigned long long *times) {
    ENTER(call, nvmlDeviceGetRetiredPages_v2, device, SCOPE_GPU);
    return retired_pages(&call, cause, count, addresses, times);
}

NVML_API nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned int *pending) {
    ENTER(call, nvmlDeviceGetRetiredPagesPendingStatus, device, SCOPE_GPU);
    return read_u32(&call, "retired_pages_pending", pending);
}
