// kernel/about.h: what a device tells people of itself: what it is made of, and how it fares.
//
// A reading can be unknown: the card, its driver or a library may not give it. It carries a bit for
// that, and is NaN where the bit is not set, never 0.
#pragma once

#include <math.h>
#include <stdbool.h>

// What a device is or works with; what is missing is listed too, with its remedy.
typedef struct DevicePart {
    char name[32];    // "capability", "driver", "cuDNN"
    char version[64]; // "": it was not found
    char remedy[160]; // what to install, and what it is for; "" where there is nothing to do
    bool is_library;
} DevicePart;

enum { DEVICE_MOST_PARTS = 8 };

typedef enum ReadingId {
#define READING(id, name, text) READING_##id,
#include "kernel/readings.def"
    READINGS
} ReadingId;

typedef struct DeviceReadings {
    unsigned known; // a bit a reading, 1 << READING_POWER
    double value[READINGS];
} DeviceReadings;

static inline void reading_set(DeviceReadings *readings, ReadingId id, double value) {
    readings->value[id] = value;
    readings->known |= 1u << id;
}

static inline double reading_of(const DeviceReadings *readings, ReadingId id) {
    return readings->known >> id & 1 ? readings->value[id] : (double)NAN;
}
