// Normalisation on a card. All norms share what weights and biases get (norm_columns.cu); rows go
// by norm_rows.cu, groups and rows that are too long by norm_sets.cu, batches by norm_columns.cu.
#include "gpu/backend.h"
#include "gpu/operands.h"
#include "gpu/reduce.h"
#include "gpu/rows.h"

enum {
    MOST_OF_SET = 512, // threads
    ROWS_TO_SUM = 16,
    BLOCKS_TO_SUM = 1024, // of a thread, where there are enough; in all at most
    ROWS_TO_WRITE = 8,
    BLOCKS_TO_WRITE = 8192,
    BLOCKS_TO_FILL = 2 // of a multiprocessor, by fewer rows of a thread if need be
};

static NormArguments arguments_of(const View *x, const KernelCall *call) {
    const int64_t channels = x->shape[x->ndim - 1];
    return (NormArguments){.x = gpu_dense(x),
                           .output = gpu_dense(&call->output[0]),
                           .channels = channels,
                           .rows = channels > 0 ? view_count(x) / channels : 0,
                           .epsilon = (float)call->attr->norm.epsilon};
}

// Which elements share a mean.
static void share_rows(NormArguments *a) {
    a->rows_of_set = a->groups = 1;
    a->group = a->channels;
}
static void share_channels(NormArguments *a) {
    a->rows_of_set = a->rows;
    a->groups = a->channels;
    a->group = 1;
}
static void share_groups(NormArguments *a, const View *x, int64_t groups) {
    a->rows_of_set = a->rows / x->shape[0];
    a->groups = groups;
    a->group = a->channels / groups;
}

static NormArguments forward_arguments(const KernelCall *call) {
    NormArguments a = arguments_of(&call->input[0], call);
    a.weight = gpu_dense(&call->input[1]);
    a.bias = gpu_dense(&call->input[2]);
    a.mean = gpu_dense(&call->output[1]);
    a.inverse = gpu_dense(&call->output[2]);
    return a;
}

static NormArguments backward_arguments(const KernelCall *call) {
    NormArguments a = arguments_of(&call->input[1], call);
    a.dy = gpu_dense(&call->input[0]);
    a.weight = gpu_dense(&call->input[2]);
    a.mean = gpu_dense(&call->input[3]);
    a.inverse = gpu_dense(&call->input[4]);
    return a;
}

// Whether `neighbours` fall into parts of eight, of all arrays.
static bool goes_wide(const NormArguments *a, int64_t neighbours) {
    return neighbours % EIGHT == 0 && gpu_goes_wide(&a->x) && gpu_goes_wide(&a->output) &&
           (a->dy.kind == OPERAND_ABSENT || gpu_goes_wide(&a->dy));
}

// ---- down the channels --------------------------------------------------------------------------

static GpuGrid plan_columns(const Device *device, NormArguments *a, int64_t rows_of_thread,
                            int64_t blocks) {
    a->wide = goes_wide(a, a->channels);
    const int64_t across = a->wide ? a->channels / EIGHT : a->channels;
    const int64_t wanted = (int64_t)device->multiprocessors * BLOCKS_TO_FILL;
    GpuColumns columns = gpu_columns(a->rows, across, rows_of_thread, blocks);
    while (rows_of_thread > 1 && columns.grid.x * columns.parts < wanted) {
        rows_of_thread /= 2;
        columns = gpu_columns(a->rows, across, rows_of_thread, blocks);
    }
    a->team = columns.team;
    a->part = columns.part;
    a->parts = columns.parts;
    return columns.grid;
}

// Memory for two numbers a channel of each part, and `totals` more a channel.
static float *take_partial(Device *device, NormArguments *a, int64_t totals, Error *error) {
    const int64_t count = (2 * a->parts + totals) * a->channels;
    a->partial = device_workspace(device, (size_t)count * sizeof(float), error);
    return a->partial;
}

