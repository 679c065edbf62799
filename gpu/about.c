// What a card tells of itself: what it works with, and, by NVML, how it fares.
#include "kernel/about.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/about.h"
#include "gpu/gpu.h"
#include "gpu/library.h"
#include "gpu/nvml.h"

// ---- what it works with -------------------------------------------------------------------------

enum { CUDA_MAJOR = CUDA_VERSION / 1000, DNN_MAJOR = 9 };

static const char nvml_remedy[] =
    "for power, energy, temperature and clocks: install NVML (" NVML_FILE
    "), which comes with the driver (Debian: libnvidia-ml1)";

static DevicePart *add_part(DevicePart *parts, int *count, const char *name) {
    DevicePart *part = &parts[(*count)++];
    memset(part, 0, sizeof *part);
    snprintf(part->name, sizeof part->name, "%s", name);
    return part;
}

// 130002 is 13.0.2, 91400 is 9.14.0.
static void write_version(DevicePart *part, size_t number) {
    snprintf(part->version, sizeof part->version, "%zu.%zu.%zu", number / 10000,
             number % 10000 / 100, number % 100);
}

// NVIDIA's libraries that compute, of the major versions whose types this build uses.
static const struct ComputingLibrary {
    const char *name, *file;
    int major;
    const char *version_function, *use;
    const char *package_begin, *package_middle; // a version behind each: libcudnn9-cuda-13
    int versions[2];
} computing[] = {
    {"cuBLASLt",
     "libcublasLt.so",
     CUDA_MAJOR,
     "cublasLtGetVersion",
     "products",
     "libcublas-",
     "-",
     {CUDA_MAJOR, CUDA_VERSION % 1000 / 10}},
    {"cuDNN",
     "libcudnn.so",
     DNN_MAJOR,
     "cudnnGetVersion",
     "convolutions and attention",
     "libcudnn",
     "-cuda-",
     {DNN_MAJOR, CUDA_MAJOR}},
};

enum { COMPUTING = sizeof computing / sizeof *computing, FILE_SIZE = 32 };

static const char *file_of(const struct ComputingLibrary *library, char text[FILE_SIZE]) {
    snprintf(text, FILE_SIZE, "%s.%d", library->file, library->major);
    return text;
}

static void add_library(DevicePart *parts, int *count, const struct ComputingLibrary *about) {
    char file[FILE_SIZE];
    DevicePart *part = add_part(parts, count, about->name);
    part->is_library = true;
    if (!gpu_libraries_compute()) {
        snprintf(part->remedy, sizeof part->remedy,
                 "%s is left alone: unset MPBENCH_GPU_LIBRARIES, which says none", about->name);
        return;
    }
    void *library = gpu_library_open(file_of(about, file));
    void *found = library ? gpu_library_function(library, about->version_function) : NULL;
    size_t (*version)(void);
    memcpy(&version, &found, sizeof found);
    if (found)
        write_version(part, version());
    else
        snprintf(part->remedy, sizeof part->remedy,
                 "for NVIDIA's own %s: install %s (%s), NVIDIA's package %s%d%s%d", about->use,
                 about->name, file, about->package_begin, about->versions[0], about->package_middle,
                 about->versions[1]);
    gpu_library_close(library);
}

void gpu_hold_libraries(void) {
    char file[FILE_SIZE];
    for (int i = 0; i < COMPUTING && gpu_libraries_compute(); i++)
        (void)gpu_library_open(file_of(&computing[i], file));
    (void)gpu_nvml();
}

static void add_nvml(DevicePart *parts, int *count, const Nvml *nvml) {
    DevicePart *part = add_part(parts, count, "NVML");
    part->is_library = true;
    if (nvml &&
        (!nvml->version || nvml->version(part->version, (unsigned)sizeof part->version) != NVML_OK))
        snprintf(part->version, sizeof part->version, "of an unknown version");
    if (!nvml)
        snprintf(part->remedy, sizeof part->remedy, "%s", nvml_remedy);
}

