// The sensors of the emulated cards, as the settings say.
#include "tests/emulator/sensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu/nvml.h"
#include "tests/emulator/device.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/settings.h"

struct NvmlCard {
    unsigned index;
};

static NvmlCard cards[MOST_CARDS];

static NvmlResult answer(void) {
    return emulator_settings.nvml == NVML_DEAF ? NVML_NOT_SUPPORTED : NVML_OK;
}

static NvmlResult start(void) {
    return emulator_settings.nvml == NVML_BROKEN ? NVML_UNKNOWN : NVML_OK;
}

static NvmlResult driver_version(char *text, unsigned size) {
    snprintf(text, size, "580.65.06");
    return NVML_OK;
}

static NvmlResult version(char *text, unsigned size) {
    snprintf(text, size, "13.580.65.06");
    return NVML_OK;
}

// driver.c gives the first card the bus 1.
static NvmlResult card(const char *bus, NvmlCard **found) {
    unsigned domain, number, device;
    if (sscanf(bus, "%8X:%2X:%2X.0", &domain, &number, &device) != 3 || domain || device ||
        !number || number > emulator_settings.cards || number > MOST_CARDS)
        return NVML_UNKNOWN;
    cards[number - 1].index = number - 1;
    *found = &cards[number - 1];
    return NVML_OK;
}

static NvmlResult power(NvmlCard *of, unsigned *milliwatts) {
    (void)of;
    *milliwatts = (unsigned)emulator_settings.power;
    return answer();
}

static NvmlResult power_limit(NvmlCard *of, unsigned *milliwatts) {
    (void)of;
    *milliwatts = 700000;
    return answer();
}

static NvmlResult energy(NvmlCard *of, unsigned long long *millijoules) {
    (void)of;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    *millijoules = (unsigned long long)((double)emulator_settings.power * seconds);
    return answer();
}

static NvmlResult temperature(NvmlCard *of, int sensor, unsigned *degrees) {
    (void)of;
    *degrees = (unsigned)emulator_settings.degrees;
    return sensor == NVML_SENSOR_OF_CHIP ? answer() : NVML_UNKNOWN;
}

static NvmlResult clock_rate(NvmlCard *of, int which, unsigned *mhz) {
    (void)of;
    *mhz = which == NVML_CLOCK_MEMORY ? 2619 : (unsigned)emulator_settings.clock;
    return answer();
}

static NvmlResult memory(NvmlCard *of, NvmlMemory *bytes) {
    bytes->total = emulator_settings.memory;
    bytes->used = emulator_memory_used(of->index);
    bytes->free = bytes->total - bytes->used;
    return answer();
}

static NvmlResult utilization(NvmlCard *of, NvmlUtilization *shares) {
    (void)of;
    *shares = (NvmlUtilization){(unsigned)emulator_settings.busy, 10};
    return answer();
}

// What an old library lacks.
static bool is_late(const char *name) {
    return strcmp(name, "nvmlDeviceGetTotalEnergyConsumption") == 0 ||
           strcmp(name, "nvmlDeviceGetClockInfo") == 0;
}

void *emulator_nvml_function(const char *name) {
    static const Nvml nvml = {
#define MEMBER(member, text, parameters) .member = member,
        NVML_FUNCTIONS(MEMBER)
#undef MEMBER
    };
    void *found = NULL;
    if (emulator_settings.nvml == NVML_OLD && is_late(name))
        return NULL;
#define FIND(member, text, parameters) \
    if (strcmp(name, text) == 0)       \
        memcpy(&found, &nvml.member, sizeof found);
    NVML_FUNCTIONS(FIND)
#undef FIND
    return found;
}
