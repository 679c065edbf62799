// cli/history/event_file.h: the files that TensorBoard reads: records, each with its length and
// checksums, of events as protocol buffers. Nothing here allocates; whoever opened the stream asks
// at its end whether all of it went out. A name of a series may be of any text.
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { EVENT_FILE_BUCKETS = 128, EVENT_FILE_TAG_SIZE = 192 };

// Events of one moment and step.
typedef struct EventMoment {
    FILE *out;
    double time; // seconds since 1970
    int64_t step;
} EventMoment;

typedef struct EventHistogram { // counts between limits: from limits[i - 1] to limits[i]
    double least, most, count, sum, sum_squares;
    double limits[EVENT_FILE_BUCKETS], counts[EVENT_FILE_BUCKETS];
    int buckets;
} EventHistogram;

void event_file_begin(FILE *out, double time); // the first record, once
void event_file_scalar(const EventMoment *moment, const char *tag, double value);
void event_file_histogram(const EventMoment *moment, const char *tag, const EventHistogram *values);

// CRC-32C (Castagnoli), as records have it before they turn it about.
uint32_t event_file_crc(const void *bytes, size_t length);
