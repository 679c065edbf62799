// The CPU as a device: its table, its memory, its threads.
#define _DEFAULT_SOURCE // madvise
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "cpu/denormal.h"
#include "cpu/gains.h"
#include "cpu/gemm_kernels.h"
#include "cpu/kernels.h"
#include "cpu/onednn.h"
#include "cpu/rounded.h"
#include "kernel/int8.h"
#include "kernel/multi.h"
#include "kernel/scale.h"

#if defined(__x86_64__)
#define EACH_LEVEL(DO) DO(base) DO(avx2) DO(avx512)
#else
#define EACH_LEVEL(DO) DO(base)
#endif

#define DECLARE(level)                               \
    extern const CpuPointwise cpu_pointwise_##level; \
    extern const CpuRows cpu_rows_##level;           \
    extern const CpuColumns cpu_columns_##level;     \
    extern const CpuPool cpu_pool_##level;           \
    extern const CpuRandom cpu_random_##level;       \
    extern const CpuMulti cpu_multi_##level;         \
    extern const CpuScanTable cpu_scan_##level;      \
    extern const CpuAttention cpu_attention_##level; \
    extern const CpuScale cpu_scale_##level;         \
    extern const CpuInt8 cpu_int8_##level;           \
    extern const CpuWinograd cpu_winograd_##level[CPU_WINOGRAD_SIZES];
EACH_LEVEL(DECLARE)

