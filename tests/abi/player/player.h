/*
 * What every player has, whatever interface it exports: values over time, the scenario file, the clock, the report and
 * faults of calls. It is compiled into each player; PLAYER is the player's name ("DCGM", "NVML").
 * Times are microseconds of scenario time, except where called seconds or wall.
 */
#ifndef HONEST_TEST_PLAYER_H
#define HONEST_TEST_PLAYER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAYER_API __attribute__((visibility("default")))
#define PLAYER_VARIABLE(name) "HONEST_TEST_" PLAYER "_" name

typedef long long usec;
#define NEVER INT64_MAX

/* Ends the process, with a message: a test must not run on a player that cannot do what it was asked. */
_Noreturn void player_fails(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct window {
    usec from, until; /* until is not inside */
};

struct windows {
    size_t count;
    struct window *items;
};

/* ---- values over time (timeline.c) ---- */

/* What is not PRESENT has no value, and the number says why: a kind of blank (DCGM), or a return code (NVML). */
enum { PRESENT = -1 };

struct reading {
    int absence;
    double value;
    const char *text;
};

struct point {
    usec from;
    int absence;
    double value;
    double integral; /* of the values, in value x seconds, from the first point to this one */
};

enum value_kind { VALUE_STEPS, VALUE_COUNTER, VALUE_EVENTS, VALUE_TEXT };

struct value {
    enum value_kind kind;
    double start; /* of a counter */
    size_t count, reset_count;
    struct point *points; /* of an event: when, and its value */
    usec *resets;
    char *text;
};

struct reading value_at(const struct value *value, usec time);
struct reading value_mean(const struct value *value, usec from, usec until);
bool in_window(const struct window *window, usec time);
bool in_windows(const struct windows *windows, usec time);
double seconds_of(usec time);
/* The ends of time are far from overflow, so that differences stay in range. */
usec usec_of(double seconds);

/* ---- the scenario file (lines.c) ---- */

struct line {
    char *keyword;
    size_t number, count;
    struct {
        char *key, *text;
    } words[64];
};

struct line_reader {
    const char *keyword;
    void (*read)(const struct line *line);
};

/* Reads the file that the environment names; each line goes to the reader of its keyword. */
void lines_read(const struct line_reader *readers, size_t count);
_Noreturn void line_bad(const struct line *line, const char *what);
bool line_has(const struct line *line, const char *key);
const char *line_text(const struct line *line, const char *key);
double line_number(const struct line *line, const char *key);
double line_number_or(const struct line *line, const char *key, double otherwise);
unsigned int line_whole(const struct line *line, const char *key);
unsigned int line_whole_or(const struct line *line, const char *key, unsigned int otherwise);
usec line_time(const struct line *line, const char *key);
struct window line_window(const struct line *line);
/* Calls `each` for every item of a comma-separated list. */
void line_items(const struct line *line, const char *key,
                void (*each)(const struct line *line, const char *item, size_t index, void *to), void *to);
double line_item_number(const struct line *line, const char *item);
void line_value(const struct line *line, struct value *value);
char *copied(const char *text);
/* An array grown by one, for its new zeroed item. */
void *grown(void **items, size_t *count, size_t size);

/* ---- the clock (clock.c) ---- */

void clock_open(void);
usec clock_now(void);
bool clock_is_real(void);
/* Takes the wall clock's time at scenario time 0 from a line of the scenario. */
void wall_begin(const struct line *line);
usec wall_of(usec time);
usec real_now(void);
void real_sleep(double seconds);
/* Waits until the scenario's time, or until the patience (of either clock) is over: false then. */
bool clock_wait(usec until, double patience);

/* ---- accounting, and the state that processes share (report.c) ---- */

/* Each player's own gauges follow. */
enum { HANGING, TOTAL_CALLS, REQUESTS, FIRST_GAUGE, GAUGE_MAX = 16, SHARED_SIZE = 8192 };

struct call_counter {
    const char *name;
    size_t slot;
    const void *report; /* where it is a slot */
};

void report_open(void);
void report_call(struct call_counter *counter);
/* Of a function that was counted as called. */
void report_request(struct call_counter *counter);
void report_add(int gauge, long long amount);
long long report_gauge(int gauge);
usec report_origin(usec now);
/* SHARED_SIZE bytes, zero at first, that are a player's own and the same for all processes of a scenario. */
void *report_shared(void);

/* ---- what goes wrong in calls (faults.c) ---- */

enum call_fault_kind { CALL_ERROR, CALL_HANG, CALL_DELAY };

struct call_fault {
    char *function; /* a glob */
    char *gpu;      /* its key or id; NULL: any GPU, and calls about none */
    long instance;  /* -1: any */
    enum call_fault_kind kind;
    double argument; /* a return code, or seconds of real time */
    struct window window;
    unsigned long limit, used; /* limit 0: every call */
};

struct call_faults {
    size_t count;
    struct call_fault *items;
};

struct call_fault *call_fault_read(const struct line *line, struct call_faults *faults);
/* Lets those happen that concern a call: returns the first code, else 0, after every hang and delay. */
int call_faults_meet(struct call_faults *faults, const char *function,
                     bool (*concerns)(const struct call_fault *fault, const void *call), const void *call);

#endif
