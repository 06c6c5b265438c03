/* Handing samples out. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    dcgmGroupEntityPair_t entity;
    unsigned short field;
    char type;
    int status;
    usec time; /* 0 where there is no sample */
    bool sampled;
    struct reading reading;
    size_t request; /* of values since: how many values come with the request whose first row this is; else 0 */
};

struct rows {
    size_t count;
    struct row *items;
};

/* ---- one row ---- */

static long long whole(double value) {
    if (value >= 9.2e18) return INT64_MAX;
    if (value <= -9.2e18) return INT64_MIN;
    return (long long)(value < 0 ? value - 0.5 : value + 0.5);
}

static void put(char type, const struct reading *reading, dcgmValue *to) {
    static const char *const blanks[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};
    int blank = reading->absence;
    memset(to, 0, TEXT_LENGTH);
    if (type == 'd') to->dbl = blank == PRESENT ? reading->value : FP64_BLANK + blank;
    else if (type == 's' || type == 'b')
        snprintf(to->str, TEXT_LENGTH, "%s", blank == PRESENT && reading->text ? reading->text : blanks[blank & 3]);
    else to->i64 = blank == PRESENT ? whole(reading->value) : INT64_BLANK + blank;
}

static void add_row(struct rows *rows, const struct row *row) {
    *(struct row *)grown((void **)&rows->items, &rows->count, sizeof(*row)) = *row;
}

static void add_sample(struct rows *rows, const struct series *series, const struct sample *sample) {
    struct row row = {series->entity, series->field, series->type, ST_OK, sample->time, true, sample->reading, 0};
    add_row(rows, &row);
}

/* In place of samples: why there are none. */
static void add_absence(struct rows *rows, const struct engine *engine, dcgmGroupEntityPair_t entity,
                        unsigned short field, const struct series *series, usec now) {
    const struct field *meta = field_find(field);
    struct row row = {.entity = entity, .field = field, .type = meta == NULL ? 'i' : meta->type};
    bool watched = series != NULL && series->watchers != NULL;
    row.status = watched ? ST_NO_DATA : ST_NOT_WATCHED;
    const struct value_fault *fault = watched ? value_fault_at(engine, series, now) : NULL;
    if (fault != NULL && fault->kind == FAULT_STATUS) row.status = (int)fault->argument;
    add_row(rows, &row);
}

/* ---- all samples since ---- */

static const struct sample *nth(const struct series *series, size_t index) {
    return &series->samples[(series->first + index) % series->room];
}

static void collect_since(struct rows *rows, const struct call *call, dcgmGroupEntityPair_t entity,
                          unsigned short field, usec since) {
    struct series *series = series_find(call->engine, entity, field);
    size_t before = rows->count;
    if (series != NULL) {
        series_prune(series, call->now);
        size_t from = series->count;
        while (from > 0 && wall_of(nth(series, from - 1)->time) >= since) from--;
        for (size_t i = from; i < series->count; i++) add_sample(rows, series, nth(series, i));
    }
    if (rows->count == before) add_absence(rows, call->engine, entity, field, series, call->now);
    rows->items[before].request = rows->count - before;
}

static void collect_latest(struct rows *rows, const struct call *call, dcgmGroupEntityPair_t entity,
                           unsigned short field) {
    struct series *series = series_find(call->engine, entity, field);
    if (series != NULL) series_prune(series, call->now);
    if (series == NULL || series->count == 0)
        add_absence(rows, call->engine, entity, field, series, call->now);
    else
        add_sample(rows, series, nth(series, series->count - 1));
}

static dcgmFieldValue_v1 value_of(const struct row *row, usec wall) {
    dcgmFieldValue_v1 value;
    value.version = VERSION_OF(dcgmFieldValue_v1, 1);
    value.fieldId = row->field;
    value.fieldType = (unsigned short)row->type;
    value.status = row->status;
    value.ts = row->sampled ? wall : 0;
    put(row->type, &row->reading, &value.value);
    return value;
}

/*
 * Callbacks may call the library again, so they run without the lock. 1: a callback wanted to stop. The library asks
 * for values since one field of one entity after the other, with callbacks in between; what comes after a stop is never
 * asked for.
 */
static int deliver(const struct rows *rows, const struct call *call, const usec *walls, valuesCallback_v2 callback,
                   void *user) {
    int stop = 0;
    for (size_t i = 0; i < rows->count && stop == 0; i++) {
        const struct row *row = &rows->items[i];
        if (row->request > 0) {
            report_request(call->counter);
            trip(call->handle, TRIP_SINCE, row->request);
        }
        dcgmFieldValue_v1 value = value_of(row, walls[i]);
        stop = callback((int)row->entity.entityGroupId, row->entity.entityId, &value, 1, user) != 0;
    }
    return stop;
}

static usec *walls_of(const struct rows *rows) {
    usec *walls = calloc(rows->count + 1, sizeof(*walls));
    if (walls == NULL) abort();
    for (size_t i = 0; i < rows->count; i++) walls[i] = wall_of(rows->items[i].time);
    return walls;
}

/* Ends with the lock given back; `asked` is what the rows' common request was. */
static int hand_out(struct rows *rows, const struct call *call, enum trip_kind asked, valuesCallback_v2 callback,
                    void *user) {
    usec *walls = walls_of(rows);
    call_end(ST_OK);
    trip(call->handle, asked, asked == TRIP_LATEST ? rows->count : 0);
    int stopped = deliver(rows, call, walls, callback, user);
    free(walls);
    free(rows->items);
    return stopped;
}

