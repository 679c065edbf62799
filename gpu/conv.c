// Convolution on a card: as a product of which one factor is windows of an image, found in place as
// the product is made. Nothing is laid out in memory, whatever the size of the image.
#include "gpu/dnn.h"
#include "gpu/gpu.h"
#include "gpu/launch.h"
#include "gpu/products.h"

enum {
    LAST = PRODUCT_BATCHES - 1,
    NARROW = 4,          // columns of a group up to which a tile of them is mostly empty
    REPAIR_PIXELS = 4,   // that a warp looks at, most of which need no repair
    REPAIR_ACROSS = 256, // blocks at most that share the columns of a gradient of filters
    COLUMN_BLOCKS = 8,   // a multiprocessor, of sums over pixels
    LEAST_PIXELS = 64    // of one part of such a sum
};
#define MOST_INDEX INT64_C(0x7FFFFFFF)

// What all three passes are told of: the images on both sides and the filters between them.
typedef struct Problem {
    const ConvAttr *attr;
    const View *x, *y; // of the forward pass, or their gradients
    int64_t kernel[2];
    int64_t channels, filters; // of a group
    int64_t taps;
    bool single; // windows are single pixels, each in its turn
} Problem;

static Problem problem_of(const ConvAttr *attr, const View *x, const View *y,
                          const int64_t kernel[2]) {
    Problem problem = {
        .attr = attr,
        .x = x,
        .y = y,
        .kernel = {kernel[0], kernel[1]},
        .channels = x->shape[3] / attr->groups,
        .filters = y->shape[3] / attr->groups,
        .taps = kernel[0] * kernel[1],
        .single = true,
    };
    for (int i = 0; i < 2; i++)
        problem.single =
            problem.single && kernel[i] == 1 && attr->stride[i] == 1 && attr->padding[i] == 0;
    return problem;
}

static int64_t pixels_of(const View *image) {
    return image->shape[0] * image->shape[1] * image->shape[2];
}

// Kernels count pixels, and channels of taps, by 31 bits.
static bool counts_fit(const Device *device, const Problem *problem, Error *error) {
    const ConvAttr *attr = problem->attr;
    bool fits = pixels_of(problem->x) <= MOST_INDEX && pixels_of(problem->y) <= MOST_INDEX;
    for (int i = 0; i < 2; i++) {
        int64_t reach = problem->x->shape[1 + i] + 2 * attr->padding[i] +
                        problem->kernel[i] * attr->dilation[i] + attr->stride[i];
        fits = fits && reach <= MOST_INDEX;
    }
    int64_t larger = problem->channels > problem->filters ? problem->channels : problem->filters;
    fits = fits && (problem->taps == 0 || larger <= MOST_INDEX / problem->taps);
    return fits || error_fail(error, ERROR_UNAVAILABLE,
                              "convolution on %s: images of more than 2^31 pixels, or windows of "
                              "more than 2^31 elements",
                              device->name);
}

static Divisor divisor(int64_t by) {
    u32 number = by > 0 ? (u32)by : 1, shift = 0; // of none nothing is ever divided
    while (UINT64_C(1) << shift < number)
        shift++;
    uint64_t factor = ((UINT64_C(1) << shift) - number) << 32;
    return (Divisor){number, (u32)(factor / number + 1), shift};
}

// The windows of `read` that belong to the pixels of `counted`.
static ConvFactor windows_of(const Problem *problem, FactorKind kind, const View *read,
                             const View *counted, int64_t channels) {
    ConvFactor factor = {
        .kind = kind,
        .pixels = divisor(counted->shape[1] * counted->shape[2]),
        .columns = divisor(counted->shape[2]),
        .channels = divisor(channels),
        .kernel_columns = divisor(problem->kernel[1]),
        .image = read->shape[1] * read->shape[2] * read->shape[3],
        .row = read->shape[2] * read->shape[3],
        .column = read->shape[3],
    };
    for (int i = 0; i < 2; i++) {
        factor.stride[i] = divisor(problem->attr->stride[i]);
        factor.size[i] = (i32)read->shape[1 + i];
        factor.padding[i] = (i32)problem->attr->padding[i];
        factor.dilation[i] = (i32)problem->attr->dilation[i];
        factor.last[i] = (i32)((problem->kernel[i] - 1) * problem->attr->dilation[i]);
    }
    return factor;
}

// A factor that is found by a ConvFactor; eight neighbours of it are channels.
static ProductFactor image_factor(const KernelCall *call, const View *view, bool taps_in_depth,
                                  int64_t group) {
    return (ProductFactor){.data = view->data,
                           .format = product_format(call, view->format),
                           .along_depth = taps_in_depth,
                           .batch = {[LAST] = group}};
}

static ProductFactor matrix_factor(const KernelCall *call, const View *view, int64_t outer,
                                   int64_t depth, int64_t group) {
    ProductFactor factor =
        product_factor(view->data, product_format(call, view->format), outer, depth);
    factor.batch[LAST] = group;
    return factor;
}

