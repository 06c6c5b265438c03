/* Profiling: what each GPU offers, which watches it admits, and pausing it. */
#include "player.h"

#include <string.h>

const struct gpu *gpu_of(dcgmGroupEntityPair_t entity) {
    const struct thing *thing = scenario_thing(entity);
    return thing == NULL || thing->gpu == ~0u ? NULL : scenario_gpu(thing->gpu);
}

static dcgmReturn_t refusal_of(const struct gpu *gpu) {
    if (gpu->refusal != 0) return gpu->refusal;
    if (gpu->profiling != PROFILING_NONE) return ST_OK;
    return scenario->module_loaded ? ST_PROFILING_NOT_SUPPORTED : ST_MODULE_NOT_LOADED;
}

/* ---- the fields that shall be read together on one GPU ---- */

struct fields {
    size_t count;
    unsigned short ids[2 * MAX_FIELDS_OF_GROUP];
};

static void add_field(struct fields *fields, unsigned short id) {
    if (!field_is_profiling(id)) return;
    for (size_t i = 0; i < fields->count; i++)
        if (fields->ids[i] == id) return;
    if (fields->count < sizeof(fields->ids) / sizeof(*fields->ids)) fields->ids[fields->count++] = id;
}

static bool in_group(const struct metric_group *group, unsigned short id) {
    for (size_t i = 0; i < group->count; i++)
        if (group->fields[i] == id) return true;
    return false;
}

static bool in_major(const struct gpu *gpu, unsigned int major, unsigned short id) {
    for (size_t i = 0; i < gpu->group_count; i++)
        if (gpu->groups[i].major == major && in_group(&gpu->groups[i], id)) return true;
    return false;
}

/* Whether one group has all the fields for which the hardware of its major id is needed. */
static bool suffices(const struct gpu *gpu, const struct metric_group *group, const struct fields *fields) {
    for (size_t i = 0; i < fields->count; i++)
        if (in_major(gpu, group->major, fields->ids[i]) && !in_group(group, fields->ids[i])) return false;
    return true;
}

static dcgmReturn_t admits_together(const struct gpu *gpu, const struct fields *fields) {
    for (size_t i = 0; i < gpu->group_count && gpu->combination_code != 0; i++) {
        bool some = false;
        for (size_t j = 0; j < gpu->group_count && !some; j++)
            some = gpu->groups[j].major == gpu->groups[i].major && suffices(gpu, &gpu->groups[j], fields);
        if (!some) return gpu->combination_code;
    }
    return ST_OK;
}

static bool offers(const struct gpu *gpu, unsigned short id) {
    for (size_t i = 0; i < gpu->group_count; i++)
        if (!gpu->groups[i].withheld && in_group(&gpu->groups[i], id)) return true;
    return false;
}

static dcgmReturn_t module_admits(const struct engine *engine, const struct gpu *gpu, const struct fields *wanted,
                                  usec now) {
    for (size_t i = 0; i < scenario->lock_count; i++) {
        struct window window = scenario->locks[i].window;
        if (window.from <= now && now < window.until) return scenario->locks[i].code;
    }
    for (size_t i = 0; i < wanted->count; i++)
        if (!offers(gpu, wanted->ids[i])) return gpu->field_code;
    struct fields all = *wanted;
    for (const struct series *series = engine->series; series != NULL; series = series->next)
        if (series->watchers != NULL && series->gpu == gpu) add_field(&all, series->field);
    return admits_together(gpu, &all);
}

dcgmReturn_t profiling_admits(struct engine *engine, const struct group *group, const struct field_group *field_group,
                              usec now) {
    struct fields wanted = {0, {0}};
    for (unsigned int i = 0; i < field_group->info.numFieldIds; i++) add_field(&wanted, field_group->info.fieldIds[i]);
    if (wanted.count == 0) return ST_OK;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu *gpu = gpu_of(group->entities[i]);
        if (gpu == NULL) continue;
        dcgmReturn_t code = refusal_of(gpu);
        if (code == ST_OK && gpu->profiling == PROFILING_MODULE) code = module_admits(engine, gpu, &wanted, now);
        if (code != ST_OK) return code;
    }
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmProfGetSupportedMetricGroups(dcgmHandle_t handle, dcgmProfGetMetricGroups_v3 *out) {
    if (out == NULL) return ST_BADPARAM;
    if (out->version != VERSION_OF(dcgmProfGetMetricGroups_v3, 3)) return ST_VER_MISMATCH;
    ENTER_GPU(dcgmProfGetSupportedMetricGroups, handle, out->gpuId);
    const struct gpu *gpu = scenario_gpu(out->gpuId);
    if (gpu == NULL) return call_end(ST_BADPARAM);
    dcgmReturn_t code = refusal_of(gpu);
    if (code != ST_OK) return call_end(code);
    out->numMetricGroups = (unsigned int)gpu->group_count;
    for (size_t i = 0; i < gpu->group_count; i++) {
        const struct metric_group *group = &gpu->groups[i];
        dcgmProfMetricGroupInfo_v2 *to = &out->metricGroups[i];
        to->majorId = (unsigned short)group->major;
        to->minorId = (unsigned short)group->minor;
        to->numFieldIds = (unsigned int)group->count;
        memcpy(to->fieldIds, group->fields, group->count * sizeof(*group->fields));
    }
    return call_end(ST_OK);
}