DCGM_API dcgmReturn_t dcgmGetValuesSince_v2(dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields_id,
                                            long long since, long long *next, valuesCallback_v2 callback, void *user) {
    if (next == NULL || callback == NULL) return ST_BADPARAM;
    *next = since;
    ENTER(dcgmGetValuesSince_v2, handle); /* the request for what is in the field group */
    const struct field_group *fields = field_group_find(call.engine, fields_id);
    if (fields == NULL) return call_end(ST_NO_DATA);
    report_request(call.counter); /* for what is in the group */
    const struct group *group = group_find(call.engine, group_id, call.now);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    struct rows rows = {0, NULL};
    for (size_t i = 0; i < group->count; i++)
        for (unsigned int j = 0; j < fields->info.numFieldIds; j++)
            collect_since(&rows, &call, group->entities[i], fields->info.fieldIds[j], since);
    usec end = wall_of(call.now);
    if (hand_out(&rows, &call, TRIP_SMALL, callback, user) == 0) *next = end + 1;
    return ST_OK;
}

/* ---- the latest ones ---- */

DCGM_API dcgmReturn_t dcgmGetLatestValues_v2(dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields_id,
                                             valuesCallback_v2 callback, void *user) {
    if (callback == NULL) return ST_BADPARAM;
    ENTER_AS(dcgmGetLatestValues_v2, handle, -1, REQUEST_VALUES);
    const struct group *group = group_find(call.engine, group_id, call.now);
    if (group == NULL) return call_end(ST_NOT_CONFIGURED);
    const struct field_group *fields = field_group_find(call.engine, fields_id);
    if (fields == NULL) return call_end(ST_NO_DATA);
    struct rows rows = {0, NULL};
    for (size_t i = 0; i < group->count; i++)
        for (unsigned int j = 0; j < fields->info.numFieldIds; j++)
            collect_latest(&rows, &call, group->entities[i], fields->info.fieldIds[j]);
    hand_out(&rows, &call, TRIP_LATEST, callback, user);
    return ST_OK;
}

/* A hostengine dies of a live profiling field: whoever asks for one must hear of it in the test. */
static void refuse_live_profiling(const unsigned short fields[], unsigned int count, unsigned int flags) {
    if ((flags & LIVE_DATA) == 0) return;
    for (unsigned int i = 0; i < count; i++) {
        if (!field_is_profiling(fields[i])) continue;
        fprintf(stderr, "DCGM player: LIVE_DATA of profiling field %d kills a hostengine\n", fields[i]);
        abort();
    }
}

DCGM_API dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, dcgmGroupEntityPair_t entities[],
                                                  unsigned int entity_count, unsigned short fields[],
                                                  unsigned int field_count, unsigned int flags,
                                                  dcgmFieldValue_v2 values[]) {
    if (!entities || entity_count < 1 || !fields || field_count < 1 || !values) return ST_BADPARAM;
    ENTER_AS(dcgmEntitiesGetLatestValues, handle, -1, REQUEST_VALUES);
    refuse_live_profiling(fields, field_count, flags);
    struct rows rows = {0, NULL};
    for (unsigned int i = 0; i < entity_count; i++) {
        for (unsigned int j = 0; j < field_count; j++) {
            const struct field *meta = field_find(fields[j]);
            if ((flags & LIVE_DATA) == 0 || meta == NULL) {
                collect_latest(&rows, &call, entities[i], fields[j]);
                continue;
            }
            struct reading reading = reading_now(call.engine, entities[i], fields[j], call.now);
            struct row row = {entities[i], fields[j], meta->type, ST_OK, call.now, true, reading, 0};
            add_row(&rows, &row);
        }
    }
    for (size_t i = 0; i < rows.count; i++) {
        const struct row *row = &rows.items[i];
        dcgmFieldValue_v2 *to = &values[i];
        to->version = VERSION_OF(dcgmFieldValue_v2, 2);
        to->entityGroupId = row->entity.entityGroupId;
        to->entityId = row->entity.entityId;
        to->fieldId = row->field;
        to->fieldType = (unsigned short)row->type;
        to->status = row->status;
        to->unused = 0;
        to->ts = row->sampled ? wall_of(row->time) : 0;
        put(row->type, &row->reading, &to->value);
    }
    call_end(ST_OK);
    trip(handle, TRIP_LATEST, rows.count);
    free(rows.items);
    return ST_OK;
}

DCGM_API dcgmReturn_t dcgmEntityGetLatestValues(dcgmHandle_t handle, int entity_group, int eid,
                                                unsigned short fields[], unsigned int count,
                                                dcgmFieldValue_v1 values[]) {
    if (!fields || count < 1 || !values) return ST_BADPARAM;
    ENTER_AS(dcgmEntityGetLatestValues, handle, -1, REQUEST_VALUES);
    struct rows rows = {0, NULL};
    for (unsigned int i = 0; i < count; i++)
        collect_latest(&rows, &call, (dcgmGroupEntityPair_t){(unsigned int)entity_group, (unsigned int)eid}, fields[i]);
    for (size_t i = 0; i < rows.count; i++) values[i] = value_of(&rows.items[i], wall_of(rows.items[i].time));
    call_end(ST_OK);
    trip(handle, TRIP_LATEST, rows.count);
    free(rows.items);
    return ST_OK;
}
