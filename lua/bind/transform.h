// lua/bind/transform.h: the options of a loader that say how samples are changed; for loader.c.
#pragma once

#include <lua.h>

#include "data/transform.h"

// Of field `transform` of the table at `index`; what it says is checked when the loader is made.
Transform bind_transform(lua_State *L, const char *function, int index);
