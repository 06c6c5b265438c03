/*
 * Inside of the player, beyond what all players have (../player/player.h). Three parts lie on each other:
 *   the scenario (read once, never changed): what there is, what values would be, what goes wrong and when;
 *   the engines (one behind addresses, one embedded): groups, watches and the samples taken so far;
 *   the calls: each one counts itself, meets the scenario's faults, and brings its engine up to now before it answers.
 * Everything is guarded by player_lock.
 */
#ifndef HONEST_TEST_DCGM_PLAYER_H
#define HONEST_TEST_DCGM_PLAYER_H

#include "../player/player.h"
#include "abi.h"

/* ---- what fields are (fields.c) ---- */

struct field {
    unsigned short first, last;
    char type; /* 'i', 'd', 's', 'b' */
    int level; /* the smallest kind of entity that has it */
};

const struct field *field_find(unsigned short id);
bool field_is_profiling(unsigned short id);
bool field_is_mean(unsigned short id);
bool field_reaches(const struct field *field, int entity_group);

/* ---- the scenario (scenario.c) ---- */

enum profiling { PROFILING_NONE, PROFILING_MODULE, PROFILING_GPM };

struct metric_group {
    unsigned int major, minor;
    bool withheld; /* listed, but no watch gets its fields */
    size_t count;
    unsigned short fields[MAX_METRIC_FIELDS];
};

struct gpu {
    unsigned int id;
    dcgmDeviceAttributes_v3 attributes;
    bool supported;
    enum profiling profiling;
    int refusal;          /* what profiling answers where there is none, or a code in place of it */
    int combination_code; /* when fields need two groups that share hardware; 0: they are multiplexed */
    int field_code;       /* when a field is in no group */
    struct windows mig;
    size_t group_count;
    struct metric_group groups[MAX_METRIC_GROUPS];
};

/* Anything that can be put in a group. */
struct thing {
    dcgmGroupEntityPair_t entity, parent;
    unsigned int gpu; /* the GPU that it is or is a part of; else ~0 */
    bool in_hierarchy;
    dcgmMigHierarchyInfo_v2 info;
    const struct thing *above; /* the parent, where there is one */
    struct windows present; /* none: always */
};

struct link_states {
    dcgmGroupEntityPair_t entity;
    usec from;
    size_t count;
    unsigned int states[MAX_LINKS];
};

enum value_fault_kind { FAULT_BLANK, FAULT_STUCK, FAULT_FROZEN, FAULT_SILENT, FAULT_STATUS, FAULT_LOST };
enum { CURED_BY_WATCH = 1, CURED_BY_RESUME = 2 };

struct value_fault {
    enum value_fault_kind kind;
    double argument;                             /* a kind of blank, a value, or a code */
    long gpu, entity_group, entity_id;           /* -1: any */
    unsigned short first_field, last_field;
    struct window window;
    unsigned int cures;
};

struct lock {
    struct window window;
    int code;
};

struct field_value {
    dcgmGroupEntityPair_t entity;
    unsigned short field;
    struct value value;
};

struct scenario {
    int version[3]; /* of the hostengine */
    char *build_info, *address;
    bool nvml, module_loaded, first_blank;
    int cpu_code;
    double request_timeout;
    size_t gpu_count, thing_count, link_count, value_count, value_fault_count, lock_count;
    struct gpu *gpus;
    struct thing *things;
    struct link_states *links;
    struct field_value *values; /* sorted by entity and field */
    struct call_faults call_faults;
    struct value_fault *value_faults;
    struct lock *locks;
    struct windows gone, stopped, paused;
    struct scenario *before; /* those of earlier initializations stay, for calls that still hold texts of them */
};

struct scenario *scenario_read(void);
const struct gpu *scenario_gpu(unsigned int id);
const struct thing *scenario_thing(dcgmGroupEntityPair_t entity);
const struct value *scenario_value(dcgmGroupEntityPair_t entity, unsigned short field);
bool thing_present(const struct thing *thing, usec time);
bool version_from(int major, int minor);

/* ---- accounting (report.c of all players), and pauses (prof.c) ---- */

enum gauge { OPEN_HANDLES = FIRST_GAUGE, OPEN_GROUPS, OPEN_FIELD_GROUPS, OPEN_WATCHES, KEPT_SAMPLES };

bool pause_resumed(bool embedded, usec from, usec until);

/* ---- an engine and its clients (connection.c) ---- */

struct group {
    unsigned int id, owner;
    char name[TEXT_LENGTH];
    size_t count;
    dcgmGroupEntityPair_t entities[MAX_ENTITIES];
    struct group *next;
};

