// Convolution over images [N,H,W,C] with weights [O,KH,KW,C/groups].
#include "kernel/int8.h"
#include "ref/access.h"
#include "ref/int8.h"
#include "ref/kernels.h"

// Where in the input a tap of the window of an output lies along one dimension; -1: in the padding.
static int64_t tap(const ConvAttr *attr, int dim, int64_t output, int64_t kernel, int64_t size) {
    int64_t at = output * attr->stride[dim] - attr->padding[dim] + kernel * attr->dilation[dim];
    return at >= 0 && at < size ? at : -1;
}

// The numbers of a view of four dimensions, in row-major order: read once, as each meets many.
typedef struct Numbers {
    const double *numbers;
    const int64_t *shape; // the view's own
} Numbers;

static Numbers read_numbers(const View *view, double *to) {
    int64_t i = 0;
    for (int64_t a = 0; a < view->shape[0]; a++)
        for (int64_t b = 0; b < view->shape[1]; b++)
            for (int64_t c = 0; c < view->shape[2]; c++)
                for (int64_t d = 0; d < view->shape[3]; d++)
                    to[i++] = ref_load(view, ref_offset4(view, a, b, c, d));
    return (Numbers){to, view->shape};
}

// Both factors of a call; and room for `more` numbers, all 0, in *rest, where that is not NULL.
static bool read_factors(Device *device, const View factor[2], int64_t more, Numbers read[2],
                         double **rest, Error *error) {
    int64_t first = view_count(&factor[0]), both = first + view_count(&factor[1]);
    double *scratch = ref_scratch(device, both + more, 0, error);
    if (!scratch)
        return false;
    read[0] = read_numbers(&factor[0], scratch);
    read[1] = read_numbers(&factor[1], scratch + first);
    if (rest)
        *rest = scratch + both;
    return true;
}

// All channels of a pixel of an image, or of a tap of a filter.
static const double *pixel(const Numbers *of, int64_t image, int64_t row, int64_t column) {
    const int64_t *shape = of->shape;
    return of->numbers + ((image * shape[1] + row) * shape[2] + column) * shape[3];
}

// The product of one window of x with one filter.
static double window_product(const ConvAttr *attr, const Numbers *x, const Numbers *weight,
                             int64_t n, int64_t row, int64_t column, int64_t filter) {
    int64_t channels = weight->shape[3], filters = weight->shape[0] / attr->groups;
    int64_t first_channel = filter / filters * channels;
    double sum = 0;
    for (int64_t kh = 0; kh < weight->shape[1]; kh++) {
        int64_t h = tap(attr, 0, row, kh, x->shape[1]);
        for (int64_t kw = 0; h >= 0 && kw < weight->shape[2]; kw++) {
            int64_t w = tap(attr, 1, column, kw, x->shape[2]);
            if (w < 0)
                continue;
            const double *seen = pixel(x, n, h, w) + first_channel;
            const double *taps = pixel(weight, filter, kh, kw);
            for (int64_t c = 0; c < channels; c++)
                sum += seen[c] * taps[c];
        }
    }
    return sum;
}

REF_KERNEL(conv2d) {
    if (int8_is_given(call))
        return ref_int8_conv2d(call);
    const ConvAttr *attr = &call->attr->conv;
    const View factor[2] = {ref_factor(call, 0), ref_factor(call, 1)};
    const View *bias = &call->input[2], *y = &call->output[0];
    Numbers read[2];
    if (!read_factors(device, factor, 0, read, NULL, error))
        return false;
    for (int64_t n = 0; n < y->shape[0]; n++)
        for (int64_t h = 0; h < y->shape[1]; h++)
            for (int64_t w = 0; w < y->shape[2]; w++)
                for (int64_t filter = 0; filter < y->shape[3]; filter++) {
                    double sum = window_product(attr, &read[0], &read[1], n, h, w, filter);
                    if (ref_is_present(bias))
                        sum += ref_get(bias, filter);
                    ref_store(y, ref_offset4(y, n, h, w, filter),
                              ref_activate(attr->activation, sum));
                }
    return true;
}

