// Measures what instructions gain, and keeps it: see cpu/gains.h.
#include "cpu/gains.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/isa.h"
#include "cpu/cpu.h"
#include "cpu/gemm.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 128, LARGEST_FILE = 16 << 10 };

// ---- what was kept ------------------------------------------------------------------------------

// Makes the folders above the file, too.
static bool find_file(char path[PATH_SIZE]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_named = cache && cache[0] == '/';
    if (!is_named && (!home || home[0] != '/'))
        return false;
    int used = snprintf(path, PATH_SIZE - NAME_SIZE, "%s%s", is_named ? cache : home,
                        is_named ? "" : "/.cache");
    if (used < 0 || used >= PATH_SIZE - NAME_SIZE)
        return false;
    (void)mkdir(path, 0700); // where one is there already, or cannot be made, opening tells
    snprintf(path + used, NAME_SIZE, "/mpbench");
    (void)mkdir(path, 0700);
    snprintf(path + used, NAME_SIZE, "/mpbench/gains");
    return true;
}

// A line a processor: "pairs 2.0 0.1.0 AMD EPYC". The program's version is part of the name, since
// its loops are what is measured.
static bool read_kept(const char *path, const char *processor, double *gain) {
    FILE *file = fopen(path, "r");
    char line[2 * NAME_SIZE];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        int name = 0;
        line[strcspn(line, "\n")] = 0;
        found = sscanf(line, "pairs %lf %n", gain, &name) == 1 && name > 0 &&
                strcmp(line + name, processor) == 0 && *gain >= 0.5 && *gain <= 16;
    }
    if (file)
        fclose(file);
    return found;
}

static void keep(const char *path, const char *processor, double gain) {
    struct stat about;
    bool is_full = stat(path, &about) == 0 && about.st_size > LARGEST_FILE;
    FILE *file = fopen(path, is_full ? "w" : "a");
    if (!file)
        return;
    fprintf(file, "pairs %.1f %s\n", gain, processor);
    fclose(file);
}

// ---- measuring ----------------------------------------------------------------------------------

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

static void find_gains(void) {
    char processor[NAME_SIZE], name[NAME_SIZE / 2], path[PATH_SIZE];
    if (isa_level() < ISA_BF16)
        return;
    cpu_find_name(name, sizeof name);
    snprintf(processor, sizeof processor, "%s %s", MPBENCH_VERSION, name);
    bool has_file = find_file(path);
    if (has_file && read_kept(path, processor, &gain_of_pairs))
        return;
    gain_of_pairs = measure();
    if (has_file)
        keep(path, processor, gain_of_pairs);
}

double cpu_gain_of_pairs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_gains);
    return gain_of_pairs;
}
