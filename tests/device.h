// tests/device.h: the device that tests of devices are run on, beside the reference.
//
// MPBENCH_TEST_DEVICE names it, as --device would: with it, and MPBENCH_GPU at the plugin of the
// emulated card (tests/emulator), the same tests are that card's. Unset it is the processor.
#pragma once

#include <stdlib.h>

static inline const char *test_device_name(void) {
    const char *name = getenv("MPBENCH_TEST_DEVICE");
    return name && *name ? name : "cpu";
}
