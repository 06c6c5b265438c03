/* Processes on a device, and what each of them used in the driver's last window. */
#include <string.h>

#include "player.h"

static bool runs(const struct process *process, double now) {
    return number_of(&process->entity, "alive", now, 1.0) != 0.0;
}

static bool listed(const struct call *call, const struct process *process, const char *kind) {
    const char *own = property_of(&process->entity, "kind");
    if (!runs(process, call->now) || own == NULL || strcmp(own, kind) != 0) return false;
    if (call->compute == NULL) return true;
    return number_of(&process->entity, "instance", call->now, -1.0) == call->instance->id &&
           number_of(&process->entity, "compute", call->now, -1.0) == call->compute->id;
}

static nvmlReturn_t list_processes(const struct call *call, const char *kind, unsigned int *count,
                                   nvmlProcessInfo_t *infos) {
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = infos ? *count : 0, found = 0;
    for (const struct process *process = call->gpu->processes; process; process = process->next) {
        if (!listed(call, process, kind)) continue;
        if (found < room) {
            const struct entity *entity = &process->entity;
            infos[found] = (nvmlProcessInfo_t){
                .pid = process->pid,
                .usedGpuMemory = as_u64(number_of(entity, "memory", call->now, -1.0)),
                .gpuInstanceId = as_u32(number_of(entity, "instance", call->now, -1.0)),
                .computeInstanceId = as_u32(number_of(entity, "compute", call->now, -1.0)),
            };
        }
        found++;
    }
    *count = found;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, kind)                                                                                 \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {     \
        ENTER(call, function, device, SCOPE_GPU_OR_MIG);                                                     \
        return list_processes(&call, kind, count, infos);                                                    \
    }

LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

/* ---- utilization ---- */

static unsigned int window_mean(const struct process *process, const char *key, double from, double until) {
    struct reading mean = series_mean(series_of(&process->entity, key), from, until);
    return mean.error == NVML_SUCCESS ? as_u32(mean.value) : 0;
}

/* The last whole window, if anything is newer than last_seen; else false. */
static bool last_window(const struct call *call, unsigned long long last_seen, double *from, double *until,
                        unsigned long long *stamp) {
    double period = number_of(&call->scenario->system, "sample_period", call->now, 0.0);
    if (period <= 0.0 || call->now < period) return false;
    *until = (double)(long long)(call->now / period + 1e-9) * period;
    *from = *until - period;
    *stamp = wall_usec(call->scenario, *until);
    return *stamp > last_seen;
}

/* One entry per process that did something; with infos NULL it only counts them. */
static unsigned int used_by(const struct call *call, double from, double until, unsigned long long stamp,
                            nvmlProcessUtilizationInfo_v1_t *infos, unsigned int room) {
    unsigned int found = 0;
    for (const struct process *process = call->gpu->processes; process; process = process->next) {
        if (!runs(process, call->now)) continue;
        nvmlProcessUtilizationInfo_v1_t info = {
            .timeStamp = stamp,
            .pid = process->pid,
            .smUtil = window_mean(process, "sm_utilization", from, until),
            .memUtil = window_mean(process, "memory_utilization", from, until),
            .encUtil = window_mean(process, "encoder_utilization", from, until),
            .decUtil = window_mean(process, "decoder_utilization", from, until),
        };
        if (info.smUtil == 0 && info.memUtil == 0 && info.encUtil == 0 && info.decUtil == 0) continue;
        if (infos != NULL && found < room) infos[found] = info;
        found++;
    }
    return found;
}

static nvmlReturn_t utilization(const struct call *call, unsigned long long last_seen, unsigned int *count,
                                nvmlProcessUtilizationInfo_v1_t *infos) {
    if (layout_at(call->gpu, call->now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    if (number_of(&call->gpu->entity, "process_utilization", call->now, 1.0) == 0.0) return NVML_ERROR_NOT_SUPPORTED;
    double from, until;
    unsigned long long stamp;
    unsigned int room = infos ? *count : 0;
    if (!last_window(call, last_seen, &from, &until, &stamp)) return NVML_ERROR_NOT_FOUND;
    *count = used_by(call, from, until, stamp, infos, room);
    if (*count == 0) return NVML_ERROR_NOT_FOUND;
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

enum { PROCESS_ROOM = 1024 };

NVML_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                      unsigned int *count, unsigned long long last_seen) {
    ENTER(call, nvmlDeviceGetProcessUtilization, device, SCOPE_GPU);
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (samples == NULL) return utilization(&call, last_seen, count, NULL);
    nvmlProcessUtilizationInfo_v1_t infos[PROCESS_ROOM];
    if (*count > PROCESS_ROOM) *count = PROCESS_ROOM;
    nvmlReturn_t result = utilization(&call, last_seen, count, infos);
    if (result != NVML_SUCCESS) return result;
    for (unsigned int i = 0; i < *count; i++) {
        samples[i] = (nvmlProcessUtilizationSample_t){infos[i].pid,     infos[i].timeStamp, infos[i].smUtil,
                                                      infos[i].memUtil, infos[i].encUtil,   infos[i].decUtil};
    }
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                            nvmlProcessesUtilizationInfo_v1_t *info) {
    ENTER(call, nvmlDeviceGetProcessesUtilizationInfo, device, SCOPE_GPU);
    if (info == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return utilization(&call, info->lastSeenTimeStamp, &info->processSamplesCount, info->procUtilArray);
}
