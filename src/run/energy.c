#include "run/energy.h"

#include <dirent.h>
#include <inttypes.h>
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

static bool read_number(const char *path, uint64_t *number) {
    char line[32];
    return read_line(path, line, sizeof line) && sscanf(line, "%" SCNu64, number) == 1;
}

// "intel-rapl:0" is a package or the whole board, "intel-rapl:0:1" a part of one.
static bool is_outermost(const char *name) {
    static const char prefix[] = "intel-rapl:";
    size_t length = sizeof prefix - 1;
    return strncmp(name, prefix, length) == 0 && !strchr(name + length, ':');
}

static void add_zone(Energy *energy, const char *root, const char *name) {
    char path[160], kind[32] = "";
    int length = snprintf(path, sizeof path, "%.100s/%.30s/name", root, name);
    // The board's own zone holds those of the packages: it would count them twice.
    if (length < 0 || !read_line(path, kind, sizeof kind) || strncmp(kind, "package", 7) != 0)
        return;
    if (energy->count == ENERGY_ZONES) {
        energy->joules = (double)NAN; // the sum would lack this one
        return;
    }
    struct EnergyZone *zone = &energy->zones[energy->count];
    snprintf(path, sizeof path, "%.100s/%.30s/max_energy_range_uj", root, name);
    snprintf(zone->path, sizeof zone->path, "%.100s/%.30s/energy_uj", root, name);
    if (!read_number(path, &zone->range) || !read_number(zone->path, &zone->last)) {
        energy->joules = (double)NAN; // as above
        return;
    }
    energy->count++;
}

void energy_begin(Energy *energy, const char *root) {
    if (!root)
        root = "/sys/class/powercap";
    *energy = (Energy){.count = 0};
    DIR *folder = opendir(root);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_outermost(entry->d_name))
            add_zone(energy, root, entry->d_name);
    if (folder)
        closedir(folder);
    if (energy->count == 0)
        energy->joules = (double)NAN;
}

void energy_sample(Energy *energy) {
    if (isnan(energy->joules))
        return;
    double microjoules = 0;
    for (int i = 0; i < energy->count; i++) {
        struct EnergyZone *zone = &energy->zones[i];
        uint64_t now;
        if (!read_number(zone->path, &now)) {
            energy->joules = (double)NAN;
            return;
        }
        microjoules +=
            (double)(now >= zone->last ? now - zone->last : zone->range - zone->last + now);
        zone->last = now;
    }
    energy->joules += microjoules * 1e-6;
}

void energy_leave_out(Energy *energy) {
    const double before = energy->joules;
    energy_sample(energy);
    if (!isnan(energy->joules))
        energy->joules = before;
}
