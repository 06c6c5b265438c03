/*
 * Inside of the player, beyond what all players have (../player/player.h): the scenario in memory, and what every
 * exported function does first.
 *
 * The scenario is read once and never changed afterwards; what changes while calls run (reference counts, destroyed
 * instances, samples, event sets) is guarded by player_lock or atomic.
 */
#ifndef HONEST_TEST_NVML_PLAYER_H
#define HONEST_TEST_NVML_PLAYER_H

#include "../player/player.h"
#include "nvml_abi.h"

/* ---- what describes an entity (series.c) ---- */

struct series {
    char *key;
    struct value value;
    struct series *next;
};

/* Anything with named values over time, and named texts. */
struct entity {
    struct series *series;
};

struct answer {
    nvmlReturn_t error;
    double value;
};

const char *text_of(const struct entity *entity, const char *key);
const struct series *series_of(const struct entity *entity, const char *key);
double number_of(const struct entity *entity, const char *key, usec time, double otherwise);
struct answer series_at(const struct series *series, usec time);
struct answer series_mean(const struct series *series, usec from, usec until);
unsigned int as_u32(double value);
unsigned long long as_u64(double value);

/* ---- the scenario (scenario.c) ---- */

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
    usec from;
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
    usec from;
    size_t count;
    struct gpu **gpus;
    struct order *next;
};

struct event {
    usec time;
    struct gpu *gpu;
    unsigned long long type, data;
    unsigned int instance, compute;
    struct event *next;
};

struct scenario {
    struct entity system;
    struct gpu *gpus;
    struct order *orders;
    struct call_faults faults;
    struct event *events;
    size_t event_count;
    size_t handle_count;
    struct handle **handles; /* sorted by address */
};

struct scenario *scenario_read(void);

enum gauge { OPEN_SAMPLES = FIRST_GAUGE, OPEN_MIG_SAMPLES, OPEN_EVENT_SETS, INIT_COUNT };

/* ---- the running player (nvml_player.c) ---- */

extern pthread_mutex_t player_lock;

enum scope { SCOPE_SYSTEM, SCOPE_GPU, SCOPE_GPU_OR_MIG, SCOPE_GPU_INSTANCE, SCOPE_COMPUTE_INSTANCE };

/* One call into the library: whom it asks and at which time. */
struct call {
    struct scenario *scenario;
    struct gpu *gpu;
    struct instance *instance;
    struct compute *compute;
    usec now;
    const char *function;
};

nvmlReturn_t call_begin(struct call_counter *counter, struct handle *handle, enum scope scope, struct call *call);
nvmlReturn_t call_faults(const struct call *call, const char *function, bool specific_only);
const struct entity *entity_of(const struct call *call);

nvmlReturn_t read_u32(const struct call *call, const char *key, unsigned int *out);
nvmlReturn_t read_u64(const struct call *call, const char *key, unsigned long long *out);
nvmlReturn_t read_text(const struct call *call, const char *key, char *out, unsigned int length);

size_t enumerate(struct scenario *scenario, usec now, struct gpu **out, size_t room);

/* Counts the call, checks the library's and the handle's state, and lets the scenario's faults happen. */
#define ENTER(call, function_name, handle, scope)                                                     \
    struct call call;                                                                                 \
    do {                                                                                              \
        static struct call_counter counter_ = {#function_name, 0, NULL};                              \
        nvmlReturn_t begun_ = call_begin(&counter_, handle, scope, &call);                            \
        if (begun_ != NVML_SUCCESS) return begun_;                                                    \
    } while (0)

/* A number of one NVLink link (links.c): "state", "speed", "version". */
nvmlReturn_t link_number(const struct call *call, unsigned int link, const char *name, unsigned int *out);

/* ---- the driver's own windows (samples.c): the first one ends after one period ---- */

long long windows_closed(const struct call *call);
usec window_end(const struct call *call, long long index);
/* The mean over the window that ended last; where none has, the value now. */
struct answer window_mean(const struct call *call, const struct series *series);

/* ---- MIG (mig.c) and GPM (gpm.c), as other files need them ---- */

const struct layout *layout_at(const struct gpu *gpu, usec now);
bool instance_alive(const struct instance *instance, usec now);
bool compute_alive(const struct compute *compute, usec now);
int mig_index(const struct compute *compute, usec now);
size_t gpm_samples_on(const struct instance *instance);

#endif
