/*
 * The scenario in memory: what each kind of line of the file says (scenario_file.py writes them). A line that opens an
 * entity (system, gpu, instance, compute, process, profile) is followed by the values that describe it.
 */
#include "player.h"

#include <stdlib.h>
#include <string.h>

/* What is being read, and what was opened last. */
static struct {
    struct scenario *scenario;
    struct entity *entity;
    struct gpu *gpu;
    struct instance *instance;
} reading;

static void *make(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) abort();
    return memory;
}

static struct gpu *find_gpu(const char *key) {
    for (struct gpu *gpu = reading.scenario->gpus; gpu; gpu = gpu->next)
        if (strcmp(gpu->key, key) == 0) return gpu;
    return NULL;
}

static struct gpu *gpu_of(const struct line *line, const char *key) {
    struct gpu *gpu = find_gpu(key);
    if (gpu == NULL) line_bad(line, "no such GPU");
    return gpu;
}

static struct instance *find_instance(const struct gpu *gpu, const char *key) {
    for (struct instance *instance = gpu->instances; instance; instance = instance->next)
        if (strcmp(instance->key, key) == 0) return instance;
    return NULL;
}

static struct gpu *gpu_opened(const struct line *line) {
    if (reading.gpu == NULL) line_bad(line, "belongs to no GPU");
    return reading.gpu;
}

#define APPEND(list, item)                          \
    do {                                            \
        __typeof__(&(list)) end_ = &(list);         \
        while (*end_ != NULL) end_ = &(*end_)->next; \
        *end_ = (item);                             \
    } while (0)

/* ---- entities ---- */

static void open_system(const struct line *line) {
    wall_begin(line);
    reading.entity = &reading.scenario->system;
}

static void open_gpu(const struct line *line) {
    struct gpu *gpu = make(sizeof *gpu);
    gpu->key = copied(line_text(line, "key"));
    gpu->handle = (struct handle){HANDLE_GPU, gpu, NULL, NULL};
    if (find_gpu(gpu->key)) line_bad(line, "two GPUs of one key");
    APPEND(reading.scenario->gpus, gpu);
    reading.gpu = gpu;
    reading.instance = NULL;
    reading.entity = &gpu->entity;
}

static void open_instance(const struct line *line) {
    struct instance *instance = make(sizeof *instance);
    instance->gpu = gpu_opened(line);
    instance->key = copied(line_text(line, "key"));
    instance->id = line_whole(line, "id");
    instance->handle = (struct handle){HANDLE_GPU_INSTANCE, instance->gpu, instance, NULL};
    if (find_instance(instance->gpu, instance->key)) line_bad(line, "two instances of one key");
    APPEND(instance->gpu->instances, instance);
    reading.instance = instance;
    reading.entity = &instance->entity;
}

static void open_compute(const struct line *line) {
    if (reading.instance == NULL) line_bad(line, "belongs to no instance");
    struct compute *compute = make(sizeof *compute);
    compute->id = line_whole(line, "id");
    compute->instance = reading.instance;
    compute->mig_handle = (struct handle){HANDLE_MIG, reading.gpu, reading.instance, compute};
    compute->handle = (struct handle){HANDLE_COMPUTE_INSTANCE, reading.gpu, reading.instance, compute};
    APPEND(reading.instance->computes, compute);
    reading.entity = &compute->entity;
}

static void open_process(const struct line *line) {
    struct process *process = make(sizeof *process);
    process->pid = line_whole(line, "pid");
    APPEND(gpu_opened(line)->processes, process);
    reading.entity = &process->entity;
}

static void open_profile(const struct line *line) {
    struct profile *profile = make(sizeof *profile);
    profile->number = line_whole(line, "number");
    APPEND(gpu_opened(line)->profiles, profile);
    reading.entity = &profile->entity;
}

