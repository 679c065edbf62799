#include "ops/views.h"

#include <string.h>

#include "ops/gradient.h"

static bool link_views(Engine *engine, Tensor *base, Tensor **views, int count, GradRule rule,
                       const OpAttr *attr, Error *error) {
    TapeRecord record = {.rule = rule,
                         .op = OP_COUNT,
                         .attr = attr,
                         .layer = engine->layer,
                         .input_count = 1,
                         .output_count = count,
                         .inputs = &base,
                         .used = &base,
                         .outputs = views};
    policy_note_view(engine->policy, engine->layer);
    return tape_record(engine->tape, &record, error);
}

// Links a fresh view to the tensor it looks at. Takes over `view`; NULL on failure.
static Tensor *linked(Engine *engine, Tensor *base, Tensor *view, GradRule rule, const OpAttr *attr,
                      Error *error) {
    if (!view)
        return NULL;
    if (link_views(engine, base, &view, 1, rule, attr, error))
        return view;
    tensor_release(view);
    return NULL;
}

static Tensor *usage(Error *error, const char *operation, const Tensor *x, const char *why) {
    char text[96];
    tensor_describe(x, text, sizeof text);
    error_fail(error, ERROR_USAGE, "%s: %s; the tensor is %s", operation, why, text);
    return NULL;
}

// ---- reshape ------------------------------------------------------------------------------------

static bool reshape_back(void *context, const GradNode *node, Tensor *const *output_grad,
                         Tensor **input_grad, Error *error) {
    const GradShape *input = &node->inputs[0];
    input_grad[0] = op_reshape(context, output_grad[0], input->ndim, input->shape, error);
    return input_grad[0] != NULL;
}

static bool reshape_fill_in(const Tensor *x, int ndim, const int64_t *wanted, int64_t *shape) {
    int64_t known = 1, count = tensor_count(x);
    int open = -1;
    for (int i = 0; i < ndim; i++) {
        shape[i] = wanted[i];
        if (wanted[i] == -1) {
            if (open >= 0)
                return false;
            open = i;
        } else if (wanted[i] < 0 || __builtin_mul_overflow(known, wanted[i], &known)) {
            return false;
        }
    }
    if (open >= 0) {
        if (known == 0 || count % known)
            return false;
        shape[open] = count / known;
    } else if (known != count) {
        return false;
    }
    return view_shape_fits(ndim, shape);
}

Tensor *op_reshape(Engine *engine, Tensor *x, int ndim, const int64_t *wanted, Error *error) {
    int64_t shape[VIEW_MAX_DIMS];
    if (ndim < 0 || ndim > VIEW_MAX_DIMS || !reshape_fill_in(x, ndim, wanted, shape)) {
        char from[96], to[96];
        View view = {.ndim = ndim > 0 && ndim <= VIEW_MAX_DIMS ? ndim : 0};
        if (view.ndim)
            memcpy(view.shape, wanted, (size_t)view.ndim * sizeof *wanted);
        shape_describe(&x->view, from, sizeof from);
        shape_describe(&view, to, sizeof to);
        error_fail(error, ERROR_USAGE, "reshape: %s has %lld elements, %s wants another number",
                   from, (long long)tensor_count(x), to);
        return NULL;
    }
    if (view_is_dense(&x->view)) {
        View view = view_dense(x->view.data, x->view.format, ndim, shape);
        return linked(engine, x, tensor_view(x, &view, error), reshape_back, NULL, error);
    }
    Tensor *dense = op_cast(engine, x, x->view.format, error);
    if (!dense)
        return NULL;
    Tensor *result = op_reshape(engine, dense, ndim, shape, error);
    tensor_release(dense);
    return result;
}

// ---- permute ------------------------------------------------------------------------------------

static bool permute_back(void *context, const GradNode *node, Tensor *const *output_grad,
                         Tensor **input_grad, Error *error) {
    int inverse[VIEW_MAX_DIMS];
    for (int i = 0; i < node->inputs[0].ndim; i++)
        inverse[node->attr.view.order[i]] = i;
    input_grad[0] = op_permute(context, output_grad[0], inverse, error);
    return input_grad[0] != NULL;
}

Tensor *op_permute(Engine *engine, Tensor *x, const int *order, Error *error) {
    OpAttr attr = {.has_out_format = false};
    View view = x->view;
    unsigned seen = 0;
    for (int i = 0; i < x->view.ndim; i++) {
        int from = order[i];
        if (from < 0 || from >= x->view.ndim || (seen & (1u << from)))
            return usage(error, "permute", x, "each dimension must be named once");
        seen |= 1u << from;
        attr.view.order[i] = from;
        view.shape[i] = x->view.shape[from];
        view.stride[i] = x->view.stride[from];
    }
    return linked(engine, x, tensor_view(x, &view, error), permute_back, &attr, error);
}

Tensor *op_transpose(Engine *engine, Tensor *x, int first, int second, Error *error) {
    int order[VIEW_MAX_DIMS];
    if (first < 0 || second < 0 || first >= x->view.ndim || second >= x->view.ndim)
        return usage(error, "transpose", x, "it has no such dimension");
    for (int i = 0; i < x->view.ndim; i++)
        order[i] = i == first ? second : i == second ? first : i;
    return op_permute(engine, x, order, error);
}

// ---- slice --------------------------------------------------------------------------------------

