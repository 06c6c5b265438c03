/* MIG: layouts over time, MIG devices, GPU instances and compute instances. */
#include "player.h"

#include <stdio.h>
#include <string.h>

/* ---- what exists when ---- */

const struct layout *layout_at(const struct gpu *gpu, usec now) {
    static const struct layout no_mig = {.from = 0};
    const struct layout *found = &no_mig;
    for (const struct layout *layout = gpu->layouts; layout; layout = layout->next)
        if (layout->from <= now) found = layout;
    return found;
}

bool instance_alive(const struct instance *instance, usec now) {
    const struct layout *layout = layout_at(instance->gpu, now);
    if (__atomic_load_n(&instance->destroyed, __ATOMIC_ACQUIRE) || !layout->mig_enabled) return false;
    for (size_t i = 0; i < layout->count; i++)
        if (layout->instances[i] == instance) return true;
    return false;
}

bool compute_alive(const struct compute *compute, usec now) {
    return !__atomic_load_n(&compute->destroyed, __ATOMIC_ACQUIRE) && instance_alive(compute->instance, now);
}

/* The place among the layout's compute instances; one that was destroyed leaves a hole. */
static struct compute *compute_by_index(const struct gpu *gpu, unsigned int index, usec now) {
    const struct layout *layout = layout_at(gpu, now);
    unsigned int place = 0;
    for (size_t i = 0; i < layout->count; i++)
        for (struct compute *compute = layout->instances[i]->computes; compute; compute = compute->next)
            if (place++ == index) return compute;
    return NULL;
}

int mig_index(const struct compute *compute, usec now) {
    for (unsigned int index = 0;; index++) {
        const struct compute *candidate = compute_by_index(compute->instance->gpu, index, now);
        if (candidate == compute) return (int)index;
        if (candidate == NULL) return -1;
    }
}

/* ---- MIG devices ---- */

