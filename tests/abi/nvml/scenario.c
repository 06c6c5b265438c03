/*
 * Reads a scenario file. Lines of words, as scenario_file.py writes them from the types of scenario.py:
 *
 *   honest-nvml-scenario 1
 *   gpu KEY | instance KEY ID | compute ID | process PID | profile NUMBER     open an entity
 *   set KEY TEXT | steps KEY T:VALUE... | counter KEY START T:RATE... r:T...  describe the entity opened last
 *   layout T on|off INSTANCE... | order T GPU... | event ... | fault ...
 *
 * Text is percent-encoded. A value is a number, or !CODE for a return code in its place.
 */
#include "player.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *path;
    unsigned long line;
    char *rest;         /* of the current line */
    const char *wrong;  /* the first complaint */
    struct scenario *scenario;
    struct entity *entity; /* opened last */
    struct gpu *gpu;
    struct instance *instance;
};

static void *make(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL) abort();
    return memory;
}

static char *copy(const char *text) {
    char *copied = strdup(text);
    if (copied == NULL) abort();
    return copied;
}

/* ---- looking things up ---- */

const char *property_of(const struct entity *entity, const char *key) {
    for (const struct property *property = entity->properties; property; property = property->next)
        if (strcmp(property->key, key) == 0) return property->value;
    return NULL;
}

const struct series *series_of(const struct entity *entity, const char *key) {
    for (const struct series *series = entity->series; series; series = series->next)
        if (strcmp(series->key, key) == 0) return series;
    return NULL;
}

double number_of(const struct entity *entity, const char *key, double time, double otherwise) {
    struct reading reading = series_at(series_of(entity, key), time);
    return reading.error == NVML_SUCCESS ? reading.value : otherwise;
}

static struct gpu *find_gpu(const struct scenario *scenario, const char *key) {
    for (struct gpu *gpu = scenario->gpus; gpu; gpu = gpu->next)
        if (strcmp(gpu->key, key) == 0) return gpu;
    return NULL;
}

static struct instance *find_instance(const struct gpu *gpu, const char *key) {
    for (struct instance *instance = gpu->instances; instance; instance = instance->next)
        if (strcmp(instance->key, key) == 0) return instance;
    return NULL;
}

/* ---- words ---- */

static void complain(struct reader *reader, const char *wrong) {
    if (reader->wrong == NULL) reader->wrong = wrong;
}

static char *optional_word(struct reader *reader) { return strtok_r(NULL, " \n", &reader->rest); }

static const char *word(struct reader *reader) {
    const char *found = optional_word(reader);
    if (found == NULL) complain(reader, "a word is missing");
    return found ? found : "";
}

static double to_number(struct reader *reader, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0') complain(reader, "not a number");
    return value;
}

static double number(struct reader *reader) { return to_number(reader, word(reader)); }

static unsigned long long whole(struct reader *reader) {
    const char *text = word(reader);
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || *text == '-' || errno) complain(reader, "not a whole number");
    return value;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static char *decode(struct reader *reader, const char *text) {
    char *decoded = copy(text), *out = decoded;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
        } else if (hex_digit(in[1]) >= 0 && hex_digit(in[2]) >= 0) {
            *out++ = (char)(hex_digit(in[1]) * 16 + hex_digit(in[2]));
            in += 2;
        } else {
            complain(reader, "bad percent-encoding");
        }
    }
    *out = '\0';
    return decoded;
}

/* ---- descriptions of an entity ---- */

static void read_property(struct reader *reader) {
    struct property *property = make(1, sizeof *property);
    property->key = copy(word(reader));
    const char *text = optional_word(reader); /* empty text is no word */
    property->value = decode(reader, text ? text : "");
    property->next = reader->entity->properties;
    reader->entity->properties = property;
}

static void add_step(struct reader *reader, struct series *series, char *text) {
    char *colon = strchr(text, ':');
    if (colon == NULL) {
        complain(reader, "a step is TIME:VALUE");
        return;
    }
    *colon = '\0';
    struct step *step = &series->steps[series->step_count];
    step->from = to_number(reader, text);
    if (colon[1] == '!')
        step->error = (int)to_number(reader, colon + 2);
    else
        step->value = to_number(reader, colon + 1);
    if (series->step_count > 0) {
        const struct step *before = step - 1;
        if (!(step->from > before->from)) complain(reader, "steps must go forward in time");
        step->integral = before->integral + (before->error ? 0.0 : before->value * (step->from - before->from));
    }
    series->step_count++;
}

