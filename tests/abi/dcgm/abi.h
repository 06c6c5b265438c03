/*
 * The binary interface of libdcgm.so.4 on x86-64, as far as the player exports it: own declarations, held to the true
 * sizes and offsets by the assertions below.
 */
#ifndef HONEST_TEST_DCGM_ABI_H
#define HONEST_TEST_DCGM_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define DCGM_API __attribute__((visibility("default")))
#define VERSION_OF(type, number) ((unsigned int)(sizeof(type) | ((number) << 24)))

enum {
    ST_OK = 0,
    ST_BADPARAM = -1,
    ST_NOT_CONFIGURED = -5,
    ST_NOT_SUPPORTED = -6,
    ST_UNINITIALIZED = -10,
    ST_TIMEOUT = -11,
    ST_VER_MISMATCH = -12,
    ST_NO_DATA = -14,
    ST_NOT_WATCHED = -16,
    ST_GPU_IS_LOST = -18,
    ST_CONNECTION_NOT_VALID = -21,
    ST_GPU_NOT_SUPPORTED = -22,
    ST_MAX_LIMIT = -24,
    ST_DUPLICATE_KEY = -26,
    ST_INSUFFICIENT_SIZE = -31,
    ST_MODULE_NOT_LOADED = -33,
    ST_PROFILING_NOT_SUPPORTED = -36,
    ST_NVML_NOT_LOADED = -56,
};

/* Kinds of entity. */
enum { FE_NONE, FE_GPU, FE_VGPU, FE_SWITCH, FE_GPU_I, FE_GPU_CI, FE_LINK, FE_CPU, FE_CPU_CORE, FE_CONNECTX };

/* Kinds of group at creation, and the groups that always exist. */
enum { GROUP_ALL_OF_GPUS, GROUP_EMPTY, GROUP_ALL_OF_SWITCHES, GROUP_ALL_OF_GI, GROUP_ALL_OF_CI, GROUP_EVERYTHING };
#define GROUP_ID_GPUS 0x7fffffffu
#define GROUP_ID_SWITCHES 0x7ffffffeu
#define GROUP_ID_GI 0x7ffffffdu
#define GROUP_ID_CI 0x7ffffffcu
#define GROUP_ID_EVERYTHING 0x7ffffffbu

enum {
    TEXT_LENGTH = 256,
    BLOB_LENGTH = 4096,
    MAX_DEVICES = 32,
    MAX_SWITCHES = 12,
    MAX_CLOCKS = 256,
    MAX_GROUPS = 64,
    MAX_FIELD_GROUPS = 64,
    MAX_FIELDS_OF_GROUP = 128,
    MAX_ENTITIES_V2 = 64,
    MAX_ENTITIES = 1024,
    MAX_HIERARCHY = 448,
    MAX_METRIC_GROUPS = 10,
    MAX_METRIC_FIELDS = 64,
    MAX_LINKS = 256,
};

#define INT32_BLANK 0x7ffffff0
#define INT64_BLANK 0x7ffffffffffffff0ll
#define FP64_BLANK 140737488355328.0
#define EMBEDDED_HANDLE 0x7fffffffu
#define LIVE_DATA 1u

typedef int dcgmReturn_t;
typedef uintptr_t dcgmHandle_t, dcgmGpuGrp_t, dcgmFieldGrp_t;

typedef struct {
    unsigned int version, persistAfterDisconnect;
} dcgmConnectV2Params_v1;

typedef struct {
    unsigned int version, persistAfterDisconnect, timeoutMs, addressIsUnixSocket;
} dcgmConnectV2Params_v2;

typedef struct {
    unsigned int version, persistAfterDisconnect, timeoutMs;
} dcgmConnectV3Params_v1;

typedef struct {
    unsigned int entityGroupId, entityId;
} dcgmGroupEntityPair_t;

typedef struct {
    unsigned int version, count;
    char groupName[TEXT_LENGTH];
    dcgmGroupEntityPair_t entityList[MAX_ENTITIES_V2];
} dcgmGroupInfo_v2;

typedef struct {
    unsigned int version, count;
    char groupName[TEXT_LENGTH];
    dcgmGroupEntityPair_t entityList[MAX_ENTITIES];
} dcgmGroupInfo_v3;

typedef struct {
    unsigned int version, numFieldIds;
    dcgmFieldGrp_t fieldGroupId;
    char fieldGroupName[TEXT_LENGTH];
    unsigned short fieldIds[MAX_FIELDS_OF_GROUP];
} dcgmFieldGroupInfo_v1;

typedef struct {
    unsigned int version, numFieldGroups;
    dcgmFieldGroupInfo_v1 fieldGroups[MAX_FIELD_GROUPS];
} dcgmAllFieldGroup_v1;

