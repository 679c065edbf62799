// base/sandbox.h: what the system itself keeps this process from, for good.
//
// Two parts, each where the kernel has it: files (Landlock) and calls (seccomp). Afterwards the
// process and all threads that it starts later read the files of the system and what it was given,
// write what it was given to write, and start no program, no other process and no connection. What
// is open stays open. Nothing here prints; entered once, before there are other threads.
#pragma once

#include <stdbool.h>

typedef struct SandboxPath {
    const char *path; // a file, or a folder with all below it; one that is not there is left out
    bool is_written;
} SandboxPath;

typedef enum SandboxPart { SANDBOX_FILES = 1 << 0, SANDBOX_CALLS = 1 << 1 } SandboxPart;

// Gives the parts that hold from now on; 0: this kernel has neither.
int sandbox_enter(const SandboxPath *paths, int count);
