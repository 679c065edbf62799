// matmul and linear on a card: views to the strides and batches of a product.
#include "gpu/backend.h"
#include "gpu/products.h"

// Adds a dimension that matrices are counted by, from the innermost outwards; neighbours are joined
// where all three arrays allow it.
typedef struct Leading {
    int count;
    int64_t size[VIEW_MAX_DIMS], a[VIEW_MAX_DIMS], b[VIEW_MAX_DIMS], c[VIEW_MAX_DIMS];
} Leading;

static void add(Leading *leading, int64_t size, int64_t a, int64_t b, int64_t c) {
    int last = leading->count - 1;
    if (size == 1)
        return;
    if (last >= 0 && a == leading->a[last] * leading->size[last] &&
        b == leading->b[last] * leading->size[last] &&
        c == leading->c[last] * leading->size[last]) {
        leading->size[last] *= size;
        return;
    }
    last = leading->count++;
    leading->size[last] = size;
    leading->a[last] = a;
    leading->b[last] = b;
    leading->c[last] = c;
}

// Matrices that share b and follow each other without a gap are one with more rows.
static void join_rows(Leading *leading, ProductArguments *product) {
    if (leading->count == 0 || leading->b[0] != 0)
        return;
    if (product->rows == 1) {
        product->a.outer = leading->a[0];
        product->c.row = leading->c[0];
    } else if (leading->a[0] != product->rows * product->a.outer ||
               leading->c[0] != product->rows * product->c.row) {
        return;
    }
    product->rows *= leading->size[0];
    leading->count--;
    for (int i = 0; i < leading->count; i++) {
        leading->size[i] = leading->size[i + 1];
        leading->a[i] = leading->a[i + 1];
        leading->b[i] = leading->b[i + 1];
        leading->c[i] = leading->c[i + 1];
    }
}

static bool run_counted(Device *device, const Leading *leading, ProductArguments *product,
                        Error *error) {
    for (int i = 0; i < PRODUCT_BATCHES; i++) {
        int to = PRODUCT_BATCHES - 1 - i;
        bool present = i < leading->count;
        product->batch[to] = present ? leading->size[i] : 1;
        product->a.batch[to] = present ? leading->a[i] : 0;
        product->b.batch[to] = present ? leading->b[i] : 0;
        product->c.batch[to] = present ? leading->c[i] : 0;
    }
    return product_run(device, product, error);
}

// A kernel counts matrices by few dimensions. Where more are left that cannot be joined, it is
// called for each place along the outermost.
static bool run_each(Device *device, const Leading *leading, const ProductArguments *product,
                     Error *error) {
    ProductArguments part = *product;
    if (leading->count <= PRODUCT_BATCHES)
        return run_counted(device, leading, &part, error);
    Leading inner = *leading;
    const int outer = --inner.count;
    for (int64_t i = 0; i < leading->size[outer]; i++) {
        part.a.data = product_moved(product->a.data, product->a.format, i * leading->a[outer]);
        part.b.data = product_moved(product->b.data, product->b.format, i * leading->b[outer]);
        part.c.data = product_moved(product->c.data, product->c.format, i * leading->c[outer]);
        if (!run_each(device, &inner, &part, error))
            return false;
    }
    return true;
}

static bool run(Device *device, Leading *leading, ProductArguments *product, Error *error) {
    join_rows(leading, product);
    return run_each(device, leading, product, error);
}

KERNEL_SIGNATURE(gpu, matmul) {
    const View *a = &call->input[0], *b = &call->input[1], *y = &call->output[0];
    int row = y->ndim - 2, column = y->ndim - 1, b_row = b->ndim - 2;
    ProductArguments product = {
        .a = product_factor(a->data, product_format(call, a->format), a->stride[row],
                            a->stride[column]),
        .b = product_factor(b->data, product_format(call, b->format), b->stride[b_row + 1],
                            b->stride[b_row]),
        .c = {.data = y->data, .format = y->format, .row = y->shape[column]},
        .rows = y->shape[row],
        .columns = y->shape[column],
        .depth = a->shape[column],
    };
    Leading leading = {.count = 0};
    int64_t c_stride = product.rows * product.columns;
    for (int i = row - 1; i >= 0; i--) {
        add(&leading, y->shape[i], a->stride[i], b->ndim > 2 ? b->stride[i] : 0, c_stride);
        c_stride *= y->shape[i];
    }
    return run(device, &leading, &product, error);
}

KERNEL_SIGNATURE(gpu, linear) {
    const View *x = &call->input[0], *weight = &call->input[1], *bias = &call->input[2];
    const View *y = &call->output[0];
    int column = x->ndim - 1;
    ProductArguments product = {
        .a = product_factor(x->data, product_format(call, x->format), x->shape[column],
                            x->stride[column]),
        .b = product_factor(weight->data, product_format(call, weight->format), weight->stride[0],
                            weight->stride[1]),
        .c = {.data = y->data, .format = y->format, .row = weight->shape[0]},
        .rows = 1,
        .columns = weight->shape[0],
        .depth = weight->shape[1],
        .bias = bias->data,
        .bias_format = bias->format,
        .activation = call->attr->linear.activation,
    };
    Leading leading = {.count = 0};
    int64_t c_stride = product.columns;
    for (int i = column - 1; i >= 0; i--) {
        add(&leading, x->shape[i], x->stride[i], 0, c_stride);
        c_stride *= x->shape[i];
    }
    return run(device, &leading, &product, error);
}
