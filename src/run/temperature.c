#include "run/temperature.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    bool done = file && fgets(line, size, file);
    if (file)
        fclose(file);
    return done;
}

static bool is_of_processor(const char *name) {
    static const char *const words[] = {"coretemp", "k10temp",  "zenpower",
                                        "cpu",      "pkg_temp", "soc"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

static bool is_reading(const char *file) {
    size_t length = strlen(file);
    return strcmp(file, "temp") == 0 || (strncmp(file, "temp", 4) == 0 && length > 6 &&
                                         strcmp(file + length - 6, "_input") == 0);
}

// Of one device, if it is a processor.
static void add_sensors(Temperature *temperature, const char *folder, const char *kind) {
    char path[160], name[64];
    snprintf(path, sizeof path, "%.120s/%.30s", folder, kind);
    if (!read_line(path, name, sizeof name) || !is_of_processor(name))
        return;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));)
        if (is_reading(file->d_name) && temperature->count < TEMPERATURE_SENSORS)
            snprintf(temperature->sensors[temperature->count++], sizeof *temperature->sensors,
                     "%.120s/%.30s", folder, file->d_name);
    if (files)
        closedir(files);
}

static void add_class(Temperature *temperature, const char *root, const char *class,
                      const char *kind) {
    char path[120];
    snprintf(path, sizeof path, "%.60s/%.20s", root, class);
    DIR *devices = opendir(path);
    for (struct dirent *device; devices && (device = readdir(devices));) {
        char folder[121];
        snprintf(folder, sizeof folder, "%.80s/%.39s", path, device->d_name);
        if (device->d_name[0] != '.')
            add_sensors(temperature, folder, kind);
    }
    if (devices)
        closedir(devices);
}

void temperature_begin(Temperature *temperature, const char *root) {
    if (!root)
        root = "/sys/class";
    temperature->count = 0;
    add_class(temperature, root, "hwmon", "name");
    if (temperature->count == 0)
        add_class(temperature, root, "thermal", "type");
}

double temperature_read(const Temperature *temperature) {
    const double least = -60, most = 150; // beyond them a sensor says that it has none
    double hottest = (double)NAN;
    for (int i = 0; i < temperature->count; i++) {
        char line[32];
        long thousandths;
        if (!read_line(temperature->sensors[i], line, sizeof line) ||
            sscanf(line, "%ld", &thousandths) != 1)
            continue;
        double degrees = (double)thousandths / 1000;
        bool is_known = degrees > least && degrees < most && thousandths != 0;
        if (is_known && !(degrees <= hottest))
            hottest = degrees;
    }
    return hottest;
}
