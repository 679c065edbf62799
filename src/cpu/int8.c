// Products in whole numbers: the first factor is rounded once, weights are packed into panels, and
// threads take stretches of rows. Of a convolution a row is the window that one output pixel sees.
#include "cpu/int8.h"

#include <string.h>

#include "cpu/products.h"
#include "kernel/int8.h"

enum {
    FEW_ROWS = 3,      // for which weights are read where they lie
    ROWS_TOGETHER = 48 // of a stretch: its sums stay in the first-level cache
};
static const double product_cost = 0.012; // nanoseconds

typedef struct Int8Product {
    const Device *device;
    const CpuInt8 *loops;
    const ConvAttr *conv; // NULL: rows lie as they are multiplied
    const Int8Attr *int8;
    View x, weight, bias;
    Operand read;
    Result write;
    Activation activation;
    int64_t rows, depth;             // of the products,
    int64_t groups, filters, panels; // columns and panels of each group
    int64_t line, stride;       // numbers of x in a row of it, and between two as they are kept
    int64_t window;             // numbers between two rows as they are multiplied, whole words
    int64_t height, width;      // of the output of a convolution
    char *numbers, *packed;     // x, rounded; panels of all groups
    int32_t *offset;            // a column of a panel
    float *worth, *bias_values; // a filter
    char *own;                  // a thread's windows and sums
    size_t panel_bytes, window_bytes, own_bytes;
} Int8Product;

// ---- before the products ------------------------------------------------------------------------

// Numbers begin .. end - 1 of those that are kept without gaps, or rows of those with.
static void quantise_range(void *context, int64_t begin, int64_t end, int thread) {
    const Int8Product *product = context;
    const CpuInt8 *loops = product->loops;
    const float inverse = 1.0f / product->int8->step;
    const bool has_gaps = product->stride != product->line;
    const int64_t line = product->line, step = has_gaps ? 1 : end - begin;
    float buffer[CPU_BLOCK];
    (void)thread;
    for (int64_t i = begin; i < end; i += step) {
        const int64_t from = has_gaps ? i * line : begin, to = has_gaps ? from + line : end;
        char *numbers =
            product->numbers + (has_gaps ? i * product->stride : begin) * loops->number_bytes;
        CPU_EACH_BLOCK(at, size, from, to)
        loops->quantise(operand_read(&product->read, at, size, buffer),
                        numbers + (at - from) * loops->number_bytes, size, inverse);
        if (has_gaps)
            memset(numbers + line * loops->number_bytes, 0,
                   (size_t)((product->stride - line) * loops->number_bytes));
    }
}

static void pack_range(void *context, int64_t begin, int64_t end, int thread) {
    const Int8Product *product = context;
    const CpuInt8 *loops = product->loops;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % product->panels * loops->columns;
        const int64_t filter = i / product->panels * product->filters + first;
        loops->pack((const int8_t *)product->weight.data + filter * product->depth, product->depth,
                    cpu_smaller(loops->columns, product->filters - first), product->depth,
                    product->packed + (size_t)i * product->panel_bytes,
                    product->offset + i * loops->columns);
    }
}

// ---- windows ------------------------------------------------------------------------------------

// Where in the input a tap of an output's window lies along a dimension; -1: in the padding.
static int64_t tap(const Int8Product *product, int dim, int64_t output, int64_t kernel) {
    const ConvAttr *conv = product->conv;
    int64_t at = output * conv->stride[dim] - conv->padding[dim] + kernel * conv->dilation[dim];
    return at >= 0 && at < product->x.shape[1 + dim] ? at : -1;
}

// The window of one output pixel, of the channels of a group.
static void gather(const Int8Product *product, int64_t pixel, int64_t group, char *window) {
    const int64_t *x = product->x.shape, *kernel = product->weight.shape;
    const size_t bytes = (size_t)product->loops->number_bytes, run = (size_t)kernel[3] * bytes;
    const int64_t column = pixel % product->width, row = pixel / product->width % product->height;
    const int64_t image = pixel / product->width / product->height;
    // A row of the window that lies whole in the image, its pixels side by side.
    const int64_t left = column * product->conv->stride[1] - product->conv->padding[1];
    const bool joins = product->groups == 1 && product->conv->dilation[1] == 1 && left >= 0 &&
                       left + kernel[2] <= x[2];
    const size_t line = (size_t)kernel[2] * run;
    for (int64_t kh = 0; kh < kernel[1]; kh++) {
        const int64_t h = tap(product, 0, row, kh);
        if (joins && h >= 0) {
            memcpy(window,
                   product->numbers + (size_t)(((image * x[1] + h) * x[2] + left) * x[3]) * bytes,
                   line);
            window += line;
            continue;
        }
        for (int64_t kw = 0; kw < kernel[2]; kw++, window += run) {
            const int64_t w = tap(product, 1, column, kw);
            const int64_t at = ((image * x[1] + h) * x[2] + w) * x[3] + group * kernel[3];
            if (h < 0 || w < 0) // of numbers with more than a byte, 0 is 0
                memset(window, product->loops->zero, run);
            else
                memcpy(window, product->numbers + (size_t)at * bytes, run);
        }
    }
}

