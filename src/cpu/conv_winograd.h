// cpu/conv_winograd.h: the squares that both products of Winograd's way walk over. Private to
// conv_winograd.c, which tells the way, and conv_winograd_weight.c.
//
// The outputs of an image are cut into squares, the last of a line or column with less where their
// number is no multiple; each sees a square of pixels with two more on a side. Squares are counted
// line by line, image by image.
#pragma once

#include "cpu/conv.h"
#include "cpu/gemm_kernels.h"

enum {
    WINOGRAD_KERNEL = 3,
    WINOGRAD_TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL,
    WINOGRAD_MOST_OUTPUTS = 4 * 4,
    WINOGRAD_MOST_PIXELS = 6 * 6,
};

typedef struct WinogradSquares {
    const CpuWinograd *simd;
    int64_t side, seen, parts; // outputs and pixels along a side, and all those pixels
    int64_t across, of_image, count;
} WinogradSquares;

// Squares of outputs, of two by two or of the larger size.
static inline WinogradSquares winograd_squares(const Device *device, const View *outputs,
                                               bool larger) {
    WinogradSquares squares = {.simd = cpu_simd(device)->winograd};
    squares.simd += larger ? CPU_WINOGRAD_SIZES - 1 : 0;
    squares.side = squares.simd->side;
    squares.seen = squares.side + WINOGRAD_KERNEL - 1;
    squares.parts = squares.seen * squares.seen;
    squares.across = gemm_divide_up(outputs->shape[2], squares.side);
    squares.of_image = gemm_divide_up(outputs->shape[1], squares.side) * squares.across;
    squares.count = squares.of_image * outputs->shape[0];
    return squares;
}

// A square of so many pixels on a side, at a channel; NULL: outside of the image.
static inline void winograd_look(const View *view, int64_t image, int64_t row, int64_t column,
                                 int64_t channel, int64_t side, void **pixels) {
    const int64_t height = view->shape[1], width = view->shape[2], channels = view->shape[3];
    for (int64_t h = row; h < row + side; h++)
        for (int64_t w = column; w < column + side; w++)
            *pixels++ =
                h < 0 || h >= height || w < 0 || w >= width
                    ? NULL
                    : cpu_at_mutable(view, ((image * height + h) * width + w) * channels + channel);
}

// The outputs of a square, and what it sees of an image that is padded so.
static inline void winograd_outputs(const WinogradSquares *squares, const View *view,
                                    int64_t square, int64_t channel, void **pixels) {
    const int64_t at = square % squares->of_image;
    winograd_look(view, square / squares->of_image, at / squares->across * squares->side,
                  at % squares->across * squares->side, channel, squares->side, pixels);
}

static inline void winograd_pixels(const WinogradSquares *squares, const View *view,
                                   const int64_t padding[2], int64_t square, void **pixels) {
    const int64_t at = square % squares->of_image;
    winograd_look(view, square / squares->of_image,
                  at / squares->across * squares->side - padding[0],
                  at % squares->across * squares->side - padding[1], 0, squares->seen, pixels);
}

// conv_winograd_run's of the gradient of weights.
bool conv_winograd_weight_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                              bool *finite, Error *error);
