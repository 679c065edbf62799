// gpu/kernels/conv.h: where the factors of a convolution, seen as a product, lie in its images.
#pragma once

#include "gpu/kernels/card.h"

static __device__ __forceinline__ u32 divided(u32 number, const Divisor &divisor) {
    return (__umulhi(number, divisor.factor) + number) >> divisor.shift;
}

// A pixel's place: which image, row and column.
struct ConvPixel {
    u32 image;
    i32 at[2];
};

static __device__ __forceinline__ ConvPixel conv_pixel(const ConvFactor &factor, u32 number) {
    const u32 image = divided(number, factor.pixels), within = number - image * factor.pixels.by;
    const u32 row = divided(within, factor.columns);
    return ConvPixel{image, {(i32)row, (i32)(within - row * factor.columns.by)}};
}

// Where a tap of a pixel's window lies along one dimension; less than 0 where nothing is.
static __device__ __forceinline__ i32 conv_tap(const ConvFactor &factor, int dim, i32 pixel,
                                               i32 tap) {
    const Divisor &stride = factor.stride[dim];
    i32 at;
    if (factor.kind == FACTOR_WINDOWS) {
        at = pixel * (i32)stride.by - factor.padding[dim] + tap * factor.dilation[dim];
    } else {
        const i32 begin = pixel + factor.padding[dim] - tap * factor.dilation[dim];
        at = begin < 0 ? -1 : (i32)divided((u32)begin, stride);
        if (at * (i32)stride.by != begin)
            return -1;
    }
    return at < factor.size[dim] ? at : -1;
}

// Whether some tap of the pixel's window finds nothing.
static __device__ __forceinline__ bool conv_touches(const ConvFactor &factor, ConvPixel pixel) {
    bool touches = false;
    for (int dim = 0; dim < 2; dim++) {
        const i32 stride = (i32)factor.stride[dim].by;
        const bool back = factor.kind == FACTOR_WINDOWS_BACK;
        const i32 begin = back ? pixel.at[dim] + factor.padding[dim] - factor.last[dim]
                               : pixel.at[dim] * stride - factor.padding[dim];
        touches = touches || (back && stride > 1) || begin < 0 ||
                  begin + factor.last[dim] >= factor.size[dim];
    }
    return touches;
}

// Where the element of these two indices lies; less than 0 where it is none. Windows have their
// pixels in the outer dimension and their taps in the depth, or, `taps_in_depth` not set, the other
// way round.
static __device__ __forceinline__ i64 conv_place(const ConvFactor &factor, bool taps_in_depth,
                                                 u32 outer, u32 depth) {
    const bool filters = factor.kind == FACTOR_FILTERS_BACK;
    const u32 index = filters || taps_in_depth ? depth : outer;
    const u32 tap = divided(index, factor.channels), channel = index - tap * factor.channels.by;
    if (filters)
        return (i64)tap * factor.column + channel * factor.image + outer;
    const ConvPixel pixel = conv_pixel(factor, taps_in_depth ? outer : depth);
    const u32 tap_row = divided(tap, factor.kernel_columns);
    const u32 tap_column = tap - tap_row * factor.kernel_columns.by;
    const i32 row = conv_tap(factor, 0, pixel.at[0], (i32)tap_row);
    const i32 column = conv_tap(factor, 1, pixel.at[1], (i32)tap_column);
    if (row < 0 || column < 0)
        return -1;
    return pixel.image * factor.image + row * factor.row + column * factor.column + channel;
}
