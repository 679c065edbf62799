// Reductions: how an array of any strides is walked by gpu/kernels/reduce.cu.
#include "gpu/reduce.h"

#include "gpu/backend.h"
#include "gpu/operands.h"

enum {
    BLOCK = 256,        // threads
    PART_OF_ROW = 8192, // elements that are worth a block of their own
    PART_OF_THREAD = 8,
    ENOUGH_BLOCKS = 1024 // keep any card busy
};

typedef enum Rule { RULE_SUM, RULE_MAX, RULE_MIN } Rule;

uint32_t gpu_power_of_two(int64_t count, uint32_t most) {
    uint32_t power = 1;
    while (power < count && power < most)
        power *= 2;
    return power;
}

static void add_axis(Extent *extent, int64_t *strides, int64_t size, int64_t stride) {
    extent->count *= size;
    if (size == 1)
        return;
    const u32 last = extent->ndim - 1;
    if (extent->ndim > 0 && strides[last] == stride * size) {
        extent->size[last] *= size;
        strides[last] = stride;
        return;
    }
    extent->size[extent->ndim] = size;
    strides[extent->ndim++] = stride;
}

static ReduceArguments arguments_of(const View *x, uint32_t dims, const View *y, double divisor) {
    ReduceArguments a = {.input = gpu_dense(x),
                         .output = gpu_dense(y),
                         .kept = {.count = 1},
                         .reduced = {.count = 1},
                         .divisor = (float)divisor};
    for (int i = 0; i < x->ndim; i++)
        if (dims == 0 || dims >> i & 1)
            add_axis(&a.reduced, a.along.stride, x->shape[i], x->stride[i]);
        else
            add_axis(&a.kept, a.input.stride, x->shape[i], x->stride[i]);
    return a;
}

// Whether neighbours are outputs' neighbours: a block then walks down.
static bool walks_down(const ReduceArguments *a) {
    const u32 kept = a->kept.ndim, reduced = a->reduced.ndim;
    if (kept == 0 || reduced == 0)
        return kept > 0;
    return a->along.stride[reduced - 1] != 1 && a->input.stride[kept - 1] == 1;
}

static bool columns_are_wide(const ReduceArguments *a) {
    bool wide = gpu_goes_wide(&a->input) && a->kept.ndim == 1 && a->input.stride[0] == 1 &&
                a->kept.count % EIGHT == 0;
    for (u32 i = 0; i < a->reduced.ndim; i++)
        wide = wide && a->along.stride[i] % EIGHT == 0;
    return wide;
}

static bool row_is_wide(const ReduceArguments *a) {
    return gpu_goes_wide(&a->input) && a->reduced.ndim == 1 && a->along.stride[0] == 1;
}

// Into how many parts `count` things are cut, each of which is worth at least `worth`, where there
// are `blocks` of one part anyhow, and `enough` of them keep a card busy.
static int64_t parts_of(int64_t count, int64_t worth, int64_t blocks, int64_t enough) {
    const int64_t most = blocks > 0 ? enough / blocks : 1;
    const int64_t parts = count / worth;
    const int64_t fewer = parts < most ? parts : most;
    return fewer > 1 ? fewer : 1;
}

static GpuGrid plan_rows(ReduceArguments *a) {
    a->wide = row_is_wide(a);
    const int64_t parts = parts_of(a->reduced.count, PART_OF_ROW, a->kept.count, ENOUGH_BLOCKS);
    a->part = gpu_divided_up(a->reduced.count, parts);
    const int64_t steps = a->wide ? (a->part + 2 * EIGHT - 2) / EIGHT : a->part;
    a->team = gpu_power_of_two((steps + 1) / 2, BLOCK);
    const u32 threads = a->team > WARP ? a->team : BLOCK;
    return (GpuGrid){.x = gpu_divided_up(a->kept.count, threads / a->team),
                     .y = (unsigned)parts,
                     .threads = threads};
}

GpuColumns gpu_columns(int64_t rows, int64_t across, int64_t rows_of_thread, int64_t blocks) {
    GpuColumns columns = {.team = gpu_power_of_two(across, WARP)};
    const int64_t wide = gpu_divided_up(across, columns.team);
    columns.parts = parts_of(rows, BLOCK / columns.team * rows_of_thread, wide, blocks);
    columns.part = gpu_divided_up(rows, columns.parts);
    columns.grid = (GpuGrid){.x = wide, .y = (unsigned)columns.parts};
    return columns;
}

