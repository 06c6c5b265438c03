/* What goes wrong: in calls (errors, hangs, delays), and in values. */
#include "player.h"

#include <fnmatch.h>

static bool inside(const struct window *window, usec time) { return window->from <= time && time < window->until; }

/* ---- calls ---- */

static bool meets(struct call_fault *fault, const char *function, long gpu, usec now) {
    if (!inside(&fault->window, now) || (fault->gpu >= 0 && fault->gpu != gpu)) return false;
    if (fault->limit > 0 && fault->used >= fault->limit) return false;
    if (fnmatch(fault->function, function, 0) != 0) return false;
    fault->used++;
    return true;
}

/* The scenario may be gone after a hang: nothing of it is touched without the lock. */
dcgmReturn_t call_faults(const char *function, long gpu, usec *now) {
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&player_lock);
        *now = clock_now();
        if (scenario == NULL || i >= scenario->call_fault_count) {
            pthread_mutex_unlock(&player_lock);
            return ST_OK;
        }
        struct call_fault *fault = &scenario->call_faults[i];
        bool met = meets(fault, function, gpu, *now);
        struct call_fault copy = *fault;
        pthread_mutex_unlock(&player_lock);
        if (!met) continue;
        if (copy.kind == CALL_ERROR) return (dcgmReturn_t)copy.argument;
        if (copy.kind == CALL_DELAY) {
            real_sleep(copy.argument);
            continue;
        }
        report_add(HANGING, 1);
        clock_wait(copy.window.until, 1e12);
        report_add(HANGING, -1);
    }
}

/* ---- values ---- */

static bool concerns(const struct value_fault *fault, const struct series *series) {
    if (series->field < fault->first_field || series->field > fault->last_field) return false;
    if (fault->entity_group >= 0 && fault->entity_group != (long)series->entity.entityGroupId) return false;
    if (fault->entity_id >= 0 && fault->entity_id != (long)series->entity.entityId) return false;
    return fault->gpu < 0 || (series->gpu != NULL && series->gpu->id == (unsigned int)fault->gpu);
}

static bool cured(const struct value_fault *fault, const struct engine *engine, usec watched_since, usec time) {
    if ((fault->cures & CURED_BY_WATCH) != 0 && watched_since > fault->window.from) return true;
    return (fault->cures & CURED_BY_RESUME) != 0 && report_resumed(engine->embedded, fault->window.from, time);
}

/* The first one in the order of the scenario. */
const struct value_fault *value_fault_at(const struct engine *engine, const struct series *series, usec time) {
    for (size_t i = 0; i < scenario->value_fault_count; i++) {
        const struct value_fault *fault = &scenario->value_faults[i];
        if (inside(&fault->window, time) && concerns(fault, series) &&
            !cured(fault, engine, series->watched_since, time))
            return fault;
    }
    return NULL;
}

bool gpu_lost(unsigned int gpu, usec time) {
    for (size_t i = 0; i < scenario->value_fault_count; i++) {
        const struct value_fault *fault = &scenario->value_faults[i];
        if (fault->kind == FAULT_LOST && fault->gpu == (long)gpu && inside(&fault->window, time)) return true;
    }
    return false;
}
