// Looking at what operations give without asking the card: what gpu/kernels/look.cu is told.
#include "gpu/launch.h"
#include "gpu/multi.h"
#include "gpu/operands.h"
#include "gpu/zero.h"

enum { WARP_THREADS = 32, MOST_THREADS = 256, MOST_BLOCKS = 512 };

bool gpu_look_begin(Device *device, LookFound *found, int count, Error *error) {
    return gpu_zero(device, found, (size_t)count * sizeof *found, error);
}

bool gpu_look(Device *device, const View *view, LookFound *found, Error *error) {
    LookArguments a = {.found = found};
    Operand output;
    View dense = view_dense(NULL, view->format, view->ndim, view->shape);
    gpu_operands(view, 1, &dense, &a.input, &output, &a.extent);
    if (a.extent.count == 0)
        return true;
    a.wide = a.input.kind == OPERAND_WIDE && gpu_goes_wide(&a.input);
    // A thread has eight at a time, and a small tensor no more threads than that takes.
    const int64_t turns = (a.extent.count + EIGHT - 1) / EIGHT;
    const int64_t warps = (turns + WARP_THREADS - 1) / WARP_THREADS;
    const unsigned threads =
        warps < MOST_THREADS / WARP_THREADS ? (unsigned)warps * WARP_THREADS : MOST_THREADS;
    const int64_t blocks = (turns + threads - 1) / threads;
    const GpuGrid grid = {.x = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, .threads = threads};
    return gpu_launch_look(device, grid, &a, error);
}
