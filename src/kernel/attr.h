// kernel/attr.h: what an operation is told besides its inputs.
//
// One struct a family of operations; ops.def says which operation reads which member. Attributes
// are plain values, copied into the tape; fields that a caller leaves out are zero.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/kernel_inline.h"
#include "kernel/view.h"
#include "number/format.h"
#include "number/scaled.h"
#include "number/sums.h"

// What may be fused behind a product: only functions whose derivative follows from their result.
typedef enum Activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_COUNT
} Activation;

typedef struct ScalarAttr { // point-wise functions with constants: slope, bounds, exponent
    double a, b;
} ScalarAttr;

typedef struct LinearAttr {
    Activation activation;
} LinearAttr;

typedef struct ConvAttr {
    int64_t stride[2], padding[2], dilation[2]; // height, width
    int64_t groups;
    Activation activation;
    // Height and width that a stride hides from a gradient: of the input, for
    // conv2d_backward_input (and of the output of conv_transpose2d, which computes the same); of
    // the weight, for conv2d_backward_weight.
    int64_t input[2], kernel[2];
} ConvAttr;

typedef struct PoolAttr {
    int64_t kernel[2], stride[2], padding[2];
    int64_t input[2]; // height and width of the input, for the gradient
} PoolAttr;

typedef struct NormAttr {
    double epsilon;
    int64_t groups;  // group norm
    double momentum; // batch_norm_track: share of the new batch
    int64_t count;   // batch_norm_track: elements a channel's statistics were taken over
} NormAttr;

typedef struct ReduceAttr {
    uint32_t dims; // bit i: dimension i is reduced; 0: all of them
    bool keep;     // reduced dimensions stay, with size 1
} ReduceAttr;

typedef struct AttentionAttr {
    double scale; // of the products q·k
    bool causal;
} AttentionAttr;

typedef struct IndexAttr { // cat, gather, softmax: the dimension; topk: how many; embedding: rows
    int dim;
    int64_t count;
} IndexAttr;

typedef struct LineAttr { // along one dimension
    int dim;
    bool backwards; // cumsum: from the last element on
} LineAttr;

// How a dimension is drawn anew (kernel/resample.h).
typedef enum ResampleRule {
    RESAMPLE_REFLECT,   // padded: what lies as far inside of the edge, the edge itself left out
    RESAMPLE_REPLICATE, // .. by the edge
    RESAMPLE_CIRCULAR,  // .. by what lies at the other end
    RESAMPLE_LINEAR,    // on lines between the middles of neighbours
    RESAMPLE_CORNERS,   // .. so that the first and last elements stay where they are
    RESAMPLE_MEAN,      // means over as many parts, which share what does not divide evenly
    RESAMPLE_RULES
} ResampleRule;

typedef struct ResampleAttr {
    int dim;
    ResampleRule rule;
    int64_t size, count; // of the dimension: before, and in the result
    int64_t before;      // where it is padded: elements in front
} ResampleAttr;

typedef struct PadAttr {
    int64_t before[VIEW_MAX_DIMS], after[VIEW_MAX_DIMS];
    double value;
} PadAttr;

typedef struct ViewAttr {     // views are no kernels; the tape keeps what undoes them here
    int order[VIEW_MAX_DIMS]; // permute
    int dim;                  // slice
    int64_t first;
} ViewAttr;

typedef struct CreateAttr { // operations without inputs
    int ndim;
    int64_t shape[VIEW_MAX_DIMS];
    double a, b; // fill: value; arange: first, step; uniform: low, high; normal: mean, deviation
} CreateAttr;

typedef struct RandomAttr { // where in the stream of random numbers this use begins
    uint64_t seed, offset;
    const uint64_t *base; // device memory: what the offset counts from; NULL: 0
} RandomAttr;

// The block that a use begins with; where the base is.
KERNEL_INLINE uint64_t random_begin(const RandomAttr *random) {
    return random->offset + (random->base ? *random->base : 0);
}

// How a factor of a product becomes elements that share scales, by the rules of number/scaled.h.
typedef struct ScaleAttr {
    Format element, scale; // what both are kept in, or would be
    int block;             // so many along the depth share a scale; 0: the whole tensor
    int lines;             // and so many neighbours across it
    int first, dims;       // the depth: these dimensions
    bool up;               // of scales in powers of two: none saturates
    bool best;             // of scales in e4m3: the largest becomes 6, or 4 where that misses less
    bool at_random;        // rounded up or down by chance; else to nearest
    bool hadamard;         // turned by number_hadamard first, 16 along the depth
    // Of a whole tensor, device memory: what numbers are to be multiplied by (SCALE_NOW), and the
    // largest magnitude that was met (SCALE_LARGEST), which grows where `notes`. NULL: by the
    // largest of this one.
    float *delayed;
    bool notes;
    // Device memory: gets the scale of all, which is then no part of what elements are worth, and
    // the product's to multiply by (OpAttr.times). NULL: it is part of them. Of formats with such
    // a scale alone.
    float *apart;
} ScaleAttr;

// Whether a factor has one scale of all that can be left apart: what its elements are worth without
// it fits into bf16.
static inline bool scale_parts(const ScaleAttr *by) {
    return by->scale == FORMAT_E4M3 || (by->scale == FORMAT_FP32 && by->block == 0);
}

// scale_history: a row a layer and role, one role behind the other.
typedef struct HistoryAttr {
    float largest[4]; // of each role: what the largest number is to become
    int roles;
    bool is_recent; // of the steps looked back upon the last alone counts
} HistoryAttr;

// Of linear and conv2d whose weights are int8 (kernel/int8.h): what a step of x is worth, and a
// step of each row of the weights, in the device's memory.
typedef struct Int8Attr {
    float step;
    const float *steps;
} Int8Attr;

// What a row has, before the largest numbers of the steps.
enum { SCALE_NOW, SCALE_LARGEST, SCALE_PLACE, SCALE_HISTORY };

typedef struct OpAttr {
    Format out_format; // only where the caller decides: cast, creation, products of gradients
    bool has_out_format;
    // Products alone: fp32 factors are rounded to this format (TF32) as they are multiplied, also
    // those that come up on the way, as attention's shares. Summing are kept in fp32 as ever. A
    // format of scaled factors (mxfp8) is the dispatcher's affair: kernels get what it made of
    // them.
    bool has_compute;
    Format compute;
    // Of products: bit i, factor i is a gradient, which has an element of its own; and what comes
    // out is the gradient of a weight.
    uint8_t gradients;
    bool of_weight;
    Summing sums; // of matmul and linear: how terms are added up
    // Of products, device memory: what the sums are multiplied by, each where it is given, before
    // a bias is added. For backends that multiply by them (Backend.parts_scales).
    const float *times[2];
    // Of matmul and linear: what both factors are made of, where that is elements with such scales.
    NumberBlocks blocks;
    Int8Attr int8;
    union {
        ScalarAttr scalar;
        LinearAttr linear;
        ConvAttr conv;
        PoolAttr pool;
        NormAttr norm;
        ReduceAttr reduce;
        AttentionAttr attention;
        IndexAttr index;
        LineAttr line;
        ResampleAttr resample;
        PadAttr pad;
        ViewAttr view;
        struct {
            CreateAttr create;
            RandomAttr random;
        };
        struct {
            double probability; // dropout
            RandomAttr stream;
        } dropout;
        HistoryAttr history;
        struct {
            ScaleAttr by;
            RandomAttr stream;
        } factor;
    };
} OpAttr;
