/* The sizes of the structures, for the test that compares them with those of NVIDIA's binding. */
#include <string.h>

#include "nvml_abi.h"

#define SIZE(type) {#type, sizeof(type)}

static const struct {
    const char *name;
    unsigned long size;
} sizes[] = {
    SIZE(nvmlPciInfo_t),
    SIZE(nvmlUtilization_t),
    SIZE(nvmlMemory_t),
    SIZE(nvmlMemory_v2_t),
    SIZE(nvmlBAR1Memory_t),
    SIZE(nvmlProcessInfo_t),
    SIZE(nvmlDeviceAttributes_t),
    SIZE(nvmlRowRemapperHistogramValues_t),
    SIZE(nvmlValue_t),
    SIZE(nvmlSample_t),
    SIZE(nvmlFieldValue_t),
    SIZE(nvmlProcessUtilizationSample_t),
    SIZE(nvmlProcessUtilizationInfo_v1_t),
    SIZE(nvmlProcessesUtilizationInfo_v1_t),
    SIZE(nvmlEventData_t),
    SIZE(nvmlTemperature_v1_t),
    SIZE(nvmlViolationTime_t),
    SIZE(nvmlGpuInstanceInfo_t),
    SIZE(nvmlComputeInstanceInfo_t),
    SIZE(nvmlGpuInstanceProfileInfo_t),
    SIZE(nvmlGpuInstanceProfileInfo_v2_t),
    SIZE(nvmlGpmMetric_t),
    SIZE(nvmlGpmMetricsGet_t),
    SIZE(nvmlGpmSupport_t),
};

NVML_API unsigned long honest_test_sizeof(const char *name) {
    for (unsigned long i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].name, name) == 0) return sizes[i].size;
    return 0;
}
