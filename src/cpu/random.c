// Kernels that draw random numbers, and the other creations.
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "kernel/random.h"

typedef struct Draw {
    const CpuRandom *table;
    const OpAttr *attr;
    Operand input;
    Result output;
    int64_t count;
} Draw;

typedef struct DrawBuffer {
    _Alignas(64) float in[CPU_BLOCK], out[CPU_BLOCK];
    _Alignas(64) uint32_t words[CPU_BLOCK + 4];
} DrawBuffer;

static const double draw_cost = 3.0;

static void draw(Device *device, const KernelCall *call, CpuTask task) {
    const View *output = &call->output[0];
    Draw work = {.table = cpu_simd(device)->random,
                 .attr = call->attr,
                 .output = result_of(device, output),
                 .count = view_count(output)};
    if (call->input_count > 0)
        work.input = operand_of(device, &call->input[0], output->ndim, output->shape);
    cpu_parallel(device, work.count, CPU_BLOCK, (double)work.count * draw_cost, task, &work);
}

// Blocks begin at multiples of CPU_BLOCK, so that each begins with a fresh block of four words.
static void draw_words(const Draw *work, const RandomAttr *random, int64_t at, int64_t size,
                       uint32_t *words) {
    work->table->words(random->seed, random_begin(random) + (uint64_t)at / 4, words, size);
}

static void dropout_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    double probability = work->attr->dropout.probability;
    float factor = probability < 1 ? (float)(1 / (1 - probability)) : 0;
    DrawBuffer buffer;
    CPU_EACH_BLOCK(at, size, begin, end) {
        draw_words(work, &work->attr->dropout.stream, at, size, buffer.words);
        const float *x = operand_read(&work->input, at, size, buffer.in);
        work->table->dropout(x, result_begin(&work->output, at, buffer.out), buffer.words, size,
                             (float)probability, factor);
        result_end(&work->output, at, size, buffer.out);
    }
}

static void uniform_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    double low = work->attr->create.a, high = work->attr->create.b;
    Format format = work->output.format == FORMAT_FP64 ? FORMAT_FP32 : work->output.format;
    double last = random_uniform_last(format, low, high); // of numbers that are made in fp32
    DrawBuffer buffer;
    CPU_EACH_BLOCK(at, size, begin, end) {
        draw_words(work, &work->attr->random, at, size, buffer.words);
        work->table->uniform(buffer.words, result_begin(&work->output, at, buffer.out), size, low,
                             high - low, (float)last);
        result_end(&work->output, at, size, buffer.out);
    }
}

static void normal_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    DrawBuffer buffer;
    CPU_EACH_BLOCK(at, size, begin, end) {
        // The last of an odd number is the first half of a pair.
        int64_t even = (size + 1) & ~(int64_t)1;
        draw_words(work, &work->attr->random, at, even, buffer.words);
        work->table->normal(buffer.words, buffer.out, even, (float)work->attr->create.a,
                            (float)work->attr->create.b);
        work->output.from_fp32(buffer.out, work->output.data + at * work->output.bytes,
                               (size_t)size);
    }
}

static void randint_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    int64_t low = (int64_t)work->attr->create.a;
    uint64_t range = (uint64_t)((int64_t)work->attr->create.b - low);
    int32_t *out = (int32_t *)(void *)work->output.data;
    DrawBuffer buffer;
    CPU_EACH_BLOCK(at, size, begin, end) {
        draw_words(work, &work->attr->random, at, size, buffer.words);
        for (int64_t i = 0; i < size; i++)
            out[at + i] = random_whole(buffer.words[i], low, range);
    }
}

static void fill_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    const Result *output = &work->output;
    _Alignas(64) char pattern[CPU_BLOCK * sizeof(double)]; // the largest of elements
    format_store(output->format, pattern, work->attr->create.a, OVERFLOW_SATURATES);
    for (int64_t i = 1, most = cpu_smaller(CPU_BLOCK, end - begin); i < most; i++)
        memcpy(pattern + i * output->bytes, pattern, (size_t)output->bytes);
    CPU_EACH_BLOCK(at, size, begin, end) {
        memcpy(output->data + at * output->bytes, pattern, (size_t)(size * output->bytes));
    }
}

static void arange_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Draw *work = context;
    double first = work->attr->create.a, step = work->attr->create.b;
    DrawBuffer buffer;
    if (work->output.format == FORMAT_INT32) { // past 2^24 fp32 cannot count
        int32_t *out = (int32_t *)(void *)work->output.data;
        for (int64_t i = begin; i < end; i++)
            out[i] = (int32_t)rint(first + (double)i * step);
        return;
    }
    CPU_EACH_BLOCK(at, size, begin, end) {
        for (int64_t i = 0; i < size; i++)
            buffer.out[i] = (float)(first + (double)(at + i) * step);
        work->output.from_fp32(buffer.out, work->output.data + at * work->output.bytes,
                               (size_t)size);
    }
}

#define DRAW(name, task)          \
    KERNEL_SIGNATURE(cpu, name) { \
        (void)error;              \
        draw(device, call, task); \
        return true;              \
    }
DRAW(dropout, dropout_task)
DRAW(uniform, uniform_task)
DRAW(normal, normal_task)
DRAW(randint, randint_task)
DRAW(arange, arange_task)
DRAW(fill, fill_task)
