// Measures what instructions gain, and keeps it: see cpu/gains.h.
#include "cpu/gains.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/kept.h"
#include "cpu/cpu.h"
#include "cpu/gemm.h"

enum { SIDE = 256, ROUNDS = 7 };

static double seconds_of(const Gemm *gemm, void *workspace) {
    double start = clock_seconds();
    gemm_run(gemm, workspace);
    return clock_seconds() - start;
}

// The fastest of several, in turn: what else the machine does disturbs some of them.
static double measure(void) {
    enum { NUMBERS = SIDE * SIDE };
    Gemm fp32 = {.rows = SIDE, .columns = SIDE, .depth = SIDE, .batch = {1, 1}, .alpha = 1};
    fp32.threads = 1;
    float *memory = calloc(3 * (size_t)NUMBERS, sizeof *memory);
    fp32.a = (GemmOperand){memory, FORMAT_FP32, SIDE, 1, {0}};
    fp32.b = (GemmOperand){memory + NUMBERS, FORMAT_FP32, SIDE, 1, {0}};
    fp32.c = (GemmResult){memory ? memory + 2 * NUMBERS : NULL, FORMAT_FP32, SIDE, {0}};
    Gemm pairs = fp32;
    pairs.pairs = true;
    pairs.a.format = pairs.b.format = pairs.c.format = FORMAT_BF16;
    size_t bytes = gemm_workspace_size(&fp32), more = gemm_workspace_size(&pairs);
    void *workspace = malloc(bytes > more ? bytes : more);
    double best[2] = {INFINITY, INFINITY};
    for (int round = 0; memory && workspace && round < ROUNDS; round++) {
        best[0] = fmin(best[0], seconds_of(&fp32, workspace));
        best[1] = fmin(best[1], seconds_of(&pairs, workspace));
    }
    free(memory);
    free(workspace);
    double gain = best[0] / best[1];
    return isfinite(gain) ? fmax(0.5, round(2 * gain) / 2) : 1;
}

static double gain_of_pairs;

// The program's version is part of what the figure is of, since its loops are what is measured.
static void find_gains(void) {
    char processor[128], name[64];
    if (isa_level() < ISA_BF16)
        return;
    cpu_find_name(name, sizeof name);
    snprintf(processor, sizeof processor, "%s %s", MPBENCH_VERSION, name);
    if (kept_read("gains", "pairs", processor, &gain_of_pairs) && gain_of_pairs >= 0.5 &&
        gain_of_pairs <= 16)
        return;
    gain_of_pairs = measure();
    kept_write("gains", "pairs", processor, gain_of_pairs);
}

double cpu_gain_of_pairs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_gains);
    return gain_of_pairs;
}
