// Graphs of attention: the patterns that cuDNN computes without the scores ever being in memory.
// They are recognised by their form, to the operation: what looks superfluous here belongs to it.
#include "gpu/dnn/describe.h"

typedef struct Attention {
    DnnDescription *description;
    const DnnAttention *of;
    cudnnDataType_t type;
    DnnShape scores, turned_scores, row;
} Attention;

static Attention attention_of(DnnDescription *description, const DnnAttention *of) {
    int64_t area = of->queries * of->keys;
    DnnShape scores = {{of->batch, of->heads, of->queries, of->keys},
                       {of->heads * area, area, of->keys, 1}};
    DnnShape turned = {{of->batch, of->heads, of->keys, of->queries},
                       {of->heads * area, area, 1, of->keys}};
    DnnShape row = {{of->batch, of->heads, of->queries, 1},
                    {of->heads * of->queries, of->queries, 1, 1}};
    return (Attention){description, of, dnn_type(of->format), scores, turned, row};
}

// [B,T,H,D] in the library's order: B,H,T,D.
static DnnShape rows(const DnnAttention *of, int64_t count, const DnnRows *stride) {
    return (DnnShape){{of->batch, of->heads, count, of->depth},
                      {stride->batch, stride->head, stride->time, 1}};
}

static DnnDescriptor operand(Attention *attention, DnnOperand operand, int64_t count,
                             const DnnRows *stride) {
    DnnShape shape = rows(attention->of, count, stride);
    return dnn_operand(attention->description, operand, attention->type, &shape);
}

// The same memory as B,H,D,T: the second factor of scores.
static DnnDescriptor turned(Attention *attention, DnnOperand operand, int64_t count,
                            const DnnRows *stride) {
    const DnnAttention *of = attention->of;
    DnnShape shape = {{of->batch, of->heads, of->depth, count},
                      {stride->batch, stride->head, 1, stride->time}};
    return dnn_operand(attention->description, operand, attention->type, &shape);
}

static DnnDescriptor scores(Attention *attention, cudnnDataType_t type) {
    return dnn_inner(attention->description, type, &attention->scores);
}
static DnnDescriptor row(Attention *attention) {
    return dnn_inner(attention->description, CUDNN_DATA_FLOAT, &attention->row);
}
static DnnDescriptor kept_row(Attention *attention, DnnOperand operand) {
    return dnn_operand(attention->description, operand, CUDNN_DATA_FLOAT, &attention->row);
}

static DnnDescriptor sum_row(Attention *attention, DnnOperand operand) {
    return attention->of->keeps_sums ? kept_row(attention, operand) : row(attention);
}

static DnnDescriptor pointwise(Attention *attention, cudnnPointwiseMode_t mode, DnnDescriptor x,
                               DnnDescriptor b) {
    return dnn_pointwise(attention->description, mode, x, b, scores(attention, CUDNN_DATA_FLOAT));
}

// What a query may not see becomes so small that nothing is left of its exponential.
static DnnDescriptor masked(Attention *attention, DnnDescriptor x) {
    DnnDescription *description = attention->description;
    if (!attention->of->causal)
        return x;
    DnnDescriptor query = dnn_index(description, x, 2, scores(attention, CUDNN_DATA_INT32));
    DnnDescriptor key = dnn_index(description, x, 3, scores(attention, CUDNN_DATA_INT32));
    DnnDescriptor seen = dnn_pointwise(description, CUDNN_POINTWISE_CMP_GE, query, key,
                                       scores(attention, CUDNN_DATA_BOOLEAN));
    return dnn_select(description, x, dnn_number(description, DNN_UNSEEN), seen,
                      scores(attention, CUDNN_DATA_FLOAT));
}

static DnnDescriptor scaled_scores(Attention *attention, DnnDescriptor q, DnnDescriptor k,
                                   DnnDescriptor scale) {
    DnnDescriptor products =
        dnn_product(attention->description, q, k, scores(attention, CUDNN_DATA_FLOAT));
    return pointwise(attention, CUDNN_POINTWISE_MUL, products, scale);
}

