// tests/emulator/control.h: what a test may ask of the emulated device that it runs over.
//
// Programs over the plugin find the table by dlsym(plugin, "emulator_control"). Any thread.
#pragma once

#include <stdint.h>

typedef struct EmulatorState {
    uint64_t calls;    // of the driver
    uint64_t launches; // that were asked for
    uint64_t kernels;  // that ran
    uint64_t waits;    // calls that waited for a stream or an event
    uint64_t taken;    // blocks of memory, pinned ones too
    uint64_t products; // that the library was asked for, and took
    uint64_t graphs;   // that were launched
    // What is there: memory in blocks, and how many of the rest.
    uint64_t device_blocks, device_bytes, pinned_blocks, streams, events, modules, contexts;
    uint64_t graphs_left; // and what was made of them to be launched
    uint64_t descriptors; // of the library, and its handles
    char message[512];    // the last thing that went wrong; "" while nothing did
} EmulatorState;

typedef struct EmulatorControl {
    void (*set)(const char *settings); // as MPBENCH_EMULATOR; what it does not name is as unsaid
    void (*state)(EmulatorState *state);
    // As a process does that begins anew: cards that failed work again. What is there stays.
    void (*heal)(void);
} EmulatorControl;

__attribute__((visibility("default"))) extern const EmulatorControl emulator_control;
