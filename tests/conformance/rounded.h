// tests/conformance/rounded.h: products whose factors are rounded on the way: to elements that
// share scales (fp8, mxfp8), or to whole numbers (int8).
//
// Inputs of such a case become what its factors are worth by definition (truth_scale.c), of which
// the reference takes the exact product, in double. A device gets the numbers themselves, has its
// own kernel round them, and multiplies what came of it. So what may be off is what sums in fp32
// are, and a unit for each rounding of a scale that is no power of two.
#pragma once

#include "precision/recipe.h"
#include "tests/conformance/case.h"

typedef struct Rounding {
    Format format;
    Recipe recipe;
    char name[32]; // "mxfp8", "fp8=blocks"
} Rounding;

// Every format of the table that rounds factors, in each way to choose scales by the factor alone.
enum { ROUNDINGS_MOST = 3 * FORMAT_COUNT };
int rounding_list(Rounding list[ROUNDINGS_MOST]);

// The operation that a device says it supports, or not: that whose gradient this is, where a
// gradient is rounded likewise.
OpId rounding_asked_of(const Rounding *rounding, OpId op);
// Whether factors of that product are rounded at all.
bool rounding_serves(const Rounding *rounding, OpId op);

// Makes a product of the case whose factors are rounded so. False where the definition has no
// answer: of numbers so small that some device flushes their scales, and of whole ones that are to
// be infinite.
bool rounding_define(const Rounding *rounding, Case *test);

// What a device made of the factors of one call.
typedef struct RoundedFactors {
    void *worth[2], *apart[2], *steps; // its memory; NULL: none
} RoundedFactors;

// Has the device round the factors of a case that rounding_define has made, and the call multiply
// what came of it. Whatever becomes of it, rounded_clear gives the memory back.
bool rounded_make(RoundedFactors *factors, Device *device, const Case *test, KernelCall *call,
                  OpAttr *attr, Error *error);
void rounded_clear(RoundedFactors *factors, Device *device);
