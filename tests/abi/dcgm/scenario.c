/* The scenario in memory: what each kind of line of the file says (scenario_file.py writes them). */
#include "player.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scenario *reading; /* the one being read */

#define NEW(array, count) grown((void **)&reading->array, &reading->count, sizeof(*reading->array))

static unsigned int whole(const struct line *line, const char *key) { return (unsigned int)line_number(line, key); }

static unsigned int whole_or(const struct line *line, const char *key, unsigned int otherwise) {
    return (unsigned int)line_number_or(line, key, otherwise);
}

static dcgmGroupEntityPair_t entity_of(const struct line *line) {
    return (dcgmGroupEntityPair_t){whole(line, "eg"), whole(line, "eid")};
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
    reading->build_info = strdup(line_text(line, "build_info"));
    reading->address = strdup(line_text(line, "address"));
    reading->nvml = line_number(line, "nvml") != 0;
    reading->module_loaded = line_number(line, "module_loaded") != 0;
    reading->first_blank = line_number(line, "first_blank") != 0;
    reading->cpu_code = (int)line_number(line, "cpu_code");
    reading->request_timeout = line_number(line, "request_timeout");
    reading->wall_offset = strcmp(line_text(line, "wall_offset"), "real") == 0 ? wall_real() - clock_now()
                                                                             : line_time(line, "wall_offset");
}

static void read_gpu(const struct line *line) {
    unsigned int id = whole(line, "id");
    if (gpu_being_read(id) != NULL) line_bad(line, "two GPUs of one id");
    struct gpu *gpu = NEW(gpus, gpu_count);
    gpu->id = id;
    gpu->supported = line_number(line, "supported") != 0;
    gpu->profiling = (enum profiling)whole(line, "profiling");
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
    to->identifiers.pciDeviceId = whole(line, "pci_device");
    to->identifiers.pciSubSystemId = whole(line, "pci_subsystem");
    to->identifiers.virtualizationMode = whole_or(line, "virtualization", 0);
    to->thermalSettings.slowdownTemp = whole_or(line, "slowdown", INT32_BLANK);
    to->thermalSettings.shutdownTemp = whole_or(line, "shutdown", INT32_BLANK);
    to->powerLimits.curPowerLimit = to->powerLimits.enforcedPowerLimit = whole_or(line, "power_limit", INT32_BLANK);
    to->powerLimits.defaultPowerLimit = whole_or(line, "power_default", INT32_BLANK);
    to->powerLimits.minPowerLimit = whole_or(line, "power_min", INT32_BLANK);
    to->powerLimits.maxPowerLimit = whole_or(line, "power_max", INT32_BLANK);
    to->memoryUsage.bar1Total = whole_or(line, "bar1_total", INT32_BLANK);
    to->memoryUsage.fbTotal = whole_or(line, "fb_total", INT32_BLANK);
    to->memoryUsage.fbUsed = whole_or(line, "fb_used", INT32_BLANK);
    to->memoryUsage.fbFree = whole_or(line, "fb_free", INT32_BLANK);
    to->settings.persistenceModeEnabled = whole_or(line, "persistence", 1);
    struct thing *thing = NEW(things, thing_count);
    thing->entity = (dcgmGroupEntityPair_t){FE_GPU, id};
    thing->gpu = id;
}

static void add_metric_field(const char *item, size_t index, void *to) {
    struct metric_group *group = to;
    if (index >= MAX_METRIC_FIELDS) abort();
    group->fields[index] = (unsigned short)number_of(item, "fields");
    group->count = index + 1;
}

static void read_group(const struct line *line) {
    struct gpu *gpu = gpu_being_read(whole(line, "gpu"));
    if (gpu == NULL || gpu->group_count == MAX_METRIC_GROUPS) line_bad(line, "no such GPU, or too many groups");
    struct metric_group *group = &gpu->groups[gpu->group_count++];
    group->major = whole(line, "major");
    group->minor = whole(line, "minor");
    group->withheld = whole_or(line, "withheld", 0) != 0;
    line_items(line, "fields", add_metric_field, group);
}

/* A part of a GPU (a MIG instance), or another kind of entity. */
static void read_thing(const struct line *line) {
    struct thing *thing = NEW(things, thing_count);
    thing->entity = entity_of(line);
    thing->gpu = whole_or(line, "gpu", ~0u);
    thing->in_hierarchy = thing->entity.entityGroupId == FE_GPU_I || thing->entity.entityGroupId == FE_GPU_CI;
    if (!thing->in_hierarchy) return;
    dcgmMigHierarchyInfo_v2 *to = &thing->info;
    to->entity = thing->entity;
    to->parent = thing->parent = (dcgmGroupEntityPair_t){whole(line, "parent_eg"), whole(line, "parent_eid")};
    copy_text(line, "gpu_uuid", to->info.gpuUuid, sizeof(to->info.gpuUuid));
    to->info.nvmlGpuIndex = whole(line, "nvml_gpu");
    to->info.nvmlInstanceId = whole(line, "nvml_instance");
    to->info.nvmlComputeInstanceId = whole(line, "nvml_compute");
    to->info.nvmlMigProfileId = whole(line, "profile");
    to->info.nvmlProfileSlices = whole(line, "slices");
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
    struct gpu *gpu = gpu_being_read(whole(line, "gpu"));
    if (gpu == NULL) line_bad(line, "no such GPU");
    add_window(&gpu->mig, line_window(line));
}

