/* What goes wrong in calls: errors, hangs, delays. */
#include "player.h"

#include <fnmatch.h>

#define FOREVER_SECONDS 1e12

struct call_fault *call_fault_read(const struct line *line, struct call_faults *faults) {
    struct call_fault *fault = grown((void **)&faults->items, &faults->count, sizeof(*fault));
    fault->function = copied(line_text(line, "function"));
    fault->gpu = line_has(line, "gpu") ? copied(line_text(line, "gpu")) : NULL;
    fault->instance = (long)line_number_or(line, "instance", -1);
    fault->kind = (enum call_fault_kind)line_whole(line, "kind");
    fault->argument = line_number(line, "argument");
    fault->limit = line_whole(line, "limit");
    fault->window = line_window(line);
    return fault;
}

static bool used_up(struct call_fault *fault) {
    return fault->limit > 0 && __atomic_fetch_add(&fault->used, 1, __ATOMIC_RELAXED) >= fault->limit;
}

int call_faults_meet(struct call_faults *faults, const char *function,
                     bool (*concerns)(const struct call_fault *fault, const void *call), const void *call) {
    for (size_t i = 0; i < faults->count; i++) {
        struct call_fault *fault = &faults->items[i];
        if (!in_window(&fault->window, clock_now()) || fnmatch(fault->function, function, 0) != 0) continue;
        if (!concerns(fault, call) || used_up(fault)) continue;
        if (fault->kind == CALL_ERROR) return (int)fault->argument;
        if (fault->kind == CALL_DELAY) {
            real_sleep(fault->argument);
            continue;
        }
        report_add(HANGING, 1);
        clock_wait(fault->window.until, FOREVER_SECONDS);
        report_add(HANGING, -1);
    }
    return 0;
}