struct field_group {
    unsigned int id, owner;
    dcgmFieldGroupInfo_v1 info;
    struct field_group *next;
};

struct sample {
    usec time;
    struct reading reading;
};

struct watcher {
    unsigned int owner; /* a connection */
    usec interval, keep;
    struct watcher *next;
};

/* One field of one entity: who watches it, and its samples. */
struct series {
    dcgmGroupEntityPair_t entity;
    unsigned short field;
    char type;
    const struct value *value;
    const struct thing *thing;
    const struct gpu *gpu; /* NULL: no part of one */
    struct watcher *watchers;
    usec interval, keep, due, last, watched_since;
    bool warm; /* the first sample is behind it */
    size_t first, count, room;
    struct sample *samples; /* a ring */
    struct series *next, *next_in_bucket;
};

enum { BUCKETS = 4096 };

struct engine {
    bool embedded;
    size_t epoch; /* how many times it died */
    usec born, due;
    unsigned int next_id;
    struct group *groups;
    struct field_group *field_groups;
    struct series *series, *buckets[BUCKETS];
};

/* One call into the library. */
struct call {
    struct call_counter *counter;
    dcgmHandle_t handle;
    struct engine *engine;
    unsigned int connection;
    usec now;
};

extern pthread_mutex_t player_lock;
extern struct scenario *scenario;

/* How many requests a call makes of the hostengine before it has an answer. */
enum requests {
    REQUEST_NONE,   /* it is the library's own affair */
    REQUEST_SMALL,  /* one, of a small message */
    REQUEST_VALUES, /* one whose answer holds values: counted; the function pays for it (trip), when it knows them */
};

/*
 * Counts the call and its request, lets faults happen, checks the handle, and brings the engine up to now. On ST_OK the
 * caller holds player_lock; call_end gives it back and passes the code through.
 */
dcgmReturn_t call_begin(struct call_counter *counter, dcgmHandle_t handle, long gpu, enum requests requests,
                        struct call *call);
dcgmReturn_t call_end(dcgmReturn_t code);
/* The same for calls that need no handle: counting and faults only; the lock is not held afterwards. */
dcgmReturn_t call_plain(struct call_counter *counter, usec *now);

#define ENTER_AS(function_name, handle, gpu, requests)                                 \
    struct call call;                                                                  \
    do {                                                                               \
        static struct call_counter counter_ = {#function_name, 0, NULL};               \
        dcgmReturn_t begun_ = call_begin(&counter_, handle, gpu, requests, &call);     \
        if (begun_ != ST_OK) return begun_;                                            \
    } while (0)
#define ENTER_GPU(function_name, handle, gpu) ENTER_AS(function_name, handle, gpu, REQUEST_SMALL)
#define ENTER(function_name, handle) ENTER_GPU(function_name, handle, -1)

dcgmReturn_t call_faults(const char *function, long gpu, usec *now); /* faults.c; without the lock */

/* ---- what a request costs (trip.c); never with player_lock, but for small ones ---- */

enum trip_kind { TRIP_SMALL, TRIP_SINCE, TRIP_LATEST };

void trip_open(void);
void trip_close(void);
/* Returns when the answer, with that many values, is back. Nothing where requests are free, or embedded. */
void trip(dcgmHandle_t handle, enum trip_kind kind, size_t values);

/* ---- groups (groups.c) ---- */

struct group *group_find(struct engine *engine, dcgmGpuGrp_t id, usec now);
struct field_group *field_group_find(struct engine *engine, dcgmFieldGrp_t id);
void groups_forget(struct engine *engine, bool all, unsigned int owner);

/* ---- watches and sampling (watches.c, sampling.c) ---- */

struct series *series_find(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field);
void watches_forget(struct engine *engine, unsigned int owner);
void engine_clear(struct engine *engine);
void engine_advance(struct engine *engine, usec now);
void series_first(struct engine *engine, struct series *series, usec now);
void series_prune(struct series *series, usec now);
struct reading reading_now(struct engine *engine, dcgmGroupEntityPair_t entity, unsigned short field, usec now);

/* ---- faults of values (faults.c) ---- */

const struct value_fault *value_fault_at(const struct engine *engine, const struct series *series, usec time);
bool gpu_lost(unsigned int gpu, usec time);

/* ---- profiling (prof.c) ---- */

dcgmReturn_t profiling_admits(struct engine *engine, const struct group *group, const struct field_group *fields,
                              usec now);
bool profiling_paused(const struct engine *engine, usec time);
const struct gpu *gpu_of(dcgmGroupEntityPair_t entity);

#endif
