// tests/conformance/case.h: one call of one operation, with its inputs and what may be wrong with
// its result.
//
// A family's cases are built here and run through compare.h, on the reference device first and then
// on every other. Inputs are rounded to their format when they are made, so that every device gets
// the same bits. Values come from the test's own generator: fixed seeds, equal on every machine.
#pragma once

#include "kernel/kernel.h"
#include "tests/conformance/compare.h"

typedef struct Shape {
    int ndim;
    int64_t size[VIEW_MAX_DIMS];
} Shape;
#define SHAPE(...) \
    ((Shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define SHAPE_OF_NUMBER ((Shape){0})

int64_t shape_count(Shape shape);

// How an input lies in its storage. What lies between its elements is NaN, so that whoever reads
// it is found out.
typedef enum Layout {
    LIES_DENSE,
    LIES_TRANSPOSED, // the last two dimensions swapped
    LIES_SLICED,     // rows with gaps between them, not aligned; the last stride is 1
    LIES_STEPPED,    // every stride doubled
    LIES_BROADCAST,  // the first stride is 0
    LIES_PERMUTED,   // the second and third of four dimensions swapped; the last stride is 1
    LIES_COUNT
} Layout;

typedef enum ValueKind {
    VALUES_NORMAL,    // mean 0, deviation `high`
    VALUES_INTEGERS,  // small whole numbers: sums and products are exact
    VALUES_ZEROS,     // of both signs
    VALUES_SUBNORMAL, // around the smallest normal number of the format
    VALUES_TINY,      // a few powers of two above that
    VALUES_LARGE,     // the upper half of the format's range, divided by `high` where that is given
    VALUES_OFFSET,   // close to each other and far from 0: 2^high above what the format tells apart
    VALUES_CANCEL,   // large ones of both signs in turn, whose sums are small
    VALUES_SPECIAL,  // normal, with a few NaN and infinities
    VALUES_UNIFORM,  // in low..high
    VALUES_CLASSES,  // whole numbers from low to high - 1
    VALUES_DISTINCT, // each row a shuffle of different whole numbers
    VALUES_COUNT
} ValueKind;

typedef struct Values {
    ValueKind kind;
    double low, high;
} Values;

#define NORMAL             ((Values){VALUES_NORMAL, 0, 1})
#define INTEGERS           ((Values){VALUES_INTEGERS, -4, 4})
#define ZEROS              ((Values){VALUES_ZEROS, 0, 0})
#define SPECIAL            ((Values){VALUES_SPECIAL, 0, 1})
#define UNIFORM(low, high) ((Values){VALUES_UNIFORM, low, high})
#define CLASSES(low, high) ((Values){VALUES_CLASSES, low, high})
#define DISTINCT           ((Values){VALUES_DISTINCT, 0, 0})

// Whole numbers of a format: all that it holds, or few of them, which meet their equals.
Values whole_values(Format format, bool few);

// What every operation is tried with, from normal to special: a family that leaves one out for an
// input says why in conformance_test.c.
enum { EVERY_KIND = 10 };
extern const Values every_kind[EVERY_KIND];
// The same for what is added up: `terms` large numbers, each raised to `power`, do not leave fp32.
// In fp16 they never do.
Values every_sum(int kind, Format format, int64_t terms, int power);

// The name of a kind, for descriptions.
const char *values_name(Values values);

// A device that says it lacks the operation in this format, and so must refuse every case by name.
typedef struct Refusing {
    Device *device;
    Report *report;
} Refusing;
enum { CASES_MAX_REFUSING = 8 };

struct Rounding; // rounded.h

typedef struct Cases Cases;
// What is done with a case instead of comparing it; it does not free it.
typedef void (*CaseRunner)(Cases *cases, const Case *test);

// Everything that a family's cases are built and run with: one operation in one format.
struct Cases {
    OpId op;
    Format format;
    // Factors lie in `format`, hold what this one can, and are multiplied in it: a card may round
    // them by a rule of its own, and has nothing to round then. FORMAT_COUNT: in `format`.
    Format compute;
    // Factors of products are rounded so on the way; NULL: they are multiplied as they are.
    const struct Rounding *rounding;
    Device *ref;
    Report *ref_report; // the reference device against itself: its rounding, its memory
    Device **devices;
    Report *reports; // one a device
    int device_count;
    Refusing refusing[CASES_MAX_REFUSING];
    int refusing_count;
    uint64_t random;
    uint32_t drawn;     // bit k: some input was drawn with ValueKind k
    CaseRunner runner;  // NULL: compare
    bool until_failure; // no case is compared after one that failed
    int one_in, turn;   // one case in so many is compared, the first after `turn`; 0: every one
    int met;            // how many there were
};

// A number in [0, 1).
double cases_uniform(Cases *cases);

// A case of cases->op without inputs yet; the text says what is special about it.
__attribute__((format(printf, 2, 3))) Case *case_new(Cases *cases, const char *about, ...);
// The same for another operation: what a gradient needs from its forward pass.
Case *case_new_of(OpId op);
void case_free(Case *test);

// Appends an input. `case_add_given` takes the values themselves, in row-major order.
void case_add(Cases *cases, Case *test, Format format, Shape shape, Layout layout, Values values);
void case_add_given(Case *test, Format format, Shape shape, const double *values);
void case_add_absent(Case *test);

// Of an input: its largest magnitude that is finite.
double case_largest(const Case *test, int input);
// Of an input: how far two finite numbers of it lie apart at most.
double case_spread(const Case *test, int input);

// What the reference device gives in double for one output; the caller frees it. NULL, with the
// failure in the report, when it cannot.
double *case_solve(Cases *cases, Case *test, int output);

// Shapes the outputs by the operation's rule and gives floating ones that precision decides
// `format`; false, with the failure in the report, where the rule refuses the inputs.
bool case_shape(Case *test, Format format, Report *report);
// Shapes the outputs, runs the case everywhere, compares, and frees it.
void case_run(Cases *cases, Case *test, Format format);
// The same, but every device must refuse with an error that contains `needle`.
void case_refused(Cases *cases, Case *test, Format format, const char *needle);
