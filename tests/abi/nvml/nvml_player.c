/*
 * The running player: initialization, the clock, faults, handles, and the functions about the system as a whole.
 *
 *   HONEST_TEST_NVML_SCENARIO  the scenario file; without one there is no driver
 *   HONEST_TEST_NVML_CLOCK     a file of one native double, the scenario's time in seconds; else real time since the
 *                              first initialization
 */
#include "player.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GPU_MAX = 64 };

pthread_mutex_t player_lock = PTHREAD_MUTEX_INITIALIZER;

static struct scenario *scenario;
static int initialized;
static struct gpu *attached[GPU_MAX]; /* the GPUs that were there at initialization */
static size_t attached_count;

/* ---- time ---- */

static const double *clock_file;
static double real_start, wall_start;
static pthread_once_t clock_once = PTHREAD_ONCE_INIT;

static double real_seconds(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void clock_open(void) {
    real_start = real_seconds(CLOCK_MONOTONIC);
    const char *path = getenv("HONEST_TEST_NVML_CLOCK");
    if (path != NULL && *path != '\0') {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (lseek(file, 0, SEEK_END) >= (off_t)sizeof(double)) {
                void *mapped = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
                if (mapped != MAP_FAILED) clock_file = mapped;
            }
            close(file);
        }
        if (clock_file == NULL) fprintf(stderr, "nvml player: no clock in %s; real time is used\n", path);
    }
    wall_start = real_seconds(CLOCK_REALTIME) - (clock_file ? *clock_file : 0.0);
}

double clock_now(void) {
    pthread_once(&clock_once, clock_open);
    if (clock_file == NULL) return real_seconds(CLOCK_MONOTONIC) - real_start;
    uint64_t bits = __atomic_load_n((const uint64_t *)(const void *)clock_file, __ATOMIC_ACQUIRE);
    double time;
    memcpy(&time, &bits, sizeof time);
    return time;
}

bool clock_is_real(void) {
    pthread_once(&clock_once, clock_open);
    return clock_file == NULL;
}

unsigned long long wall_usec(const struct scenario *played, double time) {
    double offset = number_of(&played->system, "wall_offset", time, wall_start);
    return as_u64((offset + time) * 1e6);
}

void sleep_seconds(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&left, NULL);
}

/* ---- faults ---- */

/* Single metrics and fields have names too (gpm.2, field.82); a glob for functions does not mean them. */
static bool names(const struct fault *fault, const char *function) {
    if (strncmp(function, "nvml", 4) != 0 && strncmp(function, fault->function, 3) != 0) return false;
    return fnmatch(fault->function, function, 0) == 0;
}

static bool fault_applies(const struct fault *fault, const struct call *call, const char *function, double now) {
    if (now < fault->from || now >= fault->until) return false;
    if (fault->gpu != NULL && fault->gpu != call->gpu) return false;
    if (!fault->any_instance && (call->instance == NULL || call->instance->id != fault->instance)) return false;
    return names(fault, function);
}

static bool fault_used_up(struct fault *fault) {
    if (fault->limit == 0) return false;
    return __atomic_fetch_add(&fault->used, 1, __ATOMIC_RELAXED) >= fault->limit;
}

static void hang(const struct fault *fault) {
    report_add(HANGING, 1);
    while (clock_now() < fault->until) sleep_seconds(0.002);
    report_add(HANGING, -1);
}

/* With specific_only, just the faults of one GPU: those of any have happened already. */
nvmlReturn_t call_faults(const struct call *call, const char *function, bool specific_only) {
    for (struct fault *fault = call->scenario->faults; fault; fault = fault->next) {
        if (specific_only && fault->gpu == NULL) continue;
        if (!fault_applies(fault, call, function, call->now) || fault_used_up(fault)) continue;
        if (fault->kind == FAULT_ERROR) return (nvmlReturn_t)fault->argument;
        if (fault->kind == FAULT_DELAY)
            sleep_seconds(fault->argument);
        else
            hang(fault);
    }
    return NVML_SUCCESS;
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

static bool gpu_lost(const struct gpu *gpu, double now) {
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
    struct reading reading = series_at(series_of(entity_of(call), key), call->now);
    if (reading.error == NVML_SUCCESS) *out = as_u32(reading.value);
    return reading.error;
}

nvmlReturn_t read_u64(const struct call *call, const char *key, unsigned long long *out) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    struct reading reading = series_at(series_of(entity_of(call), key), call->now);
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
    return put_text(property_of(entity_of(call), key), out, length);
}

/* ---- the list of GPUs ---- */

static size_t present_gpus(struct scenario *played, double now, struct gpu **out, size_t room) {
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
size_t enumerate(struct scenario *played, double now, struct gpu **out, size_t room) {
    if (number_of(&played->system, "live_enumeration", now, 0.0) != 0.0) return present_gpus(played, now, out, room);
    pthread_mutex_lock(&player_lock);
    size_t count = attached_count < room ? attached_count : room;
    memcpy(out, attached, count * sizeof *out);
    pthread_mutex_unlock(&player_lock);
    return count;
}

/* ---- initialization ---- */

static struct scenario *scenario_once(void) {
    if (scenario == NULL) {
        const char *path = getenv("HONEST_TEST_NVML_SCENARIO");
        if (path != NULL && *path != '\0') scenario = scenario_read(path);
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
    report_call(counter);
    double now = clock_now();
    pthread_mutex_lock(&player_lock);
    struct scenario *played = scenario_once();
    pthread_mutex_unlock(&player_lock);
    if (played == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    struct call call = {.scenario = played, .now = now, .function = counter->name};
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
    static struct call_counter counter = {"nvmlInit_v2", NULL};
    return initialize(&counter);
}

NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    static struct call_counter counter = {"nvmlInitWithFlags", NULL};
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
    return put_text(property_of(&call.scenario->system, "driver_version"), version, length);
}

NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    ENTER(call, nvmlSystemGetNVMLVersion, NULL, SCOPE_SYSTEM);
    return put_text(property_of(&call.scenario->system, "nvml_version"), version, length);
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
            if (process->pid == pid) return put_text(property_of(&process->entity, "name"), name, length);
    return NVML_ERROR_NOT_FOUND;
}
