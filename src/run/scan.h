// run/scan.h: which layers of a model may go into which formats: what is asked, and what was found.
//
// The command fills what is asked and lends it to the script's machine (lua/experiment.h), whose
// binding fills the rest (lua/mp/scan.lua and its parts measure). Nothing is recorded. Unknown is
// NaN. One thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"

enum {
    SCAN_MOST_UNITS = 256,
    SCAN_MOST_FORMATS = 16,
    SCAN_MOST_TRAININGS = 16,
    SCAN_FORMAT_SIZE = 16,
    SCAN_LABEL_SIZE = 64
};

// One unit in one format, all else in fp32, on the same batches.
typedef struct ScanCell {
    bool is_known;  // it was measured
    bool is_broken; // the loss or a gradient was not finite, at any loss scale
    // Of its own gradients, and of all together: the distance to fp32's, as a share of their length
    // and as one of what they differ by from batch to batch; and the angle between them.
    double own_error, own_noise, own_degrees;
    double all_error, all_noise, all_degrees;
    double loss_change; // a share of the loss
    // Of its own gradients, at the loss scale below; of a format whose numbers share scales, of all
    // that its products take, at those scales: then overflowed are those beyond the largest
    // element.
    double flushed, overflowed;
    double subnormal;                             // of such a format alone, as what follows:
    double least_scale, middle_scale, most_scale; // of blocks, exponents of 2
    double scale;
    double damage; // own_noise or all_noise, whichever is more; infinite where it is broken
} ScanCell;

// All units in one format, or in those of a policy, trained on from the same state.
typedef struct ScanTraining {
    char label[SCAN_LABEL_SIZE]; // "fp32", "all fp16", "policy"
    double loss;                 // the mean over seeds of the last third of the steps
    double above, interval;      // of fp32's: a share of it, and its 95 % interval over seeds
    double seconds;              // a step, by the quickest quarter
    int broken;                  // seeds that did not end with a finite loss
    bool is_within;              // above no more than asked
} ScanTraining;

typedef struct Scan {
    // Asked.
    char formats[SCAN_MOST_FORMATS][SCAN_FORMAT_SIZE];
    int format_count;
    int64_t batches;  // looked at
    int64_t warm_up;  // steps trained in fp32 before, where there are no weights
    int64_t steps;    // of each training that verifies; 0: none
    int64_t seeds;    // of them
    double within;    // by how much, as a share, the loss may be above fp32's
    double tolerance; // of damage
    bool by_block;    // what begins with the same name is one unit
    void (*progress)(void *context, const char *what, int64_t done, int64_t of);
    void *context;

    // Found.
    char units[SCAN_MOST_UNITS][RECORD_NAME_SIZE];
    int64_t parameters[SCAN_MOST_UNITS]; // how many numbers each has
    int unit_count;
    int left_out; // units beyond the most
    ScanCell cells[SCAN_MOST_UNITS][SCAN_MOST_FORMATS];
    // Of a forward and backward pass with all units in it; [format_count] is fp32.
    double seconds[SCAN_MOST_FORMATS + 1];
    int64_t activations[SCAN_MOST_FORMATS + 1];
    // The format that each unit is to have, an index of `formats`; format_count: fp32.
    int policy[SCAN_MOST_UNITS];
    ScanTraining trainings[SCAN_MOST_TRAININGS];
    int training_count;
    int rounds;    // times that the policy had to be made higher
    bool is_final; // it was verified, and holds
} Scan;
