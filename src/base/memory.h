// base/memory.h: how much memory there is for this process, and how much is left. Control groups
// (a container's, a service's) may leave less than the machine has. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of the machine, or what control groups leave of it; 0: unknown.
size_t memory_of_machine(void);
// Whether so many more bytes can be filled without other programs, or this one, being ended for it:
// Linux grants more than it has. True for what is too little to ask for, and where the system does
// not say.
bool memory_is_left_for(size_t bytes);
// How many these are, by the files of the system below the folder `root`, which is "" but for
// tests; UINT64_MAX: they do not say.
uint64_t memory_left_below(const char *root);
