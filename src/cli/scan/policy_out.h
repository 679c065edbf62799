// cli/scan/policy_out.h: a file that is written at the end of a scan, though the scan's script, and
// with it this process, may write nothing but the history.
//
// A process is made before the sandbox is entered. It opens the file, so that what is wrong with it
// is known before the scan, and waits; what comes to it is put in the file's place once all of it
// has. Where nothing comes, this process was killed or gives up, it leaves what was there.
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct PolicyOut {
    FILE *stream; // to write to; NULL: none is open
    int answers;
    pid_t child; // that writes it; 0: none
} PolicyOut;

// Before there are other threads, and before the sandbox.
bool policy_out_open(PolicyOut *out, const char *path, Error *error) MUST_CHECK;
// `done`: what was written is all, and has no zero bytes; else false, without a word.
bool policy_out_close(PolicyOut *out, bool done, Error *error) MUST_CHECK;
