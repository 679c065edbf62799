// cpu/simd/winograd.c: the transforms of Winograd's F(2x2, 3x3), F(4x4, 3x3) and F(2x2, 2x2), by
// vectors of channels.
//
// Along one dimension, outputs y of pixels d and of three taps g are sums of products m = u * v,
// where u are parts of the taps and v parts of the pixels. Of two outputs that is
//
//     u = (g0, (g0+g1+g2)/2, (g0-g1+g2)/2, g2)    v = (d0-d2, d1+d2, d2-d1, d1-d3)
//     y = (m0+m1+m2, m1-m2-m3)
//
// and of four the same with six parts: u is the polynomial of g at 0, 1, -1, 2, -2 and infinity,
// over what v is too large by. Along two dimensions it is done to columns and then to rows. The
// gradient of g goes the other way round through what makes y of m and u of g, and sums v times
// that of y in between; squares of four serve it alone. Two outputs of two taps are
//
//     u = (g0, g0+g1, g1)    v = (d0-d1, d1, d2-d1)    y = (m0+m1, m1+m2)
#include "cpu/simd.h"
#include "cpu/simd/vector.h"

enum {
    MOST_TAPS = 3, // along a side
    MOST_SIDE = 6, // parts
};

ALWAYS_INLINE Vector times(float factor, Vector a) {
    return vector_all(factor) * a;
}

ALWAYS_INLINE Vector plus_times(Vector sum, float factor, Vector a) {
    return vector_multiply_add(vector_all(factor), a, sum);
}

// ---- one line -----------------------------------------------------------------------------------

// Of any line of a square, whose elements lie `step` vectors apart; in place.
ALWAYS_INLINE void image_line(const int outputs, const int taps, Vector *line, const int step) {
    const Vector d0 = line[0], d1 = line[step], d2 = line[2 * step];
    if (taps == 2) {
        line[0] = d0 - d1;
        line[2 * step] = d2 - d1;
        return;
    }
    const Vector d3 = line[3 * step];
    if (outputs == 2) {
        line[0] = d0 - d2;
        line[step] = d1 + d2;
        line[2 * step] = d2 - d1;
        line[3 * step] = d1 - d3;
        return;
    }
    const Vector d4 = line[4 * step], d5 = line[5 * step];
    const Vector even = plus_times(d4, -4, d2), odd = plus_times(d3, -4, d1);
    const Vector far_even = d4 - d2, far_odd = times(2, d3 - d1);
    line[0] = plus_times(plus_times(d4, -5, d2), 4, d0);
    line[step] = even + odd;
    line[2 * step] = even - odd;
    line[3 * step] = far_even + far_odd;
    line[4 * step] = far_even - far_odd;
    line[5 * step] = plus_times(plus_times(d5, -5, d3), 4, d1);
}

ALWAYS_INLINE void gradient_line(const int outputs, Vector *line, const int step) {
    const Vector y0 = line[0], y1 = line[step];
    if (outputs == 2) {
        line[step] = y0 + y1;
        line[2 * step] = y0 - y1;
        line[3 * step] = -y1;
        return;
    }
    const Vector y2 = line[2 * step], y3 = line[3 * step];
    const Vector even = y0 + y2, odd = y1 + y3;
    const Vector far_even = plus_times(y0, 4, y2), far_odd = times(2, plus_times(y1, 4, y3));
    line[step] = even + odd;
    line[2 * step] = even - odd;
    line[3 * step] = far_even + far_odd;
    line[4 * step] = far_even - far_odd;
    line[5 * step] = y3;
}

ALWAYS_INLINE void weight_line(const int taps, Vector *line, const int step) {
    if (taps == 2) {
        line[2 * step] = line[step];
        line[step] = line[0] + line[step];
        return;
    }
    const Vector g1 = line[step], g2 = line[2 * step], outer = line[0] + g2;
    line[step] = times(0.5f, outer + g1);
    line[2 * step] = times(0.5f, outer - g1);
    line[3 * step] = g2;
}

ALWAYS_INLINE void output_line(const int taps, Vector *line, const int step) {
    const Vector m1 = line[step], m2 = line[2 * step];
    if (taps == 2) {
        line[0] = line[0] + m1;
        line[step] = m1 + m2;
        return;
    }
    const Vector m3 = line[3 * step];
    line[0] = line[0] + m1 + m2;
    line[step] = m1 - m2 - m3;
}

