// matmul and linear: views to the strides and batches of the matrix product.
#include "cpu/products.h"

#include "cpu/int8.h"
#include "cpu/kernels.h"
#include "cpu/rounded.h"
#include "kernel/int8.h"

GemmActivation product_activation(Activation activation) {
    static const GemmActivation same[ACTIVATION_COUNT] = {
        [ACTIVATION_NONE] = GEMM_ACTIVATION_NONE,
        [ACTIVATION_RELU] = GEMM_ACTIVATION_RELU,
        [ACTIVATION_TANH] = GEMM_ACTIVATION_TANH,
        [ACTIVATION_SIGMOID] = GEMM_ACTIVATION_SIGMOID,
    };
    return same[activation];
}

bool product_run(Device *device, Gemm *gemm, Error *error) {
    if (gemm->sums != SUMS_FP32)
        return product_run_summed(device, gemm, error);
    gemm->threads = device->threads;
    gemm->pairs = cpu_has_pairs(device);
    if (!cpu_multiplies_whole(device, gemm->blocks.block))
        gemm->blocks.block = 0;
    size_t bytes = gemm_workspace_size(gemm);
    void *workspace = NULL;
    if (bytes > 0 && !(workspace = device_workspace(device, bytes, error)))
        return false;
    gemm_run(gemm, workspace);
    return true;
}

// The dimensions that matrices are counted by, innermost first, neighbours joined where all three
// arrays allow it.
typedef struct Leading {
    int ndim;
    int64_t shape[VIEW_MAX_DIMS], a[VIEW_MAX_DIMS], b[VIEW_MAX_DIMS], c[VIEW_MAX_DIMS];
} Leading;

static void leading_add(Leading *leading, int64_t shape, int64_t a, int64_t b, int64_t c) {
    if (shape == 1)
        return;
    int last = leading->ndim - 1;
    if (last >= 0 && a == leading->a[last] * leading->shape[last] &&
        b == leading->b[last] * leading->shape[last] &&
        c == leading->c[last] * leading->shape[last]) {
        leading->shape[last] *= shape;
        return;
    }
    last = leading->ndim++;
    leading->shape[last] = shape;
    leading->a[last] = a;
    leading->b[last] = b;
    leading->c[last] = c;
}

// Matrices that share B and follow each other without a gap are one with more rows.
static void join_rows(Leading *leading, Gemm *gemm) {
    if (leading->ndim == 0 || leading->b[0] != 0)
        return;
    bool one_row = gemm->rows == 1;
    if (!one_row && (leading->a[0] != gemm->rows * gemm->a.row_stride ||
                     leading->c[0] != gemm->rows * gemm->c.row_stride))
        return;
    if (one_row) {
        gemm->a.row_stride = leading->a[0];
        gemm->c.row_stride = leading->c[0];
    }
    gemm->rows *= leading->shape[0];
    leading->ndim--;
    for (int i = 0; i < leading->ndim; i++) {
        leading->shape[i] = leading->shape[i + 1];
        leading->a[i] = leading->a[i + 1];
        leading->b[i] = leading->b[i + 1];
        leading->c[i] = leading->c[i + 1];
    }
}

// The product knows two nested counts; whatever is left outside them is walked here.
static bool run_leading(Device *device, const Leading *leading, int dim, Gemm *gemm, Error *error) {
    if (dim < GEMM_BATCH_DIMS)
        return product_run(device, gemm, error);
    size_t a_bytes = format_table[gemm->a.format].bytes,
           b_bytes = format_table[gemm->b.format].bytes,
           c_bytes = format_table[gemm->c.format].bytes;
    for (int64_t i = 0; i < leading->shape[dim]; i++) {
        Gemm one = *gemm;
        one.a.data = (const char *)gemm->a.data + i * leading->a[dim] * (int64_t)a_bytes;
        one.b.data = (const char *)gemm->b.data + i * leading->b[dim] * (int64_t)b_bytes;
        one.c.data = (char *)gemm->c.data + i * leading->c[dim] * (int64_t)c_bytes;
        if (!run_leading(device, leading, dim - 1, &one, error))
            return false;
    }
    return true;
}

// Of so many results and fewer it takes as long to tell the largest as to read them again.
enum { MOST_READ_AGAIN = 1 << 13 };

