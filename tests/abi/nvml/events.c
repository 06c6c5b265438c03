/* Event sets: the scenario's events (Xid and others), delivered once to each set that registered before them. */
#include "player.h"

#include <stdlib.h>

struct registration {
    struct gpu *gpu;
    unsigned long long types;
    usec since;
    struct registration *next;
};

struct event_set {
    struct registration *registrations;
    bool *delivered; /* one for each event of the scenario */
    struct event_set *next;
};

static struct event_set *sets; /* guarded by player_lock */

static struct event_set **find_set(const struct event_set *set) {
    struct event_set **place = &sets;
    while (*place != NULL && *place != set) place = &(*place)->next;
    return place;
}

NVML_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out) {
    ENTER(call, nvmlEventSetCreate, NULL, SCOPE_SYSTEM);
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct event_set *set = calloc(1, sizeof *set);
    bool *delivered = calloc(call.scenario->event_count + 1, sizeof *delivered);
    if (set == NULL || delivered == NULL) {
        free(set);
        free(delivered);
        return NVML_ERROR_MEMORY;
    }
    set->delivered = delivered;
    pthread_mutex_lock(&player_lock);
    set->next = sets;
    sets = set;
    pthread_mutex_unlock(&player_lock);
    report_add(OPEN_EVENT_SETS, 1);
    *out = set;
    return NVML_SUCCESS;
}

static void free_set(struct event_set *set) {
    while (set->registrations != NULL) {
        struct registration *registration = set->registrations;
        set->registrations = registration->next;
        free(registration);
    }
    free(set->delivered);
    free(set);
}

NVML_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ENTER(call, nvmlEventSetFree, NULL, SCOPE_SYSTEM);
    pthread_mutex_lock(&player_lock);
    struct event_set **place = find_set(set), *found = set ? *place : NULL;
    if (found != NULL) {
        *place = found->next;
        free_set(found);
    }
    pthread_mutex_unlock(&player_lock);
    if (found == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    report_add(OPEN_EVENT_SETS, -1);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    ENTER(call, nvmlDeviceGetSupportedEventTypes, device, SCOPE_GPU);
    return read_u64(&call, "event_types", types);
}

NVML_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    ENTER(call, nvmlDeviceRegisterEvents, device, SCOPE_GPU);
    unsigned long long known = as_u64(number_of(&call.gpu->entity, "event_types", call.now, 0.0));
    if ((types & ~known) != 0) return NVML_ERROR_NOT_SUPPORTED;
    struct registration *registration = calloc(1, sizeof *registration);
    if (registration == NULL) return NVML_ERROR_MEMORY;
    *registration = (struct registration){call.gpu, types, call.now, NULL};
    pthread_mutex_lock(&player_lock);
    struct event_set *found = set ? *find_set(set) : NULL;
    if (found != NULL) {
        registration->next = found->registrations;
        found->registrations = registration;
    }
    pthread_mutex_unlock(&player_lock);
    if (found == NULL) free(registration);
    return found ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static bool wanted(const struct event_set *set, const struct event *event) {
    for (const struct registration *r = set->registrations; r; r = r->next)
        if (r->gpu == event->gpu && (r->types & event->type) != 0 && event->time > r->since) return true;
    return false;
}

/* The earliest event that is due; a set that was freed meanwhile is an error. */
static nvmlReturn_t next_event(const struct scenario *scenario, const struct event_set *set, usec now,
                               nvmlEventData_t *data) {
    nvmlReturn_t result = NVML_ERROR_TIMEOUT;
    pthread_mutex_lock(&player_lock);
    struct event_set *found = set ? *find_set(set) : NULL;
    const struct event *earliest = NULL;
    size_t index = 0, chosen = 0;
    for (const struct event *event = scenario->events; found && event; event = event->next, index++) {
        if (found->delivered[index] || event->time > now || !wanted(found, event)) continue;
        if (earliest != NULL && earliest->time <= event->time) continue;
        earliest = event;
        chosen = index;
    }
    if (found == NULL) {
        result = NVML_ERROR_INVALID_ARGUMENT;
    } else if (earliest != NULL) {
        found->delivered[chosen] = true;
        *data = (nvmlEventData_t){&earliest->gpu->handle, earliest->type, earliest->data, earliest->instance,
                                  earliest->compute};
        result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&player_lock);
    return result;
}

/* Until something can have changed: while real time passes, the next event or the end of the wait; else a short look. */
static usec pause_before(const struct scenario *scenario, usec now, usec left) {
    if (!clock_is_real()) return 2000;
    for (const struct event *event = scenario->events; event; event = event->next)
        if (event->time > now && event->time - now < left) left = event->time - now;
    return left;
}

/* The time-out is in real time, also where the scenario's time stands still. The driver blocks; so does this. */
NVML_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    ENTER(call, nvmlEventSetWait_v2, NULL, SCOPE_SYSTEM);
    if (data == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (usec left = timeout_ms * 1000ll;;) {
        usec now = clock_now();
        nvmlReturn_t result = next_event(call.scenario, set, now, data);
        if (result != NVML_ERROR_TIMEOUT || left <= 0) return result;
        usec pause = pause_before(call.scenario, now, left);
        real_sleep(seconds_of(pause));
        left -= pause;
    }
}