// Rows of the first factor as they are multiplied, from `first` on.
static const char *rows_at(const Int8Product *product, int64_t first, int64_t rows, int64_t group,
                           char *windows) {
    const size_t row = (size_t)(product->window * product->loops->number_bytes);
    if (!product->conv)
        return product->numbers + (size_t)first * row;
    for (int64_t i = 0; i < rows; i++)
        gather(product, first + i, group, windows + (size_t)i * row);
    return windows;
}

// ---- products -----------------------------------------------------------------------------------

// What a row of sums is worth, to the output's elements from `at` on.
static void finish(const Int8Product *product, const int32_t *sums, int64_t filter, int64_t count,
                   int64_t at) {
    float values[CPU_BLOCK], active[CPU_BLOCK];
    const bool clips = product->activation == ACTIVATION_RELU;
    const float *bias = product->bias.data ? product->bias_values + filter : NULL;
    float *y = result_begin(&product->write, at, values);
    product->loops->finish(sums, product->worth + filter, bias, clips, y, count);
    if (product->activation != ACTIVATION_NONE && !clips) {
        const OpId op = product->activation == ACTIVATION_TANH ? OP_tanh : OP_sigmoid;
        cpu_simd(product->device)->pointwise->unary[op](y, active, count, 0, 0);
        memcpy(y, active, (size_t)count * sizeof *y);
    }
    result_end(&product->write, at, count, values);
}

static void multiply_range(void *context, int64_t begin, int64_t end, int thread) {
    const Int8Product *product = context;
    const CpuInt8 *loops = product->loops;
    char *windows = product->own + (size_t)thread * product->own_bytes;
    int32_t *sums = (int32_t *)(void *)(windows + product->window_bytes);
    for (int64_t first = begin, rows; first < end; first += rows) {
        rows = cpu_smaller(ROWS_TOGETHER, end - first);
        for (int64_t panel = 0; panel < product->groups * product->panels; panel++) {
            const int64_t group = panel / product->panels;
            const int64_t column = panel % product->panels * loops->columns;
            const char *a = panel % product->panels == 0 || !product->conv
                                ? rows_at(product, first, rows, group, windows)
                                : windows;
            loops->multiply(a, product->window, rows,
                            product->packed + (size_t)panel * product->panel_bytes,
                            product->offset + panel * loops->columns, product->depth, sums);
            const int64_t filter = group * product->filters + column;
            const int64_t count = cpu_smaller(loops->columns, product->filters - column);
            for (int64_t i = 0; i < rows; i++)
                finish(product, sums + i * loops->columns, filter, count,
                       (first + i) * product->groups * product->filters + filter);
        }
    }
}

// Columns begin .. end - 1 of a few rows.
static void dot_range(void *context, int64_t begin, int64_t end, int thread) {
    const Int8Product *product = context;
    const CpuInt8 *loops = product->loops;
    int32_t sums[CPU_BLOCK];
    (void)thread;
    CPU_EACH_BLOCK(at, size, begin, end)
    for (int64_t row = 0; row < product->rows; row++) {
        loops->dot(product->numbers + row * product->window * loops->number_bytes,
                   (const int8_t *)product->weight.data + at * product->depth, product->depth, size,
                   product->depth, sums);
        finish(product, sums, at, size, row * product->filters + at);
    }
}

// ---- the whole ----------------------------------------------------------------------------------

// Cuts the workspace up.
static char *take(char **memory, size_t bytes) {
    char *taken = *memory;
    *memory += cpu_line(bytes);
    return taken;
}

