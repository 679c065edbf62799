// Functions of numbers of 16 bits by a table of all of them.
#include "cpu/pointwise_table.h"

enum { NUMBERS = 1 << 16 };

// Which function's results are looked up, and which one's slopes: gradients that are dy times one.
typedef enum Looked { LOOKED_NO, LOOKED_RESULT, LOOKED_SLOPE } Looked;

static const Looked looked_up[OP_COUNT] = {
    [OP_gelu] = LOOKED_RESULT,         [OP_silu] = LOOKED_RESULT,
    [OP_tanh] = LOOKED_RESULT,         [OP_sigmoid] = LOOKED_RESULT,
    [OP_softplus] = LOOKED_RESULT,     [OP_exp] = LOOKED_RESULT,
    [OP_log] = LOOKED_RESULT,          [OP_sin] = LOOKED_RESULT,
    [OP_cos] = LOOKED_RESULT,          [OP_pow] = LOOKED_RESULT,
    [OP_gelu_backward] = LOOKED_SLOPE, [OP_silu_backward] = LOOKED_SLOPE,
    [OP_sin_backward] = LOOKED_SLOPE,  [OP_cos_backward] = LOOKED_SLOPE,
};

typedef struct Table {
    const Pointwise *work;
    const Operand *x; // whose numbers are looked up
    Result entry;     // for each
} Table;

typedef struct Bits {
    _Alignas(64) uint16_t value[CPU_BLOCK];
} Bits;

static bool is_slope(const Pointwise *work) {
    return looked_up[work->op] == LOOKED_SLOPE;
}

static const Operand *looked_at(const Pointwise *work) {
    return &work->input[is_slope(work) ? 1 : 0];
}

bool pointwise_is_tabled(const Pointwise *work, int64_t count) {
    const bool is_entry =
        work->output.format == FORMAT_FP32 || work->output.bytes == sizeof(uint16_t);
    return looked_up[work->op] != LOOKED_NO && count >= POINTWISE_FEWEST_TABLED && is_entry &&
           looked_at(work)->bytes == sizeof(uint16_t);
}

static void fill_range(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Table *table = context;
    const Pointwise *work = table->work;
    Bits bits;
    PointwiseBuffer x, one, y;
    for (int64_t i = 0; i < CPU_BLOCK; i++)
        one.value[i] = 1;
    CPU_EACH_BLOCK(at, size, begin, end) {
        for (int64_t i = 0; i < size; i++)
            bits.value[i] = (uint16_t)(at + i);
        table->x->to_fp32(bits.value, x.value, (size_t)size);
        float *to = result_begin(&table->entry, at, y.value);
        if (is_slope(work))
            work->table->unary_backward[work->op](one.value, x.value, to, size, work->a, work->b);
        else
            work->table->unary[work->op](x.value, to, size, work->a, work->b);
        result_end(&table->entry, at, size, y.value);
    }
}

#define LOOK_UP(type)                                           \
    do {                                                        \
        const type *entries = (const type *)(const void *)from; \
        type *out = (type *)to;                                 \
        for (int64_t i = 0; i < count; i++)                     \
            out[i] = entries[bits[i]];                          \
    } while (0)

// Elements from `at` on.
static void look_up(const Table *table, int64_t at, int64_t count, void *to) {
    Bits buffer;
    const char *from = table->entry.data;
    const uint16_t *bits = buffer.value;
    if (table->x->dense)
        bits = (const uint16_t *)(const void *)table->x->data + at;
    else
        operand_copy(table->x, at, count, buffer.value);
    if (table->entry.bytes == sizeof(uint16_t))
        LOOK_UP(uint16_t);
    else
        LOOK_UP(float);
}

static void result_range(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Table *table = context;
    const Result *output = &table->work->output;
    CPU_EACH_BLOCK(at, size, begin, end)
    look_up(table, at, size, output->data + at * output->bytes);
}

static void slope_range(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Table *table = context;
    const Pointwise *work = table->work;
    PointwiseBuffer arriving, slope, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *dy = operand_read(&work->input[0], at, size, arriving.value);
        look_up(table, at, size, slope.value);
        work->table->binary[OP_mul](dy, slope.value, result_begin(&work->output, at, out.value),
                                    size);
        result_end(&work->output, at, size, out.value);
    }
}

bool pointwise_by_table(Device *device, const KernelCall *call, const Pointwise *work,
                        Error *error) {
    const int64_t shape[] = {NUMBERS}, count = view_count(&call->output[0]);
    const Format format = is_slope(work) ? FORMAT_FP32 : work->output.format;
    void *memory = device_workspace(device, NUMBERS * format_table[format].bytes, error);
    if (!memory)
        return false;
    const View entries = view_dense(memory, format, 1, shape);
    Table table = {.work = work, .x = looked_at(work), .entry = result_of(device, &entries)};
    cpu_parallel(device, NUMBERS, CPU_BLOCK, NUMBERS * POINTWISE_FUNCTION, fill_range, &table);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM,
                 is_slope(work) ? slope_range : result_range, &table);
    return true;
}
