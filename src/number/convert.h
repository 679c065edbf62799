// number/convert.h: arrays of numbers from one format to another.
//
// The routes are compiled once per instruction level and chosen at run time; every level gives the
// results of number/format.h bit for bit (of a NaN only that it is one), also in a thread that
// flushes denormals. Nothing here allocates or fails; any thread. Pointers need the alignment of
// their elements and no more; source and target do not overlap.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "number/format.h"

// Formats are plain ones (format_is_plain): blocks are number/scaled.h's.
//
// Elements of any format to fp32. int8 counts steps; number/int8.h has the scale of them.
void convert_to_fp32(Format from, const void *source, float *target, size_t count);

// fp32 to any format. Tf32 is kept as fp32 with its low bits 0.
void convert_from_fp32(Format to, const float *source, void *target, size_t count,
                       Overflow overflow);

// Rounds fp32 values to those that `format` can hold, in place.
void convert_round(Format format, float *values, size_t count, Overflow overflow);

// The routes of one level. The functions above use the table of isa_level(); tests compare all.
typedef struct ConvertTable {
    void (*to_fp32[FORMAT_COUNT])(const void *source, float *target, size_t count);
    void (*from_fp32[FORMAT_COUNT][2])(const float *source, void *target, size_t count);
    void (*round[FORMAT_COUNT][2])(float *values, size_t count);
} ConvertTable;

// The table of a level, whether or not this processor can run it; NULL where none was compiled.
const ConvertTable *convert_table_at(IsaLevel level);
