// tests/plans.h: plans for one call, of items on the stack.
#pragma once

#include "kernel/multi.h"

#define SCANS(items_, count_)   (&(ScanPlan){.items = (items_), .count = (count_)})
#define UPDATES(items_, count_) (&(UpdatePlan){.items = (items_), .count = (count_)})
#define PAIR(target, source)    (&(PairPlan){.items = &(ViewPair){(target), (source)}, .count = 1})
