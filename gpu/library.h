// gpu/library.h: shared libraries of this machine, opened at run time.
//
// In tests the emulator (tests/emulator/library.c) stands in the place of gpu/library.c. Any
// thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

void *gpu_library_open(const char *file);                        // NULL: there is none
void *gpu_library_function(void *library, const char *function); // NULL: it has none
void gpu_library_close(void *library);                           // NULL is fine

// Whether operations are offered to the libraries of NVIDIA's that compute: not where the variable
// MPBENCH_GPU_LIBRARIES says "none". Then all runs on our own kernels.
bool gpu_libraries_compute(void);

// A function by the library's name of it, and where in a table its address goes.
typedef struct LibraryFunction {
    const char *name;
    size_t offset;
} LibraryFunction;

// Opens a library for a table of its functions, [count], and fills that: NULL where it lacks one.
// The first that it lacks is told in `lacking`, NULL: none. NULL: there is no such library.
void *gpu_library_fill(const char *file, const LibraryFunction *functions, size_t count,
                       void *table, const char **lacking);

// For rows of a table whose members are named as the library names them, whatever a header makes of
// those names.
#define LIBRARY_TEXT_(name)           #name
#define LIBRARY_TEXT(name)            LIBRARY_TEXT_(name)
#define LIBRARY_FUNCTION(Table, name) {LIBRARY_TEXT(name), offsetof(Table, name)},
