#include "gpu/products.h"

#include "gpu/blas_products.h"
#include "gpu/gpu.h"
#include "gpu/launch.h"
#include "gpu/relu.h"

// How a kernel divides its work: the side of a block's tile, how much of the depth a part has at
// least, and how many blocks a multiprocessor is to have before parts pay no more.
typedef struct Division {
    GpuKernel kernel, conv;
    int64_t tile, least_part, blocks;
} Division;

static const Division plain = {GPU_KERNEL_product, GPU_KERNEL_product_conv, 64, 128, 4};
static const Division bf16_tiles = {GPU_KERNEL_product_bf16, GPU_KERNEL_product_conv_bf16, 128, 128,
                                    1};
static const Division fp16_tiles = {GPU_KERNEL_product_fp16, GPU_KERNEL_product_conv_fp16, 128, 128,
                                    1};
static const Division tf32_tiles = {GPU_KERNEL_product_tf32, GPU_KERNEL_product_conv_tf32, 128, 128,
                                    1};

static const Division *division_of(const ProductArguments *product) {
    if (product->a.format == FORMAT_TF32 || product->b.format == FORMAT_TF32)
        return &tf32_tiles;
    if (product->a.format != product->b.format || product->a.format == FORMAT_FP32)
        return &plain;
    return product->a.format == FORMAT_BF16 ? &bf16_tiles : &fp16_tiles;
}

static int64_t matrices_of(const ProductArguments *product) {
    int64_t matrices = 1;
    for (int i = 0; i < PRODUCT_BATCHES; i++)
        matrices *= product->batch[i];
    return matrices;
}

static int64_t tiles_of(const ProductArguments *product, const Division *division) {
    return gpu_divided_up(product->rows, division->tile) *
           gpu_divided_up(product->columns, division->tile) * matrices_of(product);
}

// Few tiles of great depth leave most of the card idle: then each is summed in parts.
static void divide(const Device *device, ProductArguments *product) {
    const Division *division = division_of(product);
    int64_t tiles = tiles_of(product, division), parts = product->depth / division->least_part;
    int64_t bytes = product->rows * product->columns * matrices_of(product) * 4;
    int64_t wanted = tiles > 0 ? device->multiprocessors * division->blocks / tiles : 0;
    parts = parts < wanted ? parts : wanted;
    if (bytes > 0 && parts > PRODUCT_MOST_SCRATCH / bytes)
        parts = PRODUCT_MOST_SCRATCH / bytes;
    product->part = product->depth;
    product->parts = 1;
    if (parts < 2)
        return;
    product->part = gpu_divided_up(gpu_divided_up(product->depth, parts), division->least_part) *
                    division->least_part;
    product->parts = (u32)gpu_divided_up(product->depth, product->part);
}

Format product_format(const KernelCall *call, Format kept) {
    return kept == FORMAT_FP32 && call->attr->has_compute ? call->attr->compute : kept;
}

ProductFactor product_factor(const void *data, Format format, int64_t outer, int64_t depth) {
    return (ProductFactor){
        .data = data, .format = format, .outer = outer, .depth = depth, .along_depth = depth == 1};
}

static bool is_multiple(const int64_t *batch, const int64_t *strides, int64_t of) {
    for (int i = 0; i < PRODUCT_BATCHES; i++)
        if (batch[i] > 1 && strides[i] % of != 0)
            return false;
    return true;
}

bool product_comes_wide(const int64_t *batch, const ProductFactor *factor) {
    int64_t each = WIDE_BYTES / (int64_t)format_table[factor->format].bytes;
    int64_t along = factor->along_depth ? factor->depth : factor->outer;
    int64_t across = factor->along_depth ? factor->outer : factor->depth;
    return (uintptr_t)factor->data % WIDE_BYTES == 0 && along == 1 && across % each == 0 &&
           is_multiple(batch, factor->batch, each);
}

