/* The driver's own windows, and nvmlDeviceGetSamples: a ring of means over them, each with the time when it closed. */
#include "player.h"

static double period_of(const struct call *call) {
    return number_of(&call->scenario->system, "sample_period", call->now, 0.0);
}

/* In seconds: a period need not be whole microseconds, and windows shall not drift. */
long long windows_closed(const struct call *call) {
    double period = period_of(call);
    return period > 0.0 ? (long long)(seconds_of(call->now) / period + 1e-9) : 0;
}

usec window_end(const struct call *call, long long index) { return usec_of((double)index * period_of(call)); }

struct answer window_mean(const struct call *call, const struct series *series) {
    long long newest = windows_closed(call);
    struct answer now = series_at(series, call->now);
    if (now.error != NVML_SUCCESS || newest < 1) return now;
    struct answer mean = series_mean(series, window_end(call, newest - 1), window_end(call, newest));
    return mean.error == NVML_SUCCESS ? mean : now;
}

static const char *sample_key(unsigned int type) {
    switch (type) {
        case 0: return "power_mw";
        case 1: return "utilization";
        case 2: return "memory_utilization";
        case 3: return "encoder_utilization";
        case 4: return "decoder_utilization";
        case 5: return "clock.sm";
        case 6: return "clock.memory";
        default: return NULL;
    }
}

static bool needs_whole_gpu(unsigned int type) { return type >= 1 && type <= 4; }

/* Fills in what has closed after last_seen, oldest first; returns how many. */
static unsigned int fill(const struct call *call, const struct series *series, unsigned long long last_seen,
                         nvmlSample_t *samples, unsigned int room) {
    long long ring = (long long)number_of(&call->scenario->system, "sample_ring", call->now, 100.0);
    long long newest = windows_closed(call);
    long long oldest = newest - ring + 1 > 1 ? newest - ring + 1 : 1;
    unsigned int count = 0;
    for (long long window = oldest; window <= newest && count < room; window++) {
        usec until = window_end(call, window);
        unsigned long long stamp = (unsigned long long)wall_of(until);
        if (stamp <= last_seen) continue;
        struct answer mean = series_mean(series, window_end(call, window - 1), until);
        if (mean.error != NVML_SUCCESS) continue;
        samples[count].timeStamp = stamp;
        samples[count].sampleValue.ullVal = 0;
        samples[count].sampleValue.uiVal = as_u32(mean.value);
        count++;
    }
    return count;
}

NVML_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type, unsigned long long last_seen,
                                           unsigned int *value_type, unsigned int *count, nvmlSample_t *samples) {
    ENTER(call, nvmlDeviceGetSamples, device, SCOPE_GPU);
    if (value_type == NULL || count == NULL || (samples != NULL && *count == 0)) return NVML_ERROR_INVALID_ARGUMENT;
    const char *key = sample_key(type);
    if (key == NULL || period_of(&call) <= 0.0) return NVML_ERROR_NOT_SUPPORTED;
    if (needs_whole_gpu(type) && layout_at(call.gpu, call.now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    const struct series *series = series_of(&call.gpu->entity, key);
    struct answer now = series_at(series, call.now);
    if (now.error != NVML_SUCCESS) return now.error;
    *value_type = VALUE_UINT;
    if (samples == NULL) {
        *count = (unsigned int)number_of(&call.scenario->system, "sample_ring", call.now, 100.0);
        return NVML_SUCCESS;
    }
    *count = fill(&call, series, last_seen, samples, *count);
    return *count > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
