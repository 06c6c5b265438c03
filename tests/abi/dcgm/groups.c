/* Groups of entities, and groups of fields. */
#include "player.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_GROUPS = 5 };

static bool same(dcgmGroupEntityPair_t a, dcgmGroupEntityPair_t b) {
    return a.entityGroupId == b.entityGroupId && a.entityId == b.entityId;
}

/* ---- groups of entities ---- */

static void add_all(struct group *group, unsigned int entity_group, usec now) {
    for (size_t i = 0; i < scenario->thing_count && group->count < MAX_ENTITIES; i++) {
        const struct thing *thing = &scenario->things[i];
        if (thing->entity.entityGroupId != entity_group || !thing_present(thing, now)) continue;
        if (entity_group == FE_GPU && !scenario_gpu(thing->gpu)->supported) continue;
        group->entities[group->count++] = thing->entity;
    }
}

static void fill(struct group *group, int type, usec now) {
    bool everything = type == GROUP_EVERYTHING;
    if (type == GROUP_ALL_OF_GPUS || everything) add_all(group, FE_GPU, now);
    if (type == GROUP_ALL_OF_SWITCHES || everything) add_all(group, FE_SWITCH, now);
    if (type == GROUP_ALL_OF_GI || everything) add_all(group, FE_GPU_I, now);
    if (type == GROUP_ALL_OF_CI || everything) add_all(group, FE_GPU_CI, now);
}

/* The groups that always exist are made when they are asked for. */
static struct group *default_group(dcgmGpuGrp_t id, usec now) {
    static const struct {
        unsigned int id;
        int type;
        const char *name;
    } defaults[DEFAULT_GROUPS] = {
        {GROUP_ID_GPUS, GROUP_ALL_OF_GPUS, "DCGM_ALL_SUPPORTED_GPUS"},
        {GROUP_ID_SWITCHES, GROUP_ALL_OF_SWITCHES, "DCGM_ALL_SUPPORTED_NVSWITCHES"},
        {GROUP_ID_GI, GROUP_ALL_OF_GI, "DCGM_ALL_SUPPORTED_INSTANCES"},
        {GROUP_ID_CI, GROUP_ALL_OF_CI, "DCGM_ALL_SUPPORTED_COMPUTE_INSTANCES"},
        {GROUP_ID_EVERYTHING, GROUP_EVERYTHING, "DCGM_ALL_SUPPORTED_ENTITIES"},
    };
    static struct group scratch; /* under player_lock */
    for (size_t i = 0; i < DEFAULT_GROUPS; i++) {
        if (defaults[i].id != id) continue;
        scratch = (struct group){.id = (unsigned int)id};
        strcpy(scratch.name, defaults[i].name);
        fill(&scratch, defaults[i].type, now);
        return &scratch;
    }
    return NULL;
}

struct group *group_find(struct engine *engine, dcgmGpuGrp_t id, usec now) {
    for (struct group *group = engine->groups; group != NULL; group = group->next)
        if (group->id == id) return group;
    return default_group(id, now);
}

static struct group *own_group(struct engine *engine, dcgmGpuGrp_t id) {
    for (struct group *group = engine->groups; group != NULL; group = group->next)
        if (group->id == id) return group;
    return NULL;
}

static bool fits(const char *name) { return name != NULL && strlen(name) < TEXT_LENGTH; }

DCGM_API dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, int type, const char *name, dcgmGpuGrp_t *id) {
    if (!fits(name) || id == NULL || type < GROUP_ALL_OF_GPUS || type > GROUP_EVERYTHING) return ST_BADPARAM;
    ENTER(dcgmGroupCreate, handle);
    size_t count = DEFAULT_GROUPS;
    for (const struct group *group = call.engine->groups; group != NULL; group = group->next) count++;
    if (count >= MAX_GROUPS) return call_end(ST_MAX_LIMIT);
    struct group *group = calloc(1, sizeof(*group));
    if (group == NULL) abort();
    group->id = ++call.engine->next_id;
    group->owner = call.connection;
    strcpy(group->name, name);
    fill(group, type, call.now);
    group->next = call.engine->groups;
    call.engine->groups = group;
    report_add(OPEN_GROUPS, 1);
    *id = group->id;
    return call_end(ST_OK);
}

