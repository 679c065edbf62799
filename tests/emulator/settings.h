// tests/emulator/settings.h: how the emulated device behaves.
//
// The variable MPBENCH_EMULATOR says it, settings.def lists what it may say. It is read once, when
// the driver is asked for; what is wrong in it ends the program, since a test that set it would
// test something else. A test may change the settings between two calls of the driver.
#pragma once

#include <stdint.h>

typedef enum EmulatorOrder { ORDER_FORWARD, ORDER_REVERSE, ORDER_SHUFFLED } EmulatorOrder;
typedef enum EmulatorStreams { STREAMS_LAZY, STREAMS_EAGER, STREAMS_SHUFFLED } EmulatorStreams;
typedef enum EmulatorNvml { NVML_WHOLE, NVML_NONE, NVML_BROKEN, NVML_OLD, NVML_DEAF } EmulatorNvml;
typedef enum EmulatorProducts {
    PRODUCTS_RIGHT,
    PRODUCTS_REFUSED,
    PRODUCTS_WRONG,
    PRODUCTS_NAN,
    PRODUCTS_UNCAPTURED,
    PRODUCTS_FICKLE
} EmulatorProducts;

typedef enum EmulatorDnn {
    DNN_ABSENT,
    DNN_RIGHT,
    DNN_WRONG,
    DNN_SCALED,
    DNN_HIDING,
    DNN_UNLUCKY,
    DNN_FICKLE
} EmulatorDnn;

typedef struct EmulatorFault {
    char function[40]; // "": whichever
    uint64_t when;     // 0: never
    int code;
} EmulatorFault;

typedef struct EmulatorSettings {
#define EMULATOR_CHOICE(name, Type, first, names, text) Type name;
#define EMULATOR_NUMBER(name, default_, text)           uint64_t name;
#define EMULATOR_FAULT(name, text)                      EmulatorFault name;
#include "tests/emulator/settings.def"
} EmulatorSettings;

extern EmulatorSettings emulator_settings;

// Back to what holds unsaid, and then what `text` says (NULL: nothing).
void emulator_settings_read(const char *text);

// A number below `limit`, from the seed; limit is not 0.
unsigned emulator_random(unsigned limit);