void dnn_describe_attention(DnnDescription *description, const DnnGraph *graph) {
    const DnnAttention *of = &graph->attention;
    Attention attention = attention_of(description, of);
    DnnDescriptor q = operand(&attention, DNN_Q, of->queries, &of->q);
    DnnDescriptor k = turned(&attention, DNN_K, of->keys, &of->k);
    DnnDescriptor v = operand(&attention, DNN_V, of->keys, &of->v);
    DnnDescriptor y = operand(&attention, DNN_Y, of->queries, &of->y);
    DnnDescriptor seen =
        masked(&attention, scaled_scores(&attention, q, k, dnn_number(description, DNN_SCALE)));

    DnnDescriptor largest =
        dnn_reduce(description, CUDNN_REDUCE_TENSOR_MAX, seen, sum_row(&attention, DNN_LARGEST));
    DnnDescriptor below = pointwise(&attention, CUDNN_POINTWISE_SUB, seen, largest);
    DnnDescriptor exponential = pointwise(&attention, CUDNN_POINTWISE_EXP, below, NULL);
    DnnDescriptor sum = dnn_reduce(description, CUDNN_REDUCE_TENSOR_ADD, exponential,
                                   sum_row(&attention, DNN_TOTAL));
    DnnDescriptor logarithm =
        dnn_pointwise(description, CUDNN_POINTWISE_LOG, sum, NULL, row(&attention));
    (void)dnn_pointwise(description, CUDNN_POINTWISE_ADD, largest, logarithm, row(&attention));
    DnnDescriptor shares = dnn_pointwise(description, CUDNN_POINTWISE_DIV, exponential, sum,
                                         scores(&attention, attention.type));
    (void)dnn_product(description, shares, v, y);
}

// The gradient of a score is scale * share * (dy.v - dy.y). That of queries is one product, and no
// sum that blocks add to in whatever order they come.
void dnn_describe_attention_backward(DnnDescription *description, const DnnGraph *graph) {
    const DnnAttention *of = &graph->attention;
    Attention attention = attention_of(description, of);
    DnnDescriptor q = operand(&attention, DNN_Q, of->queries, &of->q);
    DnnDescriptor k = turned(&attention, DNN_K, of->keys, &of->k);
    DnnDescriptor v = turned(&attention, DNN_V, of->keys, &of->v);
    DnnDescriptor y = operand(&attention, DNN_Y, of->queries, &of->y);
    DnnDescriptor dy = operand(&attention, DNN_DY, of->queries, &of->dy);
    DnnDescriptor scale = dnn_number(description, DNN_SCALE);

    DnnShape dense =
        rows(of, of->queries,
             &(DnnRows){of->heads * of->queries * of->depth, of->depth, of->queries * of->depth});
    DnnDescriptor products = dnn_pointwise(description, CUDNN_POINTWISE_MUL, dy, y,
                                           dnn_inner(description, CUDNN_DATA_FLOAT, &dense));
    DnnDescriptor sums =
        dnn_reduce(description, CUDNN_REDUCE_TENSOR_ADD, products, row(&attention));
    DnnDescriptor delta =
        dnn_pointwise(description, CUDNN_POINTWISE_MUL, sums, dnn_number(description, DNN_ONE),
                      kept_row(&attention, DNN_DELTA));

    DnnDescriptor below =
        pointwise(&attention, CUDNN_POINTWISE_SUB, scaled_scores(&attention, q, k, scale),
                  kept_row(&attention, DNN_SUMS));
    DnnDescriptor shares =
        pointwise(&attention, CUDNN_POINTWISE_EXP, masked(&attention, below), NULL);
    DnnDescriptor turned_shares = dnn_reshape(
        description, shares, dnn_inner(description, attention.type, &attention.turned_scores));
    (void)dnn_product(description, turned_shares, dy,
                      operand(&attention, DNN_DV, of->keys, &of->dv));

    DnnDescriptor seen = dnn_product(description, dy, v, scores(&attention, CUDNN_DATA_FLOAT));
    DnnDescriptor weighed =
        pointwise(&attention, CUDNN_POINTWISE_MUL,
                  pointwise(&attention, CUDNN_POINTWISE_SUB, seen, delta), shares);
    DnnDescriptor dscores = pointwise(&attention, CUDNN_POINTWISE_MUL, weighed, scale);
    DnnDescriptor turned_dscores = dnn_reshape(
        description, dscores, dnn_inner(description, attention.type, &attention.turned_scores));
    (void)dnn_product(description, turned_dscores, q,
                      operand(&attention, DNN_DK, of->keys, &of->dk));
    DnnShape keys = rows(of, of->keys, &of->k);
    DnnDescriptor k_rows =
        dnn_reshape(description, k, dnn_inner(description, attention.type, &keys));
    (void)dnn_product(description, dscores, k_rows,
                      operand(&attention, DNN_DQ, of->queries, &of->dq));
}