// Whether windows reach where nothing is.
static bool windows_touch(const Problem *problem, FactorKind kind) {
    const ConvAttr *attr = problem->attr;
    return kind == FACTOR_WINDOWS_BACK || attr->padding[0] > 0 || attr->padding[1] > 0;
}

// What is done with a problem: it is computed, or repaired where another has computed it.
typedef bool (*Work)(Device *device, const Problem *problem, const ConvArguments *conv,
                     Error *error);

// Of images, whose results are pixels, few meet the padding. Of filters all may, and each result is
// a sum over all pixels: they are few rows, spread as widely as they go.
static GpuGrid repair_grid(const ProductArguments *product, bool of_images) {
    int64_t results = product->rows * product->batch[LAST];
    int64_t across = of_images ? 1 : gpu_divided_up(product->columns, REPAIR_COLUMNS);
    GpuGrid grid = gpu_grid(GPU_KERNEL_conv_repair, results * WARP, of_images ? REPAIR_PIXELS : 1);
    grid.y = across < REPAIR_ACROSS ? (unsigned)across : REPAIR_ACROSS;
    return grid;
}

// What was multiplied in the padding is made anew where it gave NaN.
static bool repair(Device *device, const Problem *problem, const ConvArguments *conv,
                   Error *error) {
    bool of_images = conv->a.kind != FACTOR_PLAIN;
    FactorKind windows = of_images ? (FactorKind)conv->a.kind : (FactorKind)conv->b.kind;
    return problem->single || !windows_touch(problem, windows) || conv->product.columns == 0 ||
           gpu_launch_conv_repair(device, repair_grid(&conv->product, of_images), conv, error);
}

static bool run(Device *device, const Problem *problem, const ConvArguments *conv, Error *error) {
    const ProductArguments *product = &conv->product;
    if (problem->single)
        return product_run(device, product, error);
    int64_t matrices = product->batch[LAST];
    if (conv->a.kind != FACTOR_PLAIN && matrices > 1 && product->columns <= NARROW) {
        int64_t results = product->rows * product->columns * matrices;
        return gpu_launch_conv_direct(device, gpu_grid(GPU_KERNEL_conv_direct, results, 1), conv,
                                      error);
    }
    return product_run_conv(device, conv, error) && repair(device, problem, conv, error);
}

// ---- forward ------------------------------------------------------------------------------------

static bool forward(Device *device, const KernelCall *call, Work work, Error *error) {
    const ConvAttr *attr = &call->attr->conv;
    const View *x = &call->input[0], *weight = &call->input[1], *bias = &call->input[2];
    const View *y = &call->output[0];
    Problem problem = problem_of(attr, x, y, &weight->shape[1]);
    if (!counts_fit(device, &problem, error))
        return false;
    int64_t window = problem.taps * problem.channels;
    ConvArguments conv = {
        .product = {.a = problem.single ? matrix_factor(call, x, x->shape[3], 1, problem.channels)
                                        : image_factor(call, x, true, problem.channels),
                    .b = matrix_factor(call, weight, window, 1, problem.filters * window),
                    .c = {.data = y->data,
                          .format = y->format,
                          .row = y->shape[3],
                          .batch = {[LAST] = problem.filters}},
                    .rows = pixels_of(y),
                    .columns = problem.filters,
                    .depth = window,
                    .batch = {1, 1, 1, attr->groups},
                    .bias = bias->data,
                    .bias_step = problem.filters,
                    .bias_format = bias->format,
                    .activation = attr->activation},
        .a = windows_of(&problem, FACTOR_WINDOWS, x, y, problem.channels),
    };
    return work(device, &problem, &conv, error);
}

KERNEL_SIGNATURE(gpu_own, conv2d) {
    return forward(device, call, run, error);
}

KERNEL_SIGNATURE(gpu_repair, conv2d) {
    return forward(device, call, repair, error);
}

// ---- gradient of the input ----------------------------------------------------------------------

static bool backward_input(Device *device, const KernelCall *call, const View *bias, Work work,
                           Error *error) {
    const ConvAttr *attr = &call->attr->conv;
    const View *dy = &call->input[0], *weight = &call->input[1], *dx = &call->output[0];
    Problem problem = problem_of(attr, dx, dy, &weight->shape[1]);
    if (!counts_fit(device, &problem, error))
        return false;
    int64_t window = problem.taps * problem.channels, group = problem.filters * window;
    ConvArguments conv = {
        .product = {.a = problem.single ? matrix_factor(call, dy, dy->shape[3], 1, problem.filters)
                                        : image_factor(call, dy, true, problem.filters),
                    .b = problem.single ? matrix_factor(call, weight, 1, window, group)
                                        : image_factor(call, weight, false, group),
                    .c = {.data = dx->data,
                          .format = dx->format,
                          .row = dx->shape[3],
                          .batch = {[LAST] = problem.channels}},
                    .rows = pixels_of(dx),
                    .columns = problem.channels,
                    .depth = problem.taps * problem.filters,
                    .batch = {1, 1, 1, attr->groups},
                    .bias = bias ? bias->data : NULL,
                    .bias_step = problem.channels,
                    .bias_format = bias ? bias->format : FORMAT_FP32},
        .a = windows_of(&problem, FACTOR_WINDOWS_BACK, dy, dx, problem.filters),
        .b = {.kind = FACTOR_FILTERS_BACK,
              .channels = divisor(problem.filters),
              .image = window,
              .column = problem.channels},
    };
    return work(device, &problem, &conv, error);
}

