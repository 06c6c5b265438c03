/* Values over time: step functions, and counters that integrate them exactly. */
#include "player.h"

/* The step in force at a time; the first one also stands for everything before it. */
static size_t step_index(const struct series *series, double time) {
    size_t low = 0, high = series->step_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (series->steps[middle].from <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Integral from the first step on; steps that hold an error add nothing. */
static double integral_until(const struct series *series, double time) {
    const struct step *step = &series->steps[step_index(series, time)];
    if (time <= step->from) return step->integral;
    return step->integral + (step->error ? 0.0 : step->value * (time - step->from));
}

static double counter_at(const struct series *series, double time) {
    double start = series->start, since = series->steps[0].from;
    for (size_t i = 0; i < series->reset_count; i++) {
        if (series->resets[i] <= time && series->resets[i] >= since) {
            start = 0.0;
            since = series->resets[i];
        }
    }
    return start + integral_until(series, time) - integral_until(series, since);
}

struct reading series_at(const struct series *series, double time) {
    if (series == NULL) return (struct reading){NVML_ERROR_NOT_SUPPORTED, 0.0};
    const struct step *step = &series->steps[step_index(series, time)];
    if (step->error) return (struct reading){(nvmlReturn_t)step->error, 0.0};
    return (struct reading){NVML_SUCCESS, series->counter ? counter_at(series, time) : step->value};
}

/* The mean over an interval; an error anywhere inside is the answer for the whole. */
struct reading series_mean(const struct series *series, double from, double until) {
    if (series == NULL) return (struct reading){NVML_ERROR_NOT_SUPPORTED, 0.0};
    size_t first = step_index(series, from), last = step_index(series, until);
    if (last > first && series->steps[last].from >= until) last--;
    double sum = 0.0;
    for (size_t i = first; i <= last; i++) {
        const struct step *step = &series->steps[i];
        if (step->error) return (struct reading){(nvmlReturn_t)step->error, 0.0};
        double begin = i == first ? from : step->from;
        double end = i == last ? until : series->steps[i + 1].from;
        sum += step->value * (end - begin);
    }
    double mean = first == last ? series->steps[first].value : sum / (until - from);
    return (struct reading){NVML_SUCCESS, mean};
}

/* What does not fit (the scenario's "not available") becomes all ones, as NVML has it. */
unsigned int as_u32(double value) {
    if (!(value > -0.5 && value < 4294967295.5)) return 0xFFFFFFFFu;
    return (unsigned int)(value + 0.5);
}

unsigned long long as_u64(double value) {
    if (!(value > -0.5 && value < 18446744073709551615.0)) return ~0ull;
    if (value >= 9007199254740992.0) return (unsigned long long)value; /* already whole */
    return (unsigned long long)(value + 0.5);
}
