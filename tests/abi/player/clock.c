/*
 * The scenario's time: a file of one native double, in seconds, that the test sets (HONEST_TEST_..._CLOCK); without
 * it, the machine's monotonic clock since the first process of the scenario looked at it.
 */
#include "player.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *mapped; /* the bits of the double */
static char mapped_path[4096];
static usec wall_offset;

/* Maps of earlier scenarios stay: a call that hangs may still look at one. */
void clock_open(void) {
    const char *path = getenv(PLAYER_VARIABLE("CLOCK"));
    if (path == NULL || *path == '\0') {
        mapped = NULL;
        return;
    }
    if (mapped != NULL && strcmp(path, mapped_path) == 0) return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *at = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) player_fails("cannot read the clock %s", path);
    close(file);
    snprintf(mapped_path, sizeof(mapped_path), "%s", path);
    mapped = at;
}

static usec machine_time(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (usec)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

usec real_now(void) { return machine_time(CLOCK_MONOTONIC); }

usec clock_now(void) {
    const volatile int64_t *at = mapped;
    if (at == NULL) return real_now() - report_origin(real_now());
    union {
        int64_t bits;
        double seconds;
    } read = {.bits = *at};
    return usec_of(read.seconds);
}

bool clock_is_real(void) { return mapped == NULL; }

void wall_begin(const struct line *line) {
    bool real = strcmp(line_text(line, "wall_offset"), "real") == 0;
    wall_offset = real ? machine_time(CLOCK_REALTIME) - clock_now() : line_time(line, "wall_offset");
}

usec wall_of(usec time) { return wall_offset + time; }

void real_sleep(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0) continue;
}

bool clock_wait(usec until, double patience) {
    usec begun = clock_now(), begun_real = real_now();
    while (clock_now() < until) {
        usec waited = clock_now() - begun, waited_real = real_now() - begun_real;
        if ((double)waited >= patience * 1e6 || (double)waited_real >= patience * 1e6) return false;
        real_sleep(0.002);
    }
    return true;
}