static void add_state(const char *item, size_t index, void *to) {
    struct link_states *links = to;
    if (index >= MAX_LINKS) abort();
    links->states[index] = (unsigned int)number_of(item, "states");
    links->count = index + 1;
}

static void read_links(const struct line *line) {
    struct link_states *links = NEW(links, link_count);
    links->entity = entity_of(line);
    links->from = line_time(line, "from");
    line_items(line, "states", add_state, links);
}

/* TIME:NUMBER or TIME:blankKIND */
static void add_point(const char *item, size_t index, void *to) {
    struct value *value = to;
    struct point *point = grown((void **)&value->points, &value->count, sizeof(*point));
    char *copy = strdup(item), *colon = strchr(copy, ':');
    if (colon == NULL) abort();
    *colon = '\0';
    point->from = time_of(copy, "points");
    point->blank = BLANK_NONE;
    if (strncmp(colon + 1, "blank", 5) == 0)
        point->blank = (int)number_of(colon + 6, "points");
    else
        point->value = number_of(colon + 1, "points");
    free(copy);
    if (index == 0) return;
    const struct point *before = point - 1;
    if (before->from > point->from) {
        fprintf(stderr, "DCGM player: points must be in the order of time: %s\n", item);
        abort();
    }
    double seconds = before->blank == BLANK_NONE ? (double)(point->from - before->from) / 1e6 : 0.0;
    point->integral = before->integral + before->value * seconds;
}

static void add_reset(const char *item, size_t index, void *to) {
    (void)index;
    struct value *value = to;
    *(usec *)grown((void **)&value->resets, &value->reset_count, sizeof(usec)) = time_of(item, "resets");
}

static void read_value(const struct line *line) {
    static const char *const kinds[] = {"steps", "counter", "events", "text"};
    struct value *value = NEW(values, value_count);
    value->entity = entity_of(line);
    value->field = (unsigned short)whole(line, "field");
    const char *kind = line_text(line, "kind");
    while (value->kind <= VALUE_TEXT && strcmp(kinds[value->kind], kind) != 0) value->kind++;
    if (value->kind > VALUE_TEXT) line_bad(line, "no such kind of value");
    if (value->kind == VALUE_TEXT) {
        value->text = strdup(line_text(line, "text"));
        return;
    }
    line_items(line, "points", add_point, value);
    if (value->count == 0 && value->kind != VALUE_EVENTS) line_bad(line, "no points");
    value->start = line_number_or(line, "start", 0);
    if (value->kind == VALUE_COUNTER) line_items(line, "resets", add_reset, value);
}

static void read_call_fault(const struct line *line) {
    struct call_fault *fault = NEW(call_faults, call_fault_count);
    fault->function = strdup(line_text(line, "function"));
    fault->kind = (enum call_fault_kind)whole(line, "kind");
    fault->argument = line_number(line, "argument");
    fault->gpu = (int)line_number(line, "gpu");
    fault->limit = whole(line, "limit");
    fault->window = line_window(line);
}

static void read_value_fault(const struct line *line) {
    struct value_fault *fault = NEW(value_faults, value_fault_count);
    fault->kind = (enum value_fault_kind)whole(line, "kind");
    fault->argument = line_number(line, "argument");
    fault->gpu = (long)line_number(line, "gpu");
    fault->entity_group = (long)line_number(line, "eg");
    fault->entity_id = (long)line_number(line, "eid");
    fault->first_field = (unsigned short)whole(line, "first_field");
    fault->last_field = (unsigned short)whole(line, "last_field");
    fault->cures = whole(line, "cures");
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

static void read_line(const struct line *line) {
    static const struct {
        const char *keyword;
        void (*read)(const struct line *line);
    } readers[] = {
        {"engine", read_engine},   {"gpu", read_gpu},         {"group", read_group},
        {"thing", read_thing},     {"present", read_present}, {"mig", read_mig},
        {"links", read_links},     {"value", read_value},     {"call_fault", read_call_fault},
        {"gone", read_gone},       {"stopped", read_stopped}, {"value_fault", read_value_fault},
        {"paused", read_paused},   {"lock", read_lock},
    };
    for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
        if (strcmp(readers[i].keyword, line->keyword) != 0) continue;
        readers[i].read(line);
        return;
    }
    line_bad(line, "no such keyword");
}

static int compare_values(const void *left, const void *right) {
    const struct value *a = left, *b = right;
    if (a->entity.entityGroupId != b->entity.entityGroupId)
        return a->entity.entityGroupId < b->entity.entityGroupId ? -1 : 1;
    if (a->entity.entityId != b->entity.entityId) return a->entity.entityId < b->entity.entityId ? -1 : 1;
    return (a->field > b->field) - (a->field < b->field);
}

struct scenario *scenario_read(const char *path) {
    reading = calloc(1, sizeof(*reading));
    if (reading == NULL) abort();
    lines_read(path, read_line);
    if (reading->build_info == NULL) {
        fprintf(stderr, "DCGM player: a scenario without an engine: %s\n", path);
        abort();
    }
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
    struct value key = {.entity = entity, .field = field};
    if (scenario->value_count == 0) return NULL;
    return bsearch(&key, scenario->values, scenario->value_count, sizeof(key), compare_values);
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
