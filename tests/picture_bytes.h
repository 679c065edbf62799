// tests/picture_bytes.h: pictures as PNG, written by the tests themselves.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static inline void big_endian_bytes(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

// A part of a PNG behind `out`; returns its size.
static inline size_t png_part(uint8_t *out, const char *kind, const void *data, size_t size) {
    big_endian_bytes(out, (uint32_t)size);
    memcpy(out + 4, kind, 4);
    if (size)
        memcpy(out + 8, data, size);
    big_endian_bytes(out + 8 + size, (uint32_t)crc32(0, out + 4, (uInt)size + 4));
    return size + 12;
}

typedef struct PngShape {
    uint32_t width, height;
    uint8_t depth, type;
    const uint8_t *palette; // NULL: none
    size_t palette_size;
} PngShape;

// `rows` are as they go into the packing: a filter before each. Cut into parts of `piece` bytes.
static inline size_t png_bytes(uint8_t *out, const PngShape *shape, const uint8_t *rows,
                               size_t size, size_t piece) {
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    uint8_t header[13] = {0};
    memcpy(out, signature, sizeof signature);
    size_t at = sizeof signature;
    big_endian_bytes(header, shape->width);
    big_endian_bytes(header + 4, shape->height);
    header[8] = shape->depth;
    header[9] = shape->type;
    at += png_part(out + at, "IHDR", header, sizeof header);
    at += png_part(out + at, "gAMA", "\0\0\xB1\x8F", 4);
    if (shape->palette)
        at += png_part(out + at, "PLTE", shape->palette, shape->palette_size);
    uLongf packed_size = compressBound((uLong)size);
    uint8_t *packed = malloc(packed_size);
    if (!packed || compress(packed, &packed_size, rows, (uLong)size) != Z_OK)
        abort();
    for (size_t from = 0; from < packed_size; from += piece)
        at += png_part(out + at, "IDAT", packed + from,
                       packed_size - from < piece ? packed_size - from : piece);
    free(packed);
    return at + png_part(out + at, "IEND", NULL, 0);
}
