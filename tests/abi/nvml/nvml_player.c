/*
 * The running player: initialization, faults, handles, and the functions about the system as a whole. Without a
 * scenario (HONEST_TEST_NVML_SCENARIO) there is no driver.
 */
#include "player.h"

#include <stdlib.h>
#include <string.h>

enum { GPU_MAX = 64 };

pthread_mutex_t player_lock = PTHREAD_MUTEX_INITIALIZER;

static struct scenario *scenario;
static int initialized;
static struct gpu *attached[GPU_MAX]; /* the GPUs that were there at initialization */
static size_t attached_count;

/* ---- faults ---- */

struct question {
    const struct call *call;
    const char *function;
    bool specific_only;
};

/* Single metrics and fields have names too (gpm.2, field.82); a glob for functions does not mean them. */
static bool concerns(const struct call_fault *fault, const void *asked) {
    const struct question *question = asked;
    const struct call *call = question->call;
    if (question->specific_only && fault->gpu == NULL) return false;
    if (fault->gpu != NULL && (call->gpu == NULL || strcmp(fault->gpu, call->gpu->key) != 0)) return false;
    if (fault->instance >= 0 && (call->instance == NULL || call->instance->id != fault->instance)) return false;
    return strncmp(question->function, "nvml", 4) == 0 || strncmp(question->function, fault->function, 3) == 0;
}

/* With specific_only, just the faults of one GPU: those of any have happened already. */
nvmlReturn_t call_faults(const struct call *call, const char *function, bool specific_only) {
    struct question question = {call, function, specific_only};
    return (nvmlReturn_t)call_faults_meet(&call->scenario->faults, function, concerns, &question);
}

/* ---- handles ---- */

static const struct handle *known_handle(const struct handle *handle) {
    size_t low = 0, high = scenario->handle_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scenario->handles[middle] == handle) return handle;
        if ((uintptr_t)scenario->handles[middle] < (uintptr_t)handle)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool kind_fits(enum handle_kind kind, enum scope scope) {
    switch (scope) {
        case SCOPE_GPU: return kind == HANDLE_GPU;
        case SCOPE_GPU_OR_MIG: return kind == HANDLE_GPU || kind == HANDLE_MIG;
        case SCOPE_GPU_INSTANCE: return kind == HANDLE_GPU_INSTANCE;
        case SCOPE_COMPUTE_INSTANCE: return kind == HANDLE_COMPUTE_INSTANCE;
        case SCOPE_SYSTEM: break;
    }
    return false;
}

static bool gpu_lost(const struct gpu *gpu, usec now) {
    return number_of(&gpu->entity, "present", now, 1.0) == 0.0 || number_of(&gpu->entity, "lost", now, 0.0) != 0.0;
}

static nvmlReturn_t resolve(const struct handle *handle, enum scope scope, struct call *call) {
    if (known_handle(handle) == NULL || !kind_fits(handle->kind, scope)) return NVML_ERROR_INVALID_ARGUMENT;
    call->gpu = handle->gpu;
    call->instance = handle->instance;
    call->compute = handle->compute;
    return NVML_SUCCESS;
}

nvmlReturn_t call_begin(struct call_counter *counter, struct handle *handle, enum scope scope, struct call *call) {
    report_call(counter);
    if (__atomic_load_n(&initialized, __ATOMIC_ACQUIRE) == 0) return NVML_ERROR_UNINITIALIZED;
    *call = (struct call){.scenario = scenario, .function = counter->name};
    if (scope != SCOPE_SYSTEM) {
        nvmlReturn_t resolved = resolve(handle, scope, call);
        if (resolved != NVML_SUCCESS) return resolved;
    }
    call->now = clock_now();
    nvmlReturn_t fault = call_faults(call, counter->name, false);
    if (fault != NVML_SUCCESS) return fault;
    call->now = clock_now(); /* a hang or a delay took its time */
    if (scope == SCOPE_SYSTEM) return NVML_SUCCESS;
    if (gpu_lost(call->gpu, call->now)) return NVML_ERROR_GPU_IS_LOST;
    if (call->compute != NULL && !compute_alive(call->compute, call->now)) return NVML_ERROR_INVALID_ARGUMENT;
    if (call->instance != NULL && !instance_alive(call->instance, call->now)) return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

const struct entity *entity_of(const struct call *call) {
    return call->compute ? &call->compute->entity : &call->gpu->entity;
}

/* ---- reading one thing ---- */

nvmlReturn_t read_u32(const struct call *call, const char *key, unsigned int *out) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct answer reading = series_at(series_of(entity_of(call), key), call->now);
    if (reading.error == NVML_SUCCESS) *out = as_u32(reading.value);
    return reading.error;
}

nvmlReturn_t read_u64(const struct call *call, const char *key, unsigned long long *out) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct answer reading = series_at(series_of(entity_of(call), key), call->now);
    if (reading.error == NVML_SUCCESS) *out = as_u64(reading.value);
    return reading.error;
}

static nvmlReturn_t put_text(const char *text, char *out, unsigned int length) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (text == NULL) return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t read_text(const struct call *call, const char *key, char *out, unsigned int length) {
    return put_text(text_of(entity_of(call), key), out, length);
}

/* ---- the list of GPUs ---- */

