// tests/unit/ref_arrays.h: small arrays in host memory, and the reference device to run kernels
// over them, for the tests of that device.
#pragma once

#include "tests/test.h"

#include "kernel/allocator.h"
#include "kernel/multi.h"

extern const Backend ref_backend;

enum { SLOTS = 24, SLOT_NUMBERS = 512 };

static Device device;
// The memory of the arrays of one test, handed out in turn.
static _Alignas(64) double slots[SLOTS][SLOT_NUMBERS];
static int slots_used;

#define SHAPE(...)                                             \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { \
        __VA_ARGS__                                            \
    }
#define VALUES(...)    \
    (const double[]) { \
        __VA_ARGS__    \
    }

static inline View array(Format format, int ndim, const int64_t *shape) {
    View view = view_dense(slots[slots_used++ % SLOTS], format, ndim, shape);
    memset(view.data, 0xAB, sizeof slots[0]);
    return view;
}

static inline void set(const View *view, int64_t i, double value) {
    switch (view->format) {
    case FORMAT_FP64: ((double *)view->data)[i] = value; break;
    case FORMAT_FP32: ((float *)view->data)[i] = (float)value; break;
    case FORMAT_INT32: ((int32_t *)view->data)[i] = (int32_t)value; break;
    case FORMAT_UINT8: ((uint8_t *)view->data)[i] = (uint8_t)value; break;
    default: ((uint16_t *)view->data)[i] = (uint16_t)format_encode(view->format, value, 0);
    }
}

static inline double at(const View *view, int64_t i) {
    switch (view->format) {
    case FORMAT_FP64: return ((double *)view->data)[i];
    case FORMAT_FP32: return (double)((float *)view->data)[i];
    case FORMAT_INT32: return ((int32_t *)view->data)[i];
    case FORMAT_UINT8: return ((uint8_t *)view->data)[i];
    default: return format_decode(view->format, ((uint16_t *)view->data)[i]);
    }
}

static inline View array_of(Format format, int ndim, const int64_t *shape, const double *values) {
    View view = array(format, ndim, shape);
    for (int64_t i = 0; i < view_count(&view); i++)
        set(&view, i, values[i]);
    return view;
}

static inline View number(double value) {
    return array_of(FORMAT_FP64, 0, NULL, &value);
}

static const View absent = {0};

static Error last_error;

// RUN(softmax, &attr, IN(x), y): one kernel, its inputs and its outputs.
#define IN(...)                                                     \
    (int)(sizeof((View[]){__VA_ARGS__}) / sizeof(View)), (View[]) { \
        __VA_ARGS__                                                 \
    }
#define RUN(op, attr, inputs, ...) run_op(OP_##op, attr, inputs, IN(__VA_ARGS__))
static inline bool run_op(OpId op, const OpAttr *attr, int input_count, const View *input,
                          int output_count, const View *output) {
    static const OpAttr none;
    KernelCall call = {.op = op,
                       .input_count = input_count,
                       .output_count = output_count,
                       .attr = attr ? attr : &none};
    if (input_count)
        memcpy(call.input, input, (size_t)input_count * sizeof *input);
    memcpy(call.output, output, (size_t)output_count * sizeof *output);
    last_error = (Error){0};
    return ref_backend.kernels[op](&device, &call, &last_error);
}

static inline void check_values(const char *what, const View *view, const double *expected,
                                double far) {
    for (int64_t i = 0; i < view_count(view); i++) {
        double value = at(view, i);
        bool same = value == expected[i] || fabs(value - expected[i]) <= far ||
                    (isnan(value) && isnan(expected[i]));
        CHECK_MESSAGE(same, "%s[%d] is %.9g, expected %.9g", what, (int)i, value, expected[i]);
    }
}
#define CHECK_VALUES(view, far, ...) check_values(#view, &(view), VALUES(__VA_ARGS__), far)

// Opens the device, without the list of devices: other backends are none of these tests' affair.
static inline bool ref_test_begin(void) {
    Error error = {0};
    device.backend = &ref_backend;
    bool opened = ref_backend.open(&device, 0, 0, &error);
    device.allocator = opened ? allocator_new(&device) : NULL;
    return device.allocator != NULL;
}

static inline int ref_test_end(void) {
    allocator_free(device.allocator);
    ref_backend.close(&device);
    return test_end();
}