// Sums what the parts have: the gradients of weight and bias, where they are wanted; `a->products`
// and `a->gradients` are where they lie then. A batch needs them in any case.
static bool sum_parts(Device *device, const KernelCall *call, NormArguments *a, bool needed,
                      Error *error) {
    View total[2] = {call->output[1], call->output[2]};
    for (int i = 0; i < 2; i++) {
        const float *partial = a->partial + i * a->parts * a->channels;
        if (!total[i].data && !needed)
            continue;
        if (!total[i].data)
            total[i] = view_dense(a->partial + (2 * a->parts + i) * a->channels, FORMAT_FP32, 1,
                                  &a->channels);
        if (!gpu_sum_columns(device, partial, a->parts, a->channels, &total[i], error))
            return false;
    }
    a->products = total[0].data;
    a->gradients = total[1].data;
    return true;
}

static bool wants_weights(const KernelCall *call) {
    return call->output[1].data || call->output[2].data;
}

static bool weight_gradients(Device *device, const KernelCall *call, NormArguments *a, bool needed,
                             Error *error) {
    if (!needed && !wants_weights(call))
        return true;
    const GpuGrid grid = plan_columns(device, a, ROWS_TO_SUM, BLOCKS_TO_SUM);
    return take_partial(device, a, 2, error) && gpu_launch_norm_weights(device, grid, a, error) &&
           sum_parts(device, call, a, needed, error);
}

static bool apply(Device *device, NormArguments *a, Error *error) {
    const GpuGrid grid = plan_columns(device, a, ROWS_TO_WRITE, BLOCKS_TO_WRITE);
    return gpu_launch_batch_apply(device, grid, a, error);
}

KERNEL_SIGNATURE(gpu, batch_norm) {
    NormArguments a = forward_arguments(call);
    const GpuGrid grid = plan_columns(device, &a, ROWS_TO_SUM, BLOCKS_TO_SUM);
    return take_partial(device, &a, 0, error) &&
           gpu_launch_batch_moments(device, grid, &a, error) &&
           gpu_launch_batch_statistics(
               device, gpu_grid(GPU_KERNEL_batch_statistics, a.channels * WARP, 1), &a, error) &&
           apply(device, &a, error);
}

KERNEL_SIGNATURE(gpu, batch_norm_infer) {
    NormArguments a = arguments_of(&call->input[0], call);
    a.weight = gpu_dense(&call->input[1]);
    a.bias = gpu_dense(&call->input[2]);
    a.mean = gpu_dense(&call->input[3]);
    a.inverse = gpu_dense(&call->input[4]);
    a.inverse_is_variance = true;
    return apply(device, &a, error);
}

KERNEL_SIGNATURE(gpu, batch_norm_backward) {
    NormArguments a = backward_arguments(call);
    share_channels(&a);
    if (!weight_gradients(device, call, &a, true, error))
        return false;
    const GpuGrid grid = plan_columns(device, &a, ROWS_TO_WRITE, BLOCKS_TO_WRITE);
    return gpu_launch_batch_norm_backward(device, grid, &a, error);
}

KERNEL_SIGNATURE(gpu, batch_norm_track) {
    const NormAttr *attr = &call->attr->norm;
    // What is tracked estimates the variance of all data from a sample: n - 1 below the line.
    const double unbiased = attr->count > 1 ? (double)attr->count / (double)(attr->count - 1) : 1;
    const TrackArguments a = {.old_mean = gpu_dense(&call->input[0]),
                              .old_variance = gpu_dense(&call->input[1]),
                              .mean = gpu_dense(&call->input[2]),
                              .inverse = gpu_dense(&call->input[3]),
                              .new_mean = gpu_dense(&call->output[0]),
                              .new_variance = gpu_dense(&call->output[1]),
                              .channels = call->input[0].shape[0],
                              .epsilon = (float)attr->epsilon,
                              .new_share = (float)attr->momentum,
                              .old_share = (float)(1 - attr->momentum),
                              .unbiased = (float)unbiased};
    return gpu_launch_batch_norm_track(device, gpu_grid(GPU_KERNEL_batch_norm_track, a.channels, 1),
                                       &a, error);
}

