// tests/conformance/truth.h: what operations are by definition, in long double.
//
// The reference device is the oracle of every other; this is the oracle of the reference device
// where it shares a formula with them: the functions of pointwise.def, and all that is made of
// exponentials over a row. Nothing here looks at pointwise.def's expressions; the definitions are
// those of the books, and long double has the digits and the range that a kernel must care for.
// Pure.
#pragma once

#include "tests/conformance/compare.h"

// How near to the definition the reference device must come: digits of its own, or, where an input
// was kept in fp32 by a forward pass, of that.
typedef enum TruthKind { TRUTH_NONE, TRUTH_EXACT, TRUTH_FROM_KEPT } TruthKind;

// Of truth.c alone: a dimension drawn anew (truth_line.c), factors of products (truth_scale.c).
bool truth_resample(const Case *test, double *value);
bool truth_scale_factor(const Case *test, double *value);
// And for them: element `index` of an input, in order.
long double truth_element(const CaseInput *input, int64_t index);

// Fills value[i] for each output that the definition speaks of; the caller frees them. TRUTH_NONE,
// and nothing filled, for operations without a definition here, and for cases that are refused.
TruthKind truth_solve(const Case *test, double *value[OP_MAX_OUTPUTS]);
