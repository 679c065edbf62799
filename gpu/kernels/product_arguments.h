// gpu/kernels/product_arguments.h: what the kernels of products and convolution are told: a part of
// gpu/kernels/arguments.h, which includes it.
#pragma once

#include "kernel/scale.h"
#include "number/scaled.h"

// ---- product.cu, product_mma.cu -----------------------------------------------------------------

enum { PRODUCT_BATCHES = 4 }; // dimensions that matrices are counted by

// One factor of a product, as seen from the sum: an outer dimension (of a its rows, of b its
// columns) and the depth, which is summed over.
typedef struct ProductFactor {
    const void *data;
    u32 format;       // Format; TF32 is fp32 that is rounded as it is brought
    u32 along_depth;  // neighbours in memory are neighbours in depth, else in the outer one
    u32 wide;         // eight such neighbours come by 16 bytes
    i64 outer, depth; // strides
    i64 batch[PRODUCT_BATCHES];
} ProductFactor;

// c = activation(a b + bias), of each of an array of matrices. In parts of the depth it is first
// summed to fp32 apart, and then joined, in their order.
typedef struct ProductArguments {
    ProductFactor a, b;
    struct {
        void *data;
        u32 format;
        u32 wide; // eight neighbours go by 16 bytes
        i64 row;  // stride; that of columns is 1
        i64 batch[PRODUCT_BATCHES];
    } c;
    i64 rows, columns, depth;
    i64 batch[PRODUCT_BATCHES]; // how many matrices along each, the last runs fastest
    const void *bias;           // one a column, or NULL
    i64 bias_step;              // from matrix to matrix along the last dimension
    u32 bias_format;
    u32 activation; // Activation
    u32 parts;
    i64 part;       // the depth of one, but for the last
    float *partial; // [matrices][parts][rows][columns], where there are several
} ProductArguments;

// ---- convolution: product.cu, product_mma.cu, conv.cu -------------------------------------------

enum { REPAIR_COLUMNS = 128 }; // of a row of results, that a warp of conv_repair asks for at once

// Divides numbers below 2^31, by a product and a shift.
typedef struct Divisor {
    u32 by, factor, shift;
} Divisor;

typedef enum FactorKind {
    FACTOR_PLAIN,
    FACTOR_WINDOWS,      // of an image: [pixels that windows begin at][taps][channels]
    FACTOR_WINDOWS_BACK, // of a gradient: those windows that an input's pixel is in, likewise
    FACTOR_FILTERS_BACK  // filters [filters][taps][channels] as [channels][taps][filters]
} FactorKind;

// How the elements of a factor are found that does not lie in memory as a matrix. Its two indices
// are a pixel's number and that of a channel of a tap.
typedef struct ConvFactor {
    u32 kind;
    Divisor pixels, columns; // of all pixels those of an image, of them those of a row
    Divisor channels, kernel_columns;
    Divisor stride[2];
    i32 size[2];                          // height and width of what is read
    i32 padding[2], dilation[2], last[2]; // last: how far the last tap is from the first
    i64 image, row, column;               // strides; of filters: a filter's, none, a tap's
} ConvFactor;

typedef struct ConvArguments {
    ProductArguments product;
    ConvFactor a, b;
} ConvArguments;

// sums[part][filter][tap] of a gradient times what the tap saw, over one part of the pixels each;
// without an image, of the gradient alone.
typedef struct ConvColumnsArguments {
    Operand gradient, image;
    ConvFactor windows;
    i64 pixels, filters, channels, taps; // of each channel filters / channels
    i64 part;
    float *sums;
} ConvColumnsArguments;

// ---- attention.cu, attention_mma.cu -------------------------------------------------------------

// Of arrays [batch][time][head][depth] as factors: the outer dimension is time, and of those that
// matrices are counted by the last two are batch and head.
typedef struct AttentionArguments {
    ProductFactor q, k, v, dy, y; // the last two backward
    void *out[3];                 // y; or dq, dk, dv
    u32 format[3];
    u32 wide[3];
    float *sums; // [2][batch][head][query]: written forward, if not NULL, and read backward
    i64 sums_stride[4];
    float *delta; // [batch][head][query]: of each row the sum of dy y
    i64 batches, heads, queries, keys, depth;
    float scale;
    u32 causal;
} AttentionArguments;

// ---- scale.cu -----------------------------------------------------------------------------------

typedef struct ScaleArguments {
    Operand input, output; // output: fp32 or bf16, dense
    Extent extent;
    ScaleLines lines;
    NumberElement element;
    u32 scale; // Format
    bool up, best, at_random, hadamard;
    u32 team;             // threads of a block that shares a scale
    const float *delayed; // what to multiply by; NULL: it follows from the largest
    float *largest;       // of all; NULL: each block's own is enough
    RandomAttr random;
} ScaleArguments;

typedef struct HistoryArguments {
    const float *input; // [rows, width]; the output, which is dense, may be the same
    float *output;
    i64 rows, width;
    i64 row, step; // strides of the input
    HistoryAttr history;
} HistoryArguments;
