// tests/unit/gpu_fixture.h: the processor and a card side by side: the card that
// MPBENCH_TEST_DEVICE and MPBENCH_GPU name (tests/device.h), else the emulated one.
#pragma once

#include <unistd.h>

#include "kernel/allocator.h"
#include "tests/device.h"
#include "tests/test.h"

static Device *cpu, *gpu;

static inline void *on_device(Device *device, const void *host, size_t bytes) {
    Error error;
    void *memory = allocator_take(device->allocator, bytes, MEMORY_DATA, &error);
    if (!memory)
        abort();
    device_write(device, memory, host, bytes);
    return memory;
}

// The emulated card lies where the program does.
static inline bool gpu_find(char *why, size_t size) {
    const char *program = getenv("MPBENCH");
    if (test_device_or(NULL))
        return true;
    char path[4096];
    const char *slash = program ? strrchr(program, '/') : NULL;
    snprintf(path, sizeof path, "%.*s/emulator/mpbench-gpu.so", slash ? (int)(slash - program) : 5,
             slash ? program : "build");
    if (access(path, R_OK) != 0) {
        snprintf(why, size, "%s is not built", path);
        return false;
    }
    return setenv("MPBENCH_GPU", path, 1) == 0;
}

// Opens both. False after a line that says why not; then `status` is the program's.
static inline bool gpu_test_begin(int *status) {
    char why[4200];
    Error error;
    *status = 0;
    if (!gpu_find(why, sizeof why)) {
        printf("skip gpu_opens: %s\n", why);
        return false;
    }
    *status = 1;
    if (device_open("cpu", 2, &cpu, &error) && device_open(test_device_or("gpu"), 1, &gpu, &error))
        return true;
    printf("not ok gpu_opens: %s\n", error.text);
    return false;
}

static inline int gpu_test_end(void) {
    device_close(gpu);
    device_close(cpu);
    return test_end();
}
