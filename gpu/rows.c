// What goes by rows: softmax and its like, the largest of a row.
#include "gpu/rows.h"

#include "gpu/backend.h"
#include "gpu/operands.h"
#include "gpu/reduce.h"

enum {
    PART = 8,           // neighbours of a thread
    SHARED_BLOCK = 256, // threads of a block of several rows
    FEWEST = 64,
    MOST = 512 // threads of a block of one
};

// Threads of a row of so many parts: some lanes of a warp, if these can hold it, else a block.
static u32 team_of(int64_t parts, int chunks) {
    const int64_t each = chunks > 0 ? chunks : 4;
    if (parts <= WARP)
        return gpu_power_of_two(parts, WARP);
    if (parts <= WARP * each)
        return WARP;
    const u32 threads = gpu_power_of_two((parts + 1) / 2, MOST);
    return threads < FEWEST ? FEWEST : threads;
}

GpuRows gpu_rows(const KernelCall *call, int inputs, int chunks) {
    const View *x = &call->input[0];
    const int64_t length = x->ndim ? x->shape[x->ndim - 1] : 1;
    GpuRows rows = {.arguments = {.length = length,
                                  .rows = length > 0 ? view_count(x) / length : 0,
                                  .output = gpu_dense(&call->output[0])}};
    RowArguments *a = &rows.arguments;
    a->wide = gpu_goes_wide(&a->output);
    for (int i = 0; i < inputs; i++) {
        a->input[i] = gpu_dense(&call->input[i]);
        a->wide = a->wide && gpu_goes_wide(&a->input[i]);
    }
    // A row begins anywhere in a part, if parts do not divide it.
    const int64_t parts = length % PART ? (length + 2 * PART - 2) / PART : length / PART;
    a->team = team_of(parts, chunks);
    rows.is_long = parts > (int64_t)a->team * chunks;
    rows.grid.threads = a->team > WARP ? a->team : SHARED_BLOCK;
    const int64_t rows_of_block = rows.grid.threads / a->team;
    rows.grid.x = gpu_divided_up(a->rows, rows_of_block);
    return rows;
}

// A kernel whose threads hold `chunks` parts of each of its inputs, and its fellow for long rows.
#define ROW_KERNEL(name, inputs, chunks)                                                \
    KERNEL_SIGNATURE(gpu, name) {                                                       \
        const GpuRows rows = gpu_rows(call, inputs, chunks);                            \
        if (rows.is_long)                                                               \
            return gpu_launch_##name##_long(device, rows.grid, &rows.arguments, error); \
        return gpu_launch_##name(device, rows.grid, &rows.arguments, error);            \
    }
ROW_KERNEL(softmax, 1, ROW_CHUNKS)
ROW_KERNEL(log_softmax, 1, ROW_CHUNKS)
ROW_KERNEL(softmax_backward, 2, PAIR_CHUNKS)
ROW_KERNEL(log_softmax_backward, 2, PAIR_CHUNKS)

KERNEL_SIGNATURE(gpu, argmax) {
    const GpuRows rows = gpu_rows(call, 1, 0);
    return gpu_launch_argmax(device, rows.grid, &rows.arguments, error);
}

KERNEL_SIGNATURE(gpu, topk) {
    const GpuRows rows = gpu_rows(call, 1, 0);
    const TopkArguments arguments = {rows.arguments, call->output[1].data,
                                     call->output[0].shape[call->output[0].ndim - 1]};
    return gpu_launch_topk(device, rows.grid, &arguments, error);
}
