/* Taking samples: each watched field of each entity at its interval, when anybody looks, as if it had been on time. */
#include "player.h"

#include <stdlib.h>

static const struct reading UNSET = {0, 0.0, NULL}, UNSUPPORTED = {2, 0.0, NULL};

/* ---- the samples of one series ---- */

void series_prune(struct series *series, usec now) {
    size_t before = series->count;
    while (series->count > 0 && series->samples[series->first].time < now - series->keep) {
        series->first = (series->first + 1) % series->room;
        series->count--;
    }
    if (series->count != before) report_add(KEPT_SAMPLES, (long long)series->count - (long long)before);
}

static void push(struct series *series, usec time, struct reading reading) {
    series_prune(series, time);
    if (series->count == series->room) {
        size_t room = series->room == 0 ? 4 : 2 * series->room;
        struct sample *samples = malloc(room * sizeof(*samples));
        if (samples == NULL) abort();
        for (size_t i = 0; i < series->count; i++)
            samples[i] = series->samples[(series->first + i) % series->room];
        free(series->samples);
        series->samples = samples;
        series->room = room;
        series->first = 0;
    }
    series->samples[(series->first + series->count++) % series->room] = (struct sample){time, reading};
    report_add(KEPT_SAMPLES, 1);
}

/* ---- what one sample is ---- */

enum { NO_SAMPLE, SAMPLE };

static struct reading undisturbed(const struct value *value, unsigned short field, usec from, usec time) {
    return field_is_mean(field) ? value_mean(value, from, time) : value_at(value, time);
}

/* What an entity has at all: before faults, and before what a first sample is. */
static bool has(const struct series *series, struct reading *blank) {
    bool profiling = field_is_profiling(series->field);
    *blank = profiling ? UNSET : UNSUPPORTED;
    if (series->value == NULL) return false;
    if (!profiling || series->gpu == NULL) return true;
    return field_reaches(field_find(series->field), (int)series->entity.entityGroupId);
}

static int take(const struct engine *engine, const struct series *series, usec from, usec time, struct reading *out) {
    if (series->thing == NULL || !thing_present(series->thing, time)) return NO_SAMPLE;
    const struct gpu *gpu = series->gpu;
    bool profiling = field_is_profiling(series->field);
    bool by_module = profiling && gpu != NULL && gpu->profiling == PROFILING_MODULE;
    bool by_gpm = profiling && gpu != NULL && gpu->profiling == PROFILING_GPM;
    bool exists = has(series, out);
    if (!exists && by_module) return NO_SAMPLE; /* the module pushes only what it has */
    const struct value_fault *fault = value_fault_at(engine, series, time);
    if (fault != NULL && (fault->kind == FAULT_SILENT || fault->kind == FAULT_STATUS)) return NO_SAMPLE;
    if (!exists) return SAMPLE;
    *out = UNSET;
    if (fault != NULL && fault->kind == FAULT_LOST) return SAMPLE;
    if (fault != NULL && fault->kind == FAULT_BLANK) out->absence = (int)fault->argument;
    else if (by_module && profiling_paused(engine, time)) return SAMPLE;
    else if (by_gpm && !series->warm && scenario->first_blank) return SAMPLE;
    else if (fault != NULL && fault->kind == FAULT_STUCK) *out = (struct reading){PRESENT, fault->argument, NULL};
    else if (fault != NULL) /* frozen */
        *out = undisturbed(series->value, series->field, fault->window.from - (time - from), fault->window.from);
    else *out = undisturbed(series->value, series->field, from, time);
    return SAMPLE;
}

static void sample(const struct engine *engine, struct series *series, usec from, usec time) {
    struct reading reading;
    if (take(engine, series, from, time, &reading) == SAMPLE) push(series, time, reading);
    series->last = time;
    series->warm = true;
}

/* ---- when samples are due ---- */

static bool is_events(const struct series *series) {
    return series->value != NULL && series->value->kind == VALUE_EVENTS;
}

static usec next_event(const struct value *value, usec after) {
    for (size_t i = 0; i < value->count; i++)
        if (value->points[i].from > after) return value->points[i].from;
    return NEVER;
}

/* The module has a first value only after an interval; everything else is read when the watch begins. */
void series_first(struct engine *engine, struct series *series, usec now) {
    bool profiling = field_is_profiling(series->field);
    bool later = profiling && series->gpu != NULL && series->gpu->profiling != PROFILING_GPM;
    series->watched_since = now;
    series->warm = false;
    series->last = now;
    if (is_events(series)) {
        series->due = next_event(series->value, now);
    } else {
        if (!later) sample(engine, series, now - series->interval, now);
        series->due = now + series->interval;
    }
    engine->due = 0;
}

/* After a leap of the clock, samples that nobody could still read are not taken. */
static void leap(struct series *series, usec now) {
    usec oldest = now - series->keep;
    if (series->due >= oldest) return;
    series->due += (oldest - series->due) / series->interval * series->interval;
    series->warm = true;
}

static void advance(const struct engine *engine, struct series *series, usec now) {
    if (series->watchers == NULL) return;
    if (is_events(series)) {
        for (; series->due <= now; series->due = next_event(series->value, series->due))
            sample(engine, series, series->due, series->due);
        return;
    }
    leap(series, now);
    for (; series->due <= now; series->due += series->interval) {
        usec from = series->due - series->interval;
        sample(engine, series, from < series->watched_since ? series->watched_since : from, series->due);
    }
}

void engine_advance(struct engine *engine, usec now) {
    if (now < engine->due) return;
    engine->due = NEVER;
    for (struct series *series = engine->series; series != NULL; series = series->next) {
        advance(engine, series, now);
        if (series->watchers != NULL && series->due < engine->due) engine->due = series->due;
    }
}

/* Without a watch: what a field is at this moment. */
struct reading reading_now(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field, usec now) {
    struct series unwatched = {.entity = entity, .field = field, .watched_since = now, .warm = true};
    unwatched.value = scenario_value(entity, field);
    unwatched.thing = scenario_thing(entity);
    unwatched.gpu = gpu_of(entity);
    struct reading reading;
    return take(engine, &unwatched, now, now, &reading) == SAMPLE ? reading : UNSET;
}
