// base/out_file.h: writes a file that somebody outside named, as a setting or an option.
//
// A regular file is written whole or not at all: beside it, under its name and OUT_FILE_PART, and
// put in its place by out_file_close, so that a failure leaves what was there. Who writes holds a
// lock: a part that nobody holds was left by one that was killed, and is made anew. Through a
// symbolic link it is the file that the link leads to. What is no regular file (a pipe, a terminal,
// /dev/null), and what this process writes anyway (its standard output under another name), is
// written through as it is. Refused are folders, disks, links that lead nowhere, and files that
// nobody may write: for root too, who is asked no permission by the system.
#pragma once

#include <limits.h>
#include <stdio.h>

#include "base/error.h"

#define OUT_FILE_PART ".mpbench-part" // what nobody else names a file

typedef struct OutFile {
    FILE *stream;                                               // to write to
    char path[PATH_MAX], part[PATH_MAX + sizeof OUT_FILE_PART]; // part: "": it is written through
} OutFile;

// `is_private`: a file that is made is for its owner alone. Nothing is open where it fails.
bool out_file_open(OutFile *out, const char *path, bool is_private, Error *error) MUST_CHECK;
// `done`: what was written is all; else it is taken away again. False where `done` is, without a
// word, and where not all of it could be written, which `error` then says.
bool out_file_close(OutFile *out, bool done, Error *error) MUST_CHECK;
