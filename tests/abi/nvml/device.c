/* Which devices there are, and what they are. */
#include "player.h"

#include <stdio.h>
#include <string.h>

enum { GPU_ROOM = 64 };

/* Faults of the one GPU that a lookup finds, and a GPU that is gone, show at the lookup. */
static nvmlReturn_t hand_out(struct call *call, struct gpu *gpu, struct handle *handle, nvmlDevice_t *device) {
    call->gpu = gpu;
    nvmlReturn_t fault = call_faults(call, call->function, true);
    if (fault != NVML_SUCCESS) return fault;
    if (number_of(&gpu->entity, "present", call->now, 1.0) == 0.0 ||
        number_of(&gpu->entity, "lost", call->now, 0.0) != 0.0)
        return NVML_ERROR_GPU_IS_LOST;
    *device = handle;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    ENTER(call, nvmlDeviceGetCount_v2, NULL, SCOPE_SYSTEM);
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct gpu *gpus[GPU_ROOM];
    *count = (unsigned int)enumerate(call.scenario, call.now, gpus, GPU_ROOM);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    ENTER(call, nvmlDeviceGetHandleByIndex_v2, NULL, SCOPE_SYSTEM);
    struct gpu *gpus[GPU_ROOM];
    size_t count = enumerate(call.scenario, call.now, gpus, GPU_ROOM);
    if (device == NULL || index >= count) return NVML_ERROR_INVALID_ARGUMENT;
    return hand_out(&call, gpus[index], &gpus[index]->handle, device);
}

static struct handle *mig_by_uuid(struct gpu *gpu, const char *uuid, usec now) {
    for (struct instance *instance = gpu->instances; instance; instance = instance->next) {
        for (struct compute *compute = instance->computes; compute; compute = compute->next) {
            const char *own = text_of(&compute->entity, "uuid");
            if (own != NULL && strcmp(own, uuid) == 0 && compute_alive(compute, now)) return &compute->mig_handle;
        }
    }
    return NULL;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    ENTER(call, nvmlDeviceGetHandleByUUID, NULL, SCOPE_SYSTEM);
    if (uuid == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct gpu *gpus[GPU_ROOM];
    size_t count = enumerate(call.scenario, call.now, gpus, GPU_ROOM);
    for (size_t i = 0; i < count; i++) {
        const char *own = text_of(&gpus[i]->entity, "uuid");
        struct handle *mig = mig_by_uuid(gpus[i], uuid, call.now);
        if (mig != NULL) return hand_out(&call, gpus[i], mig, device);
        if (own != NULL && strcmp(own, uuid) == 0) return hand_out(&call, gpus[i], &gpus[i]->handle, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

/* "0000:53:00.0" and "00000000:53:00.0" are one address. */
static bool same_bus_id(const char *left, const char *right) {
    unsigned int a[4], b[4];
    if (sscanf(left, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) != 4) return false;
    if (sscanf(right, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]) != 4) return false;
    return memcmp(a, b, sizeof a) == 0;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    ENTER(call, nvmlDeviceGetHandleByPciBusId_v2, NULL, SCOPE_SYSTEM);
    if (bus_id == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct gpu *gpus[GPU_ROOM];
    size_t count = enumerate(call.scenario, call.now, gpus, GPU_ROOM);
    for (size_t i = 0; i < count; i++) {
        const char *own = text_of(&gpus[i]->entity, "pci_bus_id");
        if (own != NULL && same_bus_id(own, bus_id)) return hand_out(&call, gpus[i], &gpus[i]->handle, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

/* Of a MIG device, its place under its GPU. */
NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    ENTER(call, nvmlDeviceGetIndex, device, SCOPE_GPU_OR_MIG);
    if (index == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (call.compute != NULL) {
        *index = (unsigned int)mig_index(call.compute, call.now);
        return NVML_SUCCESS;
    }
    struct gpu *gpus[GPU_ROOM];
    size_t count = enumerate(call.scenario, call.now, gpus, GPU_ROOM);
    for (size_t i = 0; i < count; i++) {
        if (gpus[i] != call.gpu) continue;
        *index = (unsigned int)i;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_GPU_IS_LOST;
}

#define TEXT(function, key, scope)                                                            \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned int length) {    \
        ENTER(call, function, device, scope);                                                 \
        return read_text(&call, key, text, length);                                           \
    }

#define NUMBER(function, key)                                                    \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *number) {  \
        ENTER(call, function, device, SCOPE_GPU);                                \
        return read_u32(&call, key, number);                                     \
    }

TEXT(nvmlDeviceGetName, "name", SCOPE_GPU_OR_MIG)
TEXT(nvmlDeviceGetUUID, "uuid", SCOPE_GPU_OR_MIG)
TEXT(nvmlDeviceGetSerial, "serial", SCOPE_GPU)
TEXT(nvmlDeviceGetVbiosVersion, "vbios", SCOPE_GPU)

NUMBER(nvmlDeviceGetMinorNumber, "minor")
NUMBER(nvmlDeviceGetBrand, "brand")
NUMBER(nvmlDeviceGetArchitecture, "architecture")
NUMBER(nvmlDeviceGetModuleId, "module_id")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence_mode")
NUMBER(nvmlDeviceGetVirtualizationMode, "virtualization_mode")
NUMBER(nvmlDeviceGetMemoryBusWidth, "memory_bus_width")

NVML_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode) {
    ENTER(call, nvmlDeviceGetComputeMode, device, SCOPE_GPU_OR_MIG);
    call.compute = NULL; /* one mode for the board here */
    return read_u32(&call, "compute_mode", mode);
}

NVML_API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *count) {
    ENTER(call, nvmlDeviceGetNumGpuCores, device, SCOPE_GPU);
    if (layout_at(call.gpu, call.now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    return read_u32(&call, "cores", count);
}

NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    ENTER(call, nvmlDeviceGetCudaComputeCapability, device, SCOPE_GPU_OR_MIG);
    if (major == NULL || minor == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)number_of(&call.gpu->entity, "compute_major", call.now, 0.0);
    *minor = (int)number_of(&call.gpu->entity, "compute_minor", call.now, 0.0);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ENTER(call, nvmlDeviceGetPciInfo_v3, device, SCOPE_GPU);
    if (pci == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    const char *bus_id = text_of(&call.gpu->entity, "pci_bus_id");
    if (bus_id == NULL) return NVML_ERROR_NOT_SUPPORTED;
    unsigned int function;
    memset(pci, 0, sizeof *pci);
    if (sscanf(bus_id, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function) != 4)
        return NVML_ERROR_UNKNOWN;
    pci->pciDeviceId = as_u32(number_of(&call.gpu->entity, "pci_device_id", call.now, 0.0));
    pci->pciSubSystemId = as_u32(number_of(&call.gpu->entity, "pci_subsystem_id", call.now, 0.0));
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.%X", pci->domain, pci->bus & 0xFF, pci->device & 0xFF,
             function & 0xF);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.%X", pci->domain & 0xFFFF, pci->bus & 0xFF,
             pci->device & 0xFF, function & 0xF);
    return NVML_SUCCESS;
}
