// Attention over [batch, time, head, depth]. With `causal`, query i sees the keys 0..i.
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

static double dot(const View *a, const View *b, int64_t batch, int64_t head, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < a->shape[3]; d++)
        sum += ref_load(a, ref_offset4(a, batch, i, head, d)) *
               ref_load(b, ref_offset4(b, batch, j, head, d));
    return sum;
}

// How many keys query i sees.
static int64_t seen(const AttentionAttr *attr, int64_t i, int64_t keys) {
    return attr->causal && i + 1 < keys ? i + 1 : keys;
}

// Of a row of scores: the largest, and the logarithm of the sum of the exponentials of the
// differences from it.
typedef struct ScoreSum {
    double largest, log_sum;
} ScoreSum;

static double share_of(double score, ScoreSum sum) {
    return exp(score - sum.largest - sum.log_sum);
}

// Fills scores[0..seen).
static ScoreSum score_row(const AttentionAttr *attr, const View *q, const View *k, int64_t batch,
                          int64_t head, int64_t i, int64_t count, double *scores) {
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) {
        scores[j] = attr->scale * dot(q, k, batch, head, i, j);
        if (scores[j] > largest)
            largest = scores[j];
    }
    for (int64_t j = 0; j < count; j++)
        sum += exp(scores[j] - largest);
    return (ScoreSum){largest, log(sum)};
}

REF_KERNEL(attention) {
    const AttentionAttr *attr = &call->attr->attention;
    const View factor[3] = {ref_factor(call, 0), ref_factor(call, 1), ref_factor(call, 2)};
    const View *q = &factor[0], *k = &factor[1], *v = &factor[2];
    const View *y = &call->output[0], *sums = &call->output[1];
    int64_t queries = q->shape[1], heads = q->shape[2], keys = k->shape[1];
    double *scores = ref_scratch(device, keys, 0, error);
    if (!scores)
        return false;
    for (int64_t batch = 0; batch < q->shape[0]; batch++)
        for (int64_t head = 0; head < heads; head++)
            for (int64_t i = 0; i < queries; i++) {
                int64_t count = seen(attr, i, keys);
                ScoreSum score_sum = score_row(attr, q, k, batch, head, i, count, scores);
                for (int64_t d = 0; d < v->shape[3]; d++) {
                    double sum = 0;
                    for (int64_t j = 0; j < count; j++)
                        sum += ref_round_factor(call, share_of(scores[j], score_sum)) *
                               ref_load(v, ref_offset4(v, batch, j, head, d));
                    ref_store(y, ref_offset4(y, batch, i, head, d), sum);
                }
                if (ref_is_present(sums)) {
                    int64_t row = (batch * heads + head) * queries + i;
                    ref_put(sums, row, score_sum.largest);
                    ref_put(sums, q->shape[0] * heads * queries + row, score_sum.log_sum);
                }
            }
    return true;
}

// Scratch of one batch and head.
typedef struct AttentionGradient {
    double *dk, *dv;        // in double until all queries are in
    double *share, *dscore; // of one query: softmax, and the gradient of q k'
} AttentionGradient;

// What query i adds to the gradients of keys and values; its own is complete then.
static void query_backward(const KernelCall *call, const AttentionGradient *gradient, int64_t batch,
                           int64_t head, int64_t i) {
    const AttentionAttr *attr = &call->attr->attention;
    const View factor[4] = {ref_factor(call, 0), ref_factor(call, 1), ref_factor(call, 2),
                            ref_factor(call, 3)};
    const View *dy = &factor[0], *q = &factor[1], *k = &factor[2], *v = &factor[3];
    const View *y = &call->input[4], *sums = &call->input[5];
    const View *dq = &call->output[0];
    int64_t depth = q->shape[3], value_depth = v->shape[3];
    int64_t row = (batch * q->shape[2] + head) * q->shape[1] + i;
    ScoreSum sum_of_row = {ref_get(sums, row),
                           ref_get(sums, q->shape[0] * q->shape[2] * q->shape[1] + row)};
    double delta = dot(&call->input[0], y, batch, head, i, i); // no product of matrices
    int64_t count = seen(attr, i, k->shape[1]);
    for (int64_t j = 0; j < count; j++) {
        double share = share_of(attr->scale * dot(q, k, batch, head, i, j), sum_of_row);
        double dscore = attr->scale * share * (dot(dy, v, batch, head, i, j) - delta);
        gradient->share[j] = ref_round_factor(call, share);
        gradient->dscore[j] = ref_round_factor(call, dscore);
    }
    for (int64_t d = 0; d < depth; d++) {
        double sum = 0;
        for (int64_t j = 0; j < count; j++) {
            double dscore = gradient->dscore[j];
            sum += dscore * ref_load(k, ref_offset4(k, batch, j, head, d));
            gradient->dk[j * depth + d] += dscore * ref_load(q, ref_offset4(q, batch, i, head, d));
        }
        ref_store(dq, ref_offset4(dq, batch, i, head, d), sum);
    }
    for (int64_t j = 0; j < count; j++)
        for (int64_t d = 0; d < value_depth; d++)
            gradient->dv[j * value_depth + d] +=
                gradient->share[j] * ref_load(dy, ref_offset4(dy, batch, i, head, d));
}

REF_KERNEL(attention_backward) {
    const View *q = &call->input[1], *k = &call->input[2], *v = &call->input[3];
    const View *dk = &call->output[1], *dv = &call->output[2];
    int64_t keys = k->shape[1], depth = k->shape[3], value_depth = v->shape[3];
    for (int64_t batch = 0; batch < q->shape[0]; batch++)
        for (int64_t head = 0; head < q->shape[2]; head++) {
            double *scratch = ref_scratch(device, keys * (depth + value_depth + 2), 0, error);
            if (!scratch)
                return false;
            AttentionGradient gradient = {.share = scratch, .dscore = scratch + keys};
            gradient.dk = scratch + 2 * keys;
            gradient.dv = gradient.dk + keys * depth;
            for (int64_t i = 0; i < q->shape[1]; i++)
                query_backward(call, &gradient, batch, head, i);
            for (int64_t j = 0; j < keys; j++) {
                for (int64_t d = 0; d < depth; d++)
                    ref_store(dk, ref_offset4(dk, batch, j, head, d), gradient.dk[j * depth + d]);
                for (int64_t d = 0; d < value_depth; d++)
                    ref_store(dv, ref_offset4(dv, batch, j, head, d),
                              gradient.dv[j * value_depth + d]);
            }
        }
    return true;
}