ALWAYS_INLINE void weight_gradient_line(const int outputs, Vector *line, const int step) {
    const Vector u1 = line[step], u2 = line[2 * step], u3 = line[3 * step];
    const Vector even = u1 + u2, odd = u1 - u2;
    if (outputs == 2) {
        const Vector outer = times(0.5f, even);
        line[0] = line[0] + outer;
        line[step] = times(0.5f, odd);
        line[2 * step] = outer + u3;
        return;
    }
    const Vector u4 = line[4 * step], far_even = u3 + u4, far_odd = u3 - u4;
    const Vector near = times(-1.0f / 6, even);
    line[0] = plus_times(plus_times(near, 1.0f / 24, far_even), 0.25f, line[0]);
    line[step] = plus_times(times(-1.0f / 6, odd), 1.0f / 12, far_odd);
    line[2 * step] = plus_times(near, 1.0f / 6, far_even) + line[5 * step];
}

// ---- to products --------------------------------------------------------------------------------

typedef enum What { IMAGE, GRADIENT, WEIGHTS } What;

ALWAYS_INLINE void line_of(const What what, const int outputs, const int taps, Vector *line,
                           const int step) {
    if (what == IMAGE)
        image_line(outputs, taps, line, step);
    else if (what == GRADIENT)
        gradient_line(outputs, line, step);
    else
        weight_line(taps, line, step);
}

ALWAYS_INLINE int pixels_along(const What what, const int outputs, const int taps) {
    return what == IMAGE ? outputs + taps - 1 : what == GRADIENT ? outputs : taps;
}

// One vector of channels of each part. `whole`: no pixel is NULL.
ALWAYS_INLINE void to_parts(const What what, const int outputs, const int taps, const Format format,
                            void *const *pixels, const bool whole, int64_t at, float *to,
                            int64_t part) {
    const int side = outputs + taps - 1, along = pixels_along(what, outputs, taps);
    Vector square[MOST_SIDE * MOST_SIDE];
    UNROLL for (int j = 0; j < along; j++) {
        UNROLL for (int i = 0; i < along; i++) {
            const void *const pixel = pixels[i * along + j];
            square[i * side + j] = whole || pixel ? vector_load_as(pixel, format, at) : (Vector){0};
        }
        line_of(what, outputs, taps, &square[j], side);
    }
    UNROLL for (int i = 0; i < side; i++) {
        line_of(what, outputs, taps, &square[i * side], 1);
        UNROLL for (int j = 0; j < side; j++)
            vector_store(to + (i * side + j) * part + at, square[i * side + j]);
    }
}

ALWAYS_INLINE void all_to_parts(const What what, const int outputs, const int taps,
                                const Format format, void *const *pixels, int64_t channels,
                                float *to, int64_t part) {
    const int along = pixels_along(what, outputs, taps);
    bool whole = true;
    for (int i = 0; i < along * along; i++)
        whole = whole && pixels[i];
    if (whole)
        for (int64_t at = 0; at < channels; at += LANES)
            to_parts(what, outputs, taps, format, pixels, true, at, to, part);
    else
        for (int64_t at = 0; at < channels; at += LANES)
            to_parts(what, outputs, taps, format, pixels, false, at, to, part);
}

#define TO_PARTS(name, what, outputs, taps)                                             \
    static void name(Format format, void *const *pixels, int64_t channels, float *to,   \
                     int64_t part) {                                                    \
        if (format == FORMAT_FP32)                                                      \
            all_to_parts(what, outputs, taps, FORMAT_FP32, pixels, channels, to, part); \
        else if (format == FORMAT_BF16)                                                 \
            all_to_parts(what, outputs, taps, FORMAT_BF16, pixels, channels, to, part); \
        else                                                                            \
            all_to_parts(what, outputs, taps, FORMAT_FP16, pixels, channels, to, part); \
    }
TO_PARTS(image_2_of_3, IMAGE, 2, 3)
TO_PARTS(gradient_2_of_3, GRADIENT, 2, 3)
TO_PARTS(weights_2_of_3, WEIGHTS, 2, 3)
TO_PARTS(image_4_of_3, IMAGE, 4, 3)
TO_PARTS(gradient_4_of_3, GRADIENT, 4, 3)
TO_PARTS(image_2_of_2, IMAGE, 2, 2)
TO_PARTS(weights_2_of_2, WEIGHTS, 2, 2)

// ---- from products ------------------------------------------------------------------------------

// A sum of what is 0 for numbers that are finite, and NaN for others.
ALWAYS_INLINE bool is_zero(Vector sum) {
    float lanes[LANES];
    vector_store(lanes, sum);
    bool zero = true;
    for (int i = 0; i < LANES; i++)
        zero = zero && lanes[i] == 0;
    return zero;
}

