// tests/conformance/both.h: the device under test (tests/device.h) beside the reference, for what
// runs over all tensors of a model at once (kernel/multi.h): the same items, the same numbers.
// Nothing here looks at memory of a device but by reading and writing it.
#pragma once

#include "kernel/allocator.h"
#include "kernel/multi.h"
#include "kernel/random.h"
#include "number/convert.h"
#include "tests/device.h"
#include "tests/test.h"

enum { SIDES = 2, REF = 0, TESTED = 1, MOST_ITEMS = 12, MOST = 40000 };

static Device *devices[SIDES];
static Error error;

#define DONE(call) CHECK_MESSAGE(call, "%s: %s", #call, error.text)

// ---- memory of both devices ---------------------------------------------------------------------

enum { MOST_TAKEN = 1024 };

static void *taken[SIDES][MOST_TAKEN];
static int taken_count[SIDES];

static inline void *take(int side, size_t bytes, const void *host) {
    void *memory = allocator_take(devices[side]->allocator, bytes, MEMORY_DATA, &error);
    if (!memory || taken_count[side] == MOST_TAKEN) {
        printf("not ok memory: %s\n", error.text);
        exit(1);
    }
    taken[side][taken_count[side]++] = memory;
    if (host)
        device_write(devices[side], memory, host, bytes);
    return memory;
}

static inline void give_all(void) {
    for (int side = 0; side < SIDES; side++) {
        device_synchronize(devices[side]);
        while (taken_count[side])
            allocator_give(devices[side]->allocator, taken[side][--taken_count[side]]);
    }
}

// Numbers in memory of a device; `shift` elements behind an address that is aligned.
static inline View numbers_at(int side, Format format, int64_t count, const float *values,
                              int shift) {
    static uint16_t low[MOST];
    size_t size = format_table[format].bytes;
    char *memory = take(side, ((size_t)count + (size_t)shift) * size + 64, NULL);
    memory += (size_t)shift * size;
    if (format != FORMAT_FP32)
        for (int64_t i = 0; i < count; i++)
            low[i] = (uint16_t)format_encode(format, (double)values[i], OVERFLOW_TO_SPECIAL);
    device_write(devices[side], memory, format == FORMAT_FP32 ? (const void *)values : low,
                 (size_t)count * size);
    return view_dense(memory, format, 1, &count);
}

static inline void read_numbers(int side, const View *view, float *values) {
    static uint16_t low[MOST];
    int64_t count = view_count(view);
    if (view->format == FORMAT_FP32) {
        device_read(devices[side], values, view->data, (size_t)count * sizeof *values);
        return;
    }
    device_read(devices[side], low, view->data, (size_t)count * sizeof *low);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)format_decode(view->format, low[i]);
}

// Numbers over many powers of two, some of them zero; `wild`: some that are not finite, or too
// large for small formats.
static inline void draw(float *values, int64_t count, uint64_t seed, int powers, bool wild) {
    for (int64_t i = 0; i < count; i++) {
        RandomBlock block = random_block(seed, (uint64_t)i);
        values[i] =
            ldexpf(2 * random_uniform(block.word[0]) - 1, -(int)(block.word[1] % (uint32_t)powers));
        if (block.word[2] % 9 == 0)
            values[i] = 0;
        if (wild && block.word[3] % 50 == 0)
            values[i] = block.word[3] % 3 == 0 ? NAN : block.word[3] % 3 == 1 ? INFINITY : 1e30f;
    }
}

// Whether two devices hold the same numbers, but for an error of the relative size `far`.
static inline void check_numbers(const char *what, const View *ref, const View *tested,
                                 double far) {
    static float expected[MOST], actual[MOST];
    read_numbers(REF, ref, expected);
    read_numbers(TESTED, tested, actual);
    for (int64_t i = 0; i < view_count(ref); i++) {
        double wanted = (double)expected[i], found = (double)actual[i];
        bool same = found == wanted || (isnan(wanted) && isnan(found)) ||
                    fabs(found - wanted) <= far * (fabs(wanted) + 0.1);
        CHECK_MESSAGE(same, "%s[%d] of %d is %.9g, expected %.9g", what, (int)i,
                      (int)view_count(ref), found, wanted);
    }
}

// Sizes around those at which devices cut tensors up.
static const int64_t sizes[MOST_ITEMS] = {1,    0,    7,    4096, 33,    8192,
                                          4097, 1023, 8191, 5,    16385, 39999};

static inline bool open_both(void) {
    if (device_open("ref", 1, &devices[REF], &error) &&
        device_open(test_device_name(), 2, &devices[TESTED], &error))
        return true;
    printf("not ok devices: %s\n", error.text);
    return false;
}

static inline int close_both(void) {
    device_close(devices[TESTED]);
    device_close(devices[REF]);
    return test_end();
}
