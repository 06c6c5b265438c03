/*
 * Accounting: how often each function was called, how many requests it made of the hostengine, and what is held open. It lies in a file that tests read from
 * outside, and that processes of one scenario share (HONEST_TEST_DCGM_REPORT), else in plain memory. Whether
 * profiling is paused lies there too: it is a state of the hostengine, whoever asks for it.
 */
#include "player.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTION_MAX = 96, NAME_LENGTH = 56, PAUSE_MAX = 256 };

/* The layout that report.py reads; `origin` and what follows are the player's own. */
struct report {
    long long gauges[8];
    struct {
        char name[NAME_LENGTH];
        unsigned long long calls, requests;
    } functions[FUNCTION_MAX];
    usec origin;
    unsigned long long pause_count;
    struct {
        usec time;
        int embedded, paused;
    } pauses[PAUSE_MAX];
};
static_assert(GAUGES <= 8, "gauges");

static struct report in_memory;
static struct report *report = &in_memory;
static char report_path[4096];
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

/* Another scenario may count elsewhere; maps of earlier ones stay, for calls that still hang. */
void report_open(void) {
    const char *path = getenv("HONEST_TEST_DCGM_REPORT");
    if (path == NULL || *path == '\0') {
        if (report == &in_memory) in_memory.origin = 0;
        report = &in_memory;
        return;
    }
    if (report != &in_memory && strcmp(path, report_path) == 0) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(struct report)) == 0)
        at = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        fprintf(stderr, "DCGM player: cannot write the report %s\n", path);
        abort();
    }
    close(file);
    snprintf(report_path, sizeof(report_path), "%s", path);
    report = at;
}

/* Two processes may come here at once: a name's first byte is what claims a slot. */
static size_t slot_of(const char *name) {
    struct report *at = report;
    for (size_t i = 0; i < FUNCTION_MAX; i++) {
        char *slot = at->functions[i].name, empty = '\0';
        if (__atomic_compare_exchange_n(slot, &empty, *name, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            snprintf(slot + 1, NAME_LENGTH - 1, "%s", name + 1);
            return i;
        }
        if (strncmp(slot, name, NAME_LENGTH - 1) == 0) return i;
    }
    abort(); /* more functions than the table has room for */
}

void report_call(struct call_counter *counter) {
    pthread_mutex_lock(&report_lock);
    if (counter->report != report) {
        counter->slot = slot_of(counter->name);
        counter->report = report;
    }
    __atomic_add_fetch(&report->functions[counter->slot].calls, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&report_lock);
    report_add(TOTAL_CALLS, 1);
}

void report_request(struct call_counter *counter) {
    pthread_mutex_lock(&report_lock);
    if (counter->report == report)
        __atomic_add_fetch(&report->functions[counter->slot].requests, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&report_lock);
    report_add(REQUESTS, 1);
}

void report_add(enum gauge gauge, long long amount) {
    __atomic_add_fetch(&report->gauges[gauge], amount, __ATOMIC_RELAXED);
}

/* The machine's time at which the scenario's time began. */
usec report_origin(usec now) {
    usec unset = 0;
    __atomic_compare_exchange_n(&report->origin, &unset, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&report->origin, __ATOMIC_ACQUIRE);
}

/* ---- pauses ---- */

void report_pause(bool embedded, bool paused, usec time) {
    unsigned long long index = __atomic_fetch_add(&report->pause_count, 1, __ATOMIC_ACQ_REL) % PAUSE_MAX;
    report->pauses[index].time = time;
    report->pauses[index].embedded = embedded;
    __atomic_store_n(&report->pauses[index].paused, paused, __ATOMIC_RELEASE);
}

/* Walks backwards: the newest one that counts. `wanted` -1: a pause or a resume. */
static int last_pause(bool embedded, usec from, usec until, int wanted, usec *at) {
    unsigned long long count = __atomic_load_n(&report->pause_count, __ATOMIC_ACQUIRE);
    for (unsigned long long i = count; i > 0 && i + PAUSE_MAX > count; i--) {
        unsigned long long index = (i - 1) % PAUSE_MAX;
        int paused = report->pauses[index].paused;
        usec time = report->pauses[index].time;
        if ((bool)report->pauses[index].embedded != embedded || time < from || time > until) continue;
        if (wanted >= 0 && paused != wanted) continue;
        *at = time;
        return paused;
    }
    return -1;
}

int report_paused(bool embedded, usec from, usec until, usec *at) { return last_pause(embedded, from, until, -1, at); }

bool report_resumed(bool embedded, usec from, usec until) {
    usec at;
    return last_pause(embedded, from, until, 0, &at) == 0;
}

/* ---- for a test in the same process ---- */

static long long gauge_of(enum gauge gauge) { return __atomic_load_n(&report->gauges[gauge], __ATOMIC_RELAXED); }

DCGM_API long long honest_test_open_handles(void) { return gauge_of(OPEN_HANDLES); }
DCGM_API long long honest_test_open_groups(void) { return gauge_of(OPEN_GROUPS); }
DCGM_API long long honest_test_open_field_groups(void) { return gauge_of(OPEN_FIELD_GROUPS); }
DCGM_API long long honest_test_open_watches(void) { return gauge_of(OPEN_WATCHES); }
DCGM_API long long honest_test_kept_samples(void) { return gauge_of(KEPT_SAMPLES); }
DCGM_API long long honest_test_hanging(void) { return gauge_of(HANGING); }

DCGM_API unsigned long long honest_test_calls(const char *name) {
    const struct report *at = report;
    for (size_t i = 0; i < FUNCTION_MAX && at->functions[i].name[0] != '\0'; i++)
        if (strcmp(at->functions[i].name, name) == 0) return __atomic_load_n(&at->functions[i].calls, __ATOMIC_RELAXED);
    return 0;
}