// ---- sets ---------------------------------------------------------------------------------------

static GpuGrid plan_sets(NormArguments *a) {
    a->wide = goes_wide(a, a->group);
    const int64_t steps = a->rows_of_set * a->group / (a->wide ? EIGHT : 1);
    const u32 threads = gpu_power_of_two((steps + 1) / 2, MOST_OF_SET);
    return (GpuGrid){.x = a->rows / a->rows_of_set * a->groups,
                     .threads = threads < WARP ? WARP : threads};
}

static bool norm_sets(Device *device, NormArguments *a, Error *error) {
    const GpuGrid grid = plan_sets(a);
    return gpu_launch_group_norm(device, grid, a, error);
}

static bool sets_backward(Device *device, const KernelCall *call, NormArguments *a, Error *error) {
    const GpuGrid grid = plan_sets(a);
    return gpu_launch_group_norm_backward(device, grid, a, error) &&
           weight_gradients(device, call, a, false, error);
}

KERNEL_SIGNATURE(gpu, group_norm) {
    NormArguments a = forward_arguments(call);
    share_groups(&a, &call->input[0], call->attr->norm.groups);
    return norm_sets(device, &a, error);
}

KERNEL_SIGNATURE(gpu, group_norm_backward) {
    NormArguments a = backward_arguments(call);
    share_groups(&a, &call->input[1], call->attr->norm.groups);
    return sets_backward(device, call, &a, error);
}

// ---- rows ---------------------------------------------------------------------------------------

static NormRowArguments row_arguments(const NormArguments *a, const GpuRows *rows) {
    return (NormRowArguments){.rows = rows->arguments,
                              .weight = a->weight,
                              .bias = a->bias,
                              .mean = a->mean,
                              .inverse = a->inverse,
                              .epsilon = a->epsilon,
                              .divides = a->channels % EIGHT == 0};
}

KERNEL_SIGNATURE(gpu, layer_norm) {
    const GpuRows rows = gpu_rows(call, 1, ROW_CHUNKS);
    NormArguments a = forward_arguments(call);
    share_rows(&a);
    if (rows.is_long)
        return norm_sets(device, &a, error);
    const NormRowArguments arguments = row_arguments(&a, &rows);
    return gpu_launch_layer_norm(device, rows.grid, &arguments, error);
}

// Of so many that the sums kept of them are little beside the rows, where these fill the card; and
// not more blocks than keep any card busy.
static int64_t rows_of_block(const Device *device, int64_t rows, int64_t teams) {
    const int64_t least = teams * ROWS_TO_SUM;
    const int64_t fills = gpu_divided_up(rows, (int64_t)device->multiprocessors * BLOCKS_TO_FILL);
    const int64_t many = gpu_divided_up(rows, BLOCKS_TO_SUM);
    const int64_t wanted = fills < least ? fills : least;
    const int64_t own = many > wanted ? many : wanted;
    return own > teams ? gpu_divided_up(own, teams) * teams : teams;
}

KERNEL_SIGNATURE(gpu, layer_norm_backward) {
    const GpuRows rows = gpu_rows(call, 2, PAIR_CHUNKS);
    NormArguments a = backward_arguments(call);
    share_rows(&a);
    NormRowArguments arguments = row_arguments(&a, &rows);
    if (rows.is_long || !arguments.divides || !rows.arguments.wide)
        return sets_backward(device, call, &a, error);
    GpuGrid grid = rows.grid;
    arguments.part = rows_of_block(device, a.rows, grid.threads / rows.arguments.team);
    a.parts = grid.x = gpu_divided_up(a.rows, arguments.part);
    arguments.partial = take_partial(device, &a, 0, error);
    return arguments.partial && gpu_launch_layer_norm_backward(device, grid, &arguments, error) &&
           sum_parts(device, call, &a, false, error);
}
