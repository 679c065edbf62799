// Selection and arrangement: values move, and are rounded only where the format changes.
#include "kernel/random.h"
#include "ref/access.h"
#include "ref/kernels.h"

REF_KERNEL(embedding) {
    const View *weight = &call->input[0], *index = &call->input[1], *y = &call->output[0];
    const ValueCheck check = value_check(call, FAULT_ROW, weight->shape[0]);
    int64_t depth = weight->shape[1];
    for (int64_t i = 0; i < view_count(index); i++) {
        int64_t row = (int64_t)ref_get(index, i);
        if (!value_passes(&check, row))
            return value_fail(&check, i, row, error);
        for (int64_t d = 0; d < depth; d++)
            ref_put(y, i * depth + d, ref_get(weight, row * depth + d));
    }
    return true;
}

REF_KERNEL(embedding_backward) {
    const View *dy = &call->input[0], *index = &call->input[1], *dweight = &call->output[0];
    int64_t rows = dweight->shape[0], depth = dweight->shape[1];
    const ValueCheck check = value_check(call, FAULT_ROW, rows);
    double *sums = ref_scratch(device, rows * depth, 0, error);
    if (!sums)
        return false;
    for (int64_t i = 0; i < view_count(index); i++) {
        int64_t row = (int64_t)ref_get(index, i);
        if (!value_passes(&check, row))
            return value_fail(&check, i, row, error);
        for (int64_t d = 0; d < depth; d++)
            sums[row * depth + d] += ref_get(dy, i * depth + d);
    }
    for (int64_t i = 0; i < rows * depth; i++)
        ref_put(dweight, i, sums[i]);
    return true;
}

// ---- along one dimension ------------------------------------------------------------------------

// The row-major coordinates of an element, and back.
static void coordinates_of(const View *view, int64_t index, int64_t *at) {
    for (int i = view->ndim - 1; i >= 0; i--) {
        at[i] = index % view->shape[i];
        index /= view->shape[i];
    }
}

static int64_t index_of(const View *view, const int64_t *at) {
    int64_t index = 0;
    for (int i = 0; i < view->ndim; i++)
        index = index * view->shape[i] + at[i];
    return index;
}

// The element of an array of `whole`'s shape that element i of an index array selects.
static bool gather_from(const KernelCall *call, const View *whole, int64_t i, int64_t *from,
                        Error *error) {
    const View *index = &call->input[1];
    int dim = call->attr->index.dim;
    const ValueCheck check = value_check(call, FAULT_ELEMENT, whole->shape[dim]);
    int64_t at[VIEW_MAX_DIMS] = {0};
    coordinates_of(index, i, at);
    at[dim] = (int64_t)ref_get(index, i);
    if (!value_passes(&check, at[dim]))
        return value_fail(&check, i, at[dim], error);
    *from = index_of(whole, at);
    return true;
}

REF_KERNEL(gather) {
    const View *x = &call->input[0], *index = &call->input[1], *y = &call->output[0];
    for (int64_t i = 0; i < view_count(index); i++) {
        int64_t from;
        if (!gather_from(call, x, i, &from, error))
            return false;
        ref_put(y, i, ref_get(x, from));
    }
    return true;
}

REF_KERNEL(gather_backward) {
    const View *dy = &call->input[0], *index = &call->input[1], *dx = &call->output[0];
    double *sums = ref_scratch(device, view_count(dx), 0, error);
    if (!sums)
        return false;
    for (int64_t i = 0; i < view_count(index); i++) {
        int64_t from;
        if (!gather_from(call, dx, i, &from, error))
            return false;
        sums[from] += ref_get(dy, i);
    }
    for (int64_t i = 0; i < view_count(dx); i++)
        ref_put(dx, i, sums[i]);
    return true;
}

REF_KERNEL(cat) {
    const View *y = &call->output[0];
    int dim = call->attr->index.dim;
    int64_t before = 0; // elements along the dimension that earlier inputs gave
    for (int k = 0; k < call->input_count; k++) {
        const View *x = &call->input[k];
        for (int64_t i = 0; i < view_count(x); i++) {
            int64_t at[VIEW_MAX_DIMS] = {0};
            coordinates_of(x, i, at);
            at[dim] += before;
            ref_put(y, index_of(y, at), ref_get(x, i));
        }
        before += x->shape[dim];
    }
    return true;
}

REF_KERNEL(pad) {
    const PadAttr *attr = &call->attr->pad;
    const View *x = &call->input[0], *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++) {
        int64_t at[VIEW_MAX_DIMS] = {0};
        bool inside = true;
        coordinates_of(y, i, at);
        for (int d = 0; d < y->ndim; d++) {
            at[d] -= attr->before[d];
            inside = inside && at[d] >= 0 && at[d] < x->shape[d];
        }
        ref_put(y, i, inside ? ref_get(x, index_of(x, at)) : attr->value);
    }
    return true;
}

// ---- element by element -------------------------------------------------------------------------

REF_KERNEL(where) {
    const View *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++) {
        const View *condition = &call->input[0];
        bool yes = ref_load(condition, ref_offset_in(condition, y, i)) != 0;
        const View *chosen = &call->input[yes ? 1 : 2];
        ref_put(y, i, ref_load(chosen, ref_offset_in(chosen, y, i)));
    }
    return true;
}

REF_KERNEL(cast) {
    const View *x = &call->input[0], *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++)
        ref_put(y, i, ref_get(x, i));
    return true;
}

REF_KERNEL(dropout) {
    const RandomAttr *stream = &call->attr->dropout.stream;
    double probability = call->attr->dropout.probability;
    const View *x = &call->input[0], *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++) {
        RandomBlock block = random_block(stream->seed, random_begin(stream) + (uint64_t)i / 4);
        bool dropped = (double)random_uniform(block.word[i % 4]) < probability;
        ref_put(y, i, dropped ? 0 : ref_get(x, i) / (1 - probability));
    }
    return true;
}
