// cpu/cpu.h: what the kernels of the CPU backend share: the device's state, its threads, and the
// way an input of any format and any strides is read as blocks of fp32.
//
// Private to this folder. Kernels run on the thread that drives the device and share their work out
// with cpu_parallel, which enters OpenMP only where the work is worth waking the others. Nothing
// here allocates from the system, and results depend on the number of threads at most.
#pragma once

#include "cpu/simd.h"
#include "kernel/kernel.h"

typedef struct CpuState {
    CpuSimd simd;
    bool pairs;            // bf16 is multiplied by the processor's own instructions (cpu/gains.h),
    bool wholes[2];        // and elements in blocks of 32 and of 16 as whole numbers
    struct OneDnn *onednn; // cpu/onednn.h: the library's primitives
} CpuState;

static inline const CpuSimd *cpu_simd(const Device *device) {
    return &((const CpuState *)device->state)->simd;
}

static inline struct OneDnn *cpu_onednn(const Device *device) {
    return ((const CpuState *)device->state)->onednn;
}

static inline bool cpu_has_pairs(const Device *device) {
    return ((const CpuState *)device->state)->pairs;
}

static inline bool cpu_multiplies_whole(const Device *device, int block) {
    return ((const CpuState *)device->state)->wholes[block == 16];
}

// The processor as the system names it, without the marks of trade and the doubled spaces.
void cpu_find_name(char *name, size_t size);

// The loops of a level at most that of the processor; for tests. False: no such level here.
bool cpu_set_level(Device *device, IsaLevel level);

enum { CPU_MOST_THREADS = 1024 };

// ---- threads ------------------------------------------------------------------------------------

// Does items begin .. end - 1; `thread` counts from 0 and is below cpu_workers.
typedef void (*CpuTask)(void *context, int64_t begin, int64_t end, int thread);

// How many ranges cpu_parallel makes of a work of so many nanoseconds on one thread.
int cpu_workers(const Device *device, double nanoseconds);

// Cuts 0 .. count into one range a worker, at multiples of `unit`, and has them done.
void cpu_parallel(const Device *device, int64_t count, int64_t unit, double nanoseconds,
                  CpuTask task, void *context);

// Nanoseconds that an element costs in the cheapest loops, where memory decides.
#define CPU_STREAM 0.4

// ---- reading by blocks --------------------------------------------------------------------------

enum { CPU_BLOCK = 512 };

// Walks elements begin .. end - 1: `size` of them from `at` on, CPU_BLOCK but for the last.
#define CPU_EACH_BLOCK(at, size, begin, end) \
    for (int64_t at = (begin), size;         \
         at < (end) && (size = cpu_smaller(CPU_BLOCK, (end)-at), true); at += size)

// An input as seen along the elements of an output: element i of the output in row-major order
// meets element i of the operand. Dimensions that can be walked as one have been joined.
typedef struct Operand {
    const char *data;
    Format format;
    int64_t bytes; // of an element
    void (*to_fp32)(const void *source, float *target, size_t count);
    int ndim;
    int64_t shape[VIEW_MAX_DIMS], stride[VIEW_MAX_DIMS];
    bool dense;
} Operand;

// The view may lack leading dimensions, or have size 1 where `shape` has more.
Operand operand_of(const Device *device, const View *view, int ndim, const int64_t *shape);

// Elements start .. start + count - 1 (at most CPU_BLOCK), as they are stored.
void operand_copy(const Operand *operand, int64_t start, int64_t count, void *target);

// The same as fp32: in `buffer`, or where they lie if that will do.
const float *operand_read(const Operand *operand, int64_t start, int64_t count, float *buffer);

// ---- writing ------------------------------------------------------------------------------------

// A dense output, written by blocks.
typedef struct Result {
    char *data;
    Format format;
    int64_t bytes;
    void (*from_fp32)(const float *source, void *target, size_t count);
} Result;

Result result_of(const Device *device, const View *view);

// Where the fp32 of elements from `start` on go: the result itself, or `buffer`, which result_end
// then converts.
static inline float *result_begin(const Result *result, int64_t start, float *buffer) {
    return result->format == FORMAT_FP32 ? (float *)(void *)result->data + start : buffer;
}
static inline void result_end(const Result *result, int64_t start, int64_t count,
                              const float *buffer) {
    if (result->format != FORMAT_FP32)
        result->from_fp32(buffer, result->data + start * result->bytes, (size_t)count);
}

// ---- small things -------------------------------------------------------------------------------

// Dense elements of any format to fp32 and back.
static inline void cpu_load(const Device *device, Format format, const void *source, float *target,
                            int64_t count) {
    cpu_simd(device)->convert->to_fp32[format](source, target, (size_t)count);
}
static inline void cpu_store(const Device *device, Format format, const float *source, void *target,
                             int64_t count) {
    cpu_simd(device)->convert->from_fp32[format][OVERFLOW_SATURATES](source, target, (size_t)count);
}

static inline const void *cpu_at(const View *view, int64_t element) {
    return (const char *)view->data + element * (int64_t)format_table[view->format].bytes;
}
static inline void *cpu_at_mutable(const View *view, int64_t element) {
    return (char *)view->data + element * (int64_t)format_table[view->format].bytes;
}

// Every element of `to` from the same one of `from`, in whatever format and strides.
bool cpu_cast_view(Device *device, const View *from, const View *to, Error *error) MUST_CHECK;

// The single number that a view holds.
float cpu_number(const Device *device, const View *view);
void cpu_set_number(const Device *device, const View *view, float value);

// A dense index or class: what holds them is int32 (the shape rules see to it).
static inline int64_t cpu_index(const View *view, int64_t element) {
    return ((const int32_t *)view->data)[element];
}

static inline int64_t cpu_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Bytes rounded up to a cache line, for carving up the workspace.
static inline size_t cpu_line(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

// The same for a count of floats: with those that fill the last vector up.
static inline int64_t cpu_padded(int64_t count) {
    return (count + 15) & ~(int64_t)15;
}