ALWAYS_INLINE bool outputs_of(const int taps, const Format format, const float *from, int64_t part,
                              const float factor, const float *bias, bool clips,
                              void *const *pixels, int64_t channels) {
    enum { OUTPUTS = 2, MOST = OUTPUTS + MOST_TAPS - 1 };
    const int side = OUTPUTS + taps - 1;
    const Vector zero = {0};
    Vector check = {0};
    for (int64_t at = 0; at < channels; at += LANES) {
        Vector square[MOST * MOST];
        UNROLL for (int j = 0; j < side; j++) {
            UNROLL for (int i = 0; i < side; i++) square[i * side + j] =
                vector_load(from + (i * side + j) * part + at);
            output_line(taps, &square[j], side);
        }
        UNROLL for (int i = 0; i < OUTPUTS; i++) {
            output_line(taps, &square[i * side], 1);
            UNROLL for (int j = 0; j < OUTPUTS; j++) {
                Vector value = times(factor, square[i * side + j]);
                if (!pixels[i * OUTPUTS + j])
                    continue;
                check += value * zero;
                if (bias)
                    value += vector_load(bias + at);
                if (clips)
                    value = vector_at_least(value, zero);
                vector_store_as(pixels[i * OUTPUTS + j], format, at, value);
            }
        }
    }
    return is_zero(check);
}

ALWAYS_INLINE bool taps_of(const int outputs, const float *from, int64_t part, const float factor,
                           bool add, float *to, int64_t tap, int64_t channels) {
    const int side = outputs + MOST_TAPS - 1;
    const Vector zero = {0};
    Vector check = {0};
    for (int64_t at = 0; at < channels; at += LANES) {
        Vector square[MOST_SIDE * MOST_SIDE];
        UNROLL for (int j = 0; j < side; j++) {
            UNROLL for (int i = 0; i < side; i++) square[i * side + j] =
                vector_load(from + (i * side + j) * part + at);
            weight_gradient_line(outputs, &square[j], side);
        }
        UNROLL for (int i = 0; i < MOST_TAPS; i++) {
            weight_gradient_line(outputs, &square[i * side], 1);
            UNROLL for (int j = 0; j < MOST_TAPS; j++) {
                float *out = to + (i * MOST_TAPS + j) * tap + at;
                Vector value = square[i * side + j];
                if (add)
                    value += vector_load(out);
                value = times(factor, value);
                check += value * zero;
                vector_store(out, value);
            }
        }
    }
    return is_zero(check);
}

#define OUTPUTS_OF(name, taps)                                                                     \
    static bool name(const float *from, int64_t part, float factor, const float *bias, bool clips, \
                     Format format, void *const *pixels, int64_t channels) {                       \
        if (format == FORMAT_FP32)                                                                 \
            return outputs_of(taps, FORMAT_FP32, from, part, factor, bias, clips, pixels,          \
                              channels);                                                           \
        if (format == FORMAT_BF16)                                                                 \
            return outputs_of(taps, FORMAT_BF16, from, part, factor, bias, clips, pixels,          \
                              channels);                                                           \
        return outputs_of(taps, FORMAT_FP16, from, part, factor, bias, clips, pixels, channels);   \
    }
OUTPUTS_OF(outputs_2_of_3, 3)
OUTPUTS_OF(outputs_2_of_2, 2)

#define TAPS_OF(name, outputs)                                                           \
    static bool name(const float *from, int64_t part, float factor, bool add, float *to, \
                     int64_t tap, int64_t channels) {                                    \
        return taps_of(outputs, from, part, factor, add, to, tap, channels);             \
    }
TAPS_OF(taps_2_of_3, 2)
TAPS_OF(taps_4_of_3, 4)

extern const CpuWinograd ISA_NAME(cpu_winograd)[CPU_WINOGRAD_SIZES];
const CpuWinograd ISA_NAME(cpu_winograd)[CPU_WINOGRAD_SIZES] = {
    [CPU_WINOGRAD_2_OF_3] = {.side = 2,
                             .kernel = 3,
                             .image = image_2_of_3,
                             .gradient = gradient_2_of_3,
                             .weights = weights_2_of_3,
                             .outputs = outputs_2_of_3,
                             .taps = taps_2_of_3},
    [CPU_WINOGRAD_4_OF_3] = {.side = 4,
                             .kernel = 3,
                             .image = image_4_of_3,
                             .gradient = gradient_4_of_3,
                             .taps = taps_4_of_3},
    [CPU_WINOGRAD_2_OF_2] = {.side = 2,
                             .kernel = 2,
                             .image = image_2_of_2,
                             .weights = weights_2_of_2,
                             .outputs = outputs_2_of_2},
};
