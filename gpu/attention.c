// Attention on a card: what gpu/kernels/attention.cu and attention_mma.cu are told, and which of
// them.
#include "gpu/dnn.h"
#include "gpu/launch.h"
#include "gpu/products.h"

enum { TILE = 64 };

static ProductFactor factor_of(const KernelCall *call, const View *view) {
    ProductFactor factor = product_factor(view->data, product_format(call, view->format),
                                          view->stride[1], view->stride[3]);
    const int64_t batch[PRODUCT_BATCHES] = {1, 1, view->shape[0], view->shape[2]};
    factor.along_depth = 1;
    factor.batch[2] = view->stride[0];
    factor.batch[3] = view->stride[2];
    factor.wide = product_comes_wide(batch, &factor);
    return factor;
}

static AttentionArguments arguments_of(const KernelCall *call, const View *q, const View *k,
                                       const View *v) {
    AttentionArguments arguments = {
        .q = factor_of(call, q),
        .k = factor_of(call, k),
        .v = factor_of(call, v),
        .batches = q->shape[0],
        .heads = q->shape[2],
        .queries = q->shape[1],
        .keys = k->shape[1],
        .depth = q->shape[3],
        .scale = (float)call->attr->attention.scale,
        .causal = call->attr->attention.causal,
    };
    return arguments;
}

static void keep_sums(AttentionArguments *arguments, const View *sums) {
    arguments->sums = sums->data;
    for (int i = 0; i < sums->ndim; i++)
        arguments->sums_stride[i] = sums->stride[i];
}

static void write_to(AttentionArguments *arguments, int which, const View *view) {
    int64_t each = WIDE_BYTES / (int64_t)format_table[view->format].bytes;
    arguments->out[which] = view->data;
    arguments->format[which] = view->format;
    arguments->wide[which] =
        (uintptr_t)view->data % WIDE_BYTES == 0 && arguments->depth % each == 0;
}

// A block for each tile of rows of each head, and for each tile of the columns of its result.
static GpuGrid tiles_of(const AttentionArguments *arguments, int64_t rows) {
    return (GpuGrid){.x = gpu_divided_up(rows, TILE) * arguments->batches * arguments->heads,
                     .y = (unsigned)gpu_divided_up(arguments->depth, TILE)};
}

typedef struct AttentionKernels {
    GpuKernel forward, queries, keys;
} AttentionKernels;

static const AttentionKernels plain = {GPU_KERNEL_attention, GPU_KERNEL_attention_queries,
                                       GPU_KERNEL_attention_keys};
static const AttentionKernels bf16_tiles = {
    GPU_KERNEL_attention_bf16, GPU_KERNEL_attention_queries_bf16, GPU_KERNEL_attention_keys_bf16};
static const AttentionKernels fp16_tiles = {
    GPU_KERNEL_attention_fp16, GPU_KERNEL_attention_queries_fp16, GPU_KERNEL_attention_keys_fp16};
static const AttentionKernels tf32_tiles = {
    GPU_KERNEL_attention_tf32, GPU_KERNEL_attention_queries_tf32, GPU_KERNEL_attention_keys_tf32};

// Tiles take factors of one format of 16 bits, or any where one is multiplied in TF32.
static const AttentionKernels *kernels_of(const ProductFactor *const *factors, int count) {
    bool same = true;
    for (int i = 0; i < count; i++) {
        if (factors[i]->format == FORMAT_TF32)
            return &tf32_tiles;
        same = same && factors[i]->format == factors[0]->format;
    }
    if (!same || factors[0]->format == FORMAT_FP32)
        return &plain;
    return factors[0]->format == FORMAT_BF16 ? &bf16_tiles : &fp16_tiles;
}

KERNEL_SIGNATURE(gpu_own, attention) {
    AttentionArguments arguments =
        arguments_of(call, &call->input[0], &call->input[1], &call->input[2]);
    write_to(&arguments, 0, &call->output[0]);
    keep_sums(&arguments, &call->output[1]);
    const ProductFactor *factors[] = {&arguments.q, &arguments.k, &arguments.v};
    return gpu_launch(device, kernels_of(factors, 3)->forward,
                      tiles_of(&arguments, arguments.queries), &arguments, error);
}

KERNEL_SIGNATURE(gpu_own, attention_backward) {
    AttentionArguments arguments =
        arguments_of(call, &call->input[1], &call->input[2], &call->input[3]);
    int64_t rows = arguments.batches * arguments.heads * arguments.queries;
    arguments.dy = factor_of(call, &call->input[0]);
    arguments.y = factor_of(call, &call->input[4]);
    keep_sums(&arguments, &call->input[5]);
    for (int i = 0; i < 3; i++)
        write_to(&arguments, i, &call->output[i]);
    if (rows > 0 &&
        !(arguments.delta = device_workspace(device, (size_t)rows * sizeof(float), error)))
        return false;
    GpuGrid by_warps = gpu_grid(GPU_KERNEL_attention_delta, rows * WARP, 1);
    const ProductFactor *factors[] = {&arguments.q, &arguments.k, &arguments.v, &arguments.dy};
    const AttentionKernels *kernels = kernels_of(factors, 4);
    return gpu_launch_attention_delta(device, by_warps, &arguments, error) &&
           gpu_launch(device, kernels->queries, tiles_of(&arguments, arguments.queries), &arguments,
                      error) &&
           gpu_launch(device, kernels->keys, tiles_of(&arguments, arguments.keys), &arguments,
                      error);
}
