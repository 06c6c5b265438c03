/* The words for return codes. */
#include "player.h"

DCGM_API const char *errorString(dcgmReturn_t code) {
    static const char *const words[] = {
        [0] = "Success",
        [-ST_BADPARAM] = "A parameter is not valid",
        [-ST_NOT_CONFIGURED] = "Not configured",
        [-ST_NOT_SUPPORTED] = "Not supported",
        [-ST_UNINITIALIZED] = "Not initialized",
        [-ST_TIMEOUT] = "Time is out",
        [-ST_VER_MISMATCH] = "Versions do not match",
        [-ST_NO_DATA] = "No data",
        [-ST_NOT_WATCHED] = "Not watched",
        [-ST_GPU_IS_LOST] = "The GPU is lost",
        [-ST_CONNECTION_NOT_VALID] = "The connection is not valid",
        [-ST_MAX_LIMIT] = "A limit is reached",
        [-ST_DUPLICATE_KEY] = "The name is taken",
        [-ST_INSUFFICIENT_SIZE] = "Too little room",
        [-ST_MODULE_NOT_LOADED] = "The module is not loaded",
        [-ST_PROFILING_NOT_SUPPORTED] = "Profiling is not supported",
        [-ST_NVML_NOT_LOADED] = "NVML is not loaded",
    };
    size_t index = (size_t)(-(long)code);
    return code <= 0 && index < sizeof(words) / sizeof(*words) && words[index] ? words[index] : "Unknown";
}
