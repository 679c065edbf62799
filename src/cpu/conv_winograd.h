// cpu/conv_winograd.h: the kernels that Winograd's way has, and the squares that both of its
// products walk over. Private to conv_winograd.c, which tells the way, conv_winograd_weight.c and
// conv_winograd_kernels.c.
//
// The outputs of an image are cut into squares, the last of a line or column with less where their
// number is no multiple; each sees a square of pixels with more on a side, one less than there are
// taps. Squares are counted line by line, image by image.
#pragma once

#include "cpu/conv.h"
#include "cpu/gemm_kernels.h"

enum {
    WINOGRAD_MOST_TAPS = 3 * 3,
    WINOGRAD_MOST_OUTPUTS = 4 * 4,
    WINOGRAD_MOST_PIXELS = 6 * 6,
};

typedef struct WinogradSquares {
    const CpuWinograd *simd;
    int64_t side, seen, parts; // outputs and pixels along a side, and all those pixels
    int64_t across, of_image, count;
} WinogradSquares;

static inline WinogradSquares winograd_squares(const CpuWinograd *simd, int64_t images,
                                               const int64_t outputs[2]) {
    WinogradSquares squares = {
        .simd = simd, .side = simd->side, .seen = simd->side + simd->kernel - 1};
    squares.parts = squares.seen * squares.seen;
    squares.across = gemm_divide_up(outputs[1], squares.side);
    squares.of_image = gemm_divide_up(outputs[0], squares.side) * squares.across;
    squares.count = squares.of_image * images;
    return squares;
}

// Where numbers lie in an image that squares are cut from: the first, and how far apart they are.
typedef struct WinogradGrid {
    int64_t first[2], step;
} WinogradGrid;

// Fills `pixels` with where the side x side numbers of a square lie, at a channel; NULL: outside of
// the image.
static inline void winograd_look(const WinogradSquares *squares, int64_t square, int64_t side,
                                 const View *view, const WinogradGrid *grid, int64_t channel,
                                 void **pixels) {
    const int64_t height = view->shape[1], width = view->shape[2], channels = view->shape[3];
    const int64_t image = square / squares->of_image, at = square % squares->of_image;
    const int64_t row = grid->first[0] + at / squares->across * squares->side * grid->step;
    const int64_t column = grid->first[1] + at % squares->across * squares->side * grid->step;
    for (int64_t h = row; h < row + side * grid->step; h += grid->step)
        for (int64_t w = column; w < column + side * grid->step; w += grid->step)
            *pixels++ =
                h < 0 || h >= height || w < 0 || w >= width
                    ? NULL
                    : cpu_at_mutable(view, ((image * height + h) * width + w) * channels + channel);
}

typedef struct WinogradKernel {
    int64_t taps, stride; // along a side
    CpuWinogradSize squares;
    bool has_weights; // whether their gradient is computed so
    // Parts of weights: those of fewer columns at a time take no more. Networks with 4x4 taps hold
    // little else in formats of 16 bits.
    int64_t packed_bytes;
} WinogradKernel;

// NULL: Winograd's way has none like a problem's.
const WinogradKernel *winograd_kernel_of(const ConvProblem *problem);

// What turns the squares of a problem that Winograd's way can compute.
const CpuWinograd *winograd_transforms_of(const Device *device, const ConvProblem *problem,
                                          const ConvArrays *arrays);

// conv_winograd_run's of the gradient of weights.
bool conv_winograd_weight_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                              bool *finite, Error *error);
