/* What there is: GPUs and their attributes, MIG instances, links, modules, and the hostengine itself. */
#include "player.h"

#include <stdio.h>
#include <string.h>

enum { ONLY_SUPPORTED = 1, MODULES = 11, MODULE_NVSWITCH = 1, MODULE_PROFILING = 8, MODULE_SYSMON = 9 };
enum { MODULE_NOT_LOADED_YET = 0, MODULE_FAILED = 2, MODULE_LOADED = 3, MODULE_PAUSED = 5 };

/* ---- lists ---- */

/* With room 0 it only counts. */
static int list(unsigned int entity_group, bool only_supported, usec now, unsigned int *out, int room) {
    int count = 0;
    for (size_t i = 0; i < scenario->thing_count; i++) {
        const struct thing *thing = &scenario->things[i];
        if (thing->entity.entityGroupId != entity_group || !thing_present(thing, now)) continue;
        if (entity_group == FE_GPU && only_supported && !scenario_gpu(thing->gpu)->supported) continue;
        if (count < room) out[count] = thing->entity.entityId;
        count++;
    }
    return count;
}

static dcgmReturn_t all_devices(const struct call *call, bool only_supported, unsigned int *ids, int *count) {
    *count = list(FE_GPU, only_supported, call->now, ids, MAX_DEVICES);
    if (*count > MAX_DEVICES) *count = MAX_DEVICES;
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmGetAllDevices(dcgmHandle_t handle, unsigned int ids[MAX_DEVICES], int *count) {
    if (ids == NULL || count == NULL) return ST_BADPARAM;
    ENTER(dcgmGetAllDevices, handle);
    return all_devices(&call, false, ids, count);
}

DCGM_API dcgmReturn_t dcgmGetAllSupportedDevices(dcgmHandle_t handle, unsigned int ids[MAX_DEVICES], int *count) {
    if (ids == NULL || count == NULL) return ST_BADPARAM;
    ENTER(dcgmGetAllSupportedDevices, handle);
    return all_devices(&call, true, ids, count);
}

DCGM_API dcgmReturn_t dcgmGetEntityGroupEntities(dcgmHandle_t handle, int entity_group, unsigned int *ids, int *count,
                                                 unsigned int flags) {
    if (ids == NULL || count == NULL || entity_group < FE_NONE || entity_group > FE_CONNECTX) return ST_BADPARAM;
    ENTER(dcgmGetEntityGroupEntities, handle);
    if (entity_group == FE_NONE || entity_group == FE_LINK) return call_end(ST_NOT_SUPPORTED);
    bool cpu = entity_group == FE_CPU || entity_group == FE_CPU_CORE;
    if (cpu && scenario->cpu_code != ST_OK) return call_end(scenario->cpu_code);
    int room = *count;
    *count = list((unsigned int)entity_group, (flags & ONLY_SUPPORTED) != 0, call.now, ids, room);
    return call_end(*count > room ? ST_INSUFFICIENT_SIZE : ST_OK);
}

/* ---- GPUs ---- */

static void lose(dcgmDeviceAttributes_v3 *attributes) {
    char *const texts[] = {attributes->identifiers.brandName, attributes->identifiers.deviceName,
                           attributes->identifiers.pciBusId,  attributes->identifiers.serial,
                           attributes->identifiers.uuid,      attributes->identifiers.vbios,
                           attributes->identifiers.inforomImageVersion};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) strcpy(texts[i], "<<<NULL>>>");
    attributes->memoryUsage.fbTotal = attributes->memoryUsage.fbUsed = attributes->memoryUsage.fbFree = INT32_BLANK;
    attributes->settings.migModeEnabled = INT32_BLANK;
}

/* The library asks for the latest values of so many fields. */
enum { ATTRIBUTE_FIELDS = 26 };

