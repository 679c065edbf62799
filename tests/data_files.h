// tests/data_files.h: a temporary folder, and files in it, for the tests of readers.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/folder.h"

static char folder[256];

static inline void folder_remove(void) {
    test_folder_remove(folder);
}

static inline void folder_make(void) {
    if (!test_folder_make(folder, sizeof folder))
        exit(1);
    atexit(folder_remove);
}

// The path of a name in the folder; one of four buffers taken in turn.
static inline const char *path_of(const char *name) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t size) {
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

// Compresses into `out` as gzip; returns the size.
static inline size_t gzip_bytes(uint8_t *out, size_t room, const uint8_t *bytes, size_t size,
                                int level) {
    z_stream stream = {0};
    if (deflateInit2(&stream, level, Z_DEFLATED, 16 + 9, 1, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    stream.next_in = (z_const Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    size_t written = room - stream.avail_out;
    deflateEnd(&stream);
    return written;
}

// An IDX file's bytes: the header of `ndim` dimensions, then `body` bytes 0, 1, 2, ...; returns the
// size.
static inline size_t idx_bytes(uint8_t *out, int ndim, const uint32_t *shape, size_t body) {
    size_t size = 0;
    out[size++] = 0;
    out[size++] = 0;
    out[size++] = 8;
    out[size++] = (uint8_t)ndim;
    for (int i = 0; i < ndim; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            out[size++] = (uint8_t)(shape[i] >> shift);
    for (size_t i = 0; i < body; i++)
        out[size++] = (uint8_t)i;
    return size;
}
