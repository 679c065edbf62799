// ops/shape_check.h: what the shape rules share: presence, formats, messages, and the one place
// where an output's size is worked out without overflowing.
//
// Private to src/ops/shape*.c. Every function is pure; those that return bool fill `error` when
// they are false. Names given as arguments are those that a user reads: "input", "weight".
#pragma once

#include "ops/shape.h"

enum { SHAPE_TEXT_SIZE = 160 };

// "[32,28,28,1]"; "[]" for a single number.
typedef struct ShapeText {
    char text[SHAPE_TEXT_SIZE];
} ShapeText;
ShapeText shape_text(int ndim, const int64_t *shape);
ShapeText shape_text_of(const View *view);

#define shape_fail(error, ...) error_fail(error, ERROR_USAGE, __VA_ARGS__)

// Whether input `index` was given; optional inputs may be absent.
bool shape_has(const KernelCall *call, int index);

// The input is there and holds numbers in a floating format, classes (int32) or a mask (uint8).
bool shape_floating(const KernelCall *call, int index, const char *name, Error *error);
bool shape_integers(const KernelCall *call, int index, const char *name, Error *error);
bool shape_mask(const KernelCall *call, int index, const char *name, Error *error);
// The input is there; it may hold any numbers.
bool shape_numbers(const KernelCall *call, int index, const char *name, Error *error);
// What inputs first to first + count - 1 make together: where all are whole numbers, int32, or
// uint8 of nothing but uint8; else FORMAT_COUNT, which precision decides.
Format shape_promoted(const KernelCall *call, int first, int count);
// The same for every input from 0 to count - 1, with their names.
bool shape_all_floating(const KernelCall *call, int count, const char *const *names, Error *error);

bool shape_wants_dims(const View *view, int ndim, const char *name, const char *form, Error *error);
bool shape_wants_same(const View *view, const char *name, const View *other, const char *other_name,
                      Error *error);
// A vector with one number for each of `size` things: channels, features.
bool shape_wants_vector(const View *view, const char *name, int64_t size, const char *of,
                        Error *error);
// A whole number of at least `least` and small enough to be computed with.
bool shape_wants_at_least(int64_t value, int64_t least, const char *name, Error *error);
// The view holds at least one element along its last dimension.
bool shape_wants_rows(const View *view, const char *name, Error *error);

// The format of what a kernel gives beside its result, statistics and sums: fp32, or fp64 of fp64.
static inline Format shape_kept(const View *x) {
    return x->format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
}

// Fills an output's format, dimensions and dense strides. Refuses sizes whose product does not fit.
bool shape_output(View *output, Format format, int ndim, const int64_t *shape, Error *error);
// An output with the shape of an input, or with it less its last dimension.
bool shape_output_like(View *output, Format format, const View *view, Error *error);
bool shape_output_rows(View *output, Format format, const View *view, Error *error);
bool shape_output_number(View *output, Format format, Error *error);

// Broadcasts `count` inputs from `first` against each other, as NumPy does.
bool shape_output_broadcast(View *output, Format format, const KernelCall *call, Error *error);

// How many windows of `kernel` fit along one dimension.
typedef struct Window {
    int64_t size, kernel, stride, padding, dilation;
    const char *name; // "height" or "width"
} Window;
bool shape_windows(const Window *window, int64_t *count, Error *error);