static size_t present_gpus(struct scenario *played, usec now, struct gpu **out, size_t room) {
    const struct order *chosen = NULL;
    for (const struct order *order = played->orders; order; order = order->next)
        if (order->from <= now) chosen = order;
    size_t count = 0, place = 0;
    struct gpu *gpu = played->gpus;
    while (count < room) {
        struct gpu *candidate;
        if (chosen != NULL) {
            if (place == chosen->count) break;
            candidate = chosen->gpus[place++];
        } else {
            if (gpu == NULL) break;
            candidate = gpu;
            gpu = gpu->next;
        }
        if (number_of(&candidate->entity, "present", now, 1.0) != 0.0) out[count++] = candidate;
    }
    return count;
}

/* As the driver has it, the list is made at initialization; a scenario may ask for one that is always new. */
size_t enumerate(struct scenario *played, usec now, struct gpu **out, size_t room) {
    if (number_of(&played->system, "live_enumeration", now, 0.0) != 0.0) return present_gpus(played, now, out, room);
    pthread_mutex_lock(&player_lock);
    size_t count = attached_count < room ? attached_count : room;
    memcpy(out, attached, count * sizeof *out);
    pthread_mutex_unlock(&player_lock);
    return count;
}

/* ---- initialization ---- */

static struct scenario *scenario_once(void) {
    const char *path = getenv(PLAYER_VARIABLE("SCENARIO"));
    if (scenario == NULL && path != NULL && *path != '\0') {
        clock_open();
        report_open();
        scenario = scenario_read();
    }
    return scenario;
}

static void forget_gpm(void) {
    for (struct gpu *gpu = scenario->gpus; gpu; gpu = gpu->next) {
        gpu->gpm_warm = false;
        for (struct instance *instance = gpu->instances; instance; instance = instance->next)
            instance->gpm_warm = false;
    }
}

static nvmlReturn_t initialize(struct call_counter *counter) {
    pthread_mutex_lock(&player_lock);
    struct scenario *played = scenario_once();
    pthread_mutex_unlock(&player_lock);
    report_call(counter);
    if (played == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    struct call call = {.scenario = played, .now = clock_now(), .function = counter->name};
    nvmlReturn_t fault = call_faults(&call, counter->name, false);
    if (fault != NVML_SUCCESS) return fault;
    pthread_mutex_lock(&player_lock);
    if (initialized == 0) {
        attached_count = present_gpus(played, clock_now(), attached, GPU_MAX);
        forget_gpm();
    }
    __atomic_store_n(&initialized, initialized + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&player_lock);
    report_add(INIT_COUNT, 1);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlInit_v2(void) {
    static struct call_counter counter = {"nvmlInit_v2", 0, NULL};
    return initialize(&counter);
}

NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    static struct call_counter counter = {"nvmlInitWithFlags", 0, NULL};
    (void)flags;
    return initialize(&counter);
}

NVML_API nvmlReturn_t nvmlShutdown(void) {
    ENTER(call, nvmlShutdown, NULL, SCOPE_SYSTEM);
    pthread_mutex_lock(&player_lock);
    bool was_up = initialized > 0;
    if (was_up) __atomic_store_n(&initialized, initialized - 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&player_lock);
    if (was_up) report_add(INIT_COUNT, -1);
    return was_up ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* ---- the system ---- */

NVML_API const char *nvmlErrorString(nvmlReturn_t result) {
    static const char *const strings[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires restart", "The operating system has blocked the request.",
        "RM has detected an NVML/RM version mismatch.", "In use by another client", "Insufficient Memory", "No data",
        "ECC not supported on vGPU", "Insufficient resources", "Frequency not supported",
        "Argument version mismatch", "Deprecated", "Not ready", "GPU not found", "Invalid state",
    };
    return result < sizeof strings / sizeof *strings ? strings[result] : "Unknown Error";
}

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    ENTER(call, nvmlSystemGetDriverVersion, NULL, SCOPE_SYSTEM);
    return put_text(text_of(&call.scenario->system, "driver_version"), version, length);
}

NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    ENTER(call, nvmlSystemGetNVMLVersion, NULL, SCOPE_SYSTEM);
    return put_text(text_of(&call.scenario->system, "nvml_version"), version, length);
}

static nvmlReturn_t cuda_version(const struct call *call, int *version) {
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *version = (int)number_of(&call->scenario->system, "cuda_version", call->now, 0.0);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER(call, nvmlSystemGetCudaDriverVersion, NULL, SCOPE_SYSTEM);
    return cuda_version(&call, version);
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER(call, nvmlSystemGetCudaDriverVersion_v2, NULL, SCOPE_SYSTEM);
    return cuda_version(&call, version);
}

NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    ENTER(call, nvmlSystemGetProcessName, NULL, SCOPE_SYSTEM);
    for (const struct gpu *gpu = call.scenario->gpus; gpu; gpu = gpu->next)
        for (const struct process *process = gpu->processes; process; process = process->next)
            if (process->pid == pid) return put_text(text_of(&process->entity, "name"), name, length);
    return NVML_ERROR_NOT_FOUND;
}

/* ---- what is open, for a test in the same process ---- */

NVML_API long long honest_test_open_samples(void) { return report_gauge(OPEN_SAMPLES); }
NVML_API long long honest_test_open_mig_samples(void) { return report_gauge(OPEN_MIG_SAMPLES); }
NVML_API long long honest_test_open_event_sets(void) { return report_gauge(OPEN_EVENT_SETS); }
NVML_API long long honest_test_init_count(void) { return report_gauge(INIT_COUNT); }