static void read_series(struct reader *reader, bool counter) {
    struct series *series = make(1, sizeof *series);
    series->key = copy(word(reader));
    series->counter = counter;
    if (counter) series->start = number(reader);
    size_t room = strlen(reader->rest) / 2 + 1; /* more than there can be words */
    size_t words = 1;
    for (const char *c = reader->rest; *c; c++) words += *c == ' ';
    if (words < room) room = words;
    series->steps = make(room, sizeof *series->steps);
    series->resets = make(room, sizeof *series->resets);
    for (char *text; (text = optional_word(reader)) != NULL;) {
        if (strncmp(text, "r:", 2) == 0)
            series->resets[series->reset_count++] = to_number(reader, text + 2);
        else
            add_step(reader, series, text);
    }
    if (series->step_count == 0) {
        complain(reader, "a series needs a step");
        series->step_count = 1;
    }
    series->next = reader->entity->series;
    reader->entity->series = series;
}

/* ---- entities ---- */

#define APPEND(list, item)                          \
    do {                                            \
        __typeof__(&(list)) end_ = &(list);         \
        while (*end_ != NULL) end_ = &(*end_)->next; \
        *end_ = (item);                             \
    } while (0)

static void open_gpu(struct reader *reader) {
    struct gpu *gpu = make(1, sizeof *gpu);
    gpu->key = copy(word(reader));
    gpu->handle = (struct handle){HANDLE_GPU, gpu, NULL, NULL};
    if (find_gpu(reader->scenario, gpu->key)) complain(reader, "two GPUs of one key");
    APPEND(reader->scenario->gpus, gpu);
    reader->gpu = gpu;
    reader->instance = NULL;
    reader->entity = &gpu->entity;
}

static void open_instance(struct reader *reader) {
    struct instance *instance = make(1, sizeof *instance);
    instance->key = copy(word(reader));
    instance->id = (unsigned int)whole(reader);
    instance->gpu = reader->gpu;
    instance->handle = (struct handle){HANDLE_GPU_INSTANCE, reader->gpu, instance, NULL};
    if (find_instance(reader->gpu, instance->key)) complain(reader, "two instances of one key");
    APPEND(reader->gpu->instances, instance);
    reader->instance = instance;
    reader->entity = &instance->entity;
}

static void open_compute(struct reader *reader) {
    struct compute *compute = make(1, sizeof *compute);
    compute->id = (unsigned int)whole(reader);
    compute->instance = reader->instance;
    compute->mig_handle = (struct handle){HANDLE_MIG, reader->gpu, reader->instance, compute};
    compute->handle = (struct handle){HANDLE_COMPUTE_INSTANCE, reader->gpu, reader->instance, compute};
    APPEND(reader->instance->computes, compute);
    reader->entity = &compute->entity;
}

static void open_process(struct reader *reader) {
    struct process *process = make(1, sizeof *process);
    process->pid = (unsigned int)whole(reader);
    APPEND(reader->gpu->processes, process);
    reader->entity = &process->entity;
}

static void open_profile(struct reader *reader) {
    struct profile *profile = make(1, sizeof *profile);
    profile->number = (unsigned int)whole(reader);
    APPEND(reader->gpu->profiles, profile);
    reader->entity = &profile->entity;
}

static void read_layout(struct reader *reader) {
    struct layout *layout = make(1, sizeof *layout);
    layout->from = number(reader);
    layout->mig_enabled = strcmp(word(reader), "on") == 0;
    layout->instances = make(strlen(reader->rest) / 2 + 1, sizeof *layout->instances);
    for (char *key; (key = optional_word(reader)) != NULL;) {
        struct instance *instance = find_instance(reader->gpu, key);
        if (instance == NULL)
            complain(reader, "a layout of an unknown instance");
        else
            layout->instances[layout->count++] = instance;
    }
    APPEND(reader->gpu->layouts, layout);
}

/* ---- the rest of the scenario ---- */

