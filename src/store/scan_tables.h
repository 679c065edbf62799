// store/scan_tables.h: what reading and writing scans share. Seen by them only.
#pragma once

#include "store/scan.h"
#include "store/store_private.h"

enum { SCAN_FORMATS_SIZE = SCAN_MOST_UNITS * (SCAN_FORMAT_SIZE + 1) };

// The tables, the one that the others hang on first; ended by NULL.
extern const char *const scan_tables[];
// Times of rounds; scans of before have no such table.
extern const char scan_rounds_table[];
// Each made with its first row: norms and embeddings, passes with them low, results of trainings,
// and the steps that these skipped.
extern const char scan_kept_table[], scan_lowered_table[], scan_results_table[], scan_skips_table[];
