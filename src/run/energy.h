// run/energy.h: the energy that the machine's processors took, where the kernel says it (RAPL).
//
// It is that of whole packages: whatever else runs on them is in it. Where no counter can be read
// (most systems let only root), it is unknown, which is NaN and never 0. An Energy is the caller's
// and holds no resource; one thread uses it. Counters wrap around every few minutes of full load:
// sample more often than that.
#pragma once

#include <stdint.h>

enum { ENERGY_ZONES = 16 };

typedef struct Energy {
    struct EnergyZone {
        char path[160]; // of its counter
        uint64_t last, range;
    } zones[ENERGY_ZONES];
    int count;
    double joules; // NaN: unknown
} Energy;

// Counts from now on. `root` is the folder of the zones, NULL: /sys/class/powercap.
void energy_begin(Energy *energy, const char *root);
void energy_sample(Energy *energy);
void energy_leave_out(Energy *energy); // what was taken since the last sample