#define TABLE(level)                                 \
    {&cpu_pointwise_##level, &cpu_rows_##level,      \
     &cpu_columns_##level,   &cpu_pool_##level,      \
     &cpu_random_##level,    &cpu_multi_##level,     \
     &cpu_scan_##level,      &cpu_attention_##level, \
     &cpu_scale_##level,     NULL,                   \
     &cpu_int8_##level,      cpu_winograd_##level},
static const CpuSimd level_tables[] = {EACH_LEVEL(TABLE)};

bool cpu_set_level(Device *device, IsaLevel level) {
    const int levels = (int)(sizeof level_tables / sizeof *level_tables);
    if (level > isa_level())
        return false;
    CpuState *state = device->state;
    state->simd = level_tables[(int)level < levels ? (int)level : levels - 1];
    state->simd.convert = convert_table_at(level);
#if defined(__x86_64__)
    extern const CpuInt8 cpu_int8_avxvnni, cpu_int8_avx512vnni;
    if (level >= ISA_AVX2 && isa_has_vnni(level))
        state->simd.int8 = level >= ISA_AVX512 ? &cpu_int8_avx512vnni : &cpu_int8_avxvnni;
#endif
    return true;
}

void cpu_find_name(char *name, size_t size) {
    snprintf(name, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        size_t used = 0;
        for (const char *c = colon + 1; *c && *c != '\n' && used + 1 < size; c++) {
            if (strncmp(c, "(R)", 3) == 0) {
                c += 2;
                continue;
            }
            if (strncmp(c, "(TM)", 4) == 0) {
                c += 3;
                continue;
            }
            if (*c != ' ' || (used > 0 && name[used - 1] != ' '))
                name[used++] = *c;
        }
        name[used] = 0;
        break;
    }
    fclose(file);
}

static void *wait_for_gate(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

// The OpenMP library ends the program when it cannot start its threads: so as many are tried first.
static bool can_start(int count, Error *error) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // shut until all are there at once
    pthread_t *threads = count > 0 ? malloc((size_t)count * sizeof *threads) : NULL;
    if (count > 0 && !threads)
        return error_fail(error, ERROR_MEMORY, "device cpu: no memory");
    int started = 0, failed = 0;
    pthread_mutex_lock(&gate);
    while (started < count && !failed) {
        failed = pthread_create(&threads[started], NULL, wait_for_gate, &gate);
        started += !failed;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    pthread_mutex_destroy(&gate);
    if (failed)
        return error_fail(error, ERROR_FAILED,
                          "device cpu: thread %d of %d cannot be started: %s%s, or ask for fewer "
                          "with --threads",
                          started + 2, count + 1, error_cause(failed), error_remedy(failed));
    return true;
}

static void choose_ways(CpuState *state) {
    static const Format of[2] = {FORMAT_MXFP4, FORMAT_NVFP4};
    state->pairs = cpu_gain_pays(cpu_gain_of_pairs());
    for (int i = 0; i < 2; i++)
        state->wholes[i] = cpu_gain_of_elements(of[i]) > (state->pairs ? cpu_gain_of_pairs() : 1);
}

static bool open_cpu(Device *device, int index, int threads, Error *error) {
    if (index > 0)
        return error_fail(error, ERROR_UNAVAILABLE, "device cpu:%d: there is one cpu device, cpu",
                          index);
    if (threads < 0 || threads > CPU_MOST_THREADS)
        return error_fail(error, ERROR_USAGE, "threads %d: from 1 to %d, or 0 for all processors",
                          threads, CPU_MOST_THREADS);
    device->threads = threads > 0 ? threads : omp_get_num_procs();
    if (!can_start(device->threads - 1, error))
        return false;
    CpuState *state = calloc(1, sizeof(CpuState));
    if (!state || !(state->onednn = onednn_new())) {
        free(state);
        return error_fail(error, ERROR_MEMORY, "device cpu: no memory");
    }
    device->state = state;
    choose_ways(state);
    cpu_find_name(device->name, sizeof device->name);
    cpu_set_level(device, isa_level());
    omp_set_dynamic(0);
    denormal_flush();
#pragma omp parallel num_threads(device->threads)
    denormal_flush();
    return true;
}

static void close_cpu(Device *device) {
    onednn_free(cpu_onednn(device));
    free(device->state);
    device->state = NULL;
}

static void *memory_new(Device *device, size_t bytes) {
    (void)device;
    // Large blocks in large pages: fewer misses when a kernel walks through them.
    enum { LINE = 64, LARGE_PAGE = 2 << 20 };
    bool large = bytes >= 2 * (size_t)LARGE_PAGE;
    void *memory = NULL;
    if (!memory_is_left_for(bytes))
        return NULL;
    if (posix_memalign(&memory, large ? LARGE_PAGE : LINE, bytes) != 0)
        return NULL;
#if defined(MADV_HUGEPAGE)
    if (large)
        (void)madvise(memory, bytes, MADV_HUGEPAGE); // advice: nothing is lost without
#endif
    return memory;
}

static void memory_free(Device *device, void *memory, size_t bytes) {
    (void)device, (void)bytes;
    free(memory);
}

static void write_bytes(Device *device, void *target, const void *host, size_t bytes) {
    (void)device;
    memcpy(target, host, bytes);
}

static void read_bytes(Device *device, void *host, const void *source, size_t bytes) {
    (void)device;
    memcpy(host, source, bytes);
}

static void synchronize(Device *device) {
    (void)device; // every call has done its work when it returns
}

// Others than those that train are only brought to and from them, or what factors of products are
// rounded to. Nothing is kept in tf32.
static bool supports(const Device *device, OpId op, Format format) {
    (void)device;
    return format_trains(format) || (format_multiplies(format) && rounded_serves(op)) ||
           (format_is_scaled(format) && scale_serves(op)) ||
           (format == FORMAT_INT8 && int8_serves(op)) ||
           (op == OP_cast && format_is_plain(format) && format != FORMAT_TF32);
}

// With tiles, an fp16 product is four of bf16: see cpu/gemm_way.h. What is said of formats whose
// elements are multiplied as bf16 numbers is bf16's to say.
static double gain(const Device *device, Format format) {
    if (format == FORMAT_BF16 && !isa_has_amx())
        return cpu_has_pairs(device) ? cpu_gain_of_pairs() : 1;
    if (format == FORMAT_BF16 || format == FORMAT_FP16)
        return cpu_gain_of_tiles(format);
    return cpu_multiplies_whole(device, format_table[format].block) ? cpu_gain_of_elements(format)
                                                                    : 1;
}

// ---- what was chosen by measuring ---------------------------------------------------------------

static void prepare(void) {
    (void)cpu_gain_of_pairs();
    (void)cpu_gain_of_tiles(FORMAT_BF16);
    (void)cpu_gain_of_elements(FORMAT_MXFP4);
}

static const char pairs_way[] = "bf16 in pairs", plain_way[] = "bf16 in fp32";
static const char *const whole_ways[2] = {", blocks of 32 whole", ", blocks of 16 whole"};

static void ways(const Device *device, char *text, size_t size) {
    const CpuState *state = device->state;
    snprintf(text, size, "%s%s%s", state->pairs ? pairs_way : plain_way,
             state->wholes[0] ? whole_ways[0] : "", state->wholes[1] ? whole_ways[1] : "");
}

// Whether the text goes on with this, which it is then past.
static bool goes_on(const char **text, const char *with) {
    const size_t length = strlen(with);
    const bool does = strncmp(*text, with, length) == 0;
    *text += does ? length : 0;
    return does;
}

static bool take_ways(Device *device, const char *text) {
    CpuState *state = device->state;
    const bool pairs = goes_on(&text, pairs_way), plain = !pairs && goes_on(&text, plain_way);
    const bool of_32 = goes_on(&text, whole_ways[0]), of_16 = goes_on(&text, whole_ways[1]);
    if (*text || !(pairs || plain) || (pairs && isa_level() < ISA_BF16) ||
        ((of_32 || of_16) && !gemm_ways_at(isa_level()).elements))
        return false;
    state->pairs = pairs;
    state->wholes[0] = of_32;
    state->wholes[1] = of_16;
    return true;
}

static const Kernel kernels[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = cpu_##name,
#include "kernel/ops.def"
};

static const char *const absences[OP_COUNT] = {NULL};

const Backend cpu_backend = {
    .name = "cpu",
    .prepare = prepare,
    .open = open_cpu,
    .close = close_cpu,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .write = write_bytes,
    .read = read_bytes,
    .synchronize = synchronize,
    .kernels = kernels,
    .absences = absences,
    .supports = supports,
    .sums = true,
    .parts_scales = true,
    .gain = gain,
    .ways = ways,
    .take_ways = take_ways,
    .multi = &cpu_multi_kernels,
    .computes_with = onednn_name,
};
