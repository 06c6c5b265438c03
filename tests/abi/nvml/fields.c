/* nvmlDeviceGetFieldValues: anything by number, each value with a return code of its own. */
#include "player.h"

#include <stdio.h>

/* Fields that say what a function of their own says too; and how their value is typed. */
struct field {
    unsigned int id;
    enum value_type type;
    const char *key; /* of the device, where the scenario has no field.ID */
};

static const struct field fields[] = {
    {1, VALUE_UINT, "ecc_mode"},
    {2, VALUE_UINT, "ecc_mode_pending"},
    {3, VALUE_ULLONG, "ecc.0.0"},
    {4, VALUE_ULLONG, "ecc.1.0"},
    {5, VALUE_ULLONG, "ecc.0.1"},
    {6, VALUE_ULLONG, "ecc.1.1"},
    {29, VALUE_ULLONG, "retired_pages.0"},
    {30, VALUE_ULLONG, "retired_pages.1"},
    {31, VALUE_UINT, "retired_pages_pending"},
    {74, VALUE_ULLONG, "violation.0"},
    {75, VALUE_ULLONG, "violation.1"},
    {76, VALUE_ULLONG, "violation.2"},
    {77, VALUE_ULLONG, "violation.3"},
    {78, VALUE_ULLONG, "violation.4"},
    {79, VALUE_ULLONG, "violation.5"},
    {80, VALUE_ULLONG, "violation.10"},
    {81, VALUE_ULLONG, "violation.11"},
    {82, VALUE_UINT, "memory_temperature"},
    {83, VALUE_ULLONG, "energy_mj"},
    {91, VALUE_UINT, "nvlink_count"},
    {94, VALUE_UINT, "pcie_replays"},
    {142, VALUE_UINT, "remapped_correctable"},
    {143, VALUE_UINT, "remapped_uncorrectable"},
    {144, VALUE_UINT, "remapped_pending"},
    {145, VALUE_UINT, "remapped_failed"},
    {185, VALUE_UINT, "power_average_mw"},
    {186, VALUE_UINT, "power_mw"},
    {187, VALUE_UINT, "power_limit_min_mw"},
    {188, VALUE_UINT, "power_limit_max_mw"},
    {189, VALUE_UINT, "power_limit_default_mw"},
    {190, VALUE_UINT, "power_limit_enforced_mw"},
    {191, VALUE_ULLONG, "energy_mj"},
    {192, VALUE_UINT, "power_limit_mw"},
};

/* Of one link, which scopeId names. */
static const char *link_field(unsigned int id) {
    switch (id) {
        case 164: return "speed";
        case 165: return "state";
        case 166: return "version";
        default: return NULL;
    }
}

static const struct field *known_field(unsigned int id) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].id == id) return &fields[i];
    return NULL;
}

/* field.ID.SCOPE, then field.ID for scope 0 (ALL_LINKS is written "all"), then what a function would say. */
static const struct series *field_series(const struct call *call, const nvmlFieldValue_t *value,
                                         const struct field *field) {
    const struct entity *entity = entity_of(call);
    char key[48];
    if (value->scopeId == ALL_LINKS)
        snprintf(key, sizeof key, "field.%u.all", value->fieldId);
    else
        snprintf(key, sizeof key, "field.%u.%u", value->fieldId, value->scopeId);
    const struct series *series = series_of(entity, key);
    if (series != NULL) return series;
    if (value->scopeId == 0) {
        snprintf(key, sizeof key, "field.%u", value->fieldId);
        series = series_of(entity, key);
        if (series != NULL) return series;
    }
    return field != NULL ? series_of(entity, field->key) : NULL;
}

static void put_value(nvmlFieldValue_t *out, enum value_type type, double value) {
    out->valueType = type;
    out->value.ullVal = 0;
    switch (type) {
        case VALUE_DOUBLE: out->value.dVal = value; break;
        case VALUE_UINT: out->value.uiVal = as_u32(value); break;
        case VALUE_ULONG: out->value.ulVal = (unsigned long)as_u64(value); break;
        case VALUE_ULLONG: out->value.ullVal = as_u64(value); break;
        case VALUE_SLLONG: out->value.sllVal = (long long)value; break;
        case VALUE_INT: out->value.siVal = (int)value; break;
        case VALUE_USHORT: out->value.usVal = (unsigned short)as_u32(value); break;
    }
}

static void read_field(const struct call *call, nvmlFieldValue_t *value) {
    char name[32];
    snprintf(name, sizeof name, "field.%u", value->fieldId);
    value->timestamp = wall_of(call->now);
    value->latencyUsec = 0;
    value->nvmlReturn = call_faults(call, name, false);
    if (value->nvmlReturn != NVML_SUCCESS) return;
    const struct field *field = known_field(value->fieldId);
    const struct series *series = field_series(call, value, field);
    const char *of_link = link_field(value->fieldId);
    if (series == NULL && of_link != NULL) {
        unsigned int number = 0;
        value->nvmlReturn = link_number(call, value->scopeId, of_link, &number);
        if (value->nvmlReturn == NVML_SUCCESS) put_value(value, VALUE_UINT, number);
        return;
    }
    struct answer reading = series_at(series, call->now);
    value->nvmlReturn = reading.error;
    if (reading.error != NVML_SUCCESS) return;
    char type_key[48];
    snprintf(type_key, sizeof type_key, "field_type.%u", value->fieldId);
    double otherwise = field ? (double)field->type : (double)VALUE_ULLONG;
    put_value(value, (enum value_type)number_of(&call->gpu->entity, type_key, call->now, otherwise), reading.value);
}

NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    ENTER(call, nvmlDeviceGetFieldValues, device, SCOPE_GPU_OR_MIG);
    if (count < 0 || (count > 0 && values == NULL)) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) read_field(&call, &values[i]);
    return NVML_SUCCESS;
}
