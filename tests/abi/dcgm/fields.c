/* Which fields there are, of which type, and the smallest kind of entity that has each (as of 4.6). */
#include "player.h"

#include <stdio.h>
#include <string.h>

enum { CYCLES_FIRST = 1084, CYCLES_LAST = 1096, PROFILING_FIRST = 1001, PER_LINK_TX = 1532, PER_LINK_RX = 1533 };

static const struct field table[] = {
    {1, 3, 's', FE_NONE},       {4, 6, 'i', FE_NONE},       {50, 50, 's', FE_GPU_CI},   {51, 51, 's', FE_GPU},
    {52, 52, 'i', FE_GPU},      {53, 53, 's', FE_GPU},      {54, 54, 's', FE_GPU_CI},   {55, 55, 'i', FE_GPU},
    {56, 57, 's', FE_GPU},      {58, 59, 'i', FE_GPU},      {60, 62, 'b', FE_GPU},      {63, 67, 'i', FE_GPU},
    {68, 68, 's', FE_GPU_CI},   {69, 74, 'i', FE_GPU},      {75, 77, 'b', FE_GPU},      {80, 82, 's', FE_GPU},
    {83, 84, 'i', FE_GPU},      {85, 85, 's', FE_GPU},      {86, 89, 'i', FE_GPU},      {90, 90, 'i', FE_GPU_CI},
    {91, 91, 'b', FE_GPU},      {92, 93, 'i', FE_GPU_CI},   {94, 94, 'i', FE_GPU},      {100, 102, 'i', FE_GPU},
    {110, 115, 'i', FE_GPU},    {120, 120, 'i', FE_GPU},    {130, 130, 'b', FE_GPU},    {140, 140, 'i', FE_GPU},
    {150, 153, 'i', FE_GPU},    {155, 155, 'd', FE_GPU},    {156, 156, 'i', FE_GPU},    {157, 157, 'd', FE_GPU},
    {158, 159, 'i', FE_GPU},    {160, 164, 'd', FE_GPU},    {165, 167, 'b', FE_GPU},    {170, 171, 'i', FE_GPU},
    {172, 172, 's', FE_GPU},    {173, 175, 'i', FE_GPU},    {190, 191, 'i', FE_GPU},    {200, 204, 'i', FE_GPU},
    {205, 205, 'b', FE_GPU},    {206, 207, 'i', FE_GPU},    {210, 213, 'd', FE_GPU},    {220, 221, 'b', FE_GPU},
    {230, 230, 'i', FE_GPU_CI}, {235, 238, 'i', FE_GPU},    {240, 247, 'i', FE_GPU},    {250, 253, 'i', FE_GPU_CI},
    {254, 254, 'd', FE_GPU_CI}, {285, 287, 'i', FE_GPU},    {300, 301, 'i', FE_GPU},    {310, 346, 'i', FE_GPU},
    {350, 361, 'i', FE_GPU},    {362, 362, 'b', FE_NONE},   {363, 363, 'i', FE_GPU},    {385, 396, 'i', FE_GPU},
    {400, 489, 'i', FE_GPU},    {490, 500, 'i', FE_GPU},    {501, 505, 'b', FE_VGPU},   {506, 508, 'b', FE_GPU},
    {509, 513, 'b', FE_VGPU},   {520, 521, 's', FE_VGPU},   {522, 522, 'i', FE_VGPU},   {523, 524, 's', FE_VGPU},
    {525, 527, 'i', FE_VGPU},   {528, 531, 'b', FE_VGPU},   {532, 533, 's', FE_VGPU},   {534, 534, 'i', FE_VGPU},
    {571, 572, 's', FE_GPU},    {573, 577, 'i', FE_GPU},    {580, 592, 'i', FE_LINK},   {701, 707, 'i', FE_SWITCH},
    {780, 824, 'i', FE_LINK},   {825, 843, 'i', FE_GPU},    {856, 864, 'i', FE_SWITCH}, {865, 865, 'i', FE_LINK},
    {866, 869, 'i', FE_SWITCH}, {870, 876, 'i', FE_LINK},   {877, 878, 's', FE_LINK},   {879, 897, 'i', FE_GPU},
    {1001, 1004, 'd', FE_GPU_CI}, {1005, 1005, 'd', FE_GPU_I}, {1006, 1008, 'd', FE_GPU_CI},
    {1009, 1012, 'i', FE_GPU},  {1013, 1016, 'd', FE_GPU_CI}, {1017, 1034, 'd', FE_GPU}, {1040, 1083, 'i', FE_GPU},
    {CYCLES_FIRST, CYCLES_LAST, 'i', FE_GPU},
    {1100, 1104, 'd', FE_CPU_CORE}, {1110, 1112, 'd', FE_CPU}, {1120, 1120, 'i', FE_CPU_CORE},
    {1130, 1133, 'd', FE_CPU},  {1140, 1141, 's', FE_CPU},  {1200, 1215, 'i', FE_GPU},  {1216, 1216, 'd', FE_GPU},
    {1217, 1217, 'i', FE_GPU},  {1218, 1218, 'd', FE_GPU},  {1219, 1220, 'i', FE_GPU},
    {1300, 1309, 'i', FE_CONNECTX}, {1310, 1310, 'd', FE_CONNECTX},
    {1400, 1427, 'i', FE_GPU},  {1428, 1432, 'd', FE_GPU},  {1433, 1433, 'i', FE_GPU},  {1434, 1436, 'd', FE_GPU},
    {1437, 1438, 'i', FE_GPU},  {1439, 1441, 'd', FE_GPU},  {1442, 1442, 'i', FE_GPU},  {1501, 1501, 'i', FE_GPU},
    {1502, 1502, 's', FE_NONE}, {1503, 1503, 'i', FE_NONE}, {1507, 1508, 'i', FE_GPU},  {1509, 1509, 'i', FE_LINK},
    {1523, 1523, 'i', FE_GPU},  {1524, 1524, 's', FE_SWITCH}, {1525, 1533, 'i', FE_LINK},
};

