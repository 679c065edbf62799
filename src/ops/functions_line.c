// Functions along one dimension.
#include "ops/functions.h"
#include "ops/shape_check.h"
#include "ops/views.h"

Tensor *op_prod(Engine *engine, Tensor *x, int dim, bool keep, Error *error) {
    OpAttr attr = {.line = {.dim = dim}};
    Tensor *product = op_one(engine, OP_prod, x, &attr, error);
    if (!product || !keep)
        return product;
    int64_t shape[VIEW_MAX_DIMS];
    for (int i = 0; i < x->view.ndim; i++)
        shape[i] = i == dim ? 1 : x->view.shape[i];
    Tensor *kept = op_reshape(engine, product, x->view.ndim, shape, error);
    tensor_release(product);
    return kept;
}

Tensor *op_resample(Engine *engine, OpId op, Tensor *x, ResampleAttr attr, Format format,
                    Error *error) {
    OpAttr all = {.has_out_format = format != FORMAT_COUNT, .out_format = format};
    all.resample = attr;
    all.resample.size = attr.dim < x->view.ndim ? x->view.shape[attr.dim] : 0;
    return op_one(engine, op, x, &all, error);
}

Tensor *op_scatter_add(Engine *engine, Tensor *x, int dim, Tensor *index, Tensor *source,
                       Error *error) {
    bool fits = x->view.ndim == index->view.ndim;
    for (int i = 0; i < x->view.ndim && fits; i++)
        fits = i == dim || x->view.shape[i] == index->view.shape[i];
    if (!fits) {
        shape_fail(error,
                   "scatter_add: index has shape %s, x %s: they may differ in dimension "
                   "%d only",
                   shape_text_of(&index->view).text, shape_text_of(&x->view).text, dim + 1);
        return NULL;
    }
    // What is added up is kept in fp32 until it meets x.
    OpAttr attr = {.has_out_format = true};
    attr.out_format = source->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    attr.index.dim = dim;
    attr.index.count = x->view.shape[dim];
    Tensor *sums = op_two(engine, OP_gather_backward, source, index, &attr, error);
    if (!sums)
        error_prefix(error, "scatter_add");
    OpAttr widest = {.has_out_format = x->view.format == source->view.format};
    widest.out_format = x->view.format;
    Tensor *result = sums ? op_two(engine, OP_add, x, sums, &widest, error) : NULL;
    tensor_release(sums);
    return result;
}
