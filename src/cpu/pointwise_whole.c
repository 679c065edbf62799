// Point-wise kernels between whole numbers: in 64 bits, of which int32 and uint8 keep the last.
#include "cpu/pointwise_whole.h"

#include <string.h>

typedef int64_t real; // the expressions of pointwise.def compute in it

typedef void (*WholeBinary)(const int32_t *x, const int32_t *y, int32_t *out, int64_t count);
typedef void (*WholeCompare)(const int32_t *x, const int32_t *y, uint8_t *out, int64_t count);

// A whole number is never NaN, of which the expressions think.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare"
#define BINARY(name, class, forward, text)                                            \
    static void whole_##name(const int32_t *left, const int32_t *right, int32_t *out, \
                             int64_t count) {                                         \
        for (int64_t i = 0; i < count; i++) {                                         \
            real x = left[i], y = right[i];                                           \
            out[i] = (int32_t)(uint32_t)(forward);                                    \
        }                                                                             \
    }
#define COMPARE(name, forward, text)                                                  \
    static void whole_##name(const int32_t *left, const int32_t *right, uint8_t *out, \
                             int64_t count) {                                         \
        for (int64_t i = 0; i < count; i++) {                                         \
            real x = left[i], y = right[i];                                           \
            out[i] = (forward) ? 1 : 0;                                               \
        }                                                                             \
    }
#include "kernel/pointwise.def"
#pragma GCC diagnostic pop

static const WholeBinary binaries[OP_COUNT] = {
#define BINARY(name, ...) [OP_##name] = whole_##name,
#include "kernel/pointwise.def"
};
static const WholeCompare comparisons[OP_COUNT] = {
#define COMPARE(name, ...) [OP_##name] = whole_##name,
#include "kernel/pointwise.def"
};

bool pointwise_is_whole(const Pointwise *work, int first) {
    return !format_is_floating(work->input[first].format) &&
           !format_is_floating(work->input[first + 1].format) &&
           !format_is_floating(work->output.format);
}

typedef struct WholeBuffer {
    _Alignas(64) int32_t value[CPU_BLOCK];
} WholeBuffer;

static const int32_t *whole_read(const Operand *operand, int64_t start, int64_t count,
                                 WholeBuffer *buffer) {
    if (operand->format == FORMAT_INT32) {
        operand_copy(operand, start, count, buffer->value);
        return buffer->value;
    }
    uint8_t bytes[CPU_BLOCK];
    operand_copy(operand, start, count, bytes);
    for (int64_t i = 0; i < count; i++)
        buffer->value[i] = bytes[i];
    return buffer->value;
}

static void whole_write(const Result *result, int64_t start, int64_t count, const int32_t *values) {
    char *out = result->data + start * result->bytes;
    if (result->format == FORMAT_INT32)
        memcpy(out, values, (size_t)count * sizeof *values);
    else
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = (uint8_t)values[i];
}

void pointwise_whole_binary(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    WholeBuffer left, right, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const int32_t *x = whole_read(&work->input[0], at, size, &left);
        const int32_t *y = whole_read(&work->input[1], at, size, &right);
        binaries[work->op](x, y, out.value, size);
        whole_write(&work->output, at, size, out.value);
    }
}

void pointwise_whole_compare(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    WholeBuffer left, right;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const int32_t *x = whole_read(&work->input[0], at, size, &left);
        const int32_t *y = whole_read(&work->input[1], at, size, &right);
        comparisons[work->op](x, y, (uint8_t *)work->output.data + at, size);
    }
}

void pointwise_whole_where(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    WholeBuffer condition, left, right;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const int32_t *chosen = whole_read(&work->input[0], at, size, &condition);
        const int32_t *x = whole_read(&work->input[1], at, size, &left);
        whole_read(&work->input[2], at, size, &right);
        for (int64_t i = 0; i < size; i++)
            right.value[i] = chosen[i] ? x[i] : right.value[i];
        whole_write(&work->output, at, size, right.value);
    }
}
