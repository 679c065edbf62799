// tests/conformance/compare.h: runs a case on a device and holds the result against the reference.
//
// The reference device computes in double and answers in double, which is taken as the truth, after
// it was held against the definition where kernels share a formula with it (truth.h). A
// result must lie between the roundings of truth - e and truth + e to the output's format, with
//     e = ulps of fp32 at the truth + 2^-24 (absolute A + result |truth| + constant)
// where A is the same operation in double on the magnitudes of its inputs. With e = 0 it must be
// the truth, rounded once. NaN and infinities must be where the truth has them. Below the smallest
// normal number of fp32 a 0 will do, and inputs that small may be taken as 0, since processors and
// accelerators flush there. Memory around outputs, and inputs, must be as they were. Where an
// output may lie on an input (IN_PLACE of ops.def), it must come out the same there, to the bit.
#pragma once

#include "kernel/kernel.h"

typedef struct Bound {
    double ulps, absolute, result, constant;
    double vanishing; // terms that may be flushed on the way: each by up to fp32's smallest normal
} Bound;

typedef struct CaseInput {
    View view;       // its data pointer is not used
    int64_t offset;  // of the first element in its storage
    int64_t storage; // elements
    double *values;  // [storage], each one exactly what its format holds; owned
    bool absent;
} CaseInput;

// A factor that a device rounds itself before it multiplies (rounded.h).
typedef struct Rounded {
    CaseInput from; // its numbers; or, of weights in int8, what they were rounded to
    ScaleAttr by;   // how, of elements that share scales
} Rounded;

typedef struct Case {
    OpId op;
    char about[160];
    int input_count, output_count;
    CaseInput input[OP_MAX_INPUTS];
    bool is_rounded; // the first two inputs are what these are worth, which devices are given
    Rounded rounded[2];
    float *steps; // of weights in int8: what a step of each row is worth; owned
    int64_t step_count;
    View output[OP_MAX_OUTPUTS];
    Bound bound[OP_MAX_OUTPUTS];
    // In place of `bound`, of devices that take what comes up on the way into tiles of TF32.
    Bound by_tiles[OP_MAX_OUTPUTS];
    bool has_tiles;
    bool ignored[OP_MAX_OUTPUTS]; // where the contract leaves the answer open
    OpAttr attr;
    uint32_t signed_inputs; // bit i: input i keeps its signs in A
    bool has_limit; // every result is less than `limit`; where the truth would be rounded to it,
    double limit;   // the format's number below stands for it
    bool zeros_expected; // else a truth of which less than a tenth is not 0 proves nothing
} Case;

// What became of the cases of one operation, format and device.
typedef struct Report {
    int cases, failures;
    char first[900]; // the first failure, described
} Report;

// The truth about a case, by the reference device.
typedef struct Expected {
    double *value[OP_MAX_OUTPUTS];
    double *flushed[OP_MAX_OUTPUTS];   // with inputs below fp32's normal numbers as 0, or NULL
    double *magnitude[OP_MAX_OUTPUTS]; // A, or NULL where no bound asks for it
} Expected;

bool expected_make(Expected *expected, Device *ref, const Case *test, Report *report);
// Whether it is what the operation is by definition (truth.h), where there is a definition.
bool expected_holds(const Expected *expected, const Case *test, Report *report);
void expected_clear(Expected *expected);

// Runs the case on a device and compares; counts it, and what failed, in the report.
void compare_on(Device *device, const Case *test, const Expected *expected, Report *report);
// The device must refuse the case, with an error that contains `needle`.
void compare_refusal(Device *device, const Case *test, const char *needle, Report *report);

// Whether one number is good enough.
bool compare_number(Format format, double got, double truth, double error);

__attribute__((format(printf, 3, 4))) void report_failure(Report *report, const Case *test,
                                                          const char *format, ...);
