// run/vitals.h: how the device of a run fares, where it can tell (kernel/about.h), and the energy
// that it took.
//
// Energy comes from the device's own counter where it has one, else it is summed from the power at
// each sample, as a line between them. What nothing tells is unknown, which is NaN and never 0. A
// Vitals is the caller's and holds no resource; it is used by the thread that drives the device.
#pragma once

#include "kernel/about.h"
#include "kernel/kernel.h"

typedef struct Vitals {
    Device *device;                  // NULL: it tells nothing
    DeviceReadings now;              // at the last sample
    double at;                       // clock_seconds then
    double counter;                  // READING_ENERGY when it was read last; NaN: there is none
    double watts, watts_at;          // where there is no counter; NaN: not that either
    double joules;                   // since it began; NaN: unknown
    double most_watts, most_degrees; // of all samples; NaN: none
} Vitals;

// Counts from now on.
void vitals_begin(Vitals *vitals, Device *device);
void vitals_sample(Vitals *vitals);
// Samples; the energy since the last one does not count, unless this one fails.
void vitals_leave_out(Vitals *vitals);
