// tests/screen/history.h: made histories that a recording cannot be: names that attack a terminal,
// and a run of many steps. One thread.
#pragma once

#include <stdint.h>

#include "base/error.h"

// Escapes of every kind in all that can hold text: names, tags, notes, layers, series, metrics,
// parameters, events, diagnoses, errors, devices. Text that is shown must have "evil" left in it.
bool history_make_hostile(const char *path, Error *error) MUST_CHECK;
// One finished run named "long" with `layers` layers.
bool history_make_long(const char *path, int64_t steps, int layers, Error *error) MUST_CHECK;
// What no terminal may get, ended by NULL.
extern const char *const history_attacks[];
// As a worker: a run "fed" that goes on, 50 steps a second.
bool history_feed(const char *path, int layers, double seconds, Error *error) MUST_CHECK;