static bool run(Device *device, Int8Product *product, Error *error) {
    const CpuInt8 *loops = product->loops;
    const int64_t all = product->groups * product->filters;
    const bool few = !product->conv && product->rows <= FEW_ROWS;
    const int64_t panels = few ? 0 : product->groups * product->panels;
    const double cost = (double)product->rows * (double)product->filters * (double)product->groups *
                        (double)(product->depth + 16) * product_cost;
    const int64_t kept = product->conv ? view_count(&product->x) : product->rows * product->stride;
    product->panel_bytes = (size_t)(product->window * loops->columns * (loops->number_bytes));
    product->window_bytes =
        product->conv ? cpu_line((size_t)(ROWS_TOGETHER * product->window * loops->number_bytes))
                      : 0;
    product->own_bytes = product->window_bytes +
                         cpu_line((size_t)(ROWS_TOGETHER * loops->columns) * sizeof(int32_t));
    const size_t workers = few ? 0 : (size_t)cpu_workers(device, cost);
    const size_t sizes[] = {(size_t)(kept * loops->number_bytes) + 64,
                            (size_t)panels * product->panel_bytes,
                            (size_t)(panels * loops->columns) * sizeof(int32_t),
                            (size_t)all * sizeof(float),
                            (size_t)all * sizeof(float),
                            workers * product->own_bytes};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bytes += cpu_line(sizes[i]);
    char *memory = device_workspace(device, bytes + 64, error);
    if (!memory)
        return false;
    product->numbers = take(&memory, sizes[0]);
    product->packed = take(&memory, sizes[1]);
    product->offset = (int32_t *)(void *)take(&memory, sizes[2]);
    product->worth = (float *)(void *)take(&memory, sizes[3]);
    product->bias_values = (float *)(void *)take(&memory, sizes[4]);
    product->own = take(&memory, sizes[5]);
    memset(product->own, 0, sizes[5]); // what fills windows up to whole words
    for (int64_t i = 0; i < all; i++)
        product->worth[i] = product->int8->step * product->int8->steps[i];
    if (product->bias.data)
        cpu_load(device, product->bias.format, product->bias.data, product->bias_values, all);
    const bool has_gaps = product->stride != product->line;
    cpu_parallel(device, has_gaps ? product->rows : kept, has_gaps ? 1 : CPU_BLOCK,
                 (double)kept * CPU_STREAM, quantise_range, product);
    if (few) {
        cpu_parallel(device, product->filters, loops->columns, cost, dot_range, product);
        return true;
    }
    cpu_parallel(device, panels, 1, (double)panels * (double)product->panel_bytes * CPU_STREAM,
                 pack_range, product);
    cpu_parallel(device, product->rows, ROWS_TOGETHER, cost, multiply_range, product);
    return true;
}

static Int8Product product_of(const Device *device, const KernelCall *call) {
    const CpuInt8 *loops = cpu_simd(device)->int8;
    const View *x = &call->input[0];
    Int8Product product = {.device = device,
                           .loops = loops,
                           .int8 = &call->attr->int8,
                           .x = *x,
                           .weight = call->input[1],
                           .bias = call->input[2],
                           .read = operand_of(device, x, x->ndim, x->shape),
                           .write = result_of(device, &call->output[0]),
                           .groups = 1};
    const View *weight = &product.weight;
    product.depth = 1;
    for (int i = 1; i < weight->ndim; i++)
        product.depth *= weight->shape[i];
    product.filters = weight->shape[0];
    product.window = (product.depth + loops->word - 1) / loops->word * loops->word;
    return product;
}

static bool run_panels(Device *device, Int8Product *product, Error *error) {
    if (product->rows == 0 || product->filters == 0)
        return true;
    product->panels = (product->filters + product->loops->columns - 1) / product->loops->columns;
    return run(device, product, error);
}

bool cpu_int8_linear(Device *device, const KernelCall *call, Error *error) {
    Int8Product product = product_of(device, call);
    product.activation = call->attr->linear.activation;
    product.rows = view_count(&call->output[0]) / (product.filters > 0 ? product.filters : 1);
    product.line = product.depth;
    product.stride = product.window;
    return run_panels(device, &product, error);
}

bool cpu_int8_conv2d(Device *device, const KernelCall *call, Error *error) {
    Int8Product product = product_of(device, call);
    const View *y = &call->output[0];
    product.conv = &call->attr->conv;
    product.activation = product.conv->activation;
    product.groups = product.conv->groups;
    product.filters /= product.groups;
    product.rows = y->shape[0] * y->shape[1] * y->shape[2];
    product.height = y->shape[1];
    product.width = y->shape[2];
    product.line = product.stride = 1; // without gaps
    return run_panels(device, &product, error);
}