static int64_t numbers_in(const Leading *leading, const Gemm *gemm) {
    int64_t numbers = gemm->rows * gemm->columns;
    for (int i = 0; i < leading->ndim; i++)
        numbers *= leading->shape[i];
    return numbers;
}

// The largest of what a product has raised, as it is stored.
static float largest_of(const uint32_t lanes[GEMM_LANES], Format format) {
    uint32_t largest = 0;
    for (int i = 0; i < GEMM_LANES; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    const float number = number_fp32_of_bits(largest);
    return format == FORMAT_FP32   ? number
           : format == FORMAT_BF16 ? number_bf16_to_fp32(number_fp32_to_bf16(number))
                                   : number_fp16_to_fp32(number_fp32_to_fp16(number));
}

static bool run_batches(Device *device, Leading *leading, Gemm *gemm, Error *error) {
    join_rows(leading, gemm);
    for (int i = 0; i < GEMM_BATCH_DIMS; i++) {
        int to = GEMM_BATCH_DIMS - 1 - i;
        bool present = i < leading->ndim;
        gemm->batch[to] = present ? leading->shape[i] : 1;
        gemm->a.batch_stride[to] = present ? leading->a[i] : 0;
        gemm->b.batch_stride[to] = present ? leading->b[i] : 0;
        gemm->c.batch_stride[to] = present ? leading->c[i] : 0;
    }
    uint32_t lanes[GEMM_LANES] = {0};
    if (numbers_in(leading, gemm) > MOST_READ_AGAIN && gemm->sums == SUMS_FP32)
        gemm->largest = lanes;
    if (!run_leading(device, leading, leading->ndim - 1, gemm, error))
        return false;
    if (gemm->largest)
        device->largest = largest_of(lanes, gemm->c.format);
    return true;
}

static bool matmul(Device *device, const KernelCall *call, Error *error) {
    const View *a = &call->input[0], *b = &call->input[1], *y = &call->output[0];
    int row = y->ndim - 2, column = y->ndim - 1, b_row = b->ndim - 2;
    Gemm gemm = {
        .rows = y->shape[row],
        .columns = y->shape[column],
        .depth = a->shape[column],
        .a = {a->data, a->format, a->stride[row], a->stride[column], {0}},
        .b = {b->data, b->format, b->stride[b_row], b->stride[b_row + 1], {0}},
        .c = {y->data, y->format, y->shape[column], {0}},
        .alpha = product_times(call->attr),
        .blocks = call->attr->blocks,
        .sums = call->attr->sums,
    };
    Leading leading = {.ndim = 0};
    int64_t c_stride = gemm.rows * gemm.columns;
    for (int i = row - 1; i >= 0; i--) {
        leading_add(&leading, y->shape[i], a->stride[i], b->ndim > 2 ? b->stride[i] : 0, c_stride);
        c_stride *= y->shape[i];
    }
    return run_batches(device, &leading, &gemm, error);
}

static bool linear(Device *device, const KernelCall *call, Error *error) {
    if (int8_is_given(call))
        return cpu_int8_linear(device, call, error);
    const View *x = &call->input[0], *weight = &call->input[1], *bias = &call->input[2];
    const View *y = &call->output[0];
    int column = x->ndim - 1;
    Gemm gemm = {
        .rows = 1,
        .columns = weight->shape[0],
        .depth = weight->shape[1],
        .a = {x->data, x->format, x->shape[column], x->stride[column], {0}},
        .b = {weight->data, weight->format, weight->stride[1], weight->stride[0], {0}},
        .c = {y->data, y->format, weight->shape[0], {0}},
        .alpha = product_times(call->attr),
        .bias = bias->data,
        .bias_format = bias->format,
        .activation = product_activation(call->attr->linear.activation),
        .blocks = call->attr->blocks,
        .sums = call->attr->sums,
    };
    Leading leading = {.ndim = 0};
    int64_t c_stride = gemm.columns;
    for (int i = column - 1; i >= 0; i--) {
        leading_add(&leading, x->shape[i], x->stride[i], 0, c_stride);
        c_stride *= x->shape[i];
    }
    return run_batches(device, &leading, &gemm, error);
}

bool cpu_matmul(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, matmul, error);
}

bool cpu_linear(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, linear, error);
}
