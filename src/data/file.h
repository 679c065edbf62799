// data/file.h: reading files that somebody else may have made, moved, cut or replaced by something
// else.
//
// Only regular files are read, whole and through read(2): a FIFO or a terminal cannot make us wait,
// and a file that shrinks meanwhile is an error, where a mapping would end in SIGBUS. Every error
// begins with the path. What is returned belongs to the caller, who frees it with free(). Any
// thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// How a path is printed in a message: cut, so that a long one leaves room for the cause.
#define FILE_PATH "%.250s"

// Opens a regular file for reading. The caller closes *file.
bool file_open(const char *path, int *file, uint64_t *size, Error *error) MUST_CHECK;

// Reads exactly `size` bytes from where the file stands.
bool file_take(int file, const char *path, uint8_t *out, size_t size, Error *error) MUST_CHECK;

// Reads a whole file of at most `limit` bytes. An empty file gives one byte of memory and size 0.
bool file_read(const char *path, uint64_t limit, uint8_t **bytes, size_t *size,
               Error *error) MUST_CHECK;
