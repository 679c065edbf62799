#include "data/idx.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/file.h"

enum {
    MAGIC_BYTES = 4, // 0, 0, the type, the number of dimensions
    TYPE_UBYTE = 0x08,
    MAX_HEADER = MAGIC_BYTES + 4 * IDX_MAX_DIMS,
    // Deflate spends at least two bits on 258 bytes: no input grows by more than this.
    MAX_INFLATION = 1032,
};

static const uint64_t max_file_bytes = (uint64_t)16 << 30;

static const struct {
    uint8_t code;
    const char *name;
} idx_types[] = {{0x08, "unsigned byte"},  {0x09, "signed byte"},  {0x0B, "16-bit integer"},
                 {0x0C, "32-bit integer"}, {0x0D, "32-bit float"}, {0x0E, "64-bit float"}};

static const char *type_name(uint8_t code) {
    for (size_t i = 0; i < sizeof idx_types / sizeof idx_types[0]; i++)
        if (idx_types[i].code == code)
            return idx_types[i].name;
    return NULL;
}

// Where the bytes of the array come from: memory as it is, or memory through gzip.
typedef struct Source {
    const char *name;
    const uint8_t *bytes;
    size_t size;
    size_t at;         // the next of bytes; for gzip, the next not yet handed to zlib
    uint64_t produced; // bytes given out
    bool gzip, ended;
    z_stream stream;
} Source;

static bool is_gzip(const uint8_t *bytes, size_t size) {
    return size >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

static size_t consumed(const Source *source) {
    return source->at - source->stream.avail_in;
}

static bool fail_gzip(const Source *source, int status, Error *error) {
    if (status == Z_MEM_ERROR)
        return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to decompress it",
                          source->name);
    if (status == Z_BUF_ERROR)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the gzip data is cut at byte %zu (%" PRIu64
                                    " bytes decompressed); fetch the file again",
                          source->name, source->size, source->produced);
    return error_fail(error, ERROR_FAILED,
                      FILE_PATH ": the gzip data is damaged near byte %zu (%s); fetch the file "
                                "again",
                      source->name, consumed(source),
                      source->stream.msg ? source->stream.msg : "not a deflate stream");
}

// Gives up to `wanted` bytes; fewer only at the end of the data. `*got` says how many.
static bool take_gzip(Source *source, uint8_t *out, size_t wanted, size_t *got, Error *error) {
    z_stream *stream = &source->stream;
    *got = 0;
    while (*got < wanted && !source->ended) {
        if (stream->avail_in == 0 && source->at < source->size) {
            size_t part = source->size - source->at;
            stream->next_in = (z_const Bytef *)(uintptr_t)(source->bytes + source->at);
            stream->avail_in = part < UINT_MAX ? (uInt)part : UINT_MAX;
            source->at += stream->avail_in;
        }
        size_t room = wanted - *got;
        uInt before = room < UINT_MAX ? (uInt)room : UINT_MAX;
        stream->next_out = out + *got;
        stream->avail_out = before;
        int status = inflate(stream, Z_NO_FLUSH);
        size_t part = before - stream->avail_out;
        *got += part;
        source->produced += part;
        if (status == Z_STREAM_END) {
            // gzip files may be several, one after the other.
            if (!is_gzip(source->bytes + consumed(source), source->size - consumed(source)))
                source->ended = true;
            else if (inflateReset(stream) != Z_OK)
                return fail_gzip(source, Z_DATA_ERROR, error);
        } else if (status != Z_OK) {
            return fail_gzip(source, status, error);
        }
    }
    return true;
}

static bool take(Source *source, uint8_t *out, size_t wanted, size_t *got, Error *error) {
    if (source->gzip)
        return take_gzip(source, out, wanted, got, error);
    size_t left = source->size - source->at;
    *got = left < wanted ? left : wanted;
    memcpy(out, source->bytes + source->at, *got);
    source->at += *got;
    source->produced += *got;
    return true;
}

