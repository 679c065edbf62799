// base/memory.h: how much memory there is for this process.
#pragma once

#include <stddef.h>

// Of the machine, or what a control group leaves of it; 0: unknown.
size_t memory_of_machine(void);
