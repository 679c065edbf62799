// Measures what instructions gain, and keeps it: see cpu/gains.h.
#include "cpu/gains.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/kept.h"
#include "cpu/cpu.h"
#include "cpu/gemm.h"
#include "cpu/gemm_way.h"

enum { SIDE = 256, NUMBERS = SIDE * SIDE, ROUNDS = 7 };
static const double MOST = 16;

// What is timed against fp32: pairs, elements in blocks of so many, and bf16 and fp16 on tiles.
enum { OF_PAIRS, OF_32, OF_16, OF_TILES, OF_TILES_FP16, KINDS };

static const struct {
    const char *name;
    Format format;
    NumberBlocks blocks;
    bool on_tiles;
} kinds[KINDS] = {
    [OF_PAIRS] = {.name = "pairs", .format = FORMAT_BF16},
    [OF_32] = {"elements32", FORMAT_BF16, {32, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E8M0}, false},
    [OF_16] = {"elements16", FORMAT_BF16, {16, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E4M3}, false},
    [OF_TILES] = {.name = "tiles", .format = FORMAT_BF16, .on_tiles = true},
    [OF_TILES_FP16] = {.name = "tiles_fp16", .format = FORMAT_FP16, .on_tiles = true},
};

static double seconds_of(const GemmWays *ways, const Gemm *gemm, void *workspace) {
    double start = clock_seconds();
    gemm_run_by(ways, gemm, workspace);
    return clock_seconds() - start;
}

static Gemm product_of(const float *factors, float *result, Format format) {
    Gemm gemm = {.rows = SIDE, .columns = SIDE, .depth = SIDE, .batch = {1, 1}, .alpha = 1};
    gemm.a = gemm.b = (GemmOperand){factors, format, SIDE, 1, {0}};
    gemm.c = (GemmResult){result, format, SIDE, {0}};
    gemm.threads = 1;
    return gemm;
}

static Gemm product_of_kind(const float *factors, float *result, int kind) {
    Gemm gemm = product_of(factors, result, kinds[kind].format);
    gemm.pairs = kind == OF_PAIRS;
    gemm.blocks = kinds[kind].blocks;
    return gemm;
}

// What elements are worth, and ordinary numbers in fp32 and fp16 as well: in bf16 6 and 1.
static void fill(float *factors) {
    static const uint16_t worth[2] = {0x40C0, 0x3F80};
    for (int i = 0; i < NUMBERS; i++)
        memcpy(factors + i, worth, sizeof worth);
}

// The fastest of several, in turn: what else the machine does disturbs some of them.
static double measure(int kind) {
    float *factors = malloc(2 * (size_t)NUMBERS * sizeof *factors);
    if (!factors)
        return 1;
    fill(factors);
    const GemmWays ways = kinds[kind].on_tiles ? gemm_ways_here() : gemm_ways_at(isa_level());
    const Gemm fp32 = product_of(factors, factors + NUMBERS, FORMAT_FP32);
    const Gemm other = product_of_kind(factors, factors + NUMBERS, kind);
    size_t bytes = gemm_workspace_size_by(&ways, &fp32);
    size_t more = gemm_workspace_size_by(&ways, &other);
    void *workspace = malloc(bytes > more ? bytes : more);
    double best[2] = {INFINITY, INFINITY};
    for (int round = 0; workspace && round < ROUNDS; round++) {
        best[0] = fmin(best[0], seconds_of(&ways, &fp32, workspace));
        best[1] = fmin(best[1], seconds_of(&ways, &other, workspace));
    }
    free(factors);
    free(workspace);
    double gain = best[0] / best[1];
    return isfinite(gain) ? fmax(0.5, round(2 * gain) / 2) : 1;
}

static double gain_of[KINDS];

// The program's version is part of what the figure is of, since its loops are what is measured, and
// so is the level that it is held to.
static void find_gain(int kind) {
    char processor[128], name[64];
    const char *level = isa_is_named() ? isa_level_name(isa_level()) : "";
    cpu_find_name(name, sizeof name);
    snprintf(processor, sizeof processor, "%s %s%s%s", MPBENCH_VERSION, level, *level ? " " : "",
             name);
    if (kept_read("gains", kinds[kind].name, processor, &gain_of[kind]) && gain_of[kind] >= 0.5 &&
        gain_of[kind] <= MOST)
        return;
    gain_of[kind] = measure(kind);
    kept_write("gains", kinds[kind].name, processor, gain_of[kind]);
}

static void find_pairs(void) {
    if (isa_level() >= ISA_BF16)
        find_gain(OF_PAIRS);
}

double cpu_gain_of_pairs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_pairs);
    return gain_of[OF_PAIRS];
}

static void find_elements(void) {
    gain_of[OF_32] = gain_of[OF_16] = 1;
    if (!gemm_ways_at(isa_level()).elements || isa_has_amx())
        return; // tiles multiply them, as bf16 numbers
    find_gain(OF_32);
    find_gain(OF_16);
}

double cpu_gain_of_elements(Format format) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const FormatInfo *info = &format_table[format];
    const NumberBlocks blocks = {info->block, {info->element, info->gradients}, info->scale};
    if (!format_is_scaled(format) || !gemm_blocks_are_whole(&blocks))
        return 1;
    pthread_once(&once, find_elements);
    return gain_of[info->block == 16 ? OF_16 : OF_32];
}

static void find_tiles(void) {
    gain_of[OF_TILES] = gain_of[OF_TILES_FP16] = 1;
    if (!isa_has_amx())
        return;
    find_gain(OF_TILES);
    find_gain(OF_TILES_FP16);
}

double cpu_gain_of_tiles(Format format) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_tiles);
    return format == FORMAT_BF16   ? gain_of[OF_TILES]
           : format == FORMAT_FP16 ? gain_of[OF_TILES_FP16]
                                   : 1;
}
