// Attention of the emulated cuDNN: a head at a time, its matrix of scores in memory.
#include <math.h>
#include <stdlib.h>

#include "tests/emulator/dnn_compute.h"

typedef struct Head {
    const DnnAttention *of;
    void *const *operand;
    int64_t batch, head;
    double scale;
    double *share; // [queries][keys]
} Head;

static int64_t at(const Head *head, const DnnRows *stride, int64_t time, int64_t depth) {
    return head->batch * stride->batch + time * stride->time + head->head * stride->head + depth;
}

static double load(const Head *head, DnnOperand operand, const DnnRows *stride, int64_t time,
                   int64_t depth) {
    return emulated_dnn_load(head->of->format, head->operand[operand],
                             at(head, stride, time, depth));
}

static void store(const Head *head, DnnOperand operand, const DnnRows *stride, int64_t time,
                  int64_t depth, double value) {
    emulated_dnn_store(head->of->format, head->operand[operand], at(head, stride, time, depth),
                       value);
}

static int64_t row_of(const Head *head, int64_t query) {
    return (head->batch * head->of->heads + head->head) * head->of->queries + query;
}

static int64_t keys_seen(const DnnAttention *of, int64_t query) {
    return of->causal && query + 1 < of->keys ? query + 1 : of->keys;
}

static double product(const Head *head, DnnOperand a, const DnnRows *a_stride, int64_t i,
                      DnnOperand b, const DnnRows *b_stride, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < head->of->depth; d++)
        sum += load(head, a, a_stride, i, d) * load(head, b, b_stride, j, d);
    return sum;
}

static double score(const Head *head, int64_t query, int64_t key) {
    return head->scale * product(head, DNN_Q, &head->of->q, query, DNN_K, &head->of->k, key);
}

static bool each_head(const DnnGraph *graph, void *const operand[DNN_OPERANDS],
                      void (*compute)(const Head *)) {
    const DnnAttention *of = &graph->attention;
    double *share = calloc((size_t)(of->queries * of->keys), sizeof *share);
    if (!share)
        return false;
    for (int64_t b = 0; b < of->batch; b++)
        for (int64_t h = 0; h < of->heads; h++)
            compute(&(Head){of, operand, b, h, (double)*(const float *)operand[DNN_SCALE], share});
    free(share);
    return true;
}

static void attend(const Head *head) {
    const DnnAttention *of = head->of;
    for (int64_t i = 0; i < of->queries; i++) {
        double largest = -INFINITY, total = 0;
        double *share = head->share + i * of->keys;
        int64_t seen = keys_seen(of, i);
        for (int64_t j = 0; j < seen; j++)
            largest = fmax(largest, share[j] = score(head, i, j));
        for (int64_t j = 0; j < seen; j++)
            total += share[j] = exp(share[j] - largest);
        for (int64_t d = 0; d < of->depth; d++) {
            double sum = 0;
            for (int64_t j = 0; j < seen; j++)
                sum += share[j] / total * load(head, DNN_V, &of->v, j, d);
            store(head, DNN_Y, &of->y, i, d, sum);
        }
        if (of->keeps_sums) {
            ((float *)head->operand[DNN_LARGEST])[row_of(head, i)] = (float)largest;
            ((float *)head->operand[DNN_TOTAL])[row_of(head, i)] = (float)total;
        }
    }
}

bool emulated_dnn_attend(const DnnGraph *graph, void *const operand[DNN_OPERANDS]) {
    return each_head(graph, operand, attend);
}

// Of the shares first, and then of the scores, which takes their place.
static void sum_over_queries(const Head *head, DnnOperand result, const DnnRows *stride,
                             DnnOperand factor, const DnnRows *factor_stride) {
    const DnnAttention *of = head->of;
    for (int64_t j = 0; j < of->keys; j++)
        for (int64_t d = 0; d < of->depth; d++) {
            double sum = 0;
            for (int64_t i = 0; i < of->queries; i++)
                if (j < keys_seen(of, i))
                    sum += head->share[i * of->keys + j] * load(head, factor, factor_stride, i, d);
            store(head, result, stride, j, d, sum);
        }
}

static void attend_backward(const Head *head) {
    const DnnAttention *of = head->of;
    for (int64_t i = 0; i < of->queries; i++)
        for (int64_t j = 0; j < keys_seen(of, i); j++)
            head->share[i * of->keys + j] =
                exp(score(head, i, j) -
                    (double)((const float *)head->operand[DNN_SUMS])[row_of(head, i)]);
    sum_over_queries(head, DNN_DV, &of->dv, DNN_DY, &of->dy);
    for (int64_t i = 0; i < of->queries; i++) {
        double delta = product(head, DNN_DY, &of->dy, i, DNN_Y, &of->y, i);
        ((float *)head->operand[DNN_DELTA])[row_of(head, i)] = (float)delta;
        for (int64_t j = 0; j < keys_seen(of, i); j++)
            head->share[i * of->keys + j] *=
                head->scale * (product(head, DNN_DY, &of->dy, i, DNN_V, &of->v, j) - delta);
        for (int64_t d = 0; d < of->depth; d++) {
            double sum = 0;
            for (int64_t j = 0; j < keys_seen(of, i); j++)
                sum += head->share[i * of->keys + j] * load(head, DNN_K, &of->k, j, d);
            store(head, DNN_DQ, &of->dq, i, d, sum);
        }
    }
    sum_over_queries(head, DNN_DK, &of->dk, DNN_Q, &of->q);
}

bool emulated_dnn_attend_backward(const DnnGraph *graph, void *const operand[DNN_OPERANDS]) {
    return each_head(graph, operand, attend_backward);
}
