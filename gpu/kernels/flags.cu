// What a step decides by: how far the gradients are clipped, and how the loss scale moves.
#include "gpu/kernels/card.h"

GPU_DEFINE(clip_norm) {
    if (threadIdx.x != 0)
        return;
    const double norm = a.flags->found_inf ? (double)INFINITY : sqrt(a.flags->norm_squared);
    a.flags->norm = (float)norm;
    a.flags->clip = norm > a.limit && isfinite(norm) ? (float)(a.limit / norm) : 1;
}

GPU_DEFINE(scale_update) {
    if (threadIdx.x == 0)
        step_flags_move_scale(a.many ? a.many : a.few, (int)a.count, &a.rule, a.state);
}
