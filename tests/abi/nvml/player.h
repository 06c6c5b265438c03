/*
 * Inside of the player: the scenario in memory, the clock, and what every exported function does first.
 *
 * The scenario is read once and never changed afterwards; what changes while calls run (reference counts, destroyed
 * instances, samples, event sets) is guarded by player_lock or atomic.
 */
#ifndef HONEST_TEST_NVML_PLAYER_H
#define HONEST_TEST_NVML_PLAYER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "nvml_abi.h"

/* ---- values over time (timeline.c) ---- */

struct step {
    double from, value;
    int error;       /* an NVML return code in place of a value, or 0 */
    double integral; /* of the value from the first step to `from` */
};

struct series {
    char *key;
    struct series *next;
    bool counter; /* the steps are rates; the value is start + their integral */
    double start;
    size_t step_count, reset_count;
    struct step *steps;
    double *resets; /* times at which a counter starts again from zero */
};

struct reading {
    nvmlReturn_t error;
    double value;
};

struct reading series_at(const struct series *series, double time);
struct reading series_mean(const struct series *series, double from, double until);
unsigned int as_u32(double value);
unsigned long long as_u64(double value);

/* ---- the scenario (scenario.c) ---- */

struct property {
    char *key, *value;
    struct property *next;
};

/* Anything with named strings and named values over time. */
struct entity {
    struct property *properties;
    struct series *series;
};

enum handle_kind { HANDLE_GPU, HANDLE_MIG, HANDLE_GPU_INSTANCE, HANDLE_COMPUTE_INSTANCE };

struct handle {
    enum handle_kind kind;
    struct gpu *gpu;
    struct instance *instance;
    struct compute *compute;
};

struct compute {
    struct entity entity;
    unsigned int id;
    struct instance *instance;
    struct compute *next;
    struct handle mig_handle, handle;
    bool destroyed;
};

struct instance {
    struct entity entity;
    char *key;
    unsigned int id;
    struct gpu *gpu;
    struct compute *computes;
    struct instance *next;
    struct handle handle;
    bool destroyed, gpm_warm;
};

struct process {
    struct entity entity;
    unsigned int pid;
    struct process *next;
};

struct profile {
    struct entity entity;
    unsigned int number;
    struct profile *next;
};

struct layout {
    double from;
    bool mig_enabled;
    size_t count;
    struct instance **instances;
    struct layout *next; /* later in time */
};

struct gpu {
    struct entity entity;
    char *key;
    struct instance *instances;
    struct process *processes;
    struct profile *profiles;
    struct layout *layouts;
    struct gpu *next;
    struct handle handle;
    bool gpm_warm;
    unsigned int gpm_streaming;
};

struct order {
    double from;
    size_t count;
    struct gpu **gpus;
    struct order *next;
};

enum fault_kind { FAULT_ERROR, FAULT_HANG, FAULT_DELAY };

struct fault {
    char *function; /* a glob */
    struct gpu *gpu; /* NULL: any */
    bool any_instance;
    unsigned int instance;
    double from, until;
    unsigned long limit, used; /* limit 0: every call */
    enum fault_kind kind;
    double argument; /* return code, or seconds of real time */
    struct fault *next;
};

struct event {
    double time;
    struct gpu *gpu;
    unsigned long long type, data;
    unsigned int instance, compute;
    struct event *next;
};

struct scenario {
    struct entity system;
    struct gpu *gpus;
    struct order *orders;
    struct fault *faults;
    struct event *events;
    size_t event_count;
    size_t handle_count;
    struct handle **handles; /* sorted by address */
};

struct scenario *scenario_read(const char *path);
const char *property_of(const struct entity *entity, const char *key);
const struct series *series_of(const struct entity *entity, const char *key);
double number_of(const struct entity *entity, const char *key, double time, double otherwise);

/* ---- accounting that another process can read while the player runs (report.c) ---- */

enum gauge { OPEN_SAMPLES, OPEN_MIG_SAMPLES, OPEN_EVENT_SETS, INIT_COUNT, HANGING, TOTAL_CALLS, GAUGE_COUNT };

struct call_counter {
    const char *name;
    unsigned long long *count;
};

void report_open(void);
void report_call(struct call_counter *counter);
void report_add(enum gauge gauge, long long amount);
long long report_get(enum gauge gauge);

/* ---- the running player (nvml_player.c) ---- */

extern pthread_mutex_t player_lock;

enum scope { SCOPE_SYSTEM, SCOPE_GPU, SCOPE_GPU_OR_MIG, SCOPE_GPU_INSTANCE, SCOPE_COMPUTE_INSTANCE };

/* One call into the library: whom it asks and at which time. */
struct call {
    struct scenario *scenario;
    struct gpu *gpu;
    struct instance *instance;
    struct compute *compute;
    double now;
    const char *function;
};

double clock_now(void);
bool clock_is_real(void);
unsigned long long wall_usec(const struct scenario *scenario, double time);
void sleep_seconds(double seconds);

nvmlReturn_t call_begin(struct call_counter *counter, struct handle *handle, enum scope scope, struct call *call);
nvmlReturn_t call_faults(const struct call *call, const char *function, bool specific_only);
const struct entity *entity_of(const struct call *call);

nvmlReturn_t read_u32(const struct call *call, const char *key, unsigned int *out);
nvmlReturn_t read_u64(const struct call *call, const char *key, unsigned long long *out);
nvmlReturn_t read_text(const struct call *call, const char *key, char *out, unsigned int length);

size_t enumerate(struct scenario *scenario, double now, struct gpu **out, size_t room);

/* Counts the call, checks the library's and the handle's state, and lets the scenario's faults happen. */
#define ENTER(call, function_name, handle, scope)                                                     \
    struct call call;                                                                                 \
    do {                                                                                              \
        static struct call_counter counter_ = {#function_name, NULL};                                 \
        nvmlReturn_t begun_ = call_begin(&counter_, handle, scope, &call);                            \
        if (begun_ != NVML_SUCCESS) return begun_;                                                    \
    } while (0)

/* A number of one NVLink link (links.c): "state", "speed", "version". */
nvmlReturn_t link_number(const struct call *call, unsigned int link, const char *name, unsigned int *out);

/* ---- MIG (mig.c) and GPM (gpm.c), as other files need them ---- */

const struct layout *layout_at(const struct gpu *gpu, double now);
bool instance_alive(const struct instance *instance, double now);
bool compute_alive(const struct compute *compute, double now);
int mig_index(const struct compute *compute, double now);
size_t gpm_samples_on(const struct instance *instance);

#endif
