/* What changes while a device works: utilization, power, temperature, clocks, memory. */
#include "player.h"

#include <stdio.h>

#define NUMBER(function, key)                                                    \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *number) {  \
        ENTER(call, function, device, SCOPE_GPU);                                \
        return read_u32(&call, key, number);                                     \
    }

NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_enforced_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_default_mw")
NUMBER(nvmlDeviceGetPerformanceState, "performance_state")
NUMBER(nvmlDeviceGetPowerState, "performance_state")
NUMBER(nvmlDeviceGetFanSpeed, "fan_speed")

NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least,
                                                                   unsigned int *most) {
    ENTER(call, nvmlDeviceGetPowerManagementLimitConstraints, device, SCOPE_GPU);
    nvmlReturn_t result = read_u32(&call, "power_limit_min_mw", least);
    return result == NVML_SUCCESS ? read_u32(&call, "power_limit_max_mw", most) : result;
}

NVML_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
    ENTER(call, nvmlDeviceGetTotalEnergyConsumption, device, SCOPE_GPU);
    return read_u64(&call, "energy_mj", energy);
}

/* The claim, as the driver makes it: the mean over its last whole window, in whole percent. */
static nvmlReturn_t window_percent(const struct call *call, const char *key, unsigned int *out) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (layout_at(call->gpu, call->now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    struct answer mean = window_mean(call, series_of(&call->gpu->entity, key));
    if (mean.error == NVML_SUCCESS) *out = as_u32(mean.value);
    return mean.error;
}

NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    ENTER(call, nvmlDeviceGetUtilizationRates, device, SCOPE_GPU);
    if (utilization == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = window_percent(&call, "utilization", &utilization->gpu);
    return result == NVML_SUCCESS ? window_percent(&call, "memory_utilization", &utilization->memory) : result;
}

#define ENGINE_UTILIZATION(function, key)                                                                  \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *utilization, unsigned int *period) { \
        ENTER(call, function, device, SCOPE_GPU);                                                          \
        if (period == NULL) return NVML_ERROR_INVALID_ARGUMENT;                                            \
        *period = as_u32(number_of(&call.scenario->system, "sample_period", call.now, 0.0) * 1e6);         \
        return window_percent(&call, key, utilization);                                                    \
    }

ENGINE_UTILIZATION(nvmlDeviceGetEncoderUtilization, "encoder_utilization")
ENGINE_UTILIZATION(nvmlDeviceGetDecoderUtilization, "decoder_utilization")

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *temperature) {
    ENTER(call, nvmlDeviceGetTemperature, device, SCOPE_GPU);
    if (sensor != 0) return NVML_ERROR_INVALID_ARGUMENT;
    return read_u32(&call, "temperature", temperature);
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature) {
    ENTER(call, nvmlDeviceGetTemperatureV, device, SCOPE_GPU);
    if (temperature == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != STRUCT_VERSION(nvmlTemperature_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != 0) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int value = 0;
    nvmlReturn_t result = read_u32(&call, "temperature", &value);
    if (result == NVML_SUCCESS) temperature->temperature = (int)value;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int type,
                                                        unsigned int *temperature) {
    ENTER(call, nvmlDeviceGetTemperatureThreshold, device, SCOPE_GPU);
    char key[40];
    snprintf(key, sizeof key, "temperature_threshold.%u", type);
    return read_u32(&call, key, temperature);
}

static nvmlReturn_t read_clock(const struct call *call, const char *prefix, unsigned int type, unsigned int *clock) {
    static const char *const names[] = {"graphics", "sm", "memory", "video"};
    if (type >= sizeof names / sizeof *names) return NVML_ERROR_INVALID_ARGUMENT;
    char key[40];
    snprintf(key, sizeof key, "%s.%s", prefix, names[type]);
    return read_u32(call, key, clock);
}

NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *clock) {
    ENTER(call, nvmlDeviceGetClockInfo, device, SCOPE_GPU);
    return read_clock(&call, "clock", type, clock);
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *clock) {
    ENTER(call, nvmlDeviceGetMaxClockInfo, device, SCOPE_GPU);
    return read_clock(&call, "clock_max", type, clock);
}

#define REASONS(function, key)                                                           \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned long long *reasons) {   \
        ENTER(call, function, device, SCOPE_GPU);                                        \
        return read_u64(&call, key, reasons);                                            \
    }

REASONS(nvmlDeviceGetCurrentClocksEventReasons, "clock_reasons")
REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, "clock_reasons")
REASONS(nvmlDeviceGetSupportedClocksEventReasons, "clock_reasons_supported")
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, "clock_reasons_supported")

NVML_API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                                   nvmlViolationTime_t *violation) {
    ENTER(call, nvmlDeviceGetViolationStatus, device, SCOPE_GPU);
    if (violation == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    char key[40];
    snprintf(key, sizeof key, "violation.%u", policy);
    violation->referenceTime = (unsigned long long)wall_of(call.now);
    return read_u64(&call, key, &violation->violationTime);
}

/* ---- memory, of a GPU or of the instance behind a MIG device ---- */

static nvmlReturn_t read_memory(const struct call *call, nvmlMemory_v2_t *memory) {
    nvmlReturn_t result = read_u64(call, "memory_total", &memory->total);
    if (result == NVML_SUCCESS) result = read_u64(call, "memory_used", &memory->used);
    if (result != NVML_SUCCESS) return result;
    memory->reserved = as_u64(number_of(entity_of(call), "memory_reserved", call->now, 0.0));
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

/* The first version counts what is reserved as used. */
NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER(call, nvmlDeviceGetMemoryInfo, device, SCOPE_GPU_OR_MIG);
    if (memory == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlMemory_v2_t all = {0};
    nvmlReturn_t result = read_memory(&call, &all);
    if (result == NVML_SUCCESS) *memory = (nvmlMemory_t){all.total, all.free, all.used + all.reserved};
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ENTER(call, nvmlDeviceGetMemoryInfo_v2, device, SCOPE_GPU_OR_MIG);
    if (memory == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != STRUCT_VERSION(nvmlMemory_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return read_memory(&call, memory);
}

NVML_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    ENTER(call, nvmlDeviceGetBAR1MemoryInfo, device, SCOPE_GPU_OR_MIG);
    if (memory == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = read_u64(&call, "bar1_total", &memory->bar1Total);
    if (result == NVML_SUCCESS) result = read_u64(&call, "bar1_used", &memory->bar1Used);
    if (result == NVML_SUCCESS) memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return result;
}
