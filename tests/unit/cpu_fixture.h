// tests/unit/cpu_fixture.h: the CPU device at each level of instructions, and arrays of its memory.
#pragma once

#include "cpu/cpu.h"
#include "kernel/allocator.h"
#include "kernel/random.h"
#include "tests/test.h"

static Device *device;
static int level;

static inline float *numbers(int64_t count) {
    return allocator_take(device->allocator, (size_t)count * sizeof(float), MEMORY_DATA, NULL);
}
static inline void give(void *memory) {
    allocator_give(device->allocator, memory);
}

// Numbers in (-1, 1) of a stream.
static inline void draw(float *out, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        out[i] = 2 * random_uniform(random_block(seed, (uint64_t)i).word[0]) - 1;
}

static inline View vector(void *data, Format format, int64_t count) {
    return view_dense(data, format, 1, (int64_t[]){count});
}
static inline View matrix(void *data, Format format, int64_t rows, int64_t columns) {
    return view_dense(data, format, 2, (int64_t[]){rows, columns});
}

static inline bool run(KernelCall call) {
    static const OpAttr none;
    Error error = {0};
    for (int i = 0; i < OP_MAX_INPUTS && call.input[i].data; i++)
        call.input_count = i + 1;
    for (int i = 0; i < OP_MAX_OUTPUTS && call.output[i].data; i++)
        call.output_count = i + 1;
    if (!call.attr)
        call.attr = &none;
    bool done = device_run(device, &call, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    return done;
}

#define AT_LEVEL(test)                                                                  \
    do {                                                                                \
        char name_[128];                                                                \
        snprintf(name_, sizeof name_, "%s %s", #test, isa_level_name((IsaLevel)level)); \
        test_run(name_, test);                                                          \
    } while (0)

// Opens the device; false after a line that says why not. Then a loop over the levels there are:
//     while (cpu_next_level()) AT_LEVEL(a_test);
static inline bool cpu_test_begin(void) {
    Error error = {0};
    level = -1;
    if (device_open("cpu", 2, &device, &error))
        return true;
    printf("not ok cpu_opens: %s\n", error.text);
    return false;
}

static inline bool cpu_next_level(void) {
    return ++level < ISA_COUNT && cpu_set_level(device, (IsaLevel)level);
}

static inline int cpu_test_end(void) {
    device_close(device);
    return test_end();
}