static void read_order(struct reader *reader) {
    struct order *order = make(1, sizeof *order);
    order->from = number(reader);
    order->gpus = make(strlen(reader->rest) / 2 + 1, sizeof(struct gpu *));
    for (char *key; (key = optional_word(reader)) != NULL;) {
        struct gpu *gpu = find_gpu(reader->scenario, key);
        if (gpu == NULL)
            complain(reader, "an order of an unknown GPU");
        else
            order->gpus[order->count++] = gpu;
    }
    APPEND(reader->scenario->orders, order);
}

static void read_event(struct reader *reader) {
    struct event *event = make(1, sizeof *event);
    event->time = number(reader);
    event->gpu = find_gpu(reader->scenario, word(reader));
    if (event->gpu == NULL) complain(reader, "an event of an unknown GPU");
    event->type = whole(reader);
    event->data = whole(reader);
    event->instance = (unsigned int)whole(reader);
    event->compute = (unsigned int)whole(reader);
    APPEND(reader->scenario->events, event);
    reader->scenario->event_count++;
}

static void read_fault(struct reader *reader) {
    struct fault *fault = make(1, sizeof *fault);
    fault->function = copy(word(reader));
    const char *gpu = word(reader);
    if (strcmp(gpu, "*") != 0) {
        fault->gpu = find_gpu(reader->scenario, gpu);
        if (fault->gpu == NULL) complain(reader, "a fault of an unknown GPU");
    }
    const char *instance = word(reader);
    fault->any_instance = strcmp(instance, "*") == 0;
    if (!fault->any_instance) fault->instance = (unsigned int)to_number(reader, instance);
    fault->from = number(reader);
    fault->until = number(reader);
    fault->limit = (unsigned long)whole(reader);
    const char *kind = word(reader);
    fault->kind = strcmp(kind, "hang") == 0 ? FAULT_HANG : strcmp(kind, "delay") == 0 ? FAULT_DELAY : FAULT_ERROR;
    fault->argument = number(reader);
    APPEND(reader->scenario->faults, fault);
}

struct verb {
    const char *name;
    void (*read)(struct reader *);
    bool needs_gpu, needs_instance;
};

static void read_steps(struct reader *reader) { read_series(reader, false); }
static void read_counter(struct reader *reader) { read_series(reader, true); }

static const struct verb verbs[] = {
    {"set", read_property, false, false},     {"steps", read_steps, false, false},
    {"counter", read_counter, false, false},  {"gpu", open_gpu, false, false},
    {"instance", open_instance, true, false}, {"compute", open_compute, true, true},
    {"process", open_process, true, false},   {"profile", open_profile, true, false},
    {"layout", read_layout, true, false},     {"order", read_order, false, false},
    {"event", read_event, false, false},      {"fault", read_fault, false, false},
};

static void read_line(struct reader *reader, char *line) {
    const char *name = strtok_r(line, " \n", &reader->rest);
    if (name == NULL || *name == '#') return;
    if (reader->line == 1) {
        if (strcmp(name, "honest-nvml-scenario") != 0 || strcmp(word(reader), "1") != 0)
            complain(reader, "not a scenario of version 1");
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, name) != 0) continue;
        if ((verbs[i].needs_gpu && reader->gpu == NULL) || (verbs[i].needs_instance && reader->instance == NULL))
            complain(reader, "belongs to nothing");
        else
            verbs[i].read(reader);
        return;
    }
    complain(reader, "unknown word");
}

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

struct scenario *scenario_read(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "nvml player: %s: %s\n", path, strerror(errno));
        return NULL;
    }
    struct scenario *scenario = make(1, sizeof *scenario);
    struct reader reader = {.path = path, .scenario = scenario, .entity = &scenario->system};
    char *line = NULL;
    size_t size = 0;
    while (reader.wrong == NULL && getline(&line, &size, file) >= 0) {
        reader.line++;
        read_line(&reader, line);
    }
    if (reader.line == 0) complain(&reader, "empty");
    free(line);
    fclose(file);
    if (reader.wrong != NULL) {
        fprintf(stderr, "nvml player: %s:%lu: %s\n", path, reader.line, reader.wrong);
        return NULL; /* what was read so far stays until the process ends */
    }
    collect_handles(scenario);
    return scenario;
}