/* ---- pausing: it lies beside the report, as a state of the hostengine, whoever asks for it ---- */

enum { PAUSE_MAX = 256 };

struct pauses {
    unsigned long long count;
    struct {
        usec time;
        int embedded, paused;
    } items[PAUSE_MAX];
};
static_assert(sizeof(struct pauses) <= SHARED_SIZE, "pauses");

static void pause_note(bool embedded, bool paused, usec time) {
    struct pauses *pauses = report_shared();
    unsigned long long index = __atomic_fetch_add(&pauses->count, 1, __ATOMIC_ACQ_REL) % PAUSE_MAX;
    pauses->items[index].time = time;
    pauses->items[index].embedded = embedded;
    __atomic_store_n(&pauses->items[index].paused, paused, __ATOMIC_RELEASE);
}

/* Walks backwards: the newest one that counts. `wanted` -1: a pause or a resume. */
static int find(bool embedded, usec from, usec until, int wanted, usec *at) {
    struct pauses *pauses = report_shared();
    unsigned long long count = __atomic_load_n(&pauses->count, __ATOMIC_ACQUIRE);
    for (unsigned long long i = count; i > 0 && i + PAUSE_MAX > count; i--) {
        unsigned long long index = (i - 1) % PAUSE_MAX;
        int paused = pauses->items[index].paused;
        usec time = pauses->items[index].time;
        if ((bool)pauses->items[index].embedded != embedded || time < from || time > until) continue;
        if (wanted >= 0 && paused != wanted) continue;
        *at = time;
        return paused;
    }
    return -1;
}

/* The last pause (1) or resume (0) in from..until, both inside; -1: none. */
static int pause_last(bool embedded, usec from, usec until, usec *at) { return find(embedded, from, until, -1, at); }

bool pause_resumed(bool embedded, usec from, usec until) {
    usec at;
    return find(embedded, from, until, 0, &at) == 0;
}

/* The last of what happened counts: a client's pause or resume, or one of the scenario's. */
bool profiling_paused(const struct engine *engine, usec time) {
    usec latest = engine->born - 1, at;
    bool paused = false;
    for (size_t i = 0; i < scenario->paused.count && !engine->embedded; i++) {
        struct window window = scenario->paused.items[i];
        if (window.from <= time && window.from > latest) {
            latest = window.from;
            paused = true;
        }
        if (window.until <= time && window.until > latest) {
            latest = window.until;
            paused = false;
        }
    }
    int asked = pause_last(engine->embedded, engine->born, time, &at);
    return asked >= 0 && at >= latest ? asked == 1 : paused;
}

static bool has_module(void) {
    for (size_t i = 0; i < scenario->gpu_count; i++)
        if (scenario->gpus[i].profiling == PROFILING_MODULE && scenario->module_loaded) return true;
    return false;
}

/* Both do nothing where there is nothing to do; GPM has no such thing. */
static dcgmReturn_t change(const struct call *call, bool pause) {
    if (!has_module()) return ST_NOT_SUPPORTED;
    bool paused = profiling_paused(call->engine, call->now);
    if (paused != pause || !pause) pause_note(call->engine->embedded, pause, call->now);
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmProfPause(dcgmHandle_t handle) {
    ENTER(dcgmProfPause, handle);
    return call_end(change(&call, true));
}

DCGM_API dcgmReturn_t dcgmProfResume(dcgmHandle_t handle) {
    ENTER(dcgmProfResume, handle);
    return call_end(change(&call, false));
}