static GpuGrid plan_columns(ReduceArguments *a) {
    a->wide = columns_are_wide(a);
    const GpuColumns columns =
        gpu_columns(a->reduced.count, a->wide ? a->kept.count / EIGHT : a->kept.count,
                    PART_OF_THREAD, ENOUGH_BLOCKS);
    a->team = columns.team;
    a->part = columns.part;
    return columns.grid;
}

static bool run(Device *device, Rule rule, ReduceArguments *a, Error *error) {
    static const GpuKernel kernels[][2] = {
        [RULE_SUM] = {GPU_KERNEL_sum_rows, GPU_KERNEL_sum_columns},
        [RULE_MAX] = {GPU_KERNEL_max_rows, GPU_KERNEL_max_columns},
        [RULE_MIN] = {GPU_KERNEL_min_rows, GPU_KERNEL_min_columns}};
    const bool down = walks_down(a);
    const GpuGrid grid = down ? plan_columns(a) : plan_rows(a);
    const GpuKernel kernel = kernels[rule][down];
    if (grid.y <= 1)
        return gpu_launch(device, kernel, grid, a, error);
    const int64_t shape[] = {grid.y, a->kept.count};
    float *parts = device_workspace(device, (size_t)(shape[0] * shape[1]) * sizeof *parts, error);
    if (!parts)
        return false;
    const View partial = view_dense(parts, FORMAT_FP32, 2, shape);
    ReduceArguments first = *a, rest = arguments_of(&partial, 1, &partial, (double)a->divisor);
    first.output = gpu_dense(&partial);
    first.divisor = 1;
    rest.output = a->output;
    const bool rest_down = walks_down(&rest);
    GpuGrid last = rest_down ? plan_columns(&rest) : plan_rows(&rest);
    last.y = 1; // these are few: they are not cut again
    rest.part = rest.reduced.count;
    return gpu_launch(device, kernel, grid, &first, error) &&
           gpu_launch(device, kernels[rule][rest_down], last, &rest, error);
}

static bool reduce(Device *device, const KernelCall *call, Rule rule, bool mean, Error *error) {
    const View *x = &call->input[0], *y = &call->output[0];
    const uint32_t dims = call->attr ? call->attr->reduce.dims : 0;
    ReduceArguments a = arguments_of(x, dims, y, 1);
    if (mean)
        a.divisor = (float)a.reduced.count;
    return run(device, rule, &a, error);
}

KERNEL_SIGNATURE(gpu, sum) {
    return reduce(device, call, RULE_SUM, false, error);
}
KERNEL_SIGNATURE(gpu, mean) {
    return reduce(device, call, RULE_SUM, true, error);
}
KERNEL_SIGNATURE(gpu, max) {
    return reduce(device, call, RULE_MAX, false, error);
}
KERNEL_SIGNATURE(gpu, min) {
    return reduce(device, call, RULE_MIN, false, error);
}

bool gpu_sum_numbers(Device *device, const float *numbers, int64_t count, double divisor,
                     const View *output, Error *error) {
    const View all = view_dense((void *)(uintptr_t)numbers, FORMAT_FP32, 1, &count);
    ReduceArguments a = arguments_of(&all, 0, output, divisor);
    GpuGrid grid = plan_rows(&a);
    a.part = count;
    grid.y = 1; // what is in the workspace stays there
    return gpu_launch_sum_rows(device, grid, &a, error);
}

bool gpu_sum_columns(Device *device, const float *numbers, int64_t rows, int64_t columns,
                     const View *output, Error *error) {
    const int64_t shape[] = {rows, columns};
    const View all = view_dense((void *)(uintptr_t)numbers, FORMAT_FP32, 2, shape);
    ReduceArguments a = arguments_of(&all, 1, output, 1);
    const bool down = walks_down(&a);
    GpuGrid grid = down ? plan_columns(&a) : plan_rows(&a);
    a.part = rows;
    grid.y = 1;
    return gpu_launch(device, down ? GPU_KERNEL_sum_columns : GPU_KERNEL_sum_rows, grid, &a, error);
}
