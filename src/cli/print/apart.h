// cli/print/apart.h: how far two trainings in lock step are apart, as a table on standard output: a
// row a layer.
#pragma once

#include "base/error.h"
#include "cli/print/terminal.h"
#include "store/twin.h"

// Which run the other is, in what, and what may be said of the two.
enum { APART_LINE_SIZE = 1024 };
void apart_line(const TwinReport *report, const char *precision, char text[APART_LINE_SIZE]);
bool apart_print(const TwinReport *report, const Terminal *terminal, Error *error) MUST_CHECK;