static void read_value(const struct line *line) {
    if (reading.entity == NULL) line_bad(line, "belongs to nothing");
    struct series *series = make(sizeof *series);
    series->key = copied(line_text(line, "key"));
    line_value(line, &series->value);
    series->next = reading.entity->series;
    reading.entity->series = series;
}

/* ---- what changes over time ---- */

static void add_instance(const struct line *line, const char *key, size_t index, void *to) {
    (void)index;
    struct layout *layout = to;
    struct instance *instance = find_instance(reading.gpu, key);
    if (instance == NULL) line_bad(line, "no such instance");
    *(struct instance **)grown((void **)&layout->instances, &layout->count, sizeof instance) = instance;
}

static void read_layout(const struct line *line) {
    struct layout *layout = make(sizeof *layout);
    layout->from = line_time(line, "from");
    layout->mig_enabled = line_whole(line, "enabled") != 0;
    APPEND(gpu_opened(line)->layouts, layout);
    line_items(line, "instances", add_instance, layout);
}

static void add_gpu(const struct line *line, const char *key, size_t index, void *to) {
    (void)index;
    struct order *order = to;
    *(struct gpu **)grown((void **)&order->gpus, &order->count, sizeof *order->gpus) = gpu_of(line, key);
}

static void read_order(const struct line *line) {
    struct order *order = make(sizeof *order);
    order->from = line_time(line, "from");
    line_items(line, "gpus", add_gpu, order);
    APPEND(reading.scenario->orders, order);
}

static void read_event(const struct line *line) {
    struct event *event = make(sizeof *event);
    event->time = line_time(line, "at");
    event->gpu = gpu_of(line, line_text(line, "gpu"));
    event->type = line_whole(line, "type");
    event->data = (unsigned long long)line_number(line, "data");
    event->instance = line_whole(line, "instance");
    event->compute = line_whole(line, "compute");
    APPEND(reading.scenario->events, event);
    reading.scenario->event_count++;
}

static void read_call_fault(const struct line *line) {
    const struct call_fault *fault = call_fault_read(line, &reading.scenario->faults);
    if (fault->gpu != NULL) gpu_of(line, fault->gpu);
}

static const struct line_reader readers[] = {
    {"system", open_system},   {"gpu", open_gpu},         {"instance", open_instance},
    {"compute", open_compute}, {"process", open_process}, {"profile", open_profile},
    {"value", read_value},     {"layout", read_layout},   {"order", read_order},
    {"event", read_event},     {"call_fault", read_call_fault},
};

/* ---- every handle there can be, so that a wrong pointer is found out and not followed ---- */

static int by_address(const void *left, const void *right) {
    uintptr_t a = (uintptr_t)*(struct handle *const *)left, b = (uintptr_t)*(struct handle *const *)right;
    return (a > b) - (a < b);
}

static void add_handle(struct scenario *scenario, struct handle *handle) {
    scenario->handles = realloc(scenario->handles, (scenario->handle_count + 1) * sizeof(struct handle *));
    if (scenario->handles == NULL) abort();
    scenario->handles[scenario->handle_count++] = handle;
}

static void collect_handles(struct scenario *scenario) {
    for (struct gpu *gpu = scenario->gpus; gpu; gpu = gpu->next) {
        add_handle(scenario, &gpu->handle);
        for (struct instance *instance = gpu->instances; instance; instance = instance->next) {
            add_handle(scenario, &instance->handle);
            for (struct compute *compute = instance->computes; compute; compute = compute->next) {
                add_handle(scenario, &compute->mig_handle);
                add_handle(scenario, &compute->handle);
            }
        }
    }
    if (scenario->handle_count > 1)
        qsort(scenario->handles, scenario->handle_count, sizeof(struct handle *), by_address);
}

struct scenario *scenario_read(void) {
    reading.scenario = make(sizeof *reading.scenario);
    lines_read(readers, sizeof readers / sizeof *readers);
    if (text_of(&reading.scenario->system, "driver_version") == NULL) player_fails("a scenario without a driver");
    collect_handles(reading.scenario);
    return reading.scenario;
}