KERNEL_SIGNATURE(gpu_own, conv2d_backward_input) {
    return backward_input(device, call, NULL, run, error);
}

KERNEL_SIGNATURE(gpu_repair, conv2d_backward_input) {
    return backward_input(device, call, NULL, repair, error);
}

KERNEL_SIGNATURE(gpu_own, conv_transpose2d) {
    return backward_input(device, call, &call->input[2], run, error);
}

KERNEL_SIGNATURE(gpu_repair, conv_transpose2d) {
    return backward_input(device, call, &call->input[2], repair, error);
}

// ---- gradient of the weights --------------------------------------------------------------------

static Operand operand_of(const View *view, Format format) {
    return (Operand){.data = view->data, .format = format, .kind = OPERAND_DENSE};
}

// sums[filter][tap] of dy, times what the tap saw of x where that is given.
static bool sum_pixels(Device *device, const KernelCall *call, const Problem *problem,
                       const View *x, float *sums, Error *error) {
    const View *dy = &call->input[1];
    int64_t filters = dy->shape[3], pixels = pixels_of(dy), taps = x ? problem->taps : 1;
    int64_t blocks = gpu_divided_up(filters, WARP) * taps; // of one part
    int64_t wanted = (int64_t)device->multiprocessors * COLUMN_BLOCKS;
    int64_t parts = blocks > 0 ? wanted / blocks : 1, most = pixels / LEAST_PIXELS;
    int64_t columns = filters * taps;
    parts = parts < most ? parts : most;
    if (parts < 1)
        parts = 1;
    ConvColumnsArguments arguments = {
        .gradient = operand_of(dy, x ? product_format(call, dy->format) : dy->format),
        .pixels = pixels,
        .filters = filters,
        .channels = problem->x->shape[3],
        .taps = taps,
        .part = gpu_divided_up(pixels, parts),
    };
    if (x) {
        arguments.image = operand_of(x, product_format(call, x->format));
        arguments.windows = windows_of(problem, FACTOR_WINDOWS, x, dy, 1);
    }
    if (columns == 0)
        return true;
    arguments.sums =
        device_workspace(device, (size_t)(parts * columns) * sizeof *arguments.sums, error);
    GpuGrid grid = {.x = blocks, .y = (unsigned)parts};
    return arguments.sums && gpu_launch_conv_columns(device, grid, &arguments, error) &&
           product_join_rows(device, arguments.sums, parts, columns, sums, error);
}

// Of a problem whose counts fit (counts_fit).
static bool filters(Device *device, const KernelCall *call, Work work, Error *error) {
    const ConvAttr *attr = &call->attr->conv;
    const View *x = &call->input[0], *dy = &call->input[1], *dweight = &call->output[0];
    Problem problem = problem_of(attr, x, dy, &dweight->shape[1]);
    int64_t window = problem.taps * problem.channels;
    ConvArguments conv = {
        .product = {.a = matrix_factor(call, dy, 1, dy->shape[3], problem.filters),
                    .b = problem.single ? matrix_factor(call, x, 1, x->shape[3], problem.channels)
                                        : image_factor(call, x, false, problem.channels),
                    .c = {.data = dweight->data,
                          .format = dweight->format,
                          .row = window,
                          .batch = {[LAST] = problem.filters * window}},
                    .rows = problem.filters,
                    .columns = window,
                    .depth = pixels_of(dy),
                    .batch = {1, 1, 1, attr->groups}},
        .b = windows_of(&problem, FACTOR_WINDOWS, x, dy, problem.channels),
    };
    return work(device, &problem, &conv, error);
}

KERNEL_SIGNATURE(gpu_own, conv2d_backward_weight) {
    const ConvAttr *attr = &call->attr->conv;
    const View *x = &call->input[0], *dweight = &call->output[0], *dbias = &call->output[1];
    Problem problem = problem_of(attr, x, &call->input[1], &dweight->shape[1]);
    if (!counts_fit(device, &problem, error) ||
        (dbias->data && !sum_pixels(device, call, &problem, NULL, dbias->data, error)))
        return false;
    if (!dweight->data)
        return true;
    if (attr->groups > 1 && problem.channels == 1)
        return sum_pixels(device, call, &problem, x, dweight->data, error);
    return filters(device, call, run, error);
}

KERNEL_SIGNATURE(gpu_repair, conv2d_backward_weight) {
    const View *x = &call->input[0], *dy = &call->input[1];
    Problem problem = problem_of(&call->attr->conv, x, dy, &call->output[0].shape[1]);
    return counts_fit(device, &problem, error) && filters(device, call, repair, error);
}
