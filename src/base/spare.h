// base/spare.h: how much memory the machine can still give. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Whether so many more bytes can be filled without other programs, or this one, being ended for it:
// Linux grants more than it has. True where the system does not say.
bool spare_memory_holds(size_t bytes);
