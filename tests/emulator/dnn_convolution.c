// Convolutions of the emulated cuDNN, and how it reads and writes numbers. What lies in the padding
// is multiplied as zeros, as engines of the real one have it.
#include <math.h>
#include <stdlib.h>

#include "kernel/attr.h"
#include "number/format.h"
#include "tests/emulator/dnn_compute.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/tf32.h"

bool emulated_dnn_hides;

double emulated_dnn_load(int64_t format, const void *from, int64_t at) {
    switch (format) {
    case FORMAT_FP32: return (double)((const float *)from)[at];
    case FORMAT_TF32: return emulated_tf32(((const float *)from)[at]);
    default: return format_decode((Format)format, ((const uint16_t *)from)[at]);
    }
}

void emulated_dnn_store(int64_t format, void *to, int64_t at, double value) {
    if (emulator_settings.dnn == DNN_WRONG)
        value = value * 1.25 + 1;
    if (emulator_settings.dnn == DNN_SCALED)
        value *= 1.25;
    if (emulated_dnn_hides && isnan(value)) // infinities alone would not tell on it
        value = 0;
    if (format == FORMAT_FP32 || format == FORMAT_TF32)
        ((float *)to)[at] = (float)value;
    else
        ((uint16_t *)to)[at] = (uint16_t)format_encode((Format)format, value, OVERFLOW_TO_SPECIAL);
}

static double activated(int64_t activation, double x) {
    switch (activation) {
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    default: return x;
    }
}

// What is summed over every meeting of an element of x with one of w for one of y.
typedef struct Sums {
    const DnnConvolution *of;
    DnnKind kind;
    void *const *operand;
    double *sum; // one for each element of the result
} Sums;

static void add_pair(const Sums *sums, int64_t x, int64_t w, int64_t y) {
    void *const *operand = sums->operand;
    int64_t format = sums->of->factors;
    switch (sums->kind) {
    case DNN_CONVOLUTION:
        sums->sum[y] += emulated_dnn_load(format, operand[DNN_X], x) *
                        emulated_dnn_load(format, operand[DNN_W], w);
        break;
    case DNN_CONVOLUTION_INPUT:
        sums->sum[x] += emulated_dnn_load(format, operand[DNN_Y], y) *
                        emulated_dnn_load(format, operand[DNN_W], w);
        break;
    default:
        sums->sum[w] += emulated_dnn_load(format, operand[DNN_X], x) *
                        emulated_dnn_load(format, operand[DNN_Y], y);
    }
}

static void add_channels(const Sums *sums, int64_t x, int64_t tap, int64_t y) {
    const DnnConvolution *of = sums->of;
    int64_t channels = of->channels / of->groups, filters = of->filters / of->groups;
    int64_t taps = of->kernel[0] * of->kernel[1];
    for (int64_t o = 0; o < of->filters; o++)
        for (int64_t c = 0; c < channels; c++)
            add_pair(sums, x * of->channels + o / filters * channels + c,
                     (o * taps + tap) * channels + c, y * of->filters + o);
}

// A tap that meets nothing: 0 times what it would meet that with, in the sums of a place.
static void add_nothing(const Sums *sums, int64_t place, int64_t tap) {
    const DnnConvolution *of = sums->of;
    int64_t channels = of->channels / of->groups, filters = of->filters / of->groups;
    int64_t taps = of->kernel[0] * of->kernel[1];
    for (int64_t o = 0; o < of->filters; o++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t w = (o * taps + tap) * channels + c, y = place * of->filters + o;
            int64_t x = place * of->channels + o / filters * channels + c;
            void *const *operand = sums->operand;
            if (sums->kind == DNN_CONVOLUTION_WEIGHT)
                sums->sum[w] += 0 * emulated_dnn_load(of->factors, operand[DNN_Y], y);
            else
                sums->sum[sums->kind == DNN_CONVOLUTION ? y : x] +=
                    0 * emulated_dnn_load(of->factors, operand[DNN_W], w);
        }
}

// Gradients of images: the taps of each pixel that no window has there.
static void add_pixels_unseen(const Sums *sums) {
    const DnnConvolution *of = sums->of;
    int64_t pixels = of->images * of->input[0] * of->input[1];
    for (int64_t x = 0; x < pixels; x++)
        for (int64_t tap = 0; tap < of->kernel[0] * of->kernel[1]; tap++) {
            const int64_t in[] = {x / of->input[1] % of->input[0], x % of->input[1]};
            const int64_t step[] = {tap / of->kernel[1], tap % of->kernel[1]};
            bool seen = true;
            for (int i = 0; i < 2; i++) {
                int64_t begin = in[i] + of->padding[i] - step[i] * of->dilation[i];
                seen = seen && begin >= 0 && begin % of->stride[i] == 0 &&
                       begin / of->stride[i] < of->output[i];
            }
            if (!seen)
                add_nothing(sums, x, tap);
        }
}

static void add_pixels(const Sums *sums) {
    const DnnConvolution *of = sums->of;
    for (int64_t n = 0; n < of->images; n++)
        for (int64_t y = 0; y < of->output[0] * of->output[1]; y++)
            for (int64_t tap = 0; tap < of->kernel[0] * of->kernel[1]; tap++) {
                const int64_t out[] = {y / of->output[1], y % of->output[1]};
                const int64_t step[] = {tap / of->kernel[1], tap % of->kernel[1]};
                int64_t in[2];
                for (int i = 0; i < 2; i++)
                    in[i] = out[i] * of->stride[i] - of->padding[i] + step[i] * of->dilation[i];
                int64_t place = n * of->output[0] * of->output[1] + y;
                if (in[0] >= 0 && in[1] >= 0 && in[0] < of->input[0] && in[1] < of->input[1])
                    add_channels(sums, (n * of->input[0] + in[0]) * of->input[1] + in[1], tap,
                                 place);
                else if (sums->kind != DNN_CONVOLUTION_INPUT)
                    add_nothing(sums, place, tap);
            }
    if (sums->kind == DNN_CONVOLUTION_INPUT)
        add_pixels_unseen(sums);
}

static int64_t results(const DnnConvolution *of, DnnKind kind) {
    switch (kind) {
    case DNN_CONVOLUTION: return of->images * of->output[0] * of->output[1] * of->filters;
    case DNN_CONVOLUTION_INPUT: return of->images * of->input[0] * of->input[1] * of->channels;
    default: return of->filters * of->kernel[0] * of->kernel[1] * of->channels / of->groups;
    }
}

bool emulated_dnn_convolve(const DnnGraph *graph, void *const operand[DNN_OPERANDS]) {
    static const DnnOperand result[] = {[DNN_CONVOLUTION] = DNN_Y,
                                        [DNN_CONVOLUTION_INPUT] = DNN_X,
                                        [DNN_CONVOLUTION_WEIGHT] = DNN_W};
    const DnnConvolution *of = &graph->convolution;
    DnnKind kind = (DnnKind)graph->kind;
    int64_t count = results(of, kind);
    double *sum = calloc((size_t)count, sizeof *sum);
    if (!sum)
        return false;
    add_pixels(&(Sums){of, kind, operand, sum});
    for (int64_t i = 0; i < count; i++) {
        if (of->bias != DNN_NO_FORMAT)
            sum[i] += emulated_dnn_load(of->bias, operand[DNN_BIAS], i % of->filters);
        emulated_dnn_store(of->result, operand[result[kind]], i, activated(of->activation, sum[i]));
    }
    free(sum);
    return true;
}