// After the array: nothing may follow, and gzip's own checksum must have been seen. (A plain file's
// size was checked before.)
static bool expect_end(Source *source, Error *error) {
    uint8_t extra;
    size_t got = 0;
    uint64_t end = source->produced;
    if (!source->gzip)
        return true;
    if (!take(source, &extra, 1, &got, error))
        return false;
    if (got > 0)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the array ends at byte %" PRIu64
                                    " but the decompressed data goes on; the header does not "
                                    "belong to it",
                          source->name, end);
    size_t left = source->size - consumed(source);
    if (left > 0)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": %zu bytes that are not gzip follow at byte %zu; fetch the "
                                    "file again",
                          source->name, left, consumed(source));
    return true;
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

// The product of the dimensions; false when it does not fit or a dimension is 0.
static bool multiply(const uint8_t *dimensions, int ndim, uint32_t (*order)(const uint8_t *),
                     uint64_t *product) {
    *product = 1;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(*product, order(dimensions + 4 * i), product))
            return false;
    return *product > 0 && *product <= INT64_MAX;
}

static bool check_magic(const Source *source, const uint8_t *magic, int least, int most,
                        Error *error) {
    if (magic[2] == 0 && magic[3] == 0 && type_name(magic[1]) && magic[0] >= 1)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the header is little-endian (magic %02x %02x 00 00); IDX is "
                                    "big-endian: write it again with the bytes swapped",
                          source->name, magic[0], magic[1]);
    if (magic[0] != 0 || magic[1] != 0 || !type_name(magic[2]))
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": not an IDX file: its magic is %02x %02x %02x %02x, which "
                                    "should be 00 00 08 and the number of dimensions",
                          source->name, magic[0], magic[1], magic[2], magic[3]);
    if (magic[2] != TYPE_UBYTE)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": holds elements of type %s (0x%02x); only unsigned bytes "
                                    "(0x08) are read: convert it",
                          source->name, type_name(magic[2]), magic[2]);
    if (magic[3] < least || magic[3] > most) {
        if (least == most)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": has %d dimensions where %d %s expected; are images and "
                                        "labels exchanged?",
                              source->name, magic[3], least, least == 1 ? "is" : "are");
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": has %d dimensions where %d to %d are expected; are images "
                                    "and labels exchanged?",
                          source->name, magic[3], least, most);
    }
    return true;
}

// Do the dimensions agree with the bytes that are there, before anything is sized by them?
static bool check_size(const Source *source, const uint8_t *dimensions, int ndim, uint64_t *count,
                       Error *error) {
    uint64_t header = (uint64_t)MAGIC_BYTES + 4 * (uint64_t)ndim, swapped = 0;
    bool fits = multiply(dimensions, ndim, big_endian, count);
    // gzip ends with the size of what is inside, modulo 2^32.
    bool right = false, right_swapped = multiply(dimensions, ndim, little_endian, &swapped);
    if (source->gzip && source->size >= 18) {
        uint32_t inside = little_endian(source->bytes + source->size - 4);
        right = fits && (uint32_t)(header + *count) == inside;
        right_swapped = right_swapped && (uint32_t)(header + swapped) == inside;
    } else {
        uint64_t body = source->size - header;
        right = fits && !source->gzip && *count == body;
        right_swapped = right_swapped && !source->gzip && swapped == body;
    }
    if (right_swapped && !right)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the dimensions are little-endian (the first reads %" PRIu32
                                    ", swapped %" PRIu32 "); IDX is big-endian: swap the bytes",
                          source->name, big_endian(dimensions), little_endian(dimensions));
    for (int i = 0; i < ndim; i++)
        if (big_endian(dimensions + 4 * i) == 0)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": dimension %d, at byte %d, is 0: the array is empty",
                              source->name, i + 1, MAGIC_BYTES + 4 * i);
    if (!fits)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the product of its %d dimensions overflows 64 bits; the "
                                    "header is damaged",
                          source->name, ndim);
    if (source->gzip) {
        uint64_t most = (uint64_t)source->size * MAX_INFLATION;
        if (*count > most || *count > max_file_bytes)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": the header promises %" PRIu64
                                        " bytes, which %zu bytes of gzip cannot hold; the header "
                                        "is damaged",
                              source->name, *count, source->size);
        return true;
    }
    uint64_t body = source->size - header;
    if (body < *count)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": cut at byte %zu: the header promises %" PRIu64
                                    " bytes after its %" PRIu64 "; fetch the file again",
                          source->name, source->size, *count, header);
    if (body > *count)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the array ends at byte %" PRIu64
                                    " but the data goes on to %zu; the header does not belong to "
                                    "it",
                          source->name, header + *count, source->size);
    return true;
}

