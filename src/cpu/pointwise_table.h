// cpu/pointwise_table.h: functions of one number of 16 bits, looked up among all that there are. A
// table is made anew by each call, by the function itself, so that the bits are the same, but for
// which NaN comes out where two are multiplied. It pays where there are many more elements than
// numbers and the function takes long. Private to cpu/pointwise.c and its tests.
#pragma once

#include "cpu/pointwise.h"

// Of fewer elements no table is made.
enum { POINTWISE_FEWEST_TABLED = 1 << 18 };

bool pointwise_is_tabled(const Pointwise *work, int64_t count);

// The function, or its gradient, for all elements of the call.
bool pointwise_by_table(Device *device, const KernelCall *call, const Pointwise *work,
                        Error *error);
