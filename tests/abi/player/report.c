/*
 * Accounting: how often each function was called, how many requests it made, and what is held open. It lies in a file
 * that tests read from outside, and that processes of one scenario share (HONEST_TEST_..._REPORT), else in memory.
 */
#include "player.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTION_MAX = 256, NAME_LENGTH = 56 };

/* The layout that report.py reads; `origin` and what follows are the player's own. */
struct report {
    long long gauges[GAUGE_MAX];
    struct {
        char name[NAME_LENGTH];
        unsigned long long calls, requests;
    } functions[FUNCTION_MAX];
    usec origin;
    _Alignas(16) unsigned char shared[SHARED_SIZE];
};

static struct report in_memory;
static struct report *report = &in_memory;
static char report_path[4096];
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

/* Another scenario may count elsewhere; maps of earlier ones stay, for calls that still hang. */
void report_open(void) {
    const char *path = getenv(PLAYER_VARIABLE("REPORT"));
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
    if (at == MAP_FAILED) player_fails("cannot write the report %s", path);
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
    player_fails("more functions than the report has room for: %s", name);
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

void report_add(int gauge, long long amount) {
    __atomic_add_fetch(&report->gauges[gauge], amount, __ATOMIC_RELAXED);
}

/* The machine's time at which the scenario's time began. */
usec report_origin(usec now) {
    usec unset = 0;
    __atomic_compare_exchange_n(&report->origin, &unset, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&report->origin, __ATOMIC_ACQUIRE);
}

long long report_gauge(int gauge) { return __atomic_load_n(&report->gauges[gauge], __ATOMIC_RELAXED); }

void *report_shared(void) { return report->shared; }

/* ---- for a test in the same process ---- */

PLAYER_API long long honest_test_hanging(void) { return report_gauge(HANGING); }

PLAYER_API unsigned long long honest_test_calls(const char *name) {
    const struct report *at = report;
    for (size_t i = 0; i < FUNCTION_MAX && at->functions[i].name[0] != '\0'; i++)
        if (strcmp(at->functions[i].name, name) == 0) return __atomic_load_n(&at->functions[i].calls, __ATOMIC_RELAXED);
    return 0;
}
