// base/whole_path.h: a path that means the same from every folder.
#pragma once

#include <stddef.h>

// The path from the root, where it has room there; else as it was given. Links stay as they are.
void whole_path(char *text, size_t size, const char *path);
