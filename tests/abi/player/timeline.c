/* Values over time: step functions, counters that integrate them exactly, and events. */
#include "player.h"

#include <math.h>

double seconds_of(usec time) { return (double)time / 1e6; }

usec usec_of(double seconds) {
    if (seconds > 1e12) return NEVER / 4;
    if (seconds < -1e12) return -(NEVER / 4);
    return llround(seconds * 1e6);
}

/* The point in force at a time; the first one also stands for everything before it. */
static size_t index_at(const struct value *value, usec time) {
    size_t low = 0, high = value->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (value->points[middle].from <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* From the first point on; points without a value add nothing. */
static double integral_until(const struct value *value, usec time) {
    const struct point *point = &value->points[index_at(value, time)];
    if (time <= point->from || point->absence != PRESENT) return point->integral;
    return point->integral + point->value * seconds_of(time - point->from);
}

static struct reading counter_at(const struct value *value, usec time) {
    double start = value->start;
    usec since = value->points[0].from;
    for (size_t i = 0; i < value->reset_count; i++) {
        if (value->resets[i] <= time && value->resets[i] >= since) {
            start = 0.0;
            since = value->resets[i];
        }
    }
    return (struct reading){PRESENT, start + integral_until(value, time) - integral_until(value, since), NULL};
}

struct reading value_at(const struct value *value, usec time) {
    if (value->kind == VALUE_TEXT) return (struct reading){PRESENT, 0.0, value->text};
    if (value->kind == VALUE_COUNTER) return counter_at(value, time);
    const struct point *point = &value->points[index_at(value, time)];
    return (struct reading){point->absence, point->value, NULL};
}

/* The mean over an interval; a point without a value anywhere inside is the answer for the whole. */
struct reading value_mean(const struct value *value, usec from, usec until) {
    if (value->kind != VALUE_STEPS || until <= from) return value_at(value, until);
    size_t first = index_at(value, from), last = index_at(value, until);
    if (last > first && value->points[last].from >= until) last--;
    if (first == last) return (struct reading){value->points[first].absence, value->points[first].value, NULL};
    double sum = 0.0;
    for (size_t i = first; i <= last; i++) {
        const struct point *point = &value->points[i];
        if (point->absence != PRESENT) return (struct reading){point->absence, 0.0, NULL};
        usec begin = i == first ? from : point->from;
        usec end = i == last ? until : value->points[i + 1].from;
        sum += point->value * seconds_of(end - begin);
    }
    return (struct reading){PRESENT, sum / seconds_of(until - from), NULL};
}

bool in_window(const struct window *window, usec time) { return window->from <= time && time < window->until; }

bool in_windows(const struct windows *windows, usec time) {
    for (size_t i = 0; i < windows->count; i++)
        if (in_window(&windows->items[i], time)) return true;
    return false;
}
