/* PCIe and NVLink. */
#include "player.h"

#include <stdio.h>
#include <string.h>

#define NUMBER(function, key)                                                    \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *number) {  \
        ENTER(call, function, device, SCOPE_GPU);                                \
        return read_u32(&call, key, number);                                     \
    }

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_generation_gpu_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays")

/* In KB/s, measured by the driver over 20 ms. */
NVML_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *value) {
    ENTER(call, nvmlDeviceGetPcieThroughput, device, SCOPE_GPU);
    if (counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
    return read_u32(&call, counter == 0 ? "pcie_transmit_kib" : "pcie_receive_kib", value);
}

/* A GPU without NVLink, and one in MIG mode, does not answer; a link that does not exist is a wrong argument. */
static nvmlReturn_t check_link(const struct call *call, unsigned int link) {
    double links = number_of(&call->gpu->entity, "nvlink_count", call->now, 0.0);
    if (links == 0.0 || layout_at(call->gpu, call->now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    return link < links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t link_number(const struct call *call, unsigned int link, const char *name, unsigned int *out) {
    nvmlReturn_t result = check_link(call, link);
    if (result != NVML_SUCCESS) return result;
    char key[40];
    snprintf(key, sizeof key, "nvlink.%u.%s", link, name);
    if (series_of(&call->gpu->entity, key) == NULL) snprintf(key, sizeof key, "nvlink.%s", name);
    return read_u32(call, key, out);
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *active) {
    ENTER(call, nvmlDeviceGetNvLinkState, device, SCOPE_GPU);
    return link_number(&call, link, "state", active);
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version) {
    ENTER(call, nvmlDeviceGetNvLinkVersion, device, SCOPE_GPU);
    return link_number(&call, link, "version", version);
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                          unsigned int *type) {
    ENTER(call, nvmlDeviceGetNvLinkRemoteDeviceType, device, SCOPE_GPU);
    return link_number(&call, link, "remote_type", type);
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, unsigned int counter,
                                                      unsigned long long *value) {
    ENTER(call, nvmlDeviceGetNvLinkErrorCounter, device, SCOPE_GPU);
    nvmlReturn_t result = check_link(&call, link);
    if (result != NVML_SUCCESS) return result;
    char key[40];
    snprintf(key, sizeof key, "nvlink.%u.error.%u", link, counter);
    return read_u64(&call, key, value);
}

NVML_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                          nvmlPciInfo_t *pci) {
    ENTER(call, nvmlDeviceGetNvLinkRemotePciInfo_v2, device, SCOPE_GPU);
    if (pci == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = check_link(&call, link);
    if (result != NVML_SUCCESS) return result;
    char key[40];
    snprintf(key, sizeof key, "nvlink.%u.remote", link);
    const char *remote = text_of(&call.gpu->entity, key);
    if (remote == NULL) return NVML_ERROR_NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    unsigned int function;
    if (sscanf(remote, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function) != 4)
        return NVML_ERROR_UNKNOWN;
    snprintf(pci->busId, sizeof pci->busId, "%s", remote);
    return NVML_SUCCESS;
}
