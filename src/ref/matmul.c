// Matrix products.
#include <math.h>

#include "kernel/int8.h"
#include "ref/access.h"
#include "ref/int8.h"
#include "ref/kernels.h"

double ref_activate(Activation activation, double x) {
    switch (activation) {
    case ACTIVATION_RELU: return x < 0 ? 0 : x;
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATION_NONE:
    case ACTIVATION_COUNT: break;
    }
    return x;
}

// The same array without its last two dimensions: what matrices are counted by.
static View batch_of(const View *view) {
    View batch = *view;
    batch.ndim -= 2;
    return batch;
}

// A matrix of a view, row after row: read once a product, as each number meets many.
static void read_matrix(const View *view, int64_t first, int64_t rows, int64_t row_stride,
                        int64_t columns, int64_t column_stride, double *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            *to++ = ref_load(view, first + i * row_stride + j * column_stride);
}

REF_KERNEL(matmul) {
    const View factor[2] = {ref_factor(call, 0), ref_factor(call, 1)};
    const View *a = &factor[0], *b = &factor[1], *y = &call->output[0];
    View a_batch = batch_of(a), b_batch = batch_of(b), y_batch = batch_of(y);
    int64_t batches = view_count(&y_batch), rows = y->shape[y->ndim - 2],
            columns = y->shape[y->ndim - 1], depth = a->shape[a->ndim - 1];
    int64_t a_row = a->stride[a->ndim - 2], a_step = a->stride[a->ndim - 1];
    int64_t b_step = b->stride[b->ndim - 2], b_column = b->stride[b->ndim - 1];
    double *left = ref_scratch(device, (rows + columns) * depth, 0, error);
    if (!left)
        return false;
    double *right = left + rows * depth;
    for (int64_t batch = 0; batch < batches; batch++) {
        read_matrix(a, ref_offset_in(&a_batch, &y_batch, batch), rows, a_row, depth, a_step, left);
        read_matrix(b, ref_offset_in(&b_batch, &y_batch, batch), columns, b_column, depth, b_step,
                    right);
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++) {
                NumberSum sum = {.how = call->attr->sums};
                for (int64_t k = 0; k < depth; k++)
                    number_sum_add(&sum, left[i * depth + k] * right[j * depth + k]);
                ref_put(y, (batch * rows + i) * columns + j, number_sum_end(&sum));
            }
        }
    }
    return true;
}

REF_KERNEL(linear) {
    if (int8_is_given(call))
        return ref_int8_linear(call);
    const View factor[2] = {ref_factor(call, 0), ref_factor(call, 1)};
    const View *x = &factor[0], *weight = &factor[1], *bias = &call->input[2];
    const View *y = &call->output[0];
    Activation activation = call->attr->linear.activation;
    int64_t rows = ref_row_count(x), depth = ref_row_length(x), columns = weight->shape[0];
    double *row = ref_scratch(device, (1 + columns) * depth, 0, error);
    if (!row)
        return false;
    double *weights = row + depth;
    read_matrix(weight, 0, columns, weight->stride[0], depth, weight->stride[1], weights);
    for (int64_t i = 0; i < rows; i++) {
        read_matrix(x, ref_offset(x, i * depth), 1, 0, depth, x->stride[x->ndim - 1], row);
        for (int64_t j = 0; j < columns; j++) {
            NumberSum terms = {.how = call->attr->sums};
            for (int64_t k = 0; k < depth; k++)
                number_sum_add(&terms, row[k] * weights[j * depth + k]);
            double sum = number_sum_end(&terms);
            if (ref_is_present(bias))
                sum += ref_get(bias, j);
            ref_put(y, i * columns + j, ref_activate(activation, sum));
        }
    }
    return true;
}
