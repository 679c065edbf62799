// lua/embedded.h: the Lua half of the module `mp`, compiled into the program as text by embed.sh.
#pragma once

#include <stddef.h>

typedef struct EmbeddedLua {
    const char *name; // "layers" for lua/mp/layers.lua; NULL ends the table
    const char *text;
    size_t length;
} EmbeddedLua;

extern const EmbeddedLua embedded_lua[];
