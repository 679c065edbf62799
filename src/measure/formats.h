// measure/formats.h: how fast a device is in each format, and what a training in it takes.
//
// The same work in every format that the device computes in: a matrix product, a convolution, and a
// whole step of a small network with Adam, losses scaled where the format needs it; in int8, which
// nothing trains in, the products of a layer by its weights as an evaluation computes them. Each is
// as large as fp32 takes some milliseconds for. Rounds go through all formats in turn, forwards and
// backwards, so that what else the machine is busy with hits them alike; a gain is the median of
// what rounds found. Nothing else may use the device meanwhile. The thread that drives it calls.
#pragma once

#include "base/error.h"
#include "kernel/kernel.h"
#include "number/format.h"

typedef enum FormatTask {
    FORMAT_PRODUCT,
    FORMAT_CONVOLUTION,
    FORMAT_STEP,
    FORMAT_TASKS,
} FormatTask;

typedef struct FormatSpeed { // NaN: the device does not do it in this format
    Format format;
    double gain[FORMAT_TASKS];    // how many times as fast as fp32
    double seconds[FORMAT_TASKS]; // of one
    double bytes;                 // the most that training holds, a kernel's workspace left out
    double memory; // beside fp32's: of training; of what is only evaluated in, of its weights
} FormatSpeed;

typedef struct FormatSpeeds {
    FormatSpeed rows[FORMAT_COUNT]; // fp32 is the first
    int count;
    int64_t size[FORMAT_TASKS]; // rows of square matrices; images; images a step
    double flops[FORMAT_TASKS]; // that one takes; 0: not counted
    int rounds;
} FormatSpeeds;

// Finds the formats: count and each row's. What is measured is unknown.
void measure_formats_begin(const Device *device, FormatSpeeds *speeds);
// Measures for about so many seconds; a slow device takes longer, as one round is made whole.
bool measure_formats(Device *device, double seconds, FormatSpeeds *speeds, Error *error) MUST_CHECK;
