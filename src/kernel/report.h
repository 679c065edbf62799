// kernel/report.h: what the host wants to know of a step, without waiting for the device.
//
// A report is a list of stretches of device memory, as they are behind all work that the device has
// been given by then. It is begun, added to and posted; some steps later it is there and is taken,
// in the order of posting. Where the device's memory is the host's and every call has done its work
// when it returns, a report is there at once, and long stretches of it are the device's memory
// itself: it is to be looked at before the device is given more to do. One thread.
#pragma once

#include "kernel/kernel.h"

typedef struct Reports Reports;

Reports *reports_new(Device *device, Error *error) MUST_CHECK;
// What is on its way is dropped; waits for it. NULL is fine.
void reports_free(Reports *reports);

// Reports lie in places, numbered from 0 to below this: a caller's own notes go beside them.
int reports_places(const Reports *reports);

// Takes a place for a report that is put together now; there is one free if reports_take is called
// until it gives none after each that was posted.
int reports_begin(Reports *reports);
// One more stretch, which lies nowhere else while this report is put together. Its number in the
// report is given; the memory behind it may be given back as soon as the report is posted, where
// it is no longer than a number.
bool reports_add(Reports *reports, const void *source, size_t bytes, int *piece,
                 Error *error) MUST_CHECK;
bool reports_post(Reports *reports, Error *error) MUST_CHECK;

// The place of the oldest report that is there; -1: none. Waits where `drains`, and where as many
// are on their way as the device takes.
int reports_take(Reports *reports, bool drains);
// Of a report that was taken.
const void *reports_piece(const Reports *reports, int place, int piece);
void reports_done(Reports *reports, int place);
int reports_under_way(const Reports *reports); // posted, not done
