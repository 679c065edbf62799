// tests/emulator/fixture.h: the planted kernels on a card, for tests of the emulator itself.
//
// What a planted mistake does to a card is tried in a process of its own, since sanitizers end it.
#pragma once

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/driver.h"
#include "tests/emulator/control.h"
#include "tests/emulator/device.h"
#include "tests/emulator/planted/planted.h"
#include "tests/emulator/sanitizer.h"
#include "tests/test.h"

enum { COUNT = 1000, THREADS = 256, BLOCKS = (COUNT + THREADS - 1) / THREADS };

static const EmulatorImage planted_image = {"EMULATED", "planted"};
static const GpuDriver *driver;
static CUcontext context;
static CUmodule module;

static inline bool start_card(void) {
    Error error = {0};
    driver = gpu_driver(&error);
    return driver && driver->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
           driver->cuCtxSetCurrent(context) == CUDA_SUCCESS &&
           driver->cuModuleLoadData(&module, &planted_image) == CUDA_SUCCESS;
}

static inline float *card_floats(int64_t count) {
    CUdeviceptr memory = 0;
    CHECK_INT(driver->cuMemAlloc(&memory, (size_t)count * sizeof(float)), CUDA_SUCCESS);
    return (float *)(uintptr_t)memory;
}
static inline CUdeviceptr address_of(const void *memory) {
    return (CUdeviceptr)(uintptr_t)memory;
}
static inline void card_free(const void *memory) {
    CHECK_INT(driver->cuMemFree(address_of(memory)), CUDA_SUCCESS);
}

static inline CUresult launch_as(const char *kernel, unsigned blocks, unsigned threads,
                                 unsigned shared, CUstream stream, PlantedArguments arguments) {
    CUfunction function;
    CUresult found = driver->cuModuleGetFunction(&function, module, kernel);
    if (found != CUDA_SUCCESS)
        return found;
    return driver->cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream,
                                  (void *[]){&arguments}, NULL);
}
static inline void launch(const char *kernel, CUstream stream, PlantedArguments arguments) {
    CHECK_INT(launch_as(kernel, BLOCKS, THREADS, 0, stream, arguments), CUDA_SUCCESS);
}

static inline void read_floats(float *to, const float *from, int64_t count, CUstream stream) {
    CHECK_INT(
        driver->cuMemcpyDtoHAsync(to, address_of(from), (size_t)count * sizeof(float), stream),
        CUDA_SUCCESS);
}
static inline void write_floats(float *to, const float *from, int64_t count, CUstream stream) {
    CHECK_INT(
        driver->cuMemcpyHtoDAsync(address_of(to), from, (size_t)count * sizeof(float), stream),
        CUDA_SUCCESS);
}

static inline EmulatorState card_state(void) {
    EmulatorState state;
    emulator_control.state(&state);
    return state;
}

// Each thread order and conduct of streams in turn.
static const char *const conducts[] = {
    "order=forward,streams=lazy",  "order=reverse,streams=lazy",  "order=shuffled,streams=lazy",
    "order=forward,streams=eager", "order=reverse,streams=eager", "order=shuffled,streams=shuffled",
};
enum { CONDUCTS = sizeof conducts / sizeof *conducts };

// ---- in a process of its own --------------------------------------------------------------------

typedef struct Outcome {
    int result;     // of the last call
    bool died;      // by a sanitizer or a signal
    char said[600]; // on stderr, the begin of it
} Outcome;

// What `body` returns, and what is said meanwhile.
static inline Outcome try_apart(int (*body)(const void *), const void *argument) {
    Outcome outcome = {.died = true};
    int result[2];
    FILE *said = tmpfile();
    if (!said || pipe(result) != 0)
        return outcome;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(said), STDERR_FILENO);
        int got = body(argument);
        _exit(write(result[1], &got, sizeof got) < 0);
    }
    close(result[1]);
    outcome.died = read(result[0], &outcome.result, sizeof outcome.result) <= 0;
    close(result[0]);
    waitpid(child, NULL, 0);
    rewind(said);
    outcome.said[fread(outcome.said, 1, sizeof outcome.said - 1, said)] = 0;
    fclose(said);
    return outcome;
}