static bool take_array(Source *source, int least, int most, IdxArray *array, Error *error) {
    uint8_t header[MAX_HEADER];
    size_t got = 0;
    uint64_t count = 0;
    if (!take(source, header, MAGIC_BYTES, &got, error))
        return false;
    if (got == 0)
        return error_fail(error, ERROR_FAILED, FILE_PATH ": is empty; fetch the file again",
                          source->name);
    if (got == MAGIC_BYTES && !check_magic(source, header, least, most, error))
        return false;
    size_t wanted = got == MAGIC_BYTES ? 4 * (size_t)header[3] : 0, more = 0;
    if (wanted > 0 && !take(source, header + MAGIC_BYTES, wanted, &more, error))
        return false;
    if (got < MAGIC_BYTES || more < wanted)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": the header is cut at byte %" PRIu64
                                    " of %zu; fetch the file again",
                          source->name, source->produced, MAGIC_BYTES + wanted);
    int ndim = header[3];
    if (!check_size(source, header + MAGIC_BYTES, ndim, &count, error))
        return false;
    uint8_t *data = malloc((size_t)count);
    if (!data)
        return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory for its %" PRIu64 " elements",
                          source->name, count);
    if (!take(source, data, (size_t)count, &got, error))
        goto failed;
    if (got < count) {
        error_fail(error, ERROR_FAILED,
                   FILE_PATH ": the decompressed data ends at byte %" PRIu64 " of %" PRIu64
                             "; fetch the file again",
                   source->name, source->produced, source->produced - got + count);
        goto failed;
    }
    if (!expect_end(source, error))
        goto failed;
    *array = (IdxArray){.ndim = ndim, .count = (int64_t)count, .data = data};
    for (int i = 0; i < ndim; i++)
        array->shape[i] = big_endian(header + MAGIC_BYTES + 4 * i);
    return true;
failed:
    free(data);
    return false;
}

bool idx_parse(const uint8_t *bytes, size_t size, const char *name, int least, int most,
               IdxArray *array, Error *error) {
    assert(least >= 1 && most <= IDX_MAX_DIMS);
    Source source = {.name = name, .bytes = bytes, .size = size, .gzip = is_gzip(bytes, size)};
    *array = (IdxArray){0};
    if (source.gzip) {
        int status = inflateInit2(&source.stream, 16 + MAX_WBITS);
        if (status != Z_OK)
            return fail_gzip(&source, status, error);
    }
    bool done = take_array(&source, least, most, array, error);
    if (source.gzip)
        inflateEnd(&source.stream);
    return done;
}

bool idx_read(const char *path, int least, int most, IdxArray *array, Error *error) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    *array = (IdxArray){0};
    if (!file_read(path, max_file_bytes, &bytes, &size, error))
        return false;
    bool done = idx_parse(bytes, size, path, least, most, array, error);
    free(bytes);
    return done;
}

void idx_clear(IdxArray *array) {
    free(array->data);
    *array = (IdxArray){0};
}
