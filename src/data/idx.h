// data/idx.h: the IDX files of MNIST and its relatives: a small header and an array of bytes,
// plain or compressed by gzip (recognised by its first bytes, never by the name).
//
// A header is believed only as far as the file can bear it out: memory is sized after the
// dimensions agree with the number of bytes there (plain), or could come out of them (gzip). An
// IdxArray is the caller's and is emptied by idx_clear. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { IDX_MAX_DIMS = 4 };

typedef struct IdxArray {
    int ndim;
    int64_t shape[IDX_MAX_DIMS];
    int64_t count; // elements, which are bytes; never 0
    uint8_t *data; // from malloc: whoever takes it out sets it to NULL
} IdxArray;

// Reads a file whose array has between `least` and `most` dimensions.
bool idx_read(const char *path, int least, int most, IdxArray *array, Error *error) MUST_CHECK;

// The same from memory; `name` begins the errors.
bool idx_parse(const uint8_t *bytes, size_t size, const char *name, int least, int most,
               IdxArray *array, Error *error) MUST_CHECK;

void idx_clear(IdxArray *array);
