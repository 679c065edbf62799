// linear and conv2d with weights in int8, as kernel/int8.h says: whole sums in 64 bits.
#include "kernel/int8.h"

#include "ref/access.h"
#include "ref/int8.h"
#include "ref/kernels.h"

// A sum's worth, its bias and its activation: the roundings to fp32 that all devices make.
static void store(const KernelCall *call, int64_t sum, int64_t row, Activation activation,
                  int64_t at) {
    const View *bias = &call->input[2];
    const Int8Attr *int8 = &call->attr->int8;
    const float worth = int8->step * int8->steps[row];
    float value = int8_worth((int32_t)sum, worth);
    if (ref_is_present(bias))
        value = value + (float)ref_get(bias, row);
    ref_put(&call->output[0], at, ref_activate(activation, (double)value));
}

bool ref_int8_linear(const KernelCall *call) {
    const View *x = &call->input[0], *weight = &call->input[1];
    const int8_t *numbers = weight->data;
    const float inverse = 1.0f / call->attr->int8.step;
    int64_t rows = ref_row_count(x), depth = ref_row_length(x), columns = weight->shape[0];
    int64_t step = x->stride[x->ndim - 1];
    for (int64_t i = 0; i < rows; i++) {
        int64_t first = ref_offset(x, i * depth);
        for (int64_t j = 0; j < columns; j++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum +=
                    int8_of((float)ref_load(x, first + k * step), inverse) * numbers[j * depth + k];
            store(call, sum, j, call->attr->linear.activation, i * columns + j);
        }
    }
    return true;
}

static int64_t window_sum(const KernelCall *call, float inverse, int64_t n, int64_t row,
                          int64_t column, int64_t filter) {
    const ConvAttr *attr = &call->attr->conv;
    const View *x = &call->input[0], *weight = &call->input[1];
    const int8_t *numbers = weight->data;
    const int64_t height = weight->shape[1], width = weight->shape[2], channels = weight->shape[3];
    const int64_t first = filter / (weight->shape[0] / attr->groups) * channels;
    int64_t sum = 0;
    for (int64_t kh = 0; kh < height; kh++)
        for (int64_t kw = 0; kw < width; kw++) {
            int64_t h = row * attr->stride[0] - attr->padding[0] + kh * attr->dilation[0];
            int64_t w = column * attr->stride[1] - attr->padding[1] + kw * attr->dilation[1];
            if (h < 0 || h >= x->shape[1] || w < 0 || w >= x->shape[2])
                continue;
            for (int64_t c = 0; c < channels; c++)
                sum += int8_of((float)ref_load(x, ref_offset4(x, n, h, w, first + c)), inverse) *
                       numbers[((filter * height + kh) * width + kw) * channels + c];
        }
    return sum;
}

bool ref_int8_conv2d(const KernelCall *call) {
    const View *y = &call->output[0];
    const float inverse = 1.0f / call->attr->int8.step;
    for (int64_t n = 0; n < y->shape[0]; n++)
        for (int64_t h = 0; h < y->shape[1]; h++)
            for (int64_t w = 0; w < y->shape[2]; w++)
                for (int64_t filter = 0; filter < y->shape[3]; filter++)
                    store(call, window_sum(call, inverse, n, h, w, filter), filter,
                          call->attr->conv.activation, ref_offset4(y, n, h, w, filter));
    return true;
}
