/* Processes on a device, and what each of them used in the driver's last window. */
#include <string.h>

#include "player.h"

static bool runs(const struct process *process, usec now) {
    return number_of(&process->entity, "alive", now, 1.0) != 0.0;
}

static bool listed(const struct call *call, const struct process *process, const char *kind) {
    const char *own = text_of(&process->entity, "kind");
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

static unsigned int used(const struct call *call, const struct process *process, const char *key) {
    struct answer mean = window_mean(call, series_of(&process->entity, key));
    return mean.error == NVML_SUCCESS ? as_u32(mean.value) : 0;
}

/* One entry per process that did something; with infos NULL it only counts them. */
static unsigned int used_by(const struct call *call, unsigned long long stamp, nvmlProcessUtilizationInfo_v1_t *infos,
                            unsigned int room) {
    unsigned int found = 0;
    for (const struct process *process = call->gpu->processes; process; process = process->next) {
        if (!runs(process, call->now)) continue;
        nvmlProcessUtilizationInfo_v1_t info = {
            .timeStamp = stamp,
            .pid = process->pid,
            .smUtil = used(call, process, "sm_utilization"),
            .memUtil = used(call, process, "memory_utilization"),
            .encUtil = used(call, process, "encoder_utilization"),
            .decUtil = used(call, process, "decoder_utilization"),
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
    long long newest = windows_closed(call);
    unsigned long long stamp = (unsigned long long)wall_of(window_end(call, newest));
    unsigned int room = infos ? *count : 0;
    if (newest < 1 || stamp <= last_seen) return NVML_ERROR_NOT_FOUND;
    *count = used_by(call, stamp, infos, room);
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
