/* What describes an entity: values over time and texts, by name. */
#include "player.h"

#include <string.h>

const struct series *series_of(const struct entity *entity, const char *key) {
    for (const struct series *series = entity->series; series; series = series->next)
        if (strcmp(series->key, key) == 0) return series;
    return NULL;
}

const char *text_of(const struct entity *entity, const char *key) {
    const struct series *series = series_of(entity, key);
    return series ? series->value.text : NULL;
}

double number_of(const struct entity *entity, const char *key, usec time, double otherwise) {
    struct answer answer = series_at(series_of(entity, key), time);
    return answer.error == NVML_SUCCESS ? answer.value : otherwise;
}

static struct answer answer_of(struct reading reading) {
    if (reading.absence != PRESENT) return (struct answer){(nvmlReturn_t)reading.absence, 0.0};
    return (struct answer){NVML_SUCCESS, reading.value};
}

struct answer series_at(const struct series *series, usec time) {
    if (series == NULL) return (struct answer){NVML_ERROR_NOT_SUPPORTED, 0.0};
    return answer_of(value_at(&series->value, time));
}

/* Of a counter, its value at the end. */
struct answer series_mean(const struct series *series, usec from, usec until) {
    if (series == NULL) return (struct answer){NVML_ERROR_NOT_SUPPORTED, 0.0};
    return answer_of(value_mean(&series->value, from, until));
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
