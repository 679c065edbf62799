#include "ops/gradient_formulas.h"

#include <string.h>

#include "ops/formula.h"
#include "ops/functions.h"
#include "ops/views.h"

// What a formula computes in: nothing is rounded on the way.
static Format wide(const Tensor *x) {
    return x->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
}

// Puts `result` into input_grad[i], where it is wanted.
static bool give(Formula *formula, const GradNode *node, int i, Tensor *result,
                 Tensor **input_grad) {
    if (!gradient_wanted(node, i))
        return true;
    input_grad[i] = formula_give(formula, result, gradient_format(node, i), &node->inputs[i]);
    return input_grad[i] != NULL;
}

static uint32_t last_dim(const Tensor *x) {
    return 1u << (x->view.ndim - 1);
}

// ---- rows ---------------------------------------------------------------------------------------

// dx = y (dy - sum(dy y)): the gradient before a softmax.
static Tensor *before_softmax(Formula *f, Tensor *dy, Tensor *y) {
    Tensor *sum = formula_over(f, OP_sum, formula_mul(f, dy, y), last_dim(y));
    return formula_mul(f, y, formula_sub(f, dy, sum));
}

bool formula_softmax(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                     Tensor **input_grad, Error *error) {
    Tensor *y = node->saved[0];
    Formula f = formula_begin(engine, wide(y), error);
    bool done = give(&f, node, 0, before_softmax(&f, output_grad[0], y), input_grad);
    formula_end(&f);
    return done;
}

// dx = dy - e^y sum(dy)
bool formula_log_softmax(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                         Tensor **input_grad, Error *error) {
    Tensor *y = node->saved[0], *dy = output_grad[0];
    Formula f = formula_begin(engine, wide(y), error);
    Tensor *sum = formula_over(&f, OP_sum, dy, last_dim(dy));
    Tensor *share = formula_mul(&f, formula_one(&f, OP_exp, y), sum);
    bool done = give(&f, node, 0, formula_sub(&f, dy, share), input_grad);
    formula_end(&f);
    return done;
}

// dx = (softmax(x) - 1 at the class) dloss / rows, in rows that count.
bool formula_cross_entropy(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                           Tensor **input_grad, Error *error) {
    Tensor *x = node->saved[0], *classes = node->saved[1];
    int64_t column[VIEW_MAX_DIMS];
    memcpy(column, x->view.shape, sizeof column);
    column[x->view.ndim - 1] = 1;
    Formula f = formula_begin(engine, wide(x), error);
    Tensor *none = formula_keep(&f, op_fill(engine, FORMAT_INT32, 0, NULL, -1, error));
    Tensor *every = formula_keep(&f, op_arange(engine, x->view.shape[x->view.ndim - 1], error));
    Tensor *wanted = formula_reshape(&f, classes, x->view.ndim, column);
    Tensor *counts = formula_two(&f, OP_greater, wanted, none);
    Tensor *chosen = formula_wide(&f, formula_two(&f, OP_equal, every, wanted));
    Tensor *rows = formula_over(&f, OP_sum, formula_wide(&f, counts), 0);
    Tensor *least = formula_two(&f, OP_maximum, rows, formula_number(&f, 1));
    Tensor *step = formula_sub(&f, formula_one(&f, OP_softmax, x), chosen);
    Tensor *counted = formula_where(&f, counts, step, formula_number(&f, 0));
    Tensor *dx = formula_mul(&f, counted, formula_div(&f, output_grad[0], least));
    bool done = give(&f, node, 0, dx, input_grad);
    formula_end(&f);
    return done;
}

// ---- normalisation ------------------------------------------------------------------------------

// What a norm takes its statistics over: the input in a shape, and which of its dimensions; those
// of the weight follow the batch.
typedef struct Grouping {
    int ndim;
    int64_t shape[4], weight[4];
    uint32_t over, batch;
} Grouping;

static Grouping grouping_of(const GradNode *node) {
    const GradShape *x = &node->inputs[0];
    int64_t channels = x->shape[x->ndim - 1], count = 1;
    for (int i = 0; i < x->ndim; i++)
        count *= x->shape[i];
    int64_t rows = channels ? count / channels : 0;
    if (node->op == OP_group_norm) {
        int64_t groups = node->attr.norm.groups, images = x->shape[0];
        return (Grouping){.ndim = 4,
                          .shape = {images, rows / images, groups, channels / groups},
                          .weight = {1, 1, groups, channels / groups},
                          .over = 1u << 1 | 1u << 3,
                          .batch = 1u << 0 | 1u << 1};
    }
    return (Grouping){.ndim = 2,
                      .shape = {rows, channels},
                      .weight = {1, channels},
                      .over = node->op == OP_batch_norm ? 1u << 0 : 1u << 1,
                      .batch = 1u << 0};
}