/* Watches that were made through it go on. */
DCGM_API dcgmReturn_t dcgmGroupDestroy(dcgmHandle_t handle, dcgmGpuGrp_t id) {
    ENTER(dcgmGroupDestroy, handle);
    for (struct group **at = &call.engine->groups; *at != NULL; at = &(*at)->next) {
        struct group *group = *at;
        if (group->id != id) continue;
        *at = group->next;
        free(group);
        report_add(OPEN_GROUPS, -1);
        return call_end(ST_OK);
    }
    return call_end(ST_NOT_CONFIGURED);
}

DCGM_API dcgmReturn_t dcgmGroupAddEntity(dcgmHandle_t handle, dcgmGpuGrp_t id, int entity_group, unsigned int eid) {
    ENTER(dcgmGroupAddEntity, handle);
    struct group *group = own_group(call.engine, id);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    dcgmGroupEntityPair_t entity = {(unsigned int)entity_group, eid};
    const struct thing *thing = scenario_thing(entity);
    if (thing == NULL || !thing_present(thing, call.now)) return call_end(ST_BADPARAM);
    if (entity_group == FE_GPU && !scenario_gpu(eid)->supported) return call_end(ST_GPU_NOT_SUPPORTED);
    if (thing->gpu != ~0u && gpu_lost(thing->gpu, call.now)) return call_end(ST_GPU_IS_LOST);
    for (size_t i = 0; i < group->count; i++)
        if (same(group->entities[i], entity)) return call_end(ST_BADPARAM);
    if (group->count == MAX_ENTITIES) return call_end(ST_MAX_LIMIT);
    group->entities[group->count++] = entity;
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmGroupRemoveEntity(dcgmHandle_t handle, dcgmGpuGrp_t id, int entity_group, unsigned int eid) {
    ENTER(dcgmGroupRemoveEntity, handle);
    struct group *group = own_group(call.engine, id);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    dcgmGroupEntityPair_t entity = {(unsigned int)entity_group, eid};
    for (size_t i = 0; i < group->count; i++) {
        if (!same(group->entities[i], entity)) continue;
        memmove(&group->entities[i], &group->entities[i + 1], (group->count - i - 1) * sizeof(entity));
        group->count--;
        return call_end(ST_OK);
    }
    return call_end(ST_BADPARAM);
}

DCGM_API dcgmReturn_t dcgmGroupAddDevice(dcgmHandle_t handle, dcgmGpuGrp_t id, unsigned int gpu) {
    return dcgmGroupAddEntity(handle, id, FE_GPU, gpu);
}

DCGM_API dcgmReturn_t dcgmGroupRemoveDevice(dcgmHandle_t handle, dcgmGpuGrp_t id, unsigned int gpu) {
    return dcgmGroupRemoveEntity(handle, id, FE_GPU, gpu);
}

/* From 4.0 on the struct has room for more entities, and the old one is refused; before, there was only the old one. */
DCGM_API dcgmReturn_t dcgmGroupGetInfo(dcgmHandle_t handle, dcgmGpuGrp_t id, dcgmGroupInfo_v3 *info) {
    if (info == NULL) return ST_BADPARAM;
    ENTER(dcgmGroupGetInfo, handle);
    unsigned int wanted = version_from(4, 0) ? VERSION_OF(dcgmGroupInfo_v3, 3) : VERSION_OF(dcgmGroupInfo_v2, 2);
    if (info->version != wanted) return call_end(ST_VER_MISMATCH);
    const struct group *group = group_find(call.engine, id, call.now);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    size_t room = version_from(4, 0) ? MAX_ENTITIES : MAX_ENTITIES_V2;
    info->count = (unsigned int)(group->count < room ? group->count : room);
    strcpy(info->groupName, group->name);
    memcpy(info->entityList, group->entities, info->count * sizeof(*group->entities));
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmGroupGetAllIds(dcgmHandle_t handle, dcgmGpuGrp_t ids[], unsigned int *count) {
    if (ids == NULL || count == NULL) return ST_BADPARAM;
    ENTER(dcgmGroupGetAllIds, handle);
    *count = 0;
    for (const struct group *group = call.engine->groups; group != NULL; group = group->next)
        ids[(*count)++] = group->id;
    return call_end(ST_OK);
}

/* ---- groups of fields ---- */

struct field_group *field_group_find(struct engine *engine, dcgmFieldGrp_t id) {
    for (struct field_group *group = engine->field_groups; group != NULL; group = group->next)
        if (group->id == id) return group;
    return NULL;
}

static dcgmReturn_t may_create(const struct engine *engine, int count, const unsigned short *ids, const char *name) {
    for (int i = 0; i < count; i++)
        if (field_find(ids[i]) == NULL) return ST_BADPARAM;
    size_t groups = 0;
    for (const struct field_group *group = engine->field_groups; group != NULL; group = group->next) groups++;
    if (groups >= MAX_FIELD_GROUPS) return ST_MAX_LIMIT;
    for (const struct field_group *group = engine->field_groups; group != NULL; group = group->next)
        if (strcmp(group->info.fieldGroupName, name) == 0) return ST_DUPLICATE_KEY;
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, const unsigned short *ids, const char *name,
                                           dcgmFieldGrp_t *id) {
    if (count < 1 || count > MAX_FIELDS_OF_GROUP || ids == NULL || !fits(name) || id == NULL) return ST_BADPARAM;
    ENTER(dcgmFieldGroupCreate, handle);
    dcgmReturn_t may = may_create(call.engine, count, ids, name);
    if (may != ST_OK) return call_end(may);
    struct field_group *group = calloc(1, sizeof(*group));
    if (group == NULL) abort();
    group->id = ++call.engine->next_id;
    group->owner = call.connection;
    group->info.version = VERSION_OF(dcgmFieldGroupInfo_v1, 1);
    group->info.fieldGroupId = group->id;
    group->info.numFieldIds = (unsigned int)count;
    memcpy(group->info.fieldIds, ids, (size_t)count * sizeof(*ids));
    strcpy(group->info.fieldGroupName, name);
    group->next = call.engine->field_groups;
    call.engine->field_groups = group;
    report_add(OPEN_FIELD_GROUPS, 1);
    *id = group->id;
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmFieldGroupDestroy(dcgmHandle_t handle, dcgmFieldGrp_t id) {
    ENTER(dcgmFieldGroupDestroy, handle);
    for (struct field_group **at = &call.engine->field_groups; *at != NULL; at = &(*at)->next) {
        struct field_group *group = *at;
        if (group->id != id) continue;
        *at = group->next;
        free(group);
        report_add(OPEN_FIELD_GROUPS, -1);
        return call_end(ST_OK);
    }
    return call_end(ST_NO_DATA);
}

DCGM_API dcgmReturn_t dcgmFieldGroupGetInfo(dcgmHandle_t handle, dcgmFieldGroupInfo_v1 *info) {
    if (info == NULL) return ST_BADPARAM;
    ENTER(dcgmFieldGroupGetInfo, handle);
    if (info->version == 0) return call_end(ST_VER_MISMATCH);
    const struct field_group *group = field_group_find(call.engine, info->fieldGroupId);
    if (group == NULL) return call_end(ST_NO_DATA);
    *info = group->info;
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmFieldGroupGetAll(dcgmHandle_t handle, dcgmAllFieldGroup_v1 *all) {
    if (all == NULL) return ST_BADPARAM;
    ENTER(dcgmFieldGroupGetAll, handle);
    if (all->version != VERSION_OF(dcgmAllFieldGroup_v1, 1)) return call_end(ST_VER_MISMATCH);
    all->numFieldGroups = 0;
    for (const struct field_group *group = call.engine->field_groups; group != NULL; group = group->next)
        all->fieldGroups[all->numFieldGroups++] = group->info;
    return call_end(ST_OK);
}

/* ---- ends ---- */

void groups_forget(struct engine *engine, bool all, unsigned int owner) {
    for (struct group **at = &engine->groups; *at != NULL;) {
        struct group *group = *at;
        if (!all && group->owner != owner) {
            at = &group->next;
            continue;
        }
        *at = group->next;
        free(group);
        report_add(OPEN_GROUPS, -1);
    }
    for (struct field_group **at = &engine->field_groups; *at != NULL;) {
        struct field_group *group = *at;
        if (!all && group->owner != owner) {
            at = &group->next;
            continue;
        }
        *at = group->next;
        free(group);
        report_add(OPEN_FIELD_GROUPS, -1);
    }
}