// Every output adds its share to the inputs that it was made of.
static void spread(const ConvAttr *attr, const Numbers *weight, const View *dx, double dy,
                   int64_t n, int64_t row, int64_t column, int64_t filter, double *sums) {
    int64_t channels = weight->shape[3], filters = weight->shape[0] / attr->groups;
    int64_t first_channel = filter / filters * channels;
    for (int64_t kh = 0; kh < weight->shape[1]; kh++) {
        int64_t h = tap(attr, 0, row, kh, dx->shape[1]);
        for (int64_t kw = 0; h >= 0 && kw < weight->shape[2]; kw++) {
            int64_t w = tap(attr, 1, column, kw, dx->shape[2]);
            if (w < 0)
                continue;
            double *sum = sums + ((n * dx->shape[1] + h) * dx->shape[2] + w) * dx->shape[3];
            const double *taps = pixel(weight, filter, kh, kw);
            for (int64_t c = 0; c < channels; c++)
                sum[first_channel + c] += dy * taps[c];
        }
    }
}

// Plus a bias, where there is one.
static bool input_gradient(Device *device, const KernelCall *call, const View *bias, Error *error) {
    const View factor[2] = {ref_factor(call, 0), ref_factor(call, 1)};
    const View *dy = &factor[0], *dx = &call->output[0];
    Numbers read[2];
    double *sums;
    if (!read_factors(device, factor, view_count(dx), read, &sums, error))
        return false;
    for (int64_t n = 0; n < dy->shape[0]; n++)
        for (int64_t h = 0; h < dy->shape[1]; h++)
            for (int64_t w = 0; w < dy->shape[2]; w++)
                for (int64_t filter = 0; filter < dy->shape[3]; filter++)
                    spread(&call->attr->conv, &read[1], dx, pixel(&read[0], n, h, w)[filter], n, h,
                           w, filter, sums);
    for (int64_t i = 0; i < view_count(dx); i++)
        ref_put(dx, i, sums[i] + (bias ? ref_get(bias, i % dx->shape[3]) : 0));
    return true;
}

REF_KERNEL(conv2d_backward_input) {
    return input_gradient(device, call, NULL, error);
}

REF_KERNEL(conv_transpose2d) {
    const View *bias = &call->input[2];
    return input_gradient(device, call, ref_is_present(bias) ? bias : NULL, error);
}

// The gradient of one weight: every place of the filter, times what this tap saw there.
static double weight_gradient(const ConvAttr *attr, const Numbers *x, const Numbers *dy,
                              int64_t filter, int64_t kh, int64_t kw, int64_t channel) {
    double sum = 0;
    for (int64_t n = 0; n < dy->shape[0]; n++)
        for (int64_t row = 0; row < dy->shape[1]; row++) {
            int64_t h = tap(attr, 0, row, kh, x->shape[1]);
            for (int64_t column = 0; h >= 0 && column < dy->shape[2]; column++) {
                int64_t w = tap(attr, 1, column, kw, x->shape[2]);
                if (w >= 0)
                    sum += pixel(dy, n, row, column)[filter] * pixel(x, n, h, w)[channel];
            }
        }
    return sum;
}

REF_KERNEL(conv2d_backward_weight) {
    const ConvAttr *attr = &call->attr->conv;
    const View factor[2] = {ref_factor(call, 0), ref_factor(call, 1)};
    const View *dy = &call->input[1];
    const View *dweight = &call->output[0], *dbias = &call->output[1];
    int64_t channels = dweight->shape[3], filters = dweight->shape[0] / attr->groups;
    Numbers read[2];
    if (!read_factors(device, factor, 0, read, NULL, error))
        return false;
    for (int64_t filter = 0; filter < dweight->shape[0]; filter++)
        for (int64_t kh = 0; kh < dweight->shape[1]; kh++)
            for (int64_t kw = 0; kw < dweight->shape[2]; kw++)
                for (int64_t c = 0; c < channels; c++)
                    ref_store(dweight, ref_offset4(dweight, filter, kh, kw, c),
                              weight_gradient(attr, &read[0], &read[1], filter, kh, kw,
                                              filter / filters * channels + c));
    for (int64_t filter = 0; ref_is_present(dbias) && filter < dy->shape[3]; filter++) {
        double sum = 0;
        for (int64_t i = 0; i < ref_row_count(dy); i++)
            sum += ref_get(dy, i * dy->shape[3] + filter);
        ref_put(dbias, filter, sum);
    }
    return true;
}