// With z the normalised input: dx = (dz - mean(dz) - z mean(dz z)) / deviation. The statistics are
// taken once more, as what the forward pass left of them leads nowhere.
bool formula_norm(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                  Tensor **input_grad, Error *error) {
    Tensor *weight = node->saved[1];
    const Grouping g = grouping_of(node);
    Formula f = formula_begin(engine, wide(node->saved[0]), error);
    Tensor *x = formula_wide(&f, formula_reshape(&f, node->saved[0], g.ndim, g.shape));
    Tensor *dy = formula_reshape(&f, output_grad[0], g.ndim, g.shape);
    Tensor *centred = formula_sub(&f, x, formula_over(&f, OP_mean, x, g.over));
    Tensor *square = formula_one(&f, OP_square, centred);
    Tensor *variance = formula_over(&f, OP_mean, square, g.over);
    Tensor *inverse =
        formula_one(&f, OP_rsqrt, formula_line(&f, variance, 1, node->attr.norm.epsilon));
    Tensor *z = formula_mul(&f, centred, inverse);
    Tensor *dz = weight ? formula_mul(&f, dy, formula_reshape(&f, weight, g.ndim, g.weight)) : dy;
    Tensor *along = formula_over(&f, OP_mean, formula_mul(&f, dz, z), g.over);
    Tensor *rest = formula_sub(&f, dz, formula_over(&f, OP_mean, dz, g.over));
    Tensor *dx = formula_mul(&f, formula_sub(&f, rest, formula_mul(&f, z, along)), inverse);
    Tensor *dweight = formula_over(&f, OP_sum, formula_mul(&f, dy, z), g.batch);
    Tensor *dbias = formula_over(&f, OP_sum, dy, g.batch);
    bool done = give(&f, node, 0, dx, input_grad) && give(&f, node, 1, dweight, input_grad) &&
                give(&f, node, 2, dbias, input_grad);
    formula_end(&f);
    return done;
}

// ---- attention ----------------------------------------------------------------------------------

// [B,T,H,D] as [B,H,T,D], and back.
static Tensor *heads_first(Formula *f, Tensor *x) {
    return formula_swap(f, formula_wide(f, x), 1, 2);
}

static Tensor *times(Formula *f, Tensor *x, Tensor *y) {
    return formula_two(f, OP_matmul, x, y);
}

static Tensor *turned(Formula *f, Tensor *x) {
    return formula_swap(f, x, 2, 3);
}

// Scores of keys that a query may not see are as low as can be.
static Tensor *unseen_hidden(Formula *f, Tensor *scores, int64_t length) {
    const int64_t down[2] = {length, 1};
    Tensor *key = formula_keep(f, op_arange(f->engine, length, f->error));
    Tensor *query = formula_reshape(f, key, 2, down);
    Tensor *hidden = formula_two(f, OP_greater, key, query);
    return formula_where(f, hidden, formula_number(f, -1e30), scores);
}

// With shares p = softmax(scale q k'): dv = p' dy, and before the softmax ds; dq = scale ds k,
// dk = scale ds' q.
bool formula_attention(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                       Tensor **input_grad, Error *error) {
    const AttentionAttr *attr = &node->attr.attention;
    Formula f = formula_begin(engine, wide(node->saved[0]), error);
    Tensor *q = heads_first(&f, node->saved[0]), *k = heads_first(&f, node->saved[1]);
    Tensor *v = heads_first(&f, node->saved[2]), *dy = heads_first(&f, output_grad[0]);
    Tensor *scores = formula_line(&f, times(&f, q, turned(&f, k)), attr->scale, 0);
    if (attr->causal)
        scores = unseen_hidden(&f, scores, node->inputs[0].shape[1]);
    Tensor *shares = formula_one(&f, OP_softmax, scores);
    Tensor *dv = times(&f, turned(&f, shares), dy);
    Tensor *dshares = times(&f, dy, turned(&f, v));
    Tensor *ds = formula_line(&f, shares && dshares ? before_softmax(&f, dshares, shares) : NULL,
                              attr->scale, 0);
    Tensor *dq = times(&f, ds, k), *dk = times(&f, turned(&f, ds), q);
    bool done = give(&f, node, 0, formula_swap(&f, dq, 1, 2), input_grad) &&
                give(&f, node, 1, formula_swap(&f, dk, 1, 2), input_grad) &&
                give(&f, node, 2, formula_swap(&f, dv, 1, 2), input_grad);
    formula_end(&f);
    return done;
}

// ---- losses -------------------------------------------------------------------------------------

// The slope of each term, which the mean divides by their number.
typedef Tensor *(*Slope)(Formula *f, Tensor *x, Tensor *target);

static Tensor *slope_mse(Formula *f, Tensor *x, Tensor *target) {
    return formula_line(f, formula_sub(f, x, target), 2, 0);
}

// 1 or -1, which bends nowhere; 0 where they are equal.
static Tensor *slope_l1(Formula *f, Tensor *x, Tensor *target) {
    Tensor *above = formula_wide(f, formula_two(f, OP_greater, x, target));
    return formula_sub(f, above, formula_wide(f, formula_two(f, OP_less, x, target)));
}

static Tensor *slope_bce_with_logits(Formula *f, Tensor *x, Tensor *target) {
    return formula_sub(f, formula_one(f, OP_sigmoid, x), target);
}

static Tensor *slope_bce(Formula *f, Tensor *x, Tensor *target) {
    Tensor *spread = formula_mul(f, x, formula_line(f, x, -1, 1));
    return formula_div(f, formula_sub(f, x, target),
                       formula_two(f, OP_maximum, spread, formula_number(f, 1e-12)));
}

static const Slope slopes[OP_COUNT] = {
#define LOSS(name, ...) [OP_##name] = slope_##name,
#include "kernel/pointwise.def"
};

Tensor *formula_loss(Engine *engine, const GradNode *node, Tensor *dloss, Error *error) {
    Tensor *x = node->saved[0], *target = node->saved[1];
    Formula f = formula_begin(engine, wide(x), error);
    Tensor *slope = slopes[node->op](&f, x, target);
    Tensor *step = slope ? formula_line(&f, dloss, 1 / (double)tensor_count(slope), 0) : NULL;
    Tensor *dx = tensor_hold(formula_mul(&f, slope, step));
    formula_end(&f);
    return dx;
}
