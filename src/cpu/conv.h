// cpu/conv.h: one convolution as the CPU's ways of computing it see it.
//
// conv.c brings the arrays of a call into one of two forms and chooses the way; conv_columns.c
// lays windows out as the rows of a matrix and multiplies (any format, any geometry);
// conv_places.c multiplies the images of a batch a place at a time, without their padding;
// conv_winograd.c, in fp32, takes fewer multiplications than 3x3 taps, and 4x4, have;
// conv_library.c has the library of onednn.c do it (fp32; bf16 where the processor has instructions
// for it); conv_bands.c leaves the padding out of the sums where weights are infinite or NaN.
// Private to this folder; called on the thread that drives the device.
#pragma once

#include "cpu/cpu.h"

typedef enum ConvPass { CONV_FORWARD, CONV_BACKWARD_INPUT, CONV_BACKWARD_WEIGHT } ConvPass;

// What a way is chosen, and a primitive of the library kept, by. No padding: compared as bytes.
typedef struct ConvProblem {
    int64_t images, size[2], channels, filters, out_size[2];
    int64_t kernel[2], stride[2], padding[2], dilation[2], groups;
    int32_t pass, activation;
    int32_t format;     // of x, w and dy
    int32_t out_format; // of what the pass makes
    int32_t has_bias;   // forward: it is added
    int32_t threads;
} ConvProblem;

// The arrays of a call, dense: x or its gradient, y or its gradient, the weights or theirs. The
// pass decides which of them is written. Only the forward pass has a bias, or none; it is fp32 for
// the library.
typedef struct ConvArrays {
    View x, weight, bias, y;
    float times; // what sums are multiplied by, before the bias
} ConvArrays;

// ---- conv_columns.c -----------------------------------------------------------------------------

bool conv_columns_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                      Error *error);

static inline int64_t conv_out_pixels(const ConvProblem *problem) {
    return problem->images * problem->out_size[0] * problem->out_size[1];
}
// Length of the window that one output sees.
static inline int64_t conv_window(const ConvProblem *problem) {
    return problem->kernel[0] * problem->kernel[1] * (problem->channels / problem->groups);
}
static inline double conv_cost(const ConvProblem *problem) {
    return (double)conv_out_pixels(problem) * (double)problem->filters *
           (double)(conv_window(problem) + 16) / 30;
}

// ---- conv_places.c, conv_places_weight.c --------------------------------------------------------

// Whether a place at a time is a way of this problem: there must be enough images and channels to
// multiply, and room.
bool conv_places_can(const Device *device, const ConvProblem *problem, const ConvArrays *arrays);
bool conv_places_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                     Error *error);
// Theirs of the gradient of weights, which must be of fp32.
bool conv_places_weight_can(const Device *device, const ConvProblem *problem,
                            const ConvArrays *arrays);
bool conv_places_weight_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                            Error *error);

// ---- conv_winograd.c, conv_winograd_weight.c ----------------------------------------------------

// Whether a gradient of weights is summed by the larger squares: where what is read has not the
// digits of fp32.
static inline bool winograd_takes_larger(const ConvArrays *arrays) {
    return arrays->x.format != FORMAT_FP32 || arrays->y.format != FORMAT_FP32;
}

// Whether Winograd's way is one of this problem: 3x3 taps without a stride or, but for the gradient
// of weights, 4x4 with one of two; whole vectors of channels, and no function behind that cannot be
// had on the way out.
bool conv_winograd_can(const ConvProblem *problem, const ConvArrays *arrays);
// How many times fewer multiplications it takes than there are taps within the images.
double conv_winograd_saves(const Device *device, const ConvProblem *problem,
                           const ConvArrays *arrays);
// *finite is false, and what was written no result, where a sum came out infinite or NaN: by
// another way it may be a different one of these, or, next to the largest numbers, finite.
bool conv_winograd_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                       bool *finite, Error *error);

// ---- conv_library.c -----------------------------------------------------------------------------

// By the library, in the problem's formats. Arrays in others are copied, a slice of the batch at a
// time, so that the copies stay in the caches and need no memory to speak of. *possible is false,
// and nothing is done, where the library has no fast way.
bool conv_library_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                      bool *possible, Error *error);

// ---- conv_bands.c -------------------------------------------------------------------------------

// Of arrays in fp32, fp16 or bf16: neither infinities nor NaN.
bool conv_is_finite(const Device *device, const View *view);

// Whether zeros in the place of the padding would show: they make NaN of weights that are not
// finite. Looks at the weights only where a forward pass pads.
bool conv_pads_special(const Device *device, const ConvProblem *problem, const ConvArrays *arrays);

// A forward pass that multiplies nothing in the padding: slower, right for any weights.
bool conv_bands_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                    Error *error);
