// cpu/amx/tile.h: the tile registers, as few instructions as the matrix product needs. For the
// files of this folder, which are compiled with the AMX flags and run only where isa_has_amx().
//
// Each of the eight tiles has 16 rows of 64 bytes: 16 fp32 sums, or 32 bf16 numbers in pairs. With
// TILE_EMULATED the same source runs anywhere in plain C, with what the instruction does to
// subnormals (none enter, none leave), and TILE_NAME keeps its names apart from the real ones. Tile
// numbers must be constants. The registers belong to the thread from tiles_begin to tiles_end.
// After memory was written and before it is loaded, tiles_see_memory is called.
#pragma once

#include <stdint.h>
#include <string.h>

enum { TILE_COUNT = 8, TILE_ROWS = 16, TILE_ROW_BYTES = 64, TILE_BYTES = 1024 };

#ifdef TILE_EMULATED

#include "number/inline.h"

#define TILE_NAME(name) name##_emulated

typedef struct Tiles {
    unsigned char bytes[TILE_COUNT][TILE_BYTES];
} Tiles;

static inline void tiles_begin(Tiles *tiles) {
    memset(tiles, 0xFF, sizeof *tiles);
}

static inline void tiles_end(Tiles *tiles) {
    memset(tiles, 0xFF, sizeof *tiles);
}

static inline void tiles_see_memory(void) {}

static inline void tile_zero(Tiles *tiles, int tile) {
    memset(tiles->bytes[tile], 0, TILE_BYTES);
}

static inline void tile_load(Tiles *tiles, int tile, const void *from, size_t row_bytes) {
    for (size_t row = 0; row < TILE_ROWS; row++)
        memcpy(tiles->bytes[tile] + row * TILE_ROW_BYTES, (const char *)from + row * row_bytes,
               TILE_ROW_BYTES);
}

static inline void tile_store(const Tiles *tiles, int tile, void *to, size_t row_bytes) {
    for (size_t row = 0; row < TILE_ROWS; row++)
        memcpy((char *)to + row * row_bytes, tiles->bytes[tile] + row * TILE_ROW_BYTES,
               TILE_ROW_BYTES);
}

static inline float tile_flushed_(float value) {
    return fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

static inline void tile_multiply(Tiles *tiles, int sums, int a, int b) {
    float c[TILE_ROWS][TILE_ROWS];
    uint16_t left[TILE_ROWS][2 * TILE_ROWS], right[TILE_ROWS][2 * TILE_ROWS];
    memcpy(c, tiles->bytes[sums], TILE_BYTES);
    memcpy(left, tiles->bytes[a], TILE_BYTES);
    memcpy(right, tiles->bytes[b], TILE_BYTES);
    for (int i = 0; i < TILE_ROWS; i++)
        for (int pair = 0; pair < TILE_ROWS; pair++)
            for (int j = 0; j < TILE_ROWS; j++)
                for (int half = 0; half < 2; half++) {
                    float x = tile_flushed_(number_bf16_to_fp32(left[i][2 * pair + half]));
                    float y = tile_flushed_(number_bf16_to_fp32(right[pair][2 * j + half]));
                    c[i][j] = tile_flushed_(c[i][j] + tile_flushed_(x * y));
                }
    memcpy(tiles->bytes[sums], c, TILE_BYTES);
}

#else

#include <immintrin.h>

#define TILE_NAME(name) name

typedef struct Tiles {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } layout;
} Tiles;

static inline void tiles_begin(Tiles *tiles) {
    memset(tiles, 0, sizeof *tiles);
    tiles->layout.palette = 1;
    for (int i = 0; i < TILE_COUNT; i++) {
        tiles->layout.row_bytes[i] = TILE_ROW_BYTES;
        tiles->layout.rows[i] = TILE_ROWS;
    }
    // Some compilers do not know that the instruction reads all of the layout.
    __asm__ volatile("" : : "r"(tiles) : "memory");
    _tile_loadconfig(&tiles->layout);
}

static inline void tiles_end(Tiles *tiles) {
    (void)tiles;
    _tile_release();
}

// What is loaded has been written: the compiler does not know that loading reads memory.
static inline void tiles_see_memory(void) {
    __asm__ volatile("" : : : "memory");
}

#define tile_zero(tiles, tile)                  _tile_zero(tile)
#define tile_load(tiles, tile, from, row_bytes) _tile_loadd(tile, from, row_bytes)
#define tile_store(tiles, tile, to, row_bytes)  _tile_stored(tile, to, row_bytes)
#define tile_multiply(tiles, sums, a, b)        _tile_dpbf16ps(sums, a, b)

#endif
