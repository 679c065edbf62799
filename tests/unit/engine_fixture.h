// tests/unit/engine_fixture.h: an engine on a device, and tensors from numbers, for tests.
#pragma once

#include "ops/engine.h"
#include "ops/views.h"
#include "tests/device.h"
#include "tests/test.h"

static Device *fixture_device;
static Engine *engine;

// Opens an engine under a preset on that device, whichever is named to the test; ends the test
// program when it cannot.
static inline void engine_open_on(const char *device, const char *precision) {
    Error error = {0};
    Preset preset;
    if (!device_open(device, 1, &fixture_device, &error) ||
        !preset_resolve(precision, fixture_device, &preset, NULL, 0, &error) ||
        !(engine = engine_new(fixture_device, &preset, 1, &error))) {
        printf("not ok fixture: %s\n", error.text);
        exit(1);
    }
}

// On the device unless another is named (tests/device.h).
static inline void engine_open(const char *device, const char *precision) {
    engine_open_on(test_device_or(device), precision);
}

static inline void engine_close(void) {
    engine_free(engine);
    device_close(fixture_device);
    engine = NULL;
}

static inline Tensor *vector(int64_t n, const float *values) {
    return tensor_from_host(fixture_device, FORMAT_FP32, 1, &n, values, MEMORY_DATA, NULL);
}

static inline Tensor *number(float value) {
    return tensor_from_host(fixture_device, FORMAT_FP32, 0, NULL, &value, MEMORY_DATA, NULL);
}

static inline Tensor *leaf(Tensor *tensor) {
    tensor->requires_grad = true;
    return tensor;
}

static inline double item(const Tensor *tensor) {
    double value = NAN;
    if (!tensor || !tensor_item(tensor, &value, NULL))
        return NAN;
    return value;
}
