// checkpoint/journal.h: what a script has read of the device and of the clock, in order.
//
// The numbers that come back from the device, and the time of day, are all that a script's course
// depends on beside its own text, its options and its seed. A checkpoint holds them, and a replay
// answers from them instead of from the device. Kept in memory up to a cap; past it the journal is
// given up, and with it exact resuming. One thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum JournalKind { // who read
    JOURNAL_TENSOR,
    JOURNAL_DATA,
    JOURNAL_SCALE,
    JOURNAL_APPLIED,
    JOURNAL_STEPS,
    JOURNAL_RATE,
    JOURNAL_REPORT,
    JOURNAL_CLOCK,
    JOURNAL_MEMORY,
    JOURNAL_KINDS
} JournalKind;

enum { JOURNAL_LARGEST = 64 << 20 }; // bytes

typedef struct Journal {
    uint8_t *bytes;
    size_t size, room;
    size_t at;        // of a replay: what was taken so far
    bool is_given_up; // it is not complete
} Journal;

void journal_clear(Journal *journal);
// Appends what was read. Where it does not fit, the journal is given up.
void journal_add(Journal *journal, JournalKind kind, const void *values, size_t size);
// Gives back what was read at this place; fails where it was another kind or amount.
bool journal_take(Journal *journal, JournalKind kind, void *values, size_t size,
                  Error *error) MUST_CHECK;
// Whether that is what comes next.
bool journal_has(const Journal *journal, JournalKind kind);
// Fills an empty journal with that of a checkpoint.
bool journal_set(Journal *journal, const void *bytes, size_t size, Error *error) MUST_CHECK;
