// The record of a scan in memory.
#include <math.h>
#include <stdlib.h>

#include "store/scan.h"

#define READING(name) \
    { #name, offsetof(ScanCell, name) }
const ScanReading scan_readings[] = {
    READING(damage),       READING(own_error),  READING(own_noise),   READING(own_degrees),
    READING(all_error),    READING(all_noise),  READING(all_degrees), READING(loss_change),
    READING(flushed),      READING(overflowed), READING(subnormal),   READING(least_scale),
    READING(middle_scale), READING(most_scale), READING(scale),       {NULL, 0}};

double *scan_reading(ScanCell *cell, const ScanReading *reading) {
    return (double *)(void *)((char *)cell + reading->offset);
}

ScanRecord *scan_record_new(Error *error) {
    ScanRecord *scan = calloc(1, sizeof *scan);
    if (!scan) {
        error_fail(error, ERROR_MEMORY, "no memory for a scan: close other programs");
        return NULL;
    }
    scan->loss = scan->others = (double)NAN;
    return scan;
}

void scan_record_free(ScanRecord *scan) {
    if (scan)
        free(scan->options);
    free(scan);
}

int scan_cells_known(const ScanRecord *scan) {
    int known = 0;
    for (int unit = 0; unit < scan->unit_count; unit++)
        for (int format = 0; format < scan->format_count; format++)
            known += scan->cells[unit][format].is_known;
    return known;
}

const char *scan_format_name(const ScanRecord *scan, int format) {
    return format < scan->format_count ? scan->formats[format] : "fp32";
}