DCGM_API dcgmReturn_t dcgmGetDeviceAttributes(dcgmHandle_t handle, unsigned int id, dcgmDeviceAttributes_v3 *out) {
    if (out == NULL) return ST_BADPARAM;
    if (out->version != VERSION_OF(dcgmDeviceAttributes_v3, 3)) return ST_VER_MISMATCH;
    ENTER_AS(dcgmGetDeviceAttributes, handle, id, REQUEST_VALUES);
    const struct gpu *gpu = scenario_gpu(id);
    if (gpu == NULL || !thing_present(scenario_thing((dcgmGroupEntityPair_t){FE_GPU, id}), call.now))
        return call_end(ST_BADPARAM);
    unsigned int version = out->version;
    *out = gpu->attributes;
    out->version = version;
    out->settings.migModeEnabled = in_windows(&gpu->mig, call.now);
    if (gpu_lost(id, call.now)) lose(out);
    call_end(ST_OK);
    trip(handle, TRIP_LATEST, ATTRIBUTE_FIELDS);
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *out) {
    if (out == NULL) return ST_BADPARAM;
    if (out->version != VERSION_OF(dcgmMigHierarchy_v2, 2)) return ST_VER_MISMATCH;
    ENTER(dcgmGetGpuInstanceHierarchy, handle);
    if (!scenario->nvml) return call_end(ST_NVML_NOT_LOADED);
    out->count = 0;
    for (size_t i = 0; i < scenario->thing_count && out->count < MAX_HIERARCHY; i++) {
        const struct thing *thing = &scenario->things[i];
        if (thing->in_hierarchy && thing_present(thing, call.now)) out->entityList[out->count++] = thing->info;
    }
    return call_end(ST_OK);
}

/* ---- links ---- */

static const struct link_states *states_of(dcgmGroupEntityPair_t entity, usec now) {
    const struct link_states *found = NULL;
    for (size_t i = 0; i < scenario->link_count; i++) {
        const struct link_states *links = &scenario->links[i];
        if (links->entity.entityGroupId != entity.entityGroupId || links->entity.entityId != entity.entityId) continue;
        if (links->from <= now && (found == NULL || found->from <= links->from)) found = links;
    }
    return found;
}

static void put_links(dcgmGroupEntityPair_t entity, usec now, unsigned int *id, unsigned int *to, size_t room) {
    const struct link_states *links = states_of(entity, now);
    *id = entity.entityId;
    for (size_t i = 0; i < room; i++) to[i] = links != NULL && i < links->count ? links->states[i] : 0;
}

#define PUT_ALL(status, now)                                                                                       \
    do {                                                                                                           \
        (status)->numGpus = (status)->numNvSwitches = 0;                                                           \
        for (size_t i_ = 0; i_ < scenario->thing_count; i_++) {                                                    \
            dcgmGroupEntityPair_t entity_ = scenario->things[i_].entity;                                           \
            if (!thing_present(&scenario->things[i_], now)) continue;                                              \
            if (entity_.entityGroupId == FE_GPU && (status)->numGpus < MAX_DEVICES) {                              \
                unsigned int at_ = (status)->numGpus++;                                                            \
                put_links(entity_, now, &(status)->gpus[at_].entityId, (status)->gpus[at_].linkState,              \
                          sizeof((status)->gpus[0].linkState) / sizeof(unsigned int));                             \
            } else if (entity_.entityGroupId == FE_SWITCH && (status)->numNvSwitches < MAX_SWITCHES) {             \
                unsigned int at_ = (status)->numNvSwitches++;                                                      \
                put_links(entity_, now, &(status)->nvSwitches[at_].entityId, (status)->nvSwitches[at_].linkState,  \
                          sizeof((status)->nvSwitches[0].linkState) / sizeof(unsigned int));                       \
            }                                                                                                      \
        }                                                                                                          \
    } while (0)

