// base/embedded.h: text compiled into the program by embed.sh: the Lua half of the module `mp`, the
// page that explains it, and the look of a report.
#pragma once

#include <stddef.h>

typedef struct EmbeddedText {
    const char *name; // "layers" for lua/mp/layers.lua; NULL ends the table
    const char *text; // ends with a zero
    size_t length;
} EmbeddedText;

extern const EmbeddedText embedded_lua[], embedded_pages[], embedded_report[];
