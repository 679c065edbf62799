// gpu/kernels/select_arguments.h: what kernels are told that make, move and select numbers: a part
// of gpu/kernels/arguments.h, which includes it.
#pragma once

// ---- what moves, whatever it is -----------------------------------------------------------------

// From array to array: by pieces of 16, 8, 4, 2 or 1 bytes as they are; or, where `bytes` is 0, one
// number after the other from format to format.
typedef struct Moving {
    u32 bytes;
    u32 from, to; // Format
} Moving;

// One number as often as 16 bytes hold it.
typedef struct Pattern {
    u32 word[4];
} Pattern;

// ---- cast.cu ------------------------------------------------------------------------------------

typedef struct CastArguments {
    Operand input, output;
    Extent extent;
    u32 wide;
} CastArguments;

typedef struct CopyArguments {
    Operand input; // its strides, and the extent, count pieces
    void *output;
    Moving moving;
    Extent extent;
} CopyArguments;

enum { CAST_TILE = 32 }; // rows and columns of what a block turns round

typedef struct TransposeArguments {
    Operand input, output; // the input's neighbours lie along dimension `along`
    Extent extent;
    u32 along;
    u32 keeps; // bytes of a number that stays as it is; 0: from format to format
    i64 tiles_along, tiles_last;
} TransposeArguments;

// ---- create.cu ----------------------------------------------------------------------------------

typedef struct FillArguments {
    void *output;
    i64 count; // of pieces
    u32 bytes; // of a piece
    Pattern pattern;
} FillArguments;

typedef struct ArangeArguments {
    Operand output;
    i64 count;
    double first, step;
} ArangeArguments;

// uniform: low and range, and the largest; normal: mean and deviation; randint: low and range;
// dropout: probability, and the factor of what stays.
typedef struct DrawArguments {
    Operand input, output;
    i64 count;
    u32 wide;
    RandomAttr random;
    double a, b;
    float last;
} DrawArguments;

// ---- arrange.cu ---------------------------------------------------------------------------------

// Arrays with one dimension that differs: [outer, that dimension, inner], the last two as one run.
typedef struct CatArguments {
    const void *input[OP_MAX_INPUTS];
    u32 format[OP_MAX_INPUTS];
    i64 end[OP_MAX_INPUTS]; // of each input's part of an output's run
    void *output;
    Moving moving; // all counts are of its pieces
    u32 inputs;
    i64 run, count;
} CatArguments;

// Padding of each dimension; those without any are one with the next outer one.
typedef struct PadArguments {
    const void *input;
    void *output;
    Moving moving; // all counts are of its pieces
    Pattern pattern;
    u32 bytes;     // of an output's piece
    Extent extent; // of the output
    i64 size[VIEW_MAX_DIMS], before[VIEW_MAX_DIMS];
} PadArguments;

// The index selects along the middle one of [outer, dimension, inner].
typedef struct GatherArguments {
    const void *input; // x, or dy
    const i32 *index;
    void *output;
    Moving moving;
    ValueArguments values;
    i64 size, picked, inner; // the dimension's of x, and of the index
    i64 count;               // of elements that are written
} GatherArguments;

typedef struct CheckArguments {
    const i32 *index;
    i64 count;
    ValueArguments values;
} CheckArguments;

// ---- sort.cu ------------------------------------------------------------------------------------

enum { SORT_TILE = 2048, SORT_DIGITS = 256 }; // entries of a block; values of a digit

// The sorted entries of a row; none: two equal numbers.
typedef struct SortBounds {
    u32 first, end;
} SortBounds;

typedef struct SortArguments {
    const i32 *index;
    const u32 *key, *position; // as the last pass left them; key NULL: none did
    u32 *key_out, *position_out;
    u32 *starts; // [SORT_DIGITS][tiles]: how many, then how many before
    SortBounds *bounds;
    i64 count;
    u32 tiles, shift;
    ValueArguments values;
} SortArguments;

// ---- embedding.cu -------------------------------------------------------------------------------

typedef struct EmbeddingArguments {
    const void *weight;
    const i32 *index;
    void *output;
    Moving moving;
    ValueArguments values;
    i64 depth, count; // in pieces: of a row, and of the output
} EmbeddingArguments;

enum { EMBEDDING_OFTEN = 128 }; // from so many entries on a row is shared out

typedef struct EmbeddingSumArguments {
    Operand input, output;
    const u32 *key, *position; // sorted by the rows that the index names
    const SortBounds *bounds;
    i64 rows, depth;
    u32 wide;
} EmbeddingSumArguments;

// ---- pool.cu ------------------------------------------------------------------------------------

typedef struct PoolArguments {
    Operand input, output;
    u8 *where;         // where in its window the largest lay; NULL: unwanted, or an average
    i32 height, width; // of the image
    i32 out_height, out_width;
    i32 kernel[2], stride[2], padding[2];
    i64 channels;
    u32 count;   // of what is written, eight channels or one
    float share; // that every sum is multiplied by
    u32 wide;
} PoolArguments;
