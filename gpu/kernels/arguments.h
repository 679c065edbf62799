// gpu/kernels/arguments.h: what a kernel is told, one struct a kernel or a family of them.
//
// The contract of three compilers: the host's (C17), nvcc and the emulator's (C++17). Plain values
// and addresses of device memory only. What changes from step to step is never a value here, since
// a captured step would repeat it: a kernel gets the address of where it lies.
#pragma once

#include "kernel/kernel.h"
#include "kernel/multi.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

// What host and kernels count by.
enum {
    WARP = 32,       // threads that step together
    WIDE_BYTES = 16, // of the widest access
    EIGHT = 8        // neighbours that a thread brings at once, where they lie wide
};

// How the elements of an operand are found from the number of an element of the output.
typedef enum OperandKind {
    OPERAND_ABSENT,
    OPERAND_WIDE,   // one behind the other, the first at a multiple of 16 bytes
    OPERAND_DENSE,  // one behind the other
    OPERAND_ONE,    // the same for all
    OPERAND_STRIDED // by the strides, along the extent's dimensions
} OperandKind;

typedef struct Operand {
    void *data;
    u32 format, kind;          // Format, OperandKind
    i64 stride[VIEW_MAX_DIMS]; // of OPERAND_STRIDED
} Operand;

// Of the output, in as few dimensions as its operands allow.
typedef struct Extent {
    u32 ndim;
    i64 size[VIEW_MAX_DIMS];
    i64 count;
} Extent;

// ---- values.h -----------------------------------------------------------------------------------

// What kernels found in values, in memory of the device. All bits are set while nothing was found.
typedef struct FoundValue {
    unsigned long long call;  // that found it
    unsigned long long first; // of its values, the lowest: position << 32 | value
    ValueCheck check;
} FoundValue;

#define FOUND_NOTHING (~0ull)

// What the values of a call are held to, and where it is said of those that do not pass.
typedef struct ValueArguments {
    ValueCheck check;
    unsigned long long call; // a number that no other call has
    FoundValue *found;
} ValueArguments;

// ---- losses.cu ----------------------------------------------------------------------------------

typedef struct LossArguments {
    Operand input[2];
    Extent extent;
    float *sums; // one a block
    u32 wide;    // eight neighbours of both come by 16 bytes
} LossArguments;

// ---- reduce.cu ----------------------------------------------------------------------------------

typedef struct ReduceArguments {
    Operand input;  // its strides: along the dimensions that stay
    Operand along;  // strides alone: along those that are reduced
    Operand output; // [parts, kept.count]
    Extent kept, reduced;
    i64 part; // elements of `reduced` that are reduced together
    float divisor;
    u32 team; // threads of an output; of columns: of a row of threads
    u32 wide; // neighbours come by 16 bytes
} ReduceArguments;

// ---- rows.h -------------------------------------------------------------------------------------

// Parts of eight of a row that a thread holds at most: where it holds one row, and where two.
enum { ROW_CHUNKS = 4, PAIR_CHUNKS = 2 };

// Dense arrays of rows, the last dimension.
typedef struct RowArguments {
    Operand input[2], output;
    i64 rows, length;
    u32 team; // threads of a row: a power of two up to 32, or the whole block
    u32 wide; // neighbours of every operand come and go by 16 bytes
} RowArguments;

// ---- classes.cu ---------------------------------------------------------------------------------

enum {
    CLASSES_OF_BLOCK = 16384, // that one block counts
    ENTROPY_STEPS = 4         // a thread's parts of eight of the gradient
};

typedef struct ClassArguments {
    RowArguments rows; // the logits
    Operand classes;   // one a row
    ValueArguments values;
    float
        *sums; // of cross entropy: the largest of each row, then the logarithms; NULL: nobody asks
    float *given; // of each block's rows together
    u32 *kept;    // how many of them take part
} ClassArguments;

typedef struct ClassMeanArguments {
    Operand output;
    const float *given;
    const u32 *kept;
    i64 count;
} ClassMeanArguments;

typedef struct EntropyBackwardArguments {
    Operand gradient, logits, sums, classes, output;
    i64 rows, length;
    const u32 *kept;
    u32 counts; // of `kept`
    u32 wide;
} EntropyBackwardArguments;

// ---- norm_rows.cu -------------------------------------------------------------------------------

typedef struct NormRowArguments {
    RowArguments rows; // x, or dy and x
    Operand weight, bias, mean, inverse;
    float epsilon;
    u32 divides;    // parts of eight divide a row
    i64 part;       // rows of a block
    float *partial; // [2, blocks, length]: of each block's rows, what weight and bias get
} NormRowArguments;

// ---- norm_sets.cu, norm_columns.cu --------------------------------------------------------------

// Of a dense array [rows, channels], and what shares a mean: the set of an element is
// row / rows_of_set * groups + channel / group.
typedef struct NormArguments {
    Operand x, dy, weight, bias, mean, inverse, output;
    i64 rows, channels, rows_of_set, groups, group;
    i64 part, parts;                   // rows of a part; how many
    float *partial;                    // of each part two numbers a channel: [2, parts, channels]
    const float *products, *gradients; // sums of dy n, and of dy, of each channel
    float epsilon;
    u32 inverse_is_variance; // of which the inverse deviation is made
    u32 team;                // threads of a row of them
    u32 wide;
} NormArguments;