// Eight neighbours are channels of one tap.
static bool conv_comes_wide(const ProductArguments *product, const ProductFactor *factor,
                            const ConvFactor *conv) {
    int64_t each = WIDE_BYTES / (int64_t)format_table[factor->format].bytes;
    if (conv->kind == FACTOR_PLAIN)
        return product_comes_wide(product->batch, factor);
    return (uintptr_t)factor->data % WIDE_BYTES == 0 && conv->image % each == 0 &&
           conv->row % each == 0 && conv->column % each == 0 &&
           (conv->kind == FACTOR_FILTERS_BACK || conv->channels.by % EIGHT == 0) &&
           is_multiple(product->batch, factor->batch, each);
}

// Launches the kernel of a product whose arguments, or those that it is part of, are given.
static bool launch(Device *device, GpuKernel kernel, int64_t tiles, ProductArguments *product,
                   const void *arguments, Error *error) {
    int64_t results = product->rows * product->columns * matrices_of(product);
    if (product->parts > 1) {
        size_t bytes = (size_t)(results * product->parts) * sizeof(float);
        if (!(product->partial = device_workspace(device, bytes, error)))
            return false;
    }
    GpuGrid grid = {.x = tiles * product->parts};
    return gpu_launch(device, kernel, grid, arguments, error) &&
           (product->parts == 1 ||
            gpu_launch_product_join(device, gpu_grid(GPU_KERNEL_product_join, results, 1), product,
                                    error));
}

// Prepares a product for our own kernels, but for its parts.
static void find_wide(ProductArguments *product) {
    int64_t each = WIDE_BYTES / (int64_t)format_table[product->c.format].bytes;
    product->a.wide = product_comes_wide(product->batch, &product->a);
    product->b.wide = product_comes_wide(product->batch, &product->b);
    product->c.wide = (uintptr_t)product->c.data % WIDE_BYTES == 0 && product->c.row % each == 0 &&
                      is_multiple(product->batch, product->c.batch, each);
}

bool product_run_own(Device *device, const ProductArguments *given, Error *error) {
    ProductArguments product = *given;
    const Division *division = division_of(&product);
    find_wide(&product);
    product.part = product.depth;
    product.parts = 1;
    return launch(device, division->kernel, tiles_of(&product, division), &product, &product,
                  error);
}

// The library has the sums; their maximum with 0 is ours, where they lie side by side.
static BlasAnswer run_by_library(Device *device, const ProductArguments *product, Error *error) {
    if (product->activation != ACTIVATION_RELU)
        return blas_product_run(device, product, error);
    if (product->c.row != product->columns || matrices_of(product) != 1)
        return BLAS_DECLINED;
    ProductArguments sums = *product;
    sums.activation = ACTIVATION_NONE;
    BlasAnswer answer = blas_product_run(device, &sums, error);
    const View results = view_dense(product->c.data, (Format)product->c.format, 2,
                                    (int64_t[]){product->rows, product->columns});
    if (answer == BLAS_DONE && !gpu_relu_in_place(device, &results, error))
        return BLAS_FAILED;
    return answer;
}

bool product_run(Device *device, const ProductArguments *given, Error *error) {
    BlasAnswer answer = run_by_library(device, given, error);
    if (answer != BLAS_DECLINED)
        return answer == BLAS_DONE;
    ProductArguments product = *given;
    const Division *division = division_of(&product);
    find_wide(&product);
    divide(device, &product);
    return launch(device, division->kernel, tiles_of(&product, division), &product, &product,
                  error);
}

bool product_run_conv(Device *device, const ConvArguments *given, Error *error) {
    ConvArguments conv = *given;
    ProductArguments *product = &conv.product;
    find_wide(product);
    product->a.wide = conv_comes_wide(product, &product->a, &conv.a);
    product->b.wide = conv_comes_wide(product, &product->b, &conv.b);
    divide(device, product);
    const Division *division = division_of(product);
    return launch(device, division->conv, tiles_of(product, division), product, &conv, error);
}

bool product_join_rows(Device *device, float *partial, int64_t parts, int64_t columns, float *row,
                       Error *error) {
    ProductArguments product = {
        .c = {.data = row, .format = FORMAT_FP32, .row = columns},
        .rows = 1,
        .columns = columns,
        .batch = {1, 1, 1, 1},
        .parts = (u32)parts,
        .partial = partial,
    };
    return gpu_launch_product_join(device, gpu_grid(GPU_KERNEL_product_join, columns, 1), &product,
                                   error);
}
