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

// What is timed against fp32: pairs, and elements in blocks of so many.
enum { OF_PAIRS, OF_32, OF_16, KINDS };
static const char *const names[KINDS] = {"pairs", "elements32", "elements16"};

static double seconds_of(const Gemm *gemm, void *workspace) {
    double start = clock_seconds();
    gemm_run(gemm, workspace);
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
    static const NumberBlocks blocks[KINDS] = {
        [OF_32] = {32, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E8M0},
        [OF_16] = {16, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E4M3},
    };
    Gemm gemm = product_of(factors, result, FORMAT_BF16);
    gemm.pairs = kind == OF_PAIRS;
    gemm.blocks = blocks[kind];
    return gemm;
}

// What elements are worth, and as fp32 ordinary numbers as well: 6 and 1.
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
    const Gemm fp32 = product_of(factors, factors + NUMBERS, FORMAT_FP32);
    const Gemm other = product_of_kind(factors, factors + NUMBERS, kind);
    size_t bytes = gemm_workspace_size(&fp32), more = gemm_workspace_size(&other);
    void *workspace = malloc(bytes > more ? bytes : more);
    double best[2] = {INFINITY, INFINITY};
    for (int round = 0; workspace && round < ROUNDS; round++) {
        best[0] = fmin(best[0], seconds_of(&fp32, workspace));
        best[1] = fmin(best[1], seconds_of(&other, workspace));
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
    if (kept_read("gains", names[kind], processor, &gain_of[kind]) && gain_of[kind] >= 0.5 &&
        gain_of[kind] <= MOST)
        return;
    gain_of[kind] = measure(kind);
    kept_write("gains", names[kind], processor, gain_of[kind]);
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
    if (!gemm_ways_at(isa_level()).elements)
        return;
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
