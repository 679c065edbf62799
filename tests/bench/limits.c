// tests/bench/limits.c: what this machine can do at most, by bare loops: lines "THREADS KIND RATE".
//
// KIND is fp32 (multiply-adds of vectors, GFLOP/s), bf16 (those of pairs by VDPBF16PS, where the
// processor has it), tiles (those of bf16 on tile registers, with as many loads as products) or
// read (GB/s from memory); RATE is the best of several, on one thread and on all, since what else
// the machine does is no limit of it.
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 41, TURNS = 200000, READ_BYTES = 64 << 20 };

// A loop does `turns` turns on one thread, and gives what it has done: operations, or bytes.
typedef double (*Loop)(long turns, const char *memory);

static volatile float sink; // so that no loop is left out

#if defined(__x86_64__)

// `count` independent sums keep the units busy while each waits for its own.
#define UNROLLED _Pragma("GCC unroll 32") for (int i = 0; i < count; i++)
#define MULTIPLY_LOOP(name, isa, vector, sums_count, zero, multiply_add, first, per_turn) \
    __attribute__((target(isa))) static double name(long turns, const char *memory) {     \
        enum { count = sums_count };                                                      \
        (void)memory;                                                                     \
        vector sums[count];                                                               \
        UNROLLED sums[i] = zero();                                                        \
        for (long turn = 0; turn < turns; turn++) {                                       \
            UNROLLED {                                                                    \
                multiply_add(sums[i]);                                                    \
                __asm__ volatile("" : "+v"(sums[i])); /* not all the same */              \
            }                                                                             \
        }                                                                                 \
        UNROLLED sink = first(sums[i]);                                                   \
        return (double)turns * count * (per_turn);                                        \
    }
#define PAIRS(sum)  sum = _mm512_dpbf16_ps(sum, (__m512bh)sum, (__m512bh)sum)
#define FMA512(sum) sum = _mm512_fmadd_ps(sum, sum, sum)
#define FMA256(sum) sum = _mm256_fmadd_ps(sum, sum, sum)

// clang-format off
MULTIPLY_LOOP(multiply_bf16, "avx512f,avx512bf16", __m512, 24, _mm512_setzero_ps, PAIRS, _mm512_cvtss_f32, 64.0)
MULTIPLY_LOOP(multiply_avx512, "avx512f", __m512, 24, _mm512_setzero_ps, FMA512, _mm512_cvtss_f32, 32.0)
MULTIPLY_LOOP(multiply_avx2, "avx2,fma", __m256, 12, _mm256_setzero_ps, FMA256, _mm256_cvtss_f32, 16.0)
// clang-format on

// Two by two tiles of sums, as a product has them.
__attribute__((target("amx-tile,amx-bf16"))) static double multiply_tiles(long turns,
                                                                          const char *memory) {
    enum { ROWS = 16, ROW_BYTES = 64, TILE_BYTES = ROWS * ROW_BYTES, TILES = 8, PRODUCTS = 4 };
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } layout = {.palette = 1};
    for (int i = 0; i < TILES; i++) {
        layout.row_bytes[i] = ROW_BYTES;
        layout.rows[i] = ROWS;
    }
    __asm__ volatile("" : : "r"(&layout) : "memory"); // the instruction reads all of it
    _tile_loadconfig(&layout);
    for (long turn = 0; turn < turns / PRODUCTS; turn++) {
        _tile_loadd(4, memory, ROW_BYTES);
        _tile_loadd(5, memory + TILE_BYTES, ROW_BYTES);
        _tile_loadd(6, memory + 2 * TILE_BYTES, ROW_BYTES);
        _tile_loadd(7, memory + 3 * TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return (double)(turns / PRODUCTS) * PRODUCTS * 2 * ROWS * ROWS * (ROW_BYTES / 2);
}

#endif

typedef float Four __attribute__((vector_size(16)));

static double multiply_plain(long turns, const char *memory) {
    (void)memory;
    Four sums[8];
    memset(sums, 0, sizeof sums);
    for (long turn = 0; turn < turns; turn++)
        for (int i = 0; i < 8; i++)
            sums[i] = sums[i] * sums[i] + sums[i];
    for (int i = 0; i < 8; i++)
        sink = sums[i][0];
    return (double)turns * 8 * 8;
}

static double read_memory(long turns, const char *memory) {
    (void)turns;
    Four sums[8];
    memset(sums, 0, sizeof sums);
    const Four *from = (const Four *)(const void *)memory;
    for (size_t i = 0; i < READ_BYTES / sizeof *from; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += from[i + j];
    for (int i = 0; i < 8; i++)
        sink = sums[i][0];
    return READ_BYTES;
}

static Loop fp32_loop(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return multiply_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply_avx2;
#endif
    return multiply_plain;
}

static Loop bf16_loop(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bf16"))
        return multiply_bf16;
#endif
    return NULL;
}

static Loop tiles_loop(void) {
#if defined(__x86_64__)
    if (isa_has_amx())
        return multiply_tiles;
#endif
    return NULL;
}

// The best of several: units of all threads in the time of the slowest, in thousand millions.
static double rate_of(Loop loop, int threads, char **memory) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double done = 0, start = clock_seconds();
#pragma omp parallel num_threads(threads) reduction(+ : done)
        done += loop(TURNS, memory[omp_get_thread_num()]);
        double rate = done / (clock_seconds() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void) {
    const int all = omp_get_num_procs();
    const struct {
        const char *name;
        Loop loop;
    } kinds[] = {{"fp32", fp32_loop()},
                 {"bf16", bf16_loop()},
                 {"tiles", tiles_loop()},
                 {"read", read_memory}};
    char **memory = calloc((size_t)all, sizeof *memory);
    if (!memory)
        return 1;
    for (int i = 0; i < all; i++) {
        memory[i] = aligned_alloc(64, READ_BYTES);
        if (!memory[i])
            return 1;
        memset(memory[i], 0, READ_BYTES);
    }
    for (int threads = 1; threads <= all; threads = threads == all ? all + 1 : all)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (kinds[k].loop)
                printf("%d %s %.1f\n", threads, kinds[k].name,
                       rate_of(kinds[k].loop, threads, memory));
    for (int i = 0; i < all; i++)
        free(memory[i]);
    free(memory);
    return 0;
}