typedef union {
    int64_t i64;
    double dbl;
    char str[TEXT_LENGTH];
    char blob[BLOB_LENGTH];
} dcgmValue;

typedef struct {
    unsigned int version;
    unsigned short fieldId, fieldType;
    int status;
    int64_t ts;
    dcgmValue value;
} dcgmFieldValue_v1;

typedef struct {
    unsigned int version, entityGroupId, entityId;
    unsigned short fieldId, fieldType;
    int status;
    unsigned int unused;
    int64_t ts;
    dcgmValue value;
} dcgmFieldValue_v2;

typedef int (*valuesCallback_v2)(int, unsigned int, dcgmFieldValue_v1 *, int, void *);

typedef struct {
    unsigned int version, memClock, smClock;
} dcgmClockSet_v1;

typedef struct {
    unsigned int version;
    struct {
        unsigned int version, count;
        dcgmClockSet_v1 clockSet[MAX_CLOCKS];
    } clockSets;
    struct {
        unsigned int version, slowdownTemp, shutdownTemp;
    } thermalSettings;
    struct {
        unsigned int version, curPowerLimit, defaultPowerLimit, enforcedPowerLimit, minPowerLimit, maxPowerLimit;
    } powerLimits;
    struct {
        unsigned int version;
        char brandName[TEXT_LENGTH], deviceName[TEXT_LENGTH], pciBusId[TEXT_LENGTH], serial[TEXT_LENGTH];
        char uuid[TEXT_LENGTH], vbios[TEXT_LENGTH], inforomImageVersion[TEXT_LENGTH];
        unsigned int pciDeviceId, pciSubSystemId;
        char driverVersion[TEXT_LENGTH];
        unsigned int virtualizationMode;
    } identifiers;
    struct {
        unsigned int version, bar1Total, fbTotal, fbUsed, fbFree;
    } memoryUsage;
    struct {
        unsigned int version, persistenceModeEnabled, migModeEnabled, confidentialComputeMode;
    } settings;
} dcgmDeviceAttributes_v3;

typedef struct {
    dcgmGroupEntityPair_t entity, parent;
    struct {
        char gpuUuid[128];
        unsigned int nvmlGpuIndex, nvmlInstanceId, nvmlComputeInstanceId, nvmlMigProfileId, nvmlProfileSlices;
    } info;
} dcgmMigHierarchyInfo_v2;

typedef struct {
    unsigned int version, count;
    dcgmMigHierarchyInfo_v2 entityList[MAX_HIERARCHY];
} dcgmMigHierarchy_v2;

/* Three releases of one struct, that differ in how many links a GPU and a switch may have. */
#define NVLINK_STATUS(gpu_links, switch_links)                      \
    struct {                                                        \
        unsigned int version, numGpus;                              \
        struct {                                                    \
            unsigned int entityId, linkState[gpu_links];            \
        } gpus[MAX_DEVICES];                                        \
        unsigned int numNvSwitches;                                 \
        struct {                                                    \
            unsigned int entityId, linkState[switch_links];         \
        } nvSwitches[MAX_SWITCHES];                                 \
    }
typedef NVLINK_STATUS(18, 64) dcgmNvLinkStatus_v3;
typedef NVLINK_STATUS(18, 256) dcgmNvLinkStatus_v4;
typedef NVLINK_STATUS(36, 256) dcgmNvLinkStatus_v5;

typedef struct {
    unsigned int version, numStatuses;
    struct {
        unsigned int id, status;
    } statuses[16];
} dcgmModuleGetStatuses_v1;

typedef struct {
    unsigned short majorId, minorId;
    unsigned int numFieldIds;
    unsigned short fieldIds[MAX_METRIC_FIELDS];
} dcgmProfMetricGroupInfo_v2;

typedef struct {
    unsigned int version, unused, gpuId, numMetricGroups;
    dcgmProfMetricGroupInfo_v2 metricGroups[MAX_METRIC_GROUPS];
} dcgmProfGetMetricGroups_v3;

typedef struct {
    unsigned int version;
    char rawBuildInfoString[2 * TEXT_LENGTH];
} dcgmVersionInfo_v2;

typedef struct {
    unsigned int version, overallHealth;
} dcgmHostengineHealth_v1;

typedef struct {
    unsigned int version, targetLogger, targetSeverity;
} dcgmSettingsSetLoggingSeverity_v2;

typedef struct {
    unsigned short fieldId;
    char fieldType;
    unsigned char size;
    char tag[48];
    int scope, nvmlFieldId, entityLevel;
    void *valueFormat;
} dcgm_field_meta_t;