NVML_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(call, nvmlDeviceGetMigMode, device, SCOPE_GPU);
    if (current == NULL || pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (number_of(&call.gpu->entity, "mig_devices_max", call.now, 0.0) == 0.0) return NVML_ERROR_NOT_SUPPORTED;
    *current = layout_at(call.gpu, call.now)->mig_enabled;
    *pending = as_u32(number_of(&call.gpu->entity, "mig_mode_pending", call.now, (double)*current));
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    ENTER(call, nvmlDeviceGetMaxMigDeviceCount, device, SCOPE_GPU);
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    bool enabled = layout_at(call.gpu, call.now)->mig_enabled;
    *count = enabled ? as_u32(number_of(&call.gpu->entity, "mig_devices_max", call.now, 0.0)) : 0;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                          nvmlDevice_t *mig_device) {
    ENTER(call, nvmlDeviceGetMigDeviceHandleByIndex, device, SCOPE_GPU);
    if (!layout_at(call.gpu, call.now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    if (mig_device == NULL || index >= number_of(&call.gpu->entity, "mig_devices_max", call.now, 0.0))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct compute *compute = compute_by_index(call.gpu, index, call.now);
    if (compute == NULL || !compute_alive(compute, call.now)) return NVML_ERROR_NOT_FOUND;
    *mig_device = &compute->mig_handle;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    ENTER(call, nvmlDeviceIsMigDeviceHandle, device, SCOPE_GPU_OR_MIG);
    if (is_mig == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = call.compute != NULL;
    return NVML_SUCCESS;
}

#define OF_MIG_DEVICE(function, value)                                        \
    NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *id) {   \
        ENTER(call, function, device, SCOPE_GPU_OR_MIG);                      \
        if (id == NULL) return NVML_ERROR_INVALID_ARGUMENT;                   \
        if (call.compute == NULL) return NVML_ERROR_NOT_SUPPORTED;            \
        *id = (value);                                                        \
        return NVML_SUCCESS;                                                  \
    }

OF_MIG_DEVICE(nvmlDeviceGetGpuInstanceId, call.instance->id)
OF_MIG_DEVICE(nvmlDeviceGetComputeInstanceId, call.compute->id)

NVML_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device, nvmlDevice_t *device) {
    ENTER(call, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig_device, SCOPE_GPU_OR_MIG);
    if (device == NULL || call.compute == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &call.gpu->handle;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    ENTER(call, nvmlDeviceGetAttributes_v2, device, SCOPE_GPU_OR_MIG);
    if (attributes == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (call.compute == NULL) return NVML_ERROR_NOT_SUPPORTED;
    const struct entity *whole = &call.instance->entity, *part = &call.compute->entity;
    usec now = call.now;
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = as_u32(number_of(part, "sm_count", now, 0.0)),
        .sharedCopyEngineCount = as_u32(number_of(whole, "copy_engines", now, 0.0)),
        .sharedDecoderCount = as_u32(number_of(whole, "decoders", now, 0.0)),
        .sharedEncoderCount = as_u32(number_of(whole, "encoders", now, 0.0)),
        .sharedJpegCount = as_u32(number_of(whole, "jpegs", now, 0.0)),
        .sharedOfaCount = as_u32(number_of(whole, "ofas", now, 0.0)),
        .gpuInstanceSliceCount = as_u32(number_of(whole, "slices", now, 0.0)),
        .computeInstanceSliceCount = as_u32(number_of(part, "slices", now, 0.0)),
        .memorySizeMB = as_u64(number_of(whole, "memory_mib", now, 0.0)),
    };
    return NVML_SUCCESS;
}

/* ---- GPU instances ---- */

NVML_API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile, nvmlGpuInstance_t *out,
                                                unsigned int *count) {
    ENTER(call, nvmlDeviceGetGpuInstances, device, SCOPE_GPU);
    const struct layout *layout = layout_at(call.gpu, call.now);
    if (!layout->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    if (out == NULL || count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (size_t i = 0; i < layout->count; i++) {
        struct instance *instance = layout->instances[i];
        if (!instance_alive(instance, call.now)) continue;
        if (number_of(&instance->entity, "profile", call.now, -1.0) == profile) out[(*count)++] = &instance->handle;
    }
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out) {
    ENTER(call, nvmlDeviceGetGpuInstanceById, device, SCOPE_GPU);
    if (!layout_at(call.gpu, call.now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (struct instance *instance = call.gpu->instances; instance; instance = instance->next) {
        if (instance->id != id || !instance_alive(instance, call.now)) continue;
        *out = &instance->handle;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlInstancePlacement_t placement_of(const struct entity *entity, usec now) {
    return (nvmlInstancePlacement_t){as_u32(number_of(entity, "placement_start", now, 0.0)),
                                     as_u32(number_of(entity, "placement_size", now, 0.0))};
}

NVML_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info) {
    ENTER(call, nvmlGpuInstanceGetInfo, handle, SCOPE_GPU_INSTANCE);
    if (info == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    const struct entity *entity = &call.instance->entity;
    info->device = &call.gpu->handle;
    info->id = call.instance->id;
    info->profileId = as_u32(number_of(entity, "profile", call.now, 0.0));
    info->placement = placement_of(entity, call.now);
    return NVML_SUCCESS;
}

/* What still runs in an instance keeps it from being destroyed; so does a GPM sample that was taken of it. */
NVML_API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
    ENTER(call, nvmlGpuInstanceDestroy, handle, SCOPE_GPU_INSTANCE);
    for (const struct compute *compute = call.instance->computes; compute; compute = compute->next)
        if (compute_alive(compute, call.now)) return NVML_ERROR_IN_USE;
    if (gpm_samples_on(call.instance) > 0) return NVML_ERROR_IN_USE;
    __atomic_store_n(&call.instance->destroyed, true, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

/* ---- profiles ---- */

static const struct profile *find_profile(const struct gpu *gpu, unsigned int number) {
    for (const struct profile *profile = gpu->profiles; profile; profile = profile->next)
        if (profile->number == number) return profile;
    return NULL;
}

static void describe_profile(const struct profile *profile, usec now, nvmlGpuInstanceProfileInfo_v2_t *info) {
    const struct entity *entity = &profile->entity;
    info->id = as_u32(number_of(entity, "id", now, 0.0));
    info->isP2pSupported = 0;
    info->sliceCount = as_u32(number_of(entity, "slices", now, 0.0));
    info->instanceCount = as_u32(number_of(entity, "instances", now, 0.0));
    info->multiprocessorCount = as_u32(number_of(entity, "sm_count", now, 0.0));
    info->copyEngineCount = as_u32(number_of(entity, "copy_engines", now, 0.0));
    info->decoderCount = as_u32(number_of(entity, "decoders", now, 0.0));
    info->encoderCount = as_u32(number_of(entity, "encoders", now, 0.0));
    info->jpegCount = as_u32(number_of(entity, "jpegs", now, 0.0));
    info->ofaCount = as_u32(number_of(entity, "ofas", now, 0.0));
    info->memorySizeMB = as_u64(number_of(entity, "memory_mib", now, 0.0));
    const char *name = text_of(entity, "name");
    snprintf(info->name, sizeof info->name, "%s", name ? name : "");
}

static nvmlReturn_t profile_info(const struct call *call, unsigned int number, nvmlGpuInstanceProfileInfo_v2_t *info) {
    const struct profile *profile = find_profile(call->gpu, number);
    if (profile == NULL || !layout_at(call->gpu, call->now)->mig_enabled) return NVML_ERROR_NOT_SUPPORTED;
    describe_profile(profile, call->now, info);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                           nvmlGpuInstanceProfileInfo_v2_t *info) {
    ENTER(call, nvmlDeviceGetGpuInstanceProfileInfoV, device, SCOPE_GPU);
    if (info == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return profile_info(&call, profile, info);
}

NVML_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                          nvmlGpuInstanceProfileInfo_t *info) {
    ENTER(call, nvmlDeviceGetGpuInstanceProfileInfo, device, SCOPE_GPU);
    if (info == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlGpuInstanceProfileInfo_v2_t all;
    nvmlReturn_t result = profile_info(&call, profile, &all);
    if (result != NVML_SUCCESS) return result;
    *info = (nvmlGpuInstanceProfileInfo_t){
        all.id,           all.isP2pSupported, all.sliceCount, all.instanceCount, all.multiprocessorCount,
        all.copyEngineCount, all.decoderCount, all.encoderCount, all.jpegCount,  all.ofaCount,
        all.memorySizeMB,
    };
    return NVML_SUCCESS;
}

/* ---- compute instances ---- */

NVML_API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile,
                                                         nvmlComputeInstance_t *out, unsigned int *count) {
    ENTER(call, nvmlGpuInstanceGetComputeInstances, handle, SCOPE_GPU_INSTANCE);
    if (out == NULL || count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (struct compute *compute = call.instance->computes; compute; compute = compute->next) {
        if (!compute_alive(compute, call.now)) continue;
        if (number_of(&compute->entity, "profile", call.now, -1.0) == profile) out[(*count)++] = &compute->handle;
    }
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                            nvmlComputeInstance_t *out) {
    ENTER(call, nvmlGpuInstanceGetComputeInstanceById, handle, SCOPE_GPU_INSTANCE);
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (struct compute *compute = call.instance->computes; compute; compute = compute->next) {
        if (compute->id != id || !compute_alive(compute, call.now)) continue;
        *out = &compute->handle;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info) {
    ENTER(call, nvmlComputeInstanceGetInfo_v2, handle, SCOPE_COMPUTE_INSTANCE);
    if (info == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    info->device = &call.gpu->handle;
    info->gpuInstance = &call.instance->handle;
    info->id = call.compute->id;
    info->profileId = as_u32(number_of(&call.compute->entity, "profile", call.now, 0.0));
    info->placement = placement_of(&call.compute->entity, call.now);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
    ENTER(call, nvmlComputeInstanceDestroy, handle, SCOPE_COMPUTE_INSTANCE);
    __atomic_store_n(&call.compute->destroyed, true, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}