int gpu_parts(const Device *device, DevicePart *parts) {
    const Gpu *gpu = gpu_of(device);
    const Nvml *nvml = gpu_nvml();
    int count = 0;
    DevicePart *part = add_part(parts, &count, "capability");
    snprintf(part->version, sizeof part->version, "%d.%d", gpu->capability / 10,
             gpu->capability % 10);
    part = add_part(parts, &count, "driver");
    if (!nvml || !nvml->driver_version ||
        nvml->driver_version(part->version, (unsigned)sizeof part->version) != NVML_OK)
        part->version[0] = 0;
    part = add_part(parts, &count, "CUDA");
    snprintf(part->version, sizeof part->version, "%d.%d", gpu->driver->version / 1000,
             gpu->driver->version % 1000 / 10);
    for (int i = 0; i < COMPUTING; i++)
        add_library(parts, &count, &computing[i]);
    add_nvml(parts, &count, nvml);
    return count;
}

// ---- how it fares -------------------------------------------------------------------------------

static int attribute(const Gpu *gpu, CUdevice_attribute which) {
    int value = 0;
    return gpu->driver->cuDeviceGetAttribute(&value, which, gpu->card) == CUDA_SUCCESS ? value : 0;
}

// NVML numbers cards in an order of its own: the same one is found by its place on the bus.
static NvmlCard *find_card(const Gpu *gpu, const Nvml *nvml) {
    char bus[40];
    NvmlCard *card = NULL;
    snprintf(bus, sizeof bus, "%08X:%02X:%02X.0",
             (unsigned)attribute(gpu, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
             (unsigned)attribute(gpu, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
             (unsigned)attribute(gpu, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
    return nvml && nvml->card && nvml->card(bus, &card) == NVML_OK ? card : NULL;
}

typedef NvmlResult (*ReadNumber)(NvmlCard *card, unsigned *number);

static void read_scaled(DeviceReadings *readings, ReadingId id, ReadNumber read, NvmlCard *card,
                        double unit) {
    unsigned number;
    if (read && read(card, &number) == NVML_OK)
        reading_set(readings, id, number * unit);
}

static void read_clock(DeviceReadings *readings, ReadingId id, const Nvml *nvml, NvmlCard *card,
                       int of) {
    unsigned mhz;
    if (nvml->clock_rate && nvml->clock_rate(card, of, &mhz) == NVML_OK)
        reading_set(readings, id, mhz);
}

void gpu_readings(Device *device, DeviceReadings *readings) {
    Gpu *gpu = gpu_of(device);
    const Nvml *nvml = gpu_nvml();
    if (!gpu->has_looked_for_sensors)
        gpu->sensors = find_card(gpu, nvml);
    gpu->has_looked_for_sensors = true;
    NvmlCard *card = gpu->sensors;
    const double thousandth = 1e-3, percent = 1e-2;
    readings->known = 0;
    for (int id = 0; id < READINGS; id++)
        readings->value[id] = (double)NAN;
    if (!card)
        return;
    read_scaled(readings, READING_POWER, nvml->power, card, thousandth);
    read_scaled(readings, READING_POWER_LIMIT, nvml->power_limit, card, thousandth);
    read_clock(readings, READING_CORE_CLOCK, nvml, card, NVML_CLOCK_CORE);
    read_clock(readings, READING_MEMORY_CLOCK, nvml, card, NVML_CLOCK_MEMORY);
    unsigned long long millijoules;
    if (nvml->energy && nvml->energy(card, &millijoules) == NVML_OK)
        reading_set(readings, READING_ENERGY, (double)millijoules * thousandth);
    unsigned degrees;
    if (nvml->temperature && nvml->temperature(card, NVML_SENSOR_OF_CHIP, &degrees) == NVML_OK)
        reading_set(readings, READING_TEMPERATURE, degrees);
    NvmlMemory memory;
    if (nvml->memory && nvml->memory(card, &memory) == NVML_OK) {
        reading_set(readings, READING_MEMORY_USED, (double)memory.used);
        reading_set(readings, READING_MEMORY_TOTAL, (double)memory.total);
    }
    NvmlUtilization utilization;
    if (nvml->utilization && nvml->utilization(card, &utilization) == NVML_OK)
        reading_set(readings, READING_BUSY, utilization.core * percent);
}
