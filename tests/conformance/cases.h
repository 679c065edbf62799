// tests/conformance/cases.h: the cases of each family of operations.
//
// Expanded from ops.def: an operation whose family has no cases does not link. A function runs all
// cases of cases->op in cases->format through case_run; the reports take what happens.
#pragma once

#include "tests/conformance/case.h"

#define OP(name, inputs, outputs, class, family, ...) void cases_##family(Cases *cases);
#include "kernel/ops.def"

typedef void (*FamilyCases)(Cases *cases);

// A bound for sums over `count` terms whose errors are as likely up as down.
double sum_terms(int64_t count);
