/* The scenario in memory: what each kind of line of the file says (scenario_file.py writes them). */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scenario *reading; /* the one being read */

#define NEW(array, count) grown((void **)&reading->array, &reading->count, sizeof(*reading->array))

static dcgmGroupEntityPair_t entity_of(const struct line *line) {
    return (dcgmGroupEntityPair_t){line_whole(line, "eg"), line_whole(line, "eid")};
}

static struct gpu *gpu_being_read(unsigned int id) {
    for (size_t i = 0; i < reading->gpu_count; i++)
        if (reading->gpus[i].id == id) return &reading->gpus[i];
    return NULL;
}

static void copy_text(const struct line *line, const char *key, char *to, size_t room) {
    const char *text = line_text(line, key);
    if (strlen(text) >= room) line_bad(line, "a text that is too long");
    memcpy(to, text, strlen(text) + 1);
}

static void add_window(struct windows *windows, struct window window) {
    *(struct window *)grown((void **)&windows->items, &windows->count, sizeof(window)) = window;
}

/* ---- one function for each keyword ---- */

static void read_engine(const struct line *line) {
    if (sscanf(line_text(line, "version"), "%d.%d.%d", &reading->version[0], &reading->version[1],
               &reading->version[2]) != 3)
        line_bad(line, "the version");
    reading->build_info = copied(line_text(line, "build_info"));
    reading->address = copied(line_text(line, "address"));
    reading->nvml = line_number(line, "nvml") != 0;
    reading->module_loaded = line_number(line, "module_loaded") != 0;
    reading->first_blank = line_number(line, "first_blank") != 0;
    reading->cpu_code = (int)line_number(line, "cpu_code");
    reading->request_timeout = line_number(line, "request_timeout");
    wall_begin(line);
}

static void read_gpu(const struct line *line) {
    unsigned int id = line_whole(line, "id");
    if (gpu_being_read(id) != NULL) line_bad(line, "two GPUs of one id");
    struct gpu *gpu = NEW(gpus, gpu_count);
    gpu->id = id;
    gpu->supported = line_number(line, "supported") != 0;
    gpu->profiling = (enum profiling)line_whole(line, "profiling");
    gpu->refusal = (int)line_number_or(line, "refusal", 0);
    gpu->combination_code = (int)line_number_or(line, "combination_code", 0);
    gpu->field_code = (int)line_number_or(line, "field_code", ST_PROFILING_NOT_SUPPORTED);
    dcgmDeviceAttributes_v3 *to = &gpu->attributes;
    copy_text(line, "brand", to->identifiers.brandName, TEXT_LENGTH);
    copy_text(line, "name", to->identifiers.deviceName, TEXT_LENGTH);
    copy_text(line, "pci", to->identifiers.pciBusId, TEXT_LENGTH);
    copy_text(line, "serial", to->identifiers.serial, TEXT_LENGTH);
    copy_text(line, "uuid", to->identifiers.uuid, TEXT_LENGTH);
    copy_text(line, "vbios", to->identifiers.vbios, TEXT_LENGTH);
    copy_text(line, "inforom", to->identifiers.inforomImageVersion, TEXT_LENGTH);
    copy_text(line, "driver", to->identifiers.driverVersion, TEXT_LENGTH);
    to->identifiers.pciDeviceId = line_whole(line, "pci_device");
    to->identifiers.pciSubSystemId = line_whole(line, "pci_subsystem");
    to->identifiers.virtualizationMode = line_whole_or(line, "virtualization", 0);
    to->thermalSettings.slowdownTemp = line_whole_or(line, "slowdown", INT32_BLANK);
    to->thermalSettings.shutdownTemp = line_whole_or(line, "shutdown", INT32_BLANK);
    to->powerLimits.curPowerLimit = line_whole_or(line, "power_limit", INT32_BLANK);
    to->powerLimits.enforcedPowerLimit = to->powerLimits.curPowerLimit;
    to->powerLimits.defaultPowerLimit = line_whole_or(line, "power_default", INT32_BLANK);
    to->powerLimits.minPowerLimit = line_whole_or(line, "power_min", INT32_BLANK);
    to->powerLimits.maxPowerLimit = line_whole_or(line, "power_max", INT32_BLANK);
    to->memoryUsage.bar1Total = line_whole_or(line, "bar1_total", INT32_BLANK);
    to->memoryUsage.fbTotal = line_whole_or(line, "fb_total", INT32_BLANK);
    to->memoryUsage.fbUsed = line_whole_or(line, "fb_used", INT32_BLANK);
    to->memoryUsage.fbFree = line_whole_or(line, "fb_free", INT32_BLANK);
    to->settings.persistenceModeEnabled = line_whole_or(line, "persistence", 1);
    struct thing *thing = NEW(things, thing_count);
    thing->entity = (dcgmGroupEntityPair_t){FE_GPU, id};
    thing->gpu = id;
}