DCGM_API dcgmReturn_t dcgmGetNvLinkLinkStatus(dcgmHandle_t handle, void *out) {
    if (out == NULL) return ST_BADPARAM;
    unsigned int version = *(unsigned int *)out;
    ENTER(dcgmGetNvLinkLinkStatus, handle);
    bool third = version == VERSION_OF(dcgmNvLinkStatus_v3, 3) && !version_from(4, 0);
    bool fourth = version == VERSION_OF(dcgmNvLinkStatus_v4, 4) && version_from(4, 0);
    bool fifth = version == VERSION_OF(dcgmNvLinkStatus_v5, 5) && version_from(4, 6);
    if (third) PUT_ALL((dcgmNvLinkStatus_v3 *)out, call.now);
    if (fourth) PUT_ALL((dcgmNvLinkStatus_v4 *)out, call.now);
    if (fifth) PUT_ALL((dcgmNvLinkStatus_v5 *)out, call.now);
    return call_end(third || fourth || fifth ? ST_OK : ST_VER_MISMATCH);
}

/* ---- the hostengine ---- */

static unsigned int module_status(const struct call *call, unsigned int module) {
    bool modular = false;
    for (size_t i = 0; i < scenario->gpu_count; i++) modular |= scenario->gpus[i].profiling == PROFILING_MODULE;
    if (module == MODULE_PROFILING) {
        if (!scenario->module_loaded) return MODULE_FAILED;
        if (!modular) return MODULE_NOT_LOADED_YET;
        return profiling_paused(call->engine, call->now) ? MODULE_PAUSED : MODULE_LOADED;
    }
    if (module == MODULE_SYSMON) return scenario->cpu_code == ST_OK ? MODULE_LOADED : MODULE_FAILED;
    return module <= MODULE_NVSWITCH ? MODULE_LOADED : MODULE_NOT_LOADED_YET;
}

DCGM_API dcgmReturn_t dcgmModuleGetStatuses(dcgmHandle_t handle, dcgmModuleGetStatuses_v1 *out) {
    if (out == NULL) return ST_BADPARAM;
    if (out->version != VERSION_OF(dcgmModuleGetStatuses_v1, 1)) return ST_VER_MISMATCH;
    ENTER(dcgmModuleGetStatuses, handle);
    out->numStatuses = MODULES;
    for (unsigned int i = 0; i < MODULES; i++) {
        out->statuses[i].id = i;
        out->statuses[i].status = module_status(&call, i);
    }
    return call_end(ST_OK);
}

static void put_version(dcgmVersionInfo_v2 *out) {
    snprintf(out->rawBuildInfoString, sizeof(out->rawBuildInfoString), "%s", scenario->build_info);
}

/* Of the library: the same release as the hostengine. */
DCGM_API dcgmReturn_t dcgmVersionInfo(dcgmVersionInfo_v2 *out) {
    static struct call_counter counter = {"dcgmVersionInfo", 0, NULL};
    usec now;
    if (out == NULL) return ST_BADPARAM;
    if (out->version != VERSION_OF(dcgmVersionInfo_v2, 2)) return ST_VER_MISMATCH;
    dcgmReturn_t code = call_plain(&counter, &now);
    if (code != ST_OK) return code;
    pthread_mutex_lock(&player_lock);
    if (scenario == NULL) return call_end(ST_UNINITIALIZED);
    put_version(out);
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmHostengineVersionInfo(dcgmHandle_t handle, dcgmVersionInfo_v2 *out) {
    if (out == NULL) return ST_BADPARAM;
    ENTER(dcgmHostengineVersionInfo, handle);
    if (out->version != VERSION_OF(dcgmVersionInfo_v2, 2)) return call_end(ST_VER_MISMATCH);
    put_version(out);
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmHostengineIsHealthy(dcgmHandle_t handle, dcgmHostengineHealth_v1 *out) {
    if (out == NULL) return ST_BADPARAM;
    ENTER(dcgmHostengineIsHealthy, handle);
    if (out->version != VERSION_OF(dcgmHostengineHealth_v1, 1)) return call_end(ST_VER_MISMATCH);
    out->overallHealth = 0;
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmHostengineSetLoggingSeverity(dcgmHandle_t handle, dcgmSettingsSetLoggingSeverity_v2 *in) {
    if (in == NULL) return ST_BADPARAM;
    ENTER(dcgmHostengineSetLoggingSeverity, handle);
    return call_end(in->version == VERSION_OF(dcgmSettingsSetLoggingSeverity_v2, 2) ? ST_OK : ST_VER_MISMATCH);
}
