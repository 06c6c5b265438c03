/*
 * Accounting: how often each function was called, and what is held open. The numbers lie in a file that tests may
 * read while another process runs the library (HONEST_TEST_NVML_REPORT), else in plain memory.
 */
#include "player.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTION_MAX = 255, NAME_LENGTH = 56 };

/* The layout that report.py reads. */
struct report {
    long long gauges[GAUGE_COUNT];
    long long reserved[8 - GAUGE_COUNT];
    struct {
        char name[NAME_LENGTH];
        unsigned long long count;
    } functions[FUNCTION_MAX];
};

static struct report in_memory;
static struct report *report = &in_memory;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void map_file(void) {
    const char *path = getenv("HONEST_TEST_NVML_REPORT");
    if (path == NULL || *path == '\0') return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (ftruncate(file, sizeof(struct report)) == 0) {
        void *mapped = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) {
            memset(mapped, 0, sizeof(struct report));
            report = mapped;
        }
    }
    close(file);
}

void report_open(void) { pthread_once(&opened, map_file); }

static unsigned long long *slot_of(const char *name) {
    for (size_t i = 0; i < FUNCTION_MAX; i++) {
        if (report->functions[i].name[0] == '\0') {
            strncpy(report->functions[i].name, name, NAME_LENGTH - 1);
            return &report->functions[i].count;
        }
        if (strncmp(report->functions[i].name, name, NAME_LENGTH - 1) == 0) return &report->functions[i].count;
    }
    abort(); /* more functions than the table has room for */
}

void report_call(struct call_counter *counter) {
    report_open();
    unsigned long long *count = __atomic_load_n(&counter->count, __ATOMIC_ACQUIRE);
    if (count == NULL) {
        pthread_mutex_lock(&report_lock);
        count = slot_of(counter->name);
        __atomic_store_n(&counter->count, count, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&report_lock);
    }
    __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    report_add(TOTAL_CALLS, 1);
}

void report_add(enum gauge gauge, long long amount) {
    report_open();
    __atomic_add_fetch(&report->gauges[gauge], amount, __ATOMIC_RELAXED);
}

long long report_get(enum gauge gauge) { return __atomic_load_n(&report->gauges[gauge], __ATOMIC_RELAXED); }

/* ---- for a test in the same process ---- */

NVML_API long long honest_test_open_samples(void) { return report_get(OPEN_SAMPLES); }
NVML_API long long honest_test_open_mig_samples(void) { return report_get(OPEN_MIG_SAMPLES); }
NVML_API long long honest_test_open_event_sets(void) { return report_get(OPEN_EVENT_SETS); }
NVML_API long long honest_test_init_count(void) { return report_get(INIT_COUNT); }
NVML_API long long honest_test_hanging(void) { return report_get(HANGING); }

NVML_API unsigned long long honest_test_calls(const char *name) {
    unsigned long long count = 0;
    pthread_mutex_lock(&report_lock);
    for (size_t i = 0; i < FUNCTION_MAX && report->functions[i].name[0] != '\0'; i++) {
        if (strcmp(report->functions[i].name, name) == 0)
            count = __atomic_load_n(&report->functions[i].count, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&report_lock);
    return count;
}