typedef struct TrackArguments {
    Operand old_mean, old_variance, mean, inverse, new_mean, new_variance;
    i64 channels;
    float epsilon, new_share, old_share, unbiased;
} TrackArguments;

// ---- line.cu ------------------------------------------------------------------------------------

// An array [.., size, inner] around a dimension; its lines are counted without it.
typedef struct LineArguments {
    Operand input, gradient, output;
    float *before; // of prod_backward: a number an element
    i64 lines, size, inner;
    u32 team; // threads of a line: a warp, or 1
    u32 backwards;
} LineArguments;

typedef struct ResampleArguments {
    Operand input, output;
    ResampleAttr attr;
    i64 inner, count; // elements of the output
} ResampleArguments;

// ---- order.cu -----------------------------------------------------------------------------------

typedef struct TopkArguments {
    RowArguments rows; // their output: the values
    i32 *indices;
    i64 count;
} TopkArguments;

// ---- pointwise.cu -------------------------------------------------------------------------------

typedef struct PointwiseArguments {
    Operand input[3], output;
    Extent extent;
    float a, b; // of ScalarAttr
    u32 wide;   // eight neighbours of every operand come and go by 16 bytes
} PointwiseArguments;

// ---- what runs over all tensors at once: scan.cu, update.cu, pairs.cu, flags.cu -----------------

// Tensors are cut into pieces of at most so many elements, and every piece has a block: a model of
// many small tensors is one launch, and a large tensor is shared out.
enum { PIECE_ELEMENTS = 4096 };

// The table of a plan: a record a tensor, then of each piece the number of its tensor.
typedef struct PieceTable {
    const void *records;
    const u32 *tensor_of;
    u32 tensors, pieces;
} PieceTable;

typedef struct Pieces { // of one tensor
    i64 count;          // elements
    u32 first, number;  // the pieces
} Pieces;

typedef struct Span { // numbers one behind the other
    void *data;       // NULL: none
    u32 format;
} Span;

typedef struct ScanRecord {
    Pieces pieces; // of every record the first member
    Span gradient;
    GradStats *stats;
    u32 round_to;
    u32 smallest_normal; // bits of fp32: of round_to
    u32 adds, wide;
} ScanRecord;

typedef struct ScanSums { // of one piece: of true values, and of what is left behind
    double seen, seen_squares, kept, kept_squares;
} ScanSums;

typedef struct ScanArguments {
    PieceTable table;
    const ScaleState *scale; // NULL: 1
    StepFlags *flags;
    ScanSums *sums; // one a piece
} ScanArguments;

typedef struct ClipValueArguments {
    PieceTable table; // of ScanRecord
    float limit;
} ClipValueArguments;

typedef struct MultiplyArguments {
    PieceTable table; // of ScanRecord
    const float *factor;
} MultiplyArguments;

typedef struct ClipNormArguments {
    double limit;
    StepFlags *flags;
} ClipNormArguments;

enum { SCALE_FLAGS = 64 }; // of so many optimizers a launch takes the addresses itself

typedef struct ScaleUpdateArguments {
    ScaleRule rule;
    ScaleState *state;
    u32 count;
    const StepFlags *const *many; // on the card; NULL: they are `few`
    const StepFlags *few[SCALE_FLAGS];
} ScaleUpdateArguments;

typedef struct UpdateRecord {
    Pieces pieces;
    Span parameter, gradient, moment[2], low;
    double *moved;
    u64 *steps;
    u64 block; // where its random numbers begin, from where the update's do
    i32 group;
    float weight_decay;
    u32 wide;
} UpdateRecord;

typedef struct UpdateNumbers { // what the tensors of one update have of their own
    float clip;                // what the gradients are multiplied by
    float rate;
    float step1, step2; // bias correction
    float ratio;        // LAMB's
    u32 first;          // no update of it was done before
} UpdateNumbers;

typedef struct Squares { // of one piece
    double a, b;
} Squares;

typedef struct UpdateArguments {
    PieceTable table;
    UpdateRule rule;
    float rest1, rest2;     // 1 - beta
    const StepFlags *flags; // NULL: always, unclipped
    Progress *progress;
    UpdateNumbers *numbers; // one a tensor
    Squares *squares;       // one a piece: of gradients, or LAMB's, of parameter and direction
    Squares *moved;         // one a piece: of change and parameter; NULL: unasked
} UpdateArguments;

typedef struct PairRecord {
    Pieces pieces;
    Span target, source;
    u32 wide;
} PairRecord;

typedef struct PairArguments {
    PieceTable table;
    const StepFlags *flags; // NULL: it goes on whatever they say
    float decay, rest;      // of an average
} PairArguments;

// ---- look.cu ------------------------------------------------------------------------------------

typedef struct LookArguments {
    Operand input;
    Extent extent;
    u32 wide;
    LookFound *found; // added to
} LookArguments;

// ---- proof.cu -----------------------------------------------------------------------------------

// How far results are from those expected: sums of squares, over all that are finite on both sides.
typedef struct ProofDistance {
    double difference, expected;
    double unlike; // how many are finite on one side alone, or not finite in another way
} ProofDistance;

typedef struct ProofArguments {
    const void *result, *expected;
    u32 format;             // of both
    i64 row, rows, columns; // stride of the result; those expected are dense
    ProofDistance *distance;
} ProofArguments;

#include "gpu/kernels/product_arguments.h"
#include "gpu/kernels/select_arguments.h"