#define HOLDS(type, size) static_assert(sizeof(type) == (size), #type)
#define LIES(type, member, offset) static_assert(offsetof(type, member) == (offset), #type "." #member)

HOLDS(dcgmConnectV2Params_v1, 8);
HOLDS(dcgmConnectV2Params_v2, 16);
HOLDS(dcgmConnectV3Params_v1, 12);
HOLDS(dcgmGroupEntityPair_t, 8);
HOLDS(dcgmGroupInfo_v2, 776);
HOLDS(dcgmGroupInfo_v3, 8456);
LIES(dcgmGroupInfo_v3, groupName, 8);
LIES(dcgmGroupInfo_v3, entityList, 264);
HOLDS(dcgmFieldGroupInfo_v1, 528);
LIES(dcgmFieldGroupInfo_v1, fieldGroupId, 8);
LIES(dcgmFieldGroupInfo_v1, fieldGroupName, 16);
LIES(dcgmFieldGroupInfo_v1, fieldIds, 272);
HOLDS(dcgmAllFieldGroup_v1, 33800);
HOLDS(dcgmFieldValue_v1, 4120);
LIES(dcgmFieldValue_v1, fieldId, 4);
LIES(dcgmFieldValue_v1, fieldType, 6);
LIES(dcgmFieldValue_v1, status, 8);
LIES(dcgmFieldValue_v1, ts, 16);
LIES(dcgmFieldValue_v1, value, 24);
HOLDS(dcgmFieldValue_v2, 4128);
LIES(dcgmFieldValue_v2, entityId, 8);
LIES(dcgmFieldValue_v2, fieldId, 12);
LIES(dcgmFieldValue_v2, status, 16);
LIES(dcgmFieldValue_v2, ts, 24);
LIES(dcgmFieldValue_v2, value, 32);
HOLDS(dcgmDeviceAttributes_v3, 5220);
LIES(dcgmDeviceAttributes_v3, clockSets, 4);
LIES(dcgmDeviceAttributes_v3, thermalSettings, 3084);
LIES(dcgmDeviceAttributes_v3, powerLimits, 3096);
LIES(dcgmDeviceAttributes_v3, identifiers, 3120);
LIES(dcgmDeviceAttributes_v3, identifiers.deviceName, 3120 + 260);
LIES(dcgmDeviceAttributes_v3, identifiers.pciBusId, 3120 + 516);
LIES(dcgmDeviceAttributes_v3, identifiers.uuid, 3120 + 1028);
LIES(dcgmDeviceAttributes_v3, identifiers.pciDeviceId, 3120 + 1796);
LIES(dcgmDeviceAttributes_v3, identifiers.driverVersion, 3120 + 1804);
LIES(dcgmDeviceAttributes_v3, identifiers.virtualizationMode, 3120 + 2060);
LIES(dcgmDeviceAttributes_v3, memoryUsage, 5184);
LIES(dcgmDeviceAttributes_v3, settings, 5204);
HOLDS(dcgmMigHierarchyInfo_v2, 164);
LIES(dcgmMigHierarchyInfo_v2, info, 16);
LIES(dcgmMigHierarchyInfo_v2, info.nvmlGpuIndex, 16 + 128);
HOLDS(dcgmMigHierarchy_v2, 73480);
LIES(dcgmMigHierarchy_v2, entityList, 8);
HOLDS(dcgmNvLinkStatus_v3, 5564);
HOLDS(dcgmNvLinkStatus_v4, 14780);
HOLDS(dcgmNvLinkStatus_v5, 17084);
LIES(dcgmNvLinkStatus_v5, gpus, 8);
LIES(dcgmNvLinkStatus_v5, numNvSwitches, 4744);
LIES(dcgmNvLinkStatus_v5, nvSwitches, 4748);
HOLDS(dcgmModuleGetStatuses_v1, 136);
HOLDS(dcgmProfMetricGroupInfo_v2, 136);
LIES(dcgmProfMetricGroupInfo_v2, numFieldIds, 4);
HOLDS(dcgmProfGetMetricGroups_v3, 1376);
LIES(dcgmProfGetMetricGroups_v3, metricGroups, 16);
HOLDS(dcgmVersionInfo_v2, 516);
HOLDS(dcgmHostengineHealth_v1, 8);
HOLDS(dcgmSettingsSetLoggingSeverity_v2, 12);
HOLDS(dcgm_field_meta_t, 72);
LIES(dcgm_field_meta_t, tag, 4);
LIES(dcgm_field_meta_t, scope, 52);
LIES(dcgm_field_meta_t, entityLevel, 60);
LIES(dcgm_field_meta_t, valueFormat, 64);

#endif
