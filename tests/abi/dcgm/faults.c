/* What goes wrong: in calls (errors, hangs, delays), and in values. */
#include "player.h"

#include <stdlib.h>

/* ---- calls ---- */

static bool concerns_gpu(const struct call_fault *fault, const void *gpu) {
    return fault->gpu == NULL || strtol(fault->gpu, NULL, 10) == *(const long *)gpu;
}

dcgmReturn_t call_faults(const char *function, long gpu, usec *now) {
    pthread_mutex_lock(&player_lock);
    struct call_faults *faults = scenario == NULL ? NULL : &scenario->call_faults;
    pthread_mutex_unlock(&player_lock);
    int code = faults == NULL ? ST_OK : call_faults_meet(faults, function, concerns_gpu, &gpu);
    *now = clock_now();
    return (dcgmReturn_t)code;
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
    return (fault->cures & CURED_BY_RESUME) != 0 && pause_resumed(engine->embedded, fault->window.from, time);
}

/* The first one in the order of the scenario. */
const struct value_fault *value_fault_at(const struct engine *engine, const struct series *series, usec time) {
    for (size_t i = 0; i < scenario->value_fault_count; i++) {
        const struct value_fault *fault = &scenario->value_faults[i];
        if (in_window(&fault->window, time) && concerns(fault, series) &&
            !cured(fault, engine, series->watched_since, time))
            return fault;
    }
    return NULL;
}

bool gpu_lost(unsigned int gpu, usec time) {
    for (size_t i = 0; i < scenario->value_fault_count; i++) {
        const struct value_fault *fault = &scenario->value_faults[i];
        if (fault->kind == FAULT_LOST && fault->gpu == (long)gpu && in_window(&fault->window, time)) return true;
    }
    return false;
}
