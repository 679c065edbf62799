// tests/device.h: the devices that tests are run on.
//
// MPBENCH_TEST_DEVICE names one, as --device would: with it, and MPBENCH_GPU at the plugin of the
// emulated card (tests/emulator), the same tests are that card's.
#pragma once

#include <stdbool.h>
#include <stdlib.h>

// The one that is named, else what the test would take.
static inline const char *test_device_or(const char *usual) {
    const char *name = getenv("MPBENCH_TEST_DEVICE");
    return name && *name ? name : usual;
}

// The one to hold against the reference.
static inline const char *test_device_name(void) {
    return test_device_or("cpu");
}

// All that a test is run on, one after the other, ended by NULL: the one that is named alone, else
// the reference and the processor.
static inline const char *const *test_device_names(void) {
    static const char *names[] = {"ref", "cpu", NULL};
    const char *named = test_device_or(NULL);
    if (named) {
        names[0] = named;
        names[1] = NULL;
    }
    return names;
}

// Whether that is the emulated card, whose settings were given: a thousand times slower than a real
// one.
static inline bool test_device_is_emulated(void) {
    return getenv("MPBENCH_TEST_DEVICE") && getenv("MPBENCH_EMULATOR");
}