static const struct {
    unsigned short id;
    const char *tag;
} tags[] = {
    {50, "name"},
    {54, "uuid"},
    {57, "pci_busid"},
    {100, "sm_clock"},
    {101, "memory_clock"},
    {150, "gpu_temp"},
    {155, "power_usage"},
    {156, "total_energy_consumption"},
    {203, "gpu_utilization"},
    {204, "mem_copy_utilization"},
    {230, "xid_errors"},
    {1001, "gr_engine_active"},
    {1002, "sm_active"},
    {1003, "sm_occupancy"},
    {1004, "tensor_active"},
    {1005, "dram_active"},
    {1006, "fp64_active"},
    {1007, "fp32_active"},
    {1008, "fp16_active"},
    {1009, "pcie_tx_bytes"},
    {1010, "pcie_rx_bytes"},
    {1011, "nvlink_tx_bytes"},
    {1012, "nvlink_rx_bytes"},
};

static bool is_native_counter(unsigned short id) { return id >= CYCLES_FIRST && id <= CYCLES_LAST; }

/* NULL: this hostengine does not know it. */
const struct field *field_find(unsigned short id) {
    bool since_4_6 = is_native_counter(id) || id == PER_LINK_TX || id == PER_LINK_RX;
    if (since_4_6 && !version_from(4, 6)) return NULL;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].first <= id && id <= table[i].last) return &table[i];
    return NULL;
}

bool field_is_profiling(unsigned short id) {
    return (id >= PROFILING_FIRST && id <= CYCLES_LAST) || id == PER_LINK_TX || id == PER_LINK_RX;
}

/* Whether a sample is the mean over its interval; else it is the value of its moment. */
bool field_is_mean(unsigned short id) { return field_is_profiling(id) && !is_native_counter(id); }

bool field_reaches(const struct field *field, int entity_group) {
    if (entity_group == FE_GPU_I) return field->level == FE_GPU_I || field->level == FE_GPU_CI;
    if (entity_group == FE_GPU_CI) return field->level == FE_GPU_CI;
    return true;
}

/* ---- what callers see of it ---- */

DCGM_API int DcgmFieldsInit(void) { return ST_OK; }
DCGM_API int DcgmFieldsTerm(void) { return ST_OK; }

DCGM_API dcgm_field_meta_t *DcgmFieldGetById(unsigned short id) {
    static dcgm_field_meta_t metas[2048];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&player_lock);
    const struct field *field = id < 2048 ? field_find(id) : NULL;
    pthread_mutex_unlock(&player_lock);
    if (field == NULL) return NULL;
    pthread_mutex_lock(&lock);
    dcgm_field_meta_t *meta = &metas[id];
    if (meta->fieldId == 0) {
        *meta = (dcgm_field_meta_t){.fieldId = id, .fieldType = field->type, .size = 8, .entityLevel = field->level};
        meta->scope = field->level == FE_NONE ? 0 : field->level == FE_LINK || field->level == FE_SWITCH ? 1 : 2;
        snprintf(meta->tag, sizeof(meta->tag), "field_%d", id);
        for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++)
            if (tags[i].id == id) snprintf(meta->tag, sizeof(meta->tag), "%s", tags[i].tag);
    }
    pthread_mutex_unlock(&lock);
    return meta;
}
