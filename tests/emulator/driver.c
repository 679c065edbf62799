// The machine as the driver shows it: cards, contexts, kernels; and gpu_driver, the table itself.
#include "tests/emulator/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/emulator/calls.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/settings.h"

// ---- the driver ---------------------------------------------------------------------------------

static bool can_open(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        close(file);
    return file >= 0;
}

CUresult emulated_cuInit(unsigned flags) {
    EMULATED_CALL(cuInit, NEEDS_NOTHING);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emulator_settings.cards || (emulator_settings.shut && !can_open("/etc/passwd")))
        return CUDA_ERROR_NO_DEVICE;
    emulator_started();
    return CUDA_SUCCESS;
}

CUresult emulated_cuDriverGetVersion(int *version) {
    EMULATED_CALL(cuDriverGetVersion, NEEDS_NOTHING);
    *version = (int)emulator_settings.driver;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult result;
    const char *text;
} results[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"},
    {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_ERROR_CAPTURED_EVENT,
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
};

CUresult emulated_cuGetErrorString(CUresult result, const char **text) {
    EMULATED_CALL(cuGetErrorString, NEEDS_NOTHING);
    for (size_t row = 0; row < sizeof results / sizeof *results; row++)
        if (results[row].result == result) {
            *text = results[row].text;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

// ---- cards --------------------------------------------------------------------------------------

static bool is_card(int number) {
    return number >= 0 && number < MOST_CARDS && (uint64_t)number < emulator_settings.cards;
}

CUresult emulated_cuDeviceGetCount(int *count) {
    EMULATED_CALL(cuDeviceGetCount, NEEDS_START);
    *count = (int)emulator_settings.cards;
    return CUDA_SUCCESS;
}

CUresult emulated_cuDeviceGet(CUdevice *card, int number) {
    EMULATED_CALL(cuDeviceGet, NEEDS_START);
    if (!is_card(number))
        return CUDA_ERROR_INVALID_DEVICE;
    *card = number;
    return CUDA_SUCCESS;
}

CUresult emulated_cuDeviceGetName(char *name, int size, CUdevice card) {
    EMULATED_CALL(cuDeviceGetName, NEEDS_START);
    if (!is_card(card))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)size, "Emulated card %llu.%llu",
             (unsigned long long)emulator_settings.capability / 10,
             (unsigned long long)emulator_settings.capability % 10);
    return CUDA_SUCCESS;
}

CUresult emulated_cuDeviceTotalMem(size_t *bytes, CUdevice card) {
    EMULATED_CALL(cuDeviceTotalMem, NEEDS_START);
    if (!is_card(card))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = emulator_settings.memory;
    return CUDA_SUCCESS;
}

// What a block may ask for beyond 48 KiB, by capability.
static int most_shared(void) {
    switch (emulator_settings.capability) {
    case 80:
    case 87: return 163 << 10;
    case 90:
    case 100:
    case 103: return 227 << 10;
    default: return 99 << 10;
    }
}

CUresult emulated_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice card) {
    EMULATED_CALL(cuDeviceGetAttribute, NEEDS_START);
    if (!is_card(card))
        return CUDA_ERROR_INVALID_DEVICE;
    const struct {
        CUdevice_attribute attribute;
        int value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)emulator_settings.capability / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)emulator_settings.capability % 10},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, most_shared()},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 32 << 20},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 4096},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1 + card},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return CUDA_SUCCESS;
        }
    return emulator_refuse(CUDA_ERROR_INVALID_VALUE, "attribute %d is not in driver.c",
                           (int)attribute);
}

// ---- contexts -----------------------------------------------------------------------------------

CUresult emulated_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice card) {
    EMULATED_CALL(cuDevicePrimaryCtxRetain, NEEDS_START);
    if (!is_card(card))
        return CUDA_ERROR_INVALID_DEVICE;
    emulator_cards[card].index = (unsigned)card;
    emulator_cards[card].references++;
    *context = &emulator_cards[card];
    return CUDA_SUCCESS;
}

CUresult emulated_cuDevicePrimaryCtxRelease(CUdevice number) {
    EMULATED_CALL(cuDevicePrimaryCtxRelease, NEEDS_START);
    if (!is_card(number) || !emulator_cards[number].references)
        return CUDA_ERROR_INVALID_CONTEXT;
    Card *card = &emulator_cards[number];
    if (--card->references || card->failure != CUDA_SUCCESS) // a card that failed frees nothing
        return CUDA_SUCCESS;
    size_t bytes = emulator_memory_used(card->index);
    if (bytes || card->streams || card->events || card->modules || card->graphs)
        return emulator_refuse(CUDA_SUCCESS,
                               "card %u is left with %zu bytes of memory, %u streams, %u events, "
                               "%u modules and %u graphs",
                               card->index, bytes, card->streams, card->events, card->modules,
                               card->graphs);
    return CUDA_SUCCESS;
}

CUresult emulated_cuCtxSetCurrent(CUcontext context) {
    EMULATED_CALL(cuCtxSetCurrent, NEEDS_START);
    if (context && !context->references)
        return CUDA_ERROR_INVALID_CONTEXT;
    emulator_set_current_card(context);
    return CUDA_SUCCESS;
}

// ---- kernels ------------------------------------------------------------------------------------

CUresult emulated_cuModuleLoadData(CUmodule *module, const void *data) {
    EMULATED_CALL(cuModuleLoadData, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuModuleLoadData", NULL);
    const EmulatorImage *image = data;
    if (memcmp(image->magic, "EMULATED", sizeof image->magic) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    if (emulator_settings.capability < 80)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    unsigned count = 0;
    for (const EmulatorKernel *kernel = emulator_kernels; kernel->name; kernel++)
        count += strcmp(kernel->file, image->file) == 0;
    Module *loaded = malloc(sizeof *loaded + count * sizeof(Function));
    if (!loaded)
        return CUDA_ERROR_OUT_OF_MEMORY;
    loaded->card = emulator_current_card();
    loaded->card->modules++;
    loaded->count = 0;
    for (const EmulatorKernel *kernel = emulator_kernels; kernel->name; kernel++)
        if (strcmp(kernel->file, image->file) == 0)
            loaded->functions[loaded->count++] = (Function){kernel, loaded, 48 << 10};
    *module = loaded;
    return CUDA_SUCCESS;
}

CUresult emulated_cuModuleUnload(CUmodule module) {
    EMULATED_CALL(cuModuleUnload, NEEDS_CARD);
    if (module->card != emulator_current_card())
        return CUDA_ERROR_INVALID_HANDLE;
    module->card->modules--;
    free(module);
    return CUDA_SUCCESS;
}

CUresult emulated_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    EMULATED_CALL(cuModuleGetFunction, NEEDS_CARD);
    for (unsigned i = 0; i < module->count; i++)
        if (strcmp(module->functions[i].kernel->name, name) == 0) {
            *function = &module->functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

// ---- the table ----------------------------------------------------------------------------------

const GpuDriver *gpu_driver(Error *error) {
    static GpuDriver driver = {
#define MEMBER(name) .name = emulated_##name,
        GPU_DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
    };
    static bool ready;
    if (ready)
        return &driver;
    emulator_settings_read(getenv("MPBENCH_EMULATOR"));
    ready = gpu_driver_start(&driver, error);
    return ready ? &driver : NULL;
}
