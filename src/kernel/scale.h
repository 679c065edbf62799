// kernel/scale.h: a factor of a product seen as lines along its depth, in blocks that share a
// scale.
//
// What every backend's scale_factor walks over. Pure; host and card.
#pragma once

#include "kernel/attr.h"
#include "kernel/kernel.h"
#include "kernel/view.h"

// Products whose factors are scaled. Attention, which meets its factors along two depths at once,
// is computed in what tensors are kept in.
static inline bool scale_serves(OpId op) {
    return op == OP_matmul || op == OP_linear || op == OP_conv2d || op == OP_conv_transpose2d;
}

// Norms whose weights and biases can be rounded likewise, in blocks along them.
static inline bool scale_serves_norm(OpId op) {
    return op == OP_layer_norm || op == OP_group_norm;
}

// Dense, an array is [outer][depth][inner]: line `outer * inner + i` has its numbers `inner` apart.
typedef struct ScaleLines {
    int64_t outer, depth, inner;
    int64_t block, lines; // that share a scale: along the depth, and neighbouring lines
} ScaleLines;

KERNEL_INLINE ScaleLines scale_lines(const View *view, const ScaleAttr *by) {
    ScaleLines lines = {1, 1, 1, by->block, by->lines > 1 ? by->lines : 1};
    for (int i = 0; i < view->ndim; i++) {
        if (i < by->first)
            lines.outer *= view->shape[i];
        else if (i < by->first + by->dims)
            lines.depth *= view->shape[i];
        else
            lines.inner *= view->shape[i];
    }
    return lines;
}

// Where number `step` of a line lies among all, in row-major order: what chance goes by, too.
KERNEL_INLINE int64_t scale_index(const ScaleLines *lines, int64_t line, int64_t step) {
    return (line / lines->inner * lines->depth + step) * lines->inner + line % lines->inner;
}

// Lines in groups that share scales: side by side within the dimensions behind the depth, or, where
// there are none, before it.
KERNEL_INLINE int64_t scale_groups_within(const ScaleLines *lines) {
    return ((lines->inner > 1 ? lines->inner : lines->outer) + lines->lines - 1) / lines->lines;
}
KERNEL_INLINE int64_t scale_groups(const ScaleLines *lines) {
    return scale_groups_within(lines) * (lines->inner > 1 ? lines->outer : 1);
}
// The first line of a group; how many it has.
KERNEL_INLINE int64_t scale_group(const ScaleLines *lines, int64_t group, int64_t *first) {
    const int64_t within = scale_groups_within(lines),
                  all = lines->inner > 1 ? lines->inner : lines->outer;
    const int64_t begin = group % within * lines->lines;
    *first = group / within * all + begin;
    return all - begin < lines->lines ? all - begin : lines->lines;
}
