// gpu/library.h: shared libraries of this machine, opened at run time.
//
// In tests the emulator (tests/emulator/library.c) stands in its place. Any thread.
#pragma once

void *gpu_library_open(const char *file);                        // NULL: there is none
void *gpu_library_function(void *library, const char *function); // NULL: it has none
void gpu_library_close(void *library);                           // NULL is fine