static void add_metric_field(const struct line *line, const char *item, size_t index, void *to) {
    struct metric_group *group = to;
    if (index >= MAX_METRIC_FIELDS) line_bad(line, "too many fields");
    group->fields[index] = (unsigned short)line_item_number(line, item);
    group->count = index + 1;
}

static void read_group(const struct line *line) {
    struct gpu *gpu = gpu_being_read(line_whole(line, "gpu"));
    if (gpu == NULL || gpu->group_count == MAX_METRIC_GROUPS) line_bad(line, "no such GPU, or too many groups");
    struct metric_group *group = &gpu->groups[gpu->group_count++];
    group->major = line_whole(line, "major");
    group->minor = line_whole(line, "minor");
    group->withheld = line_whole_or(line, "withheld", 0) != 0;
    line_items(line, "fields", add_metric_field, group);
}

/* A part of a GPU (a MIG instance), or another kind of entity. */
static void read_thing(const struct line *line) {
    struct thing *thing = NEW(things, thing_count);
    thing->entity = entity_of(line);
    thing->gpu = line_whole_or(line, "gpu", ~0u);
    thing->in_hierarchy = thing->entity.entityGroupId == FE_GPU_I || thing->entity.entityGroupId == FE_GPU_CI;
    if (!thing->in_hierarchy) return;
    dcgmMigHierarchyInfo_v2 *to = &thing->info;
    to->entity = thing->entity;
    to->parent = thing->parent = (dcgmGroupEntityPair_t){line_whole(line, "parent_eg"), line_whole(line, "parent_eid")};
    copy_text(line, "gpu_uuid", to->info.gpuUuid, sizeof(to->info.gpuUuid));
    to->info.nvmlGpuIndex = line_whole(line, "nvml_gpu");
    to->info.nvmlInstanceId = line_whole(line, "nvml_instance");
    to->info.nvmlComputeInstanceId = line_whole(line, "nvml_compute");
    to->info.nvmlMigProfileId = line_whole(line, "profile");
    to->info.nvmlProfileSlices = line_whole(line, "slices");
}

static struct thing *find_thing(const struct scenario *in, dcgmGroupEntityPair_t entity) {
    for (size_t i = 0; i < in->thing_count; i++) {
        struct thing *thing = &in->things[i];
        if (thing->entity.entityGroupId == entity.entityGroupId && thing->entity.entityId == entity.entityId)
            return thing;
    }
    return NULL;
}

static void read_present(const struct line *line) {
    struct thing *thing = find_thing(reading, entity_of(line));
    if (thing == NULL) line_bad(line, "no such entity");
    add_window(&thing->present, line_window(line));
}

static void read_mig(const struct line *line) {
    struct gpu *gpu = gpu_being_read(line_whole(line, "gpu"));
    if (gpu == NULL) line_bad(line, "no such GPU");
    add_window(&gpu->mig, line_window(line));
}

static void add_state(const struct line *line, const char *item, size_t index, void *to) {
    struct link_states *links = to;
    if (index >= MAX_LINKS) line_bad(line, "too many links");
    links->states[index] = (unsigned int)line_item_number(line, item);
    links->count = index + 1;
}

static void read_links(const struct line *line) {
    struct link_states *links = NEW(links, link_count);
    links->entity = entity_of(line);
    links->from = line_time(line, "from");
    line_items(line, "states", add_state, links);
}

