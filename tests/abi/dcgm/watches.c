/* Who watches what. A client is one watcher of a field of an entity: watching again changes its interval. */
#include "player.h"

#include <stdlib.h>

enum { LEAST_INTERVAL = 100000, LEAST_KEEP = 1000000, SLACK = 3 };

static size_t bucket_of(dcgmGroupEntityPair_t entity, unsigned short field) {
    return (entity.entityGroupId * 31u + entity.entityId * 1021u + field) % BUCKETS;
}

struct series *series_find(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field) {
    struct series *series = engine->buckets[bucket_of(entity, field)];
    for (; series != NULL; series = series->next_in_bucket)
        if (series->field == field && series->entity.entityGroupId == entity.entityGroupId &&
            series->entity.entityId == entity.entityId)
            return series;
    return NULL;
}

static struct series *series_make(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field) {
    struct series *series = calloc(1, sizeof(*series)), **bucket = &engine->buckets[bucket_of(entity, field)];
    if (series == NULL) abort();
    series->entity = entity;
    series->field = field;
    series->type = field_find(field)->type;
    series->value = scenario_value(entity, field);
    series->thing = scenario_thing(entity);
    series->gpu = gpu_of(entity);
    series->next = engine->series;
    engine->series = series;
    series->next_in_bucket = *bucket;
    *bucket = series;
    return series;
}

/* The fastest watcher sets the interval, the most patient one how long samples are kept. */
static void follow_watchers(struct engine *engine, struct series *series) {
    if (series->watchers == NULL) return;
    series->interval = NEVER;
    series->keep = 0;
    for (const struct watcher *watcher = series->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->interval < series->interval) series->interval = watcher->interval;
        if (watcher->keep > series->keep) series->keep = watcher->keep;
    }
    bool events = series->value != NULL && series->value->kind == VALUE_EVENTS;
    if (!events) series->due = series->last + series->interval;
    engine->due = 0;
}

static void watch(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field,
                  const struct watcher *wanted, usec now) {
    struct series *series = series_find(engine, entity, field);
    if (series == NULL) series = series_make(engine, entity, field);
    bool fresh = series->watchers == NULL;
    struct watcher *watcher = series->watchers;
    while (watcher != NULL && watcher->owner != wanted->owner) watcher = watcher->next;
    if (watcher == NULL) {
        watcher = calloc(1, sizeof(*watcher));
        if (watcher == NULL) abort();
        watcher->next = series->watchers;
        watcher->owner = wanted->owner;
        series->watchers = watcher;
        report_add(OPEN_WATCHES, 1);
    }
    watcher->interval = wanted->interval;
    watcher->keep = wanted->keep;
    follow_watchers(engine, series);
    if (fresh) series_first(engine, series, now);
}

static void unwatch(struct engine *engine, struct series *series, unsigned int owner) {
    for (struct watcher **at = &series->watchers; *at != NULL; at = &(*at)->next) {
        struct watcher *watcher = *at;
        if (watcher->owner != owner) continue;
        *at = watcher->next;
        free(watcher);
        report_add(OPEN_WATCHES, -1);
        follow_watchers(engine, series);
        return;
    }
}

static void unwatch_all(struct engine *engine, const struct group *group, const struct field_group *fields,
                        unsigned int owner) {
    for (size_t i = 0; i < group->count; i++) {
        for (unsigned int j = 0; j < fields->info.numFieldIds; j++) {
            struct series *series = series_find(engine, group->entities[i], fields->info.fieldIds[j]);
            if (series != NULL) unwatch(engine, series, owner);
        }
    }
}

static usec kept_for(double age, int samples, usec interval) {
    usec by_age = age > 1e9 ? (usec)1e15 : (usec)(age * 1e6), by_samples = (usec)samples * interval * SLACK;
    usec keep = by_age > by_samples ? by_age : by_samples;
    return keep > LEAST_KEEP ? keep : LEAST_KEEP;
}

/* All or nothing: where profiling refuses, the client's other watches of the group's fields end, too. */
DCGM_API dcgmReturn_t dcgmWatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields_id,
                                      long long interval, double age, int samples) {
    if (interval < 0 || age < 0 || samples < 0) return ST_BADPARAM;
    ENTER(dcgmWatchFields, handle);
    const struct group *group = group_find(call.engine, group_id, call.now);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    const struct field_group *fields = field_group_find(call.engine, fields_id);
    if (fields == NULL) return call_end(ST_NO_DATA);
    dcgmReturn_t admitted = profiling_admits(call.engine, group, fields, call.now);
    if (admitted != ST_OK) {
        unwatch_all(call.engine, group, fields, call.connection);
        return call_end(admitted);
    }
    struct watcher wanted = {.owner = call.connection, .interval = interval > 0 ? interval : LEAST_INTERVAL};
    wanted.keep = kept_for(age, samples, wanted.interval);
    for (size_t i = 0; i < group->count; i++) {
        const struct thing *thing = scenario_thing(group->entities[i]);
        if (thing == NULL || !thing_present(thing, call.now)) continue;
        for (unsigned int j = 0; j < fields->info.numFieldIds; j++)
            watch(call.engine, group->entities[i], fields->info.fieldIds[j], &wanted, call.now);
    }
    return call_end(ST_OK);
}

DCGM_API dcgmReturn_t dcgmUnwatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields_id) {
    ENTER(dcgmUnwatchFields, handle);
    const struct group *group = group_find(call.engine, group_id, call.now);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    const struct field_group *fields = field_group_find(call.engine, fields_id);
    if (fields == NULL) return call_end(ST_NO_DATA);
    unwatch_all(call.engine, group, fields, call.connection);
    return call_end(ST_OK);
}

/* Samples are taken when they are due: there is nothing to hurry. */
DCGM_API dcgmReturn_t dcgmUpdateAllFields(dcgmHandle_t handle, int wait) {
    (void)wait;
    ENTER(dcgmUpdateAllFields, handle);
    return call_end(ST_OK);
}

/* ---- ends ---- */

/* Samples outlive their watcher, until they are too old. */
void watches_forget(struct engine *engine, unsigned int owner) {
    for (struct series *series = engine->series; series != NULL; series = series->next)
        unwatch(engine, series, owner);
}

void engine_clear(struct engine *engine) {
    groups_forget(engine, true, 0);
    while (engine->series != NULL) {
        struct series *series = engine->series;
        engine->series = series->next;
        while (series->watchers != NULL) {
            struct watcher *watcher = series->watchers;
            series->watchers = watcher->next;
            free(watcher);
            report_add(OPEN_WATCHES, -1);
        }
        report_add(KEPT_SAMPLES, -(long long)series->count);
        free(series->samples);
        free(series);
    }
    for (size_t i = 0; i < BUCKETS; i++) engine->buckets[i] = NULL;
    engine->due = 0;
}