static bool slice_back(void *context, const GradNode *node, Tensor *const *output_grad,
                       Tensor **input_grad, Error *error) {
    const ViewAttr *slice = &node->attr.view;
    OpAttr attr = {.out_format = node->inputs[0].format, .has_out_format = true};
    int64_t taken = node->output[0].shape[slice->dim];
    attr.pad.before[slice->dim] = slice->first;
    attr.pad.after[slice->dim] = node->inputs[0].shape[slice->dim] - slice->first - taken;
    input_grad[0] = op_one(context, OP_pad, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}

static View slice_of(const Tensor *x, int dim, int64_t first, int64_t last) {
    View view = x->view;
    view.shape[dim] = last - first;
    view.data =
        (char *)view.data + (size_t)(first * view.stride[dim]) * format_table[view.format].bytes;
    return view;
}

Tensor *op_slice(Engine *engine, Tensor *x, int dim, int64_t first, int64_t last, Error *error) {
    if (dim < 0 || dim >= x->view.ndim)
        return usage(error, "slice", x, "it has no such dimension");
    if (first < 0 || last < first || last > x->view.shape[dim])
        return usage(error, "slice", x, "the range lies outside the dimension");
    OpAttr attr = {.has_out_format = false};
    attr.view.dim = dim;
    attr.view.first = first;
    View view = slice_of(x, dim, first, last);
    return linked(engine, x, tensor_view(x, &view, error), slice_back, &attr, error);
}

Tensor *op_part(Engine *engine, Tensor *x, int64_t i, Error *error) {
    Tensor *part = op_slice(engine, x, 0, i, i + 1, error);
    Tensor *y = part ? op_reshape(engine, part, x->view.ndim - 1, &x->view.shape[1], error) : NULL;
    tensor_release(part);
    return y;
}

// ---- chunk --------------------------------------------------------------------------------------

static void release_all(Tensor **tensors, int count) {
    for (int i = 0; i < count; i++) {
        tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

// A part that no gradient came from counts as zeros.
static bool chunk_back(void *context, const GradNode *node, Tensor *const *output_grad,
                       Tensor **input_grad, Error *error) {
    OpAttr attr = {.out_format = node->inputs[0].format, .has_out_format = true};
    attr.index.dim = node->attr.view.dim;
    Tensor *parts[OP_MAX_OUTPUTS] = {NULL};
    bool have = true;
    for (int i = 0; i < node->output_count && have; i++) {
        const GradShape *part = &node->output[i];
        parts[i] = output_grad[i]
                       ? tensor_hold(output_grad[i])
                       : op_fill(context, part->format, part->ndim, part->shape, 0, error);
        have = parts[i] != NULL;
    }
    have = have && op_apply(context, OP_cat, parts, node->output_count, &attr, input_grad, error);
    release_all(parts, node->output_count);
    return have;
}

bool op_chunk(Engine *engine, Tensor *x, int dim, int count, Tensor **parts, Error *error) {
    for (int i = 0; i < count; i++)
        parts[i] = NULL;
    if (dim < 0 || dim >= x->view.ndim)
        return usage(error, "chunk", x, "it has no such dimension") != NULL;
    if (count < 1 || x->view.shape[dim] % count)
        return usage(error, "chunk", x, "the dimension does not fall into so many equal parts") !=
               NULL;
    const int64_t size = x->view.shape[dim] / count;
    const bool as_slices = count > OP_MAX_OUTPUTS; // more than an entry of the tape takes
    bool done = true;
    for (int i = 0; i < count && done; i++) {
        View view = slice_of(x, dim, i * size, (i + 1) * size);
        parts[i] = as_slices ? op_slice(engine, x, dim, i * size, (i + 1) * size, error)
                             : tensor_view(x, &view, error);
        done = parts[i] != NULL;
    }
    OpAttr attr = {.has_out_format = false};
    attr.view.dim = dim;
    if (done && !as_slices)
        done = link_views(engine, x, parts, count, chunk_back, &attr, error);
    if (!done)
        release_all(parts, count);
    return done;
}

// ---- expand -------------------------------------------------------------------------------------

static bool expand_back(void *context, const GradNode *node, Tensor *const *output_grad,
                        Tensor **input_grad, Error *error) {
    input_grad[0] = gradient_sum_to(context, tensor_hold(output_grad[0]), &node->inputs[0],
                                    node->inputs[0].format, error);
    return input_grad[0] != NULL;
}

Tensor *op_expand(Engine *engine, Tensor *x, int ndim, const int64_t *shape, Error *error) {
    int extra = ndim - x->view.ndim;
    if (ndim > VIEW_MAX_DIMS || extra < 0)
        return usage(error, "expand", x, "dimensions can only be added");
    View view = {.data = x->view.data, .format = x->view.format, .ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        int64_t old = i < extra ? 1 : x->view.shape[i - extra];
        if (shape[i] < 0 || (old != shape[i] && old != 1))
            return usage(error, "expand", x, "only dimensions of size 1 can grow");
        view.shape[i] = shape[i];
        view.stride[i] = old == shape[i] && i >= extra ? x->view.stride[i - extra] : 0;
    }
    if (!view_shape_fits(ndim, shape))
        return usage(error, "expand", x, "more elements are wanted than can be counted");
    return linked(engine, x, tensor_view(x, &view, error), expand_back, NULL, error);
}

Tensor *op_detach(Engine *engine, Tensor *x, Error *error) {
    (void)engine;
    return tensor_view(x, &x->view, error);
}
