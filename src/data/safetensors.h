// data/safetensors.h: reads and writes the safetensors format: a header of JSON that says which
// tensors there are, then their bytes, little-endian and dense.
//
// The reader trusts nothing: the header is checked whole, before memory is sized by what it says,
// and each fault is named. Bytes come through pread, so that a file that shrinks is an error and
// not a signal. The writer writes beside the target and moves the finished, synchronised file over
// it: after a crash there is the old file or the new one. Names are text in UTF-8. Any thread; one
// file is one thread's.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "number/format.h"

typedef enum SafeType {
    SAFE_F64,
    SAFE_F32,
    SAFE_F16,
    SAFE_BF16,
    SAFE_I64,
    SAFE_I32,
    SAFE_I16,
    SAFE_I8,
    SAFE_U8,
    SAFE_BOOL,
    SAFE_F8_E4M3,
    SAFE_F8_E5M2,
    SAFE_TYPES
} SafeType;

const char *safe_type_name(SafeType type);
size_t safe_type_bytes(SafeType type);
Format safe_type_format(SafeType type); // whose numbers these are; FORMAT_COUNT: none of ours
SafeType safe_type_of(Format format);   // SAFE_TYPES: it has none

enum {
    SAFE_MAX_DIMS = 16,
    SAFE_MAX_ENTRIES = 100000,
    SAFE_MAX_HEADER = 100000000, // bytes
};

typedef struct SafeEntry {
    const char *name;
    SafeType type;
    int ndim;
    int64_t shape[SAFE_MAX_DIMS];
    uint64_t begin, end; // of its bytes, counted from the end of the header
} SafeEntry;

typedef struct SafeNote { // of __metadata__
    const char *key, *value;
} SafeNote;

// ---- the header ---------------------------------------------------------------------------------

typedef struct SafeHeader {
    SafeEntry *entries; // in the order of their bytes
    int count;
    SafeNote *notes;
    int note_count;
    const SafeEntry **by_name;
} SafeHeader;

// Parses a header that describes `data_bytes` bytes. `text` is written over and must outlive the
// header, whose names lie in it. `shown` begins every message. Left empty on failure.
bool safe_header_parse(SafeHeader *header, char *text, size_t size, uint64_t data_bytes,
                       const char *shown, Error *error) MUST_CHECK;
void safe_header_clear(SafeHeader *header);
const SafeEntry *safe_header_find(const SafeHeader *header, const char *name); // NULL: none
const char *safe_header_note(const SafeHeader *header, const char *key);       // NULL: none

// ---- reading ------------------------------------------------------------------------------------

typedef struct SafeFile SafeFile;

// Reads and checks the header. NULL on failure.
SafeFile *safe_open(const char *path, Error *error);
void safe_close(SafeFile *file); // NULL is fine
const SafeHeader *safe_header(const SafeFile *file);
// The bytes of an entry of this file: `end - begin` of them.
bool safe_read(SafeFile *file, const SafeEntry *entry, void *out, Error *error) MUST_CHECK;
// The checksum of the whole file as it lies on the disk.
bool safe_hash(SafeFile *file, char hex[HASH_HEX_SIZE], Error *error) MUST_CHECK;

// ---- writing ------------------------------------------------------------------------------------

typedef struct SafeWriter SafeWriter;

// Tensors and notes are declared first, each under a name of its own, then the bytes come in the
// same order. Names that are alike are refused before anything is written.
SafeWriter *safe_writer_new(const char *path, Error *error);
// The same through a stream of the caller's, which sees to the file; `shown` names it in messages.
SafeWriter *safe_writer_to(FILE *stream, const char *shown, Error *error);
bool safe_declare(SafeWriter *writer, const char *name, SafeType type, int ndim,
                  const int64_t *shape, Error *error) MUST_CHECK;
bool safe_note(SafeWriter *writer, const char *key, const char *value, Error *error) MUST_CHECK;
// The bytes of the next tensor, or a part of them. The first call makes the file and its header.
bool safe_write(SafeWriter *writer, const void *bytes, size_t size, Error *error) MUST_CHECK;
// All bytes came: puts the file in its place, safe on the disk. ERROR_FULL where there was no room.
bool safe_finish(SafeWriter *writer, char hex[HASH_HEX_SIZE], uint64_t *bytes,
                 Error *error) MUST_CHECK;
void safe_writer_free(SafeWriter *writer); // takes an unfinished file away; NULL is fine
