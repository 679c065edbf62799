// gpu/dnn/plans.h: convolutions and attention as cuDNN computes them.
//
// A graph says what is computed: sizes, strides, formats, and nothing of addresses. Of each there
// is one plan, made when it is first asked for and kept as long as its Dnn: which of cuDNN's
// engines runs it, and with how much scratch; or, where none does, why not. Plans are chosen so
// that the same graph gives the same bits, and no less than our own kernels promise: sums in fp32,
// factors as they are given. No type of cuDNN shows here (gpu/dnn_absent.c has the same functions
// without it). From the thread that drives the device.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

typedef enum DnnKind {
    DNN_CONVOLUTION,        // DNN_X DNN_W [DNN_BIAS]: DNN_Y
    DNN_CONVOLUTION_INPUT,  // DNN_Y DNN_W: DNN_X, gradients but for DNN_W
    DNN_CONVOLUTION_WEIGHT, // DNN_X DNN_Y: DNN_W, gradients but for DNN_X
    DNN_ATTENTION,          // DNN_Q DNN_K DNN_V: DNN_Y [DNN_LARGEST DNN_TOTAL]
    DNN_ATTENTION_BACKWARD, // DNN_Q DNN_K DNN_V DNN_Y DNN_SUMS DNN_DY: DNN_DQ DNN_DK DNN_DV
    DNN_KINDS
} DnnKind;

// What a graph reads and writes. Addresses are of the device and multiples of DNN_ALIGNMENT, but
// for DNN_SCALE, a float of the host. The last two dnn_run gives itself.
typedef enum DnnOperand {
    DNN_X,
    DNN_W,
    DNN_BIAS,
    DNN_Y,
    DNN_Q,
    DNN_K,
    DNN_V,
    DNN_LARGEST, // [B,H,T] in fp32, of each row of scores the largest,
    DNN_TOTAL,   // the sum of the exponentials of the differences from it,
    DNN_SUMS,    // and the logarithm of the sum of the exponentials
    DNN_DY,
    DNN_DQ,
    DNN_DK,
    DNN_DV,
    DNN_DELTA, // [B,H,T] in fp32: scratch
    DNN_SCALE, // of the products q.k
    DNN_UNSEEN,
    DNN_ONE,
    DNN_OPERANDS
} DnnOperand;

enum { DNN_ALIGNMENT = 16, DNN_NO_FORMAT = -1, DNN_WHY_SIZE = 256 };

// Images [N,H,W,C], filters [O,KH,KW,C/groups], dense, as everywhere.
typedef struct DnnConvolution {
    int64_t images, channels, filters, groups;
    int64_t input[2], output[2], kernel[2]; // height, width
    int64_t stride[2], padding[2], dilation[2];
    // Format of the two that are multiplied (TF32: of fp32), of what comes out.
    int64_t factors, result;
    int64_t bias;       // Format, DNN_NO_FORMAT: there is none
    int64_t activation; // behind the bias; none, or one that NaN passes: tanh or sigmoid
} DnnConvolution;

// Arrays [B,T,H,D] whose rows of D are dense.
typedef struct DnnRows {
    int64_t batch, time, head; // strides
} DnnRows;

typedef struct DnnAttention {
    int64_t format; // of all but sums; TF32: they are fp32, and multiplied in it
    int64_t batch, queries, keys, heads, depth;
    int64_t causal;
    int64_t keeps_sums; // DNN_ATTENTION: whether DNN_LARGEST and DNN_TOTAL are written
    DnnRows q, k, v, y, dy, dq, dk, dv; // those that the graph has not are zero
} DnnAttention;

// Every member of a graph is an int64_t, so that nothing lies between them: two are the same where
// their bytes are.
typedef struct DnnGraph {
    int64_t kind; // DnnKind
    union {
        DnnConvolution convolution;
        DnnAttention attention;
    };
} DnnGraph;

// The Format in which it multiplies.
static inline int64_t dnn_factors(const DnnGraph *graph) {
    return graph->kind < DNN_ATTENTION ? graph->convolution.factors : graph->attention.format;
}

static inline bool dnn_is_same(const DnnGraph *a, const DnnGraph *b) {
    size_t bytes = a->kind < DNN_ATTENTION ? sizeof a->convolution : sizeof a->attention;
    return a->kind == b->kind && memcmp(&a->convolution, &b->convolution, bytes) == 0;
}

typedef struct DnnPlan {
    DnnGraph graph;
    bool available;
    bool trusted; // for the caller: its first result was held against our own kernel's;
    int open;     // so many proved nothing,
    int untried;  // and of so many there was no memory to try it
    size_t workspace;
    char why[DNN_WHY_SIZE]; // it is not available
} DnnPlan;

typedef struct Dnn Dnn;

// No plan has more scratch: what it would gain is lost to whom the memory belongs.
enum { DNN_MOST_WORKSPACE = 256 << 20 };

// The plans of a card that is current, whose work goes to `stream` (a CUstream). NULL where there
// is no library that serves it, with why.
Dnn *dnn_open(void *stream, Error *error) MUST_CHECK;
// The same without a card, for one that `properties` describe as cuDNN writes them (JSON): plans
// are made, and cannot be run.
Dnn *dnn_open_described(const char *properties, Error *error) MUST_CHECK;
void dnn_close(Dnn *dnn); // NULL is fine

// Made at the first call, and the same ever after; NULL only when there is no memory.
DnnPlan *dnn_plan(Dnn *dnn, const DnnGraph *graph, Error *error) MUST_CHECK;
// From now on it is not available, for this reason.
void dnn_refuse(DnnPlan *plan, const char *why);
// The engine that runs it is refused: the next one of the library's ranking takes its place, yet to
// be trusted. Where there is no other, or enough were tried, the plan is refused. The card has done
// what was put by it.
void dnn_pass_over(Dnn *dnn, DnnPlan *plan, const char *why);

// Puts a plan that is available into the stream. `workspace` has as many bytes as the plan says.
bool dnn_run(Dnn *dnn, const DnnPlan *plan, void *const operand[DNN_OPERANDS], void *workspace,
             Error *error) MUST_CHECK;