static void read_value(const struct line *line) {
    struct field_value *item = NEW(values, value_count);
    item->entity = entity_of(line);
    item->field = (unsigned short)line_whole(line, "field");
    line_value(line, &item->value);
}

static void read_call_fault(const struct line *line) { call_fault_read(line, &reading->call_faults); }

static void read_value_fault(const struct line *line) {
    struct value_fault *fault = NEW(value_faults, value_fault_count);
    fault->kind = (enum value_fault_kind)line_whole(line, "kind");
    fault->argument = line_number(line, "argument");
    fault->gpu = (long)line_number(line, "gpu");
    fault->entity_group = (long)line_number(line, "eg");
    fault->entity_id = (long)line_number(line, "eid");
    fault->first_field = (unsigned short)line_whole(line, "first_field");
    fault->last_field = (unsigned short)line_whole(line, "last_field");
    fault->cures = line_whole(line, "cures");
    fault->window = line_window(line);
}

static void read_lock(const struct line *line) {
    struct lock *lock = NEW(locks, lock_count);
    lock->window = line_window(line);
    lock->code = (int)line_number(line, "code");
}

static void read_gone(const struct line *line) { add_window(&reading->gone, line_window(line)); }
static void read_stopped(const struct line *line) { add_window(&reading->stopped, line_window(line)); }
static void read_paused(const struct line *line) { add_window(&reading->paused, line_window(line)); }

static const struct line_reader readers[] = {
    {"engine", read_engine},   {"gpu", read_gpu},         {"group", read_group},
    {"thing", read_thing},     {"present", read_present}, {"mig", read_mig},
    {"links", read_links},     {"value", read_value},     {"call_fault", read_call_fault},
    {"gone", read_gone},       {"stopped", read_stopped}, {"value_fault", read_value_fault},
    {"paused", read_paused},   {"lock", read_lock},
};

static int compare_values(const void *left, const void *right) {
    const struct field_value *a = left, *b = right;
    if (a->entity.entityGroupId != b->entity.entityGroupId)
        return a->entity.entityGroupId < b->entity.entityGroupId ? -1 : 1;
    if (a->entity.entityId != b->entity.entityId) return a->entity.entityId < b->entity.entityId ? -1 : 1;
    return (a->field > b->field) - (a->field < b->field);
}

struct scenario *scenario_read(void) {
    reading = calloc(1, sizeof(*reading));
    if (reading == NULL) abort();
    lines_read(readers, sizeof(readers) / sizeof(*readers));
    if (reading->build_info == NULL) player_fails("a scenario without an engine");
    for (size_t i = 0; i < reading->thing_count; i++)
        if (reading->things[i].in_hierarchy)
            reading->things[i].above = find_thing(reading, reading->things[i].parent);
    if (reading->value_count > 0)
        qsort(reading->values, reading->value_count, sizeof(*reading->values), compare_values);
    return reading;
}

/* ---- looking things up ---- */

const struct gpu *scenario_gpu(unsigned int id) {
    for (size_t i = 0; i < scenario->gpu_count; i++)
        if (scenario->gpus[i].id == id) return &scenario->gpus[i];
    return NULL;
}

const struct thing *scenario_thing(dcgmGroupEntityPair_t entity) { return find_thing(scenario, entity); }

const struct value *scenario_value(dcgmGroupEntityPair_t entity, unsigned short field) {
    struct field_value key = {.entity = entity, .field = field};
    if (scenario->value_count == 0) return NULL;
    const struct field_value *found =
        bsearch(&key, scenario->values, scenario->value_count, sizeof(key), compare_values);
    return found == NULL ? NULL : &found->value;
}

/* A part is there only as long as what it is a part of. */
bool thing_present(const struct thing *thing, usec time) {
    if (thing->present.count > 0 && !in_windows(&thing->present, time)) return false;
    return thing->above == NULL || thing_present(thing->above, time);
}

bool version_from(int major, int minor) {
    if (scenario == NULL) return true;
    return scenario->version[0] > major || (scenario->version[0] == major && scenario->version[1] >= minor);
}
