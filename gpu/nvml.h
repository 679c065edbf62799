// gpu/nvml.h: NVML, the library by which a card is read, as one table opened at run time.
//
// Its header comes with the toolkit and not with the driver, so its few types are declared here as
// its documents give them. Every function may be absent: an old library lacks some, a card refuses
// others. Whoever needs another adds it here, and to tests/emulator/sensors.c. From the thread that
// drives the device.
#pragma once

typedef struct NvmlCard NvmlCard; // nvmlDevice_t is a pointer to it

typedef enum NvmlResult { NVML_OK = 0, NVML_NOT_SUPPORTED = 3, NVML_UNKNOWN = 999 } NvmlResult;

enum { NVML_SENSOR_OF_CHIP = 0, NVML_CLOCK_CORE = 1, NVML_CLOCK_MEMORY = 2 };

typedef struct NvmlMemory {
    unsigned long long total, free, used; // bytes
} NvmlMemory;

typedef struct NvmlUtilization {
    unsigned core, memory; // per cent of the last sixth of a second to second
} NvmlUtilization;

// NVML_FUNCTION(member, the library's name, parameters)
#define NVML_FUNCTIONS(NVML_FUNCTION)                                                             \
    NVML_FUNCTION(start, "nvmlInit_v2", (void))                                                   \
    NVML_FUNCTION(driver_version, "nvmlSystemGetDriverVersion", (char *text, unsigned size))      \
    NVML_FUNCTION(version, "nvmlSystemGetNVMLVersion", (char *text, unsigned size))               \
    NVML_FUNCTION(card, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus, NvmlCard **card))   \
    NVML_FUNCTION(power, "nvmlDeviceGetPowerUsage", (NvmlCard * card, unsigned *milliwatts))      \
    NVML_FUNCTION(power_limit, "nvmlDeviceGetEnforcedPowerLimit",                                 \
                  (NvmlCard * card, unsigned *milliwatts))                                        \
    NVML_FUNCTION(energy, "nvmlDeviceGetTotalEnergyConsumption",                                  \
                  (NvmlCard * card, unsigned long long *millijoules))                             \
    NVML_FUNCTION(temperature, "nvmlDeviceGetTemperature",                                        \
                  (NvmlCard * card, int sensor, unsigned *degrees))                               \
    NVML_FUNCTION(clock_rate, "nvmlDeviceGetClockInfo", (NvmlCard * card, int of, unsigned *mhz)) \
    NVML_FUNCTION(memory, "nvmlDeviceGetMemoryInfo", (NvmlCard * card, NvmlMemory * memory))      \
    NVML_FUNCTION(utilization, "nvmlDeviceGetUtilizationRates",                                   \
                  (NvmlCard * card, NvmlUtilization * utilization))

typedef struct Nvml {
#define MEMBER(member, name, parameters) NvmlResult(*member) parameters;
    NVML_FUNCTIONS(MEMBER)
#undef MEMBER
} Nvml;

#define NVML_FILE "libnvidia-ml.so.1"

// The table, filled and started once; NULL where there is no such library, or it does not start.
const Nvml *gpu_nvml(void);
