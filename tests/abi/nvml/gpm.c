/* GPM: a sample is a moment of one GPU or GPU instance; a metric is the scenario's exact mean between two of them. */
#include "player.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpm_sample {
    struct gpu *gpu; /* NULL: nothing in it yet */
    struct instance *instance;
    usec time;
    bool first; /* of its entity since initialization */
    struct gpm_sample *next;
};

static struct gpm_sample *samples; /* all that are open; guarded by player_lock */

static struct gpm_sample **find_sample(const struct gpm_sample *sample) {
    struct gpm_sample **place = &samples;
    while (*place != NULL && *place != sample) place = &(*place)->next;
    return place;
}

size_t gpm_samples_on(const struct instance *instance) {
    size_t count = 0;
    pthread_mutex_lock(&player_lock);
    for (const struct gpm_sample *sample = samples; sample; sample = sample->next)
        if (sample->instance == instance) count++;
    pthread_mutex_unlock(&player_lock);
    return count;
}

/* ---- support ---- */

static bool supported(const struct call *call) {
    return number_of(&call->gpu->entity, "gpm_supported", call->now, 0.0) != 0.0;
}

NVML_API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    ENTER(call, nvmlGpmQueryDeviceSupport, device, SCOPE_GPU_OR_MIG);
    if (support == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (support->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = supported(&call);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int *state) {
    ENTER(call, nvmlGpmQueryIfStreamingEnabled, device, SCOPE_GPU);
    if (state == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (!supported(&call)) return NVML_ERROR_NOT_SUPPORTED;
    *state = __atomic_load_n(&call.gpu->gpm_streaming, __ATOMIC_ACQUIRE);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t device, unsigned int state) {
    ENTER(call, nvmlGpmSetStreamingEnabled, device, SCOPE_GPU);
    if (state > 1) return NVML_ERROR_INVALID_ARGUMENT;
    if (!supported(&call)) return NVML_ERROR_NOT_SUPPORTED;
    __atomic_store_n(&call.gpu->gpm_streaming, state, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

/* ---- samples ---- */

NVML_API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out) {
    ENTER(call, nvmlGpmSampleAlloc, NULL, SCOPE_SYSTEM);
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct gpm_sample *sample = calloc(1, sizeof *sample);
    if (sample == NULL) return NVML_ERROR_MEMORY;
    pthread_mutex_lock(&player_lock);
    sample->next = samples;
    samples = sample;
    pthread_mutex_unlock(&player_lock);
    report_add(OPEN_SAMPLES, 1);
    *out = sample;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    ENTER(call, nvmlGpmSampleFree, NULL, SCOPE_SYSTEM);
    pthread_mutex_lock(&player_lock);
    struct gpm_sample **place = find_sample(sample), *found = *place;
    if (found != NULL) *place = found->next;
    pthread_mutex_unlock(&player_lock);
    if (sample == NULL || found == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    report_add(OPEN_SAMPLES, -1);
    if (found->instance != NULL) report_add(OPEN_MIG_SAMPLES, -1);
    free(found);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(const struct call *call, struct instance *instance, struct gpm_sample *sample) {
    if (!supported(call)) return NVML_ERROR_NOT_SUPPORTED;
    double refresh = number_of(&call->scenario->system, "gpm_refresh", call->now, 0.0);
    double moments = refresh > 0.0 ? floor(seconds_of(call->now) / refresh + 1e-9) : 0.0;
    usec time = refresh > 0.0 ? usec_of(moments * refresh) : call->now;
    pthread_mutex_lock(&player_lock);
    struct gpm_sample *found = sample ? *find_sample(sample) : NULL;
    if (found != NULL) {
        bool *warm = instance ? &instance->gpm_warm : &call->gpu->gpm_warm;
        report_add(OPEN_MIG_SAMPLES, (instance != NULL) - (found->instance != NULL));
        found->gpu = call->gpu;
        found->instance = instance;
        found->time = time;
        found->first = !*warm;
        *warm = true;
    }
    pthread_mutex_unlock(&player_lock);
    return found ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    ENTER(call, nvmlGpmSampleGet, device, SCOPE_GPU_OR_MIG);
    return take(&call, call.instance, sample);
}

NVML_API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int id, nvmlGpmSample_t sample) {
    ENTER(call, nvmlGpmMigSampleGet, device, SCOPE_GPU);
    for (struct instance *instance = call.gpu->instances; instance; instance = instance->next) {
        if (instance->id != id || !instance_alive(instance, call.now)) continue;
        call.instance = instance;
        nvmlReturn_t fault = call_faults(&call, call.function, true);
        return fault == NVML_SUCCESS ? take(&call, instance, sample) : fault;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- metrics ---- */

struct metric_name {
    unsigned int id;
    const char *short_name, *long_name, *unit;
};

static const struct metric_name metric_names[] = {
    {1, "graphicsUtil", "Graphics Engine Utilization", "%"},
    {2, "smUtil", "SM Utilization", "%"},
    {3, "smOccupancy", "SM Occupancy", "%"},
    {4, "integerUtil", "Integer Utilization", "%"},
    {5, "anyTensorUtil", "Any Tensor Utilization", "%"},
    {6, "dfmaTensorUtil", "DFMA Tensor Utilization", "%"},
    {7, "hmmaTensorUtil", "HMMA Tensor Utilization", "%"},
    {8, "dmmaTensorUtil", "DMMA Tensor Utilization", "%"},
    {9, "immaTensorUtil", "IMMA Tensor Utilization", "%"},
    {10, "dramBwUtil", "DRAM Bandwidth Utilization", "%"},
    {11, "fp64Util", "FP64 Utilization", "%"},
    {12, "fp32Util", "FP32 Utilization", "%"},
    {13, "fp16Util", "FP16 Utilization", "%"},
    {20, "pcieTxPerSec", "PCIe Transmit", "MiB/s"},
    {21, "pcieRxPerSec", "PCIe Receive", "MiB/s"},
    {60, "nvlinkRxPerSec", "NVLink Receive", "MiB/s"},
    {61, "nvlinkTxPerSec", "NVLink Transmit", "MiB/s"},
};

static void name_metric(nvmlGpmMetric_t *metric) {
    static const struct metric_name other = {0, "other", "Other Metric", ""};
    const struct metric_name *name = &other;
    for (size_t i = 0; i < sizeof metric_names / sizeof *metric_names; i++)
        if (metric_names[i].id == metric->metricId) name = &metric_names[i];
    metric->metricInfo.shortName = name->short_name;
    metric->metricInfo.longName = name->long_name;
    metric->metricInfo.unit = name->unit;
}

/* What a scenario wants in place of every metric of an interval (too short, or the first): a code, a value, nothing. */
static bool replaced(const struct call *call, const char *code_key, const char *value_key, nvmlGpmMetric_t *metric) {
    struct answer code = series_at(series_of(&call->scenario->system, code_key), call->now);
    if (code.error == NVML_SUCCESS && code.value != 0.0) {
        metric->nvmlReturn = (nvmlReturn_t)code.value;
        return true;
    }
    struct answer value = series_at(series_of(&call->scenario->system, value_key), call->now);
    if (value.error != NVML_SUCCESS) return false;
    metric->nvmlReturn = NVML_SUCCESS;
    metric->value = value.value;
    return true;
}

static void compute_metric(const struct call *call, const struct gpm_sample *one, const struct gpm_sample *two,
                           nvmlGpmMetric_t *metric) {
    char name[32];
    name_metric(metric);
    snprintf(name, sizeof name, "gpm.%u", metric->metricId);
    metric->nvmlReturn = call_faults(call, name, false);
    if (metric->nvmlReturn != NVML_SUCCESS) return;
    double least = number_of(&call->scenario->system, "gpm_interval_min", call->now, 0.0);
    if (two->time - one->time < usec_of(least) && replaced(call, "gpm_short_error", "gpm_short_value", metric)) return;
    if (one->first && replaced(call, "gpm_first_error", "gpm_first_value", metric)) return;
    const struct entity *entity = one->instance ? &one->instance->entity : &one->gpu->entity;
    struct answer answer = series_mean(series_of(entity, name), one->time, two->time);
    metric->nvmlReturn = answer.error;
    if (answer.error == NVML_SUCCESS) metric->value = answer.value;
}

/* Copies, so that a sample freed by another thread does no harm. */
static bool both_samples(const nvmlGpmMetricsGet_t *request, struct gpm_sample *one, struct gpm_sample *two) {
    pthread_mutex_lock(&player_lock);
    const struct gpm_sample *first = request->sample1 ? *find_sample(request->sample1) : NULL;
    const struct gpm_sample *second = request->sample2 ? *find_sample(request->sample2) : NULL;
    bool found = first != NULL && second != NULL && first->gpu != NULL && second->gpu != NULL;
    if (found) {
        *one = *first;
        *two = *second;
    }
    pthread_mutex_unlock(&player_lock);
    return found;
}

NVML_API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *request) {
    ENTER(call, nvmlGpmMetricsGet, NULL, SCOPE_SYSTEM);
    if (request == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (request->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    struct gpm_sample one, two;
    if (request->numMetrics > GPM_METRIC_MAX || !both_samples(request, &one, &two))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (one.gpu != two.gpu || one.instance != two.instance || two.time < one.time) return NVML_ERROR_INVALID_ARGUMENT;
    call.gpu = two.gpu;
    call.instance = two.instance;
    nvmlReturn_t fault = call_faults(&call, call.function, true);
    if (fault != NVML_SUCCESS) return fault;
    for (unsigned int i = 0; i < request->numMetrics; i++) compute_metric(&call, &one, &two, &request->metrics[i]);
    return NVML_SUCCESS;
}

/* Open samples taken of one GPU instance, found by the UUID of its GPU. */
NVML_API long long honest_test_samples_on(const char *uuid, unsigned int instance_id) {
    long long count = 0;
    pthread_mutex_lock(&player_lock);
    for (const struct gpm_sample *sample = samples; sample; sample = sample->next) {
        if (sample->instance == NULL || sample->instance->id != instance_id) continue;
        const char *own = text_of(&sample->gpu->entity, "uuid");
        if (own != NULL && strcmp(own, uuid) == 0) count++;
    }
    pthread_mutex_unlock(&player_lock);
    return count;
}
