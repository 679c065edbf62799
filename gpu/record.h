// gpu/record.h: the calls of a step, one behind the other, as bytes that can be compared.
#pragma once

#include "gpu/capture.h"

typedef struct GpuRecord {
    char *bytes;
    size_t used, room;
    size_t inbox; // bytes that the host sent
} GpuRecord;

// A call: whoever compares two sees all that they hang on.
typedef struct GpuCall {
    GpuPut put;
    const char *name;
    const void *what;
    size_t bytes;
    GpuInstead instead; // not compared
} GpuCall;

void gpu_record_clear(GpuRecord *record);
// False: there is no memory, or it is more than any step has.
bool gpu_record_add(GpuRecord *record, const GpuCall *call) MUST_CHECK;
// The first `bytes` of another, of which they are whole calls, in place of what was there.
bool gpu_record_copy(GpuRecord *record, const GpuRecord *from, size_t bytes) MUST_CHECK;

// The call at a place, which is a place behind a call; false: there the record ends.
bool gpu_record_at(const GpuRecord *record, size_t place, GpuCall *call);
// The place behind a call at a place.
size_t gpu_record_behind(size_t place, const GpuCall *call);
// Whether the call at a place is this one.
bool gpu_record_has(const GpuRecord *record, size_t place, const GpuCall *call);
bool gpu_record_is(const GpuRecord *record, const GpuRecord *other);
