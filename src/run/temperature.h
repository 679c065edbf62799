// run/temperature.h: how hot the processors are, where the kernel says it (hwmon, else its thermal
// zones).
//
// Of several sensors the hottest counts. Where none can be read, as in most virtual machines, it is
// unknown, which is NaN and never 0. A Temperature is the caller's and holds no resource; one
// thread uses it.
#pragma once

enum { TEMPERATURE_SENSORS = 32 };

typedef struct Temperature {
    char sensors[TEMPERATURE_SENSORS][160]; // paths
    int count;
} Temperature;

// Finds the sensors. `root` is the folder of the kernel's classes, NULL: /sys/class.
void temperature_begin(Temperature *temperature, const char *root);
double temperature_read(const Temperature *temperature); // degrees Celsius, now
