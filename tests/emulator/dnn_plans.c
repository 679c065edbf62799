// In place of gpu/dnn: a library that the setting `dnn` describes. It takes convolutions, computes
// them in double on the host when they are put into the stream, and so shows whether what it is
// told of them is true. It has no attention.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/dnn/plans.h"
#include "kernel/attr.h"
#include "number/format.h"
#include "tests/emulator/driver.h"
#include "tests/emulator/settings.h"

enum { MOST_PLANS = 4096, WORKSPACE = 1000 };

struct Dnn {
    CUstream stream;
    int count;
    uint64_t runs;
    DnnPlan plans[MOST_PLANS];
};

Dnn *dnn_open(void *stream, Error *error) {
    if (emulator_settings.dnn == DNN_ABSENT) {
        (void)error_fail(error, ERROR_UNAVAILABLE, "the emulated card has no cuDNN");
        return NULL;
    }
    Dnn *dnn = calloc(1, sizeof *dnn);
    if (dnn)
        dnn->stream = stream;
    else
        (void)error_fail(error, ERROR_MEMORY, "no memory for the emulated cuDNN");
    return dnn;
}

// Says how often it was used, so that a test sees that it was.
void dnn_close(Dnn *dnn) {
    if (dnn && emulator_settings.report)
        fprintf(stderr, "emulator: cuDNN ran %llu times, by %d plans\n",
                (unsigned long long)dnn->runs, dnn->count);
    free(dnn);
}

DnnPlan *dnn_plan(Dnn *dnn, const DnnGraph *graph, Error *error) {
    for (int i = 0; i < dnn->count; i++)
        if (dnn_is_same(&dnn->plans[i].graph, graph))
            return &dnn->plans[i];
    if (dnn->count == MOST_PLANS) {
        (void)error_fail(error, ERROR_MEMORY, "no memory for another plan");
        return NULL;
    }
    DnnPlan *plan = &dnn->plans[dnn->count++];
    plan->graph = *graph;
    plan->available = graph->kind < DNN_ATTENTION;
    plan->workspace = WORKSPACE;
    return plan;
}

void dnn_refuse(DnnPlan *plan, const char *why) {
    plan->available = false;
    snprintf(plan->why, sizeof plan->why, "%s", why);
}

// ---- computing ----------------------------------------------------------------------------------

static double load(int64_t format, const void *from, int64_t at) {
    return format == FORMAT_FP32 ? (double)((const float *)from)[at]
                                 : format_decode((Format)format, ((const uint16_t *)from)[at]);
}

static void store(int64_t format, void *to, int64_t at, double value) {
    if (format == FORMAT_FP32)
        ((float *)to)[at] = (float)value;
    else
        ((uint16_t *)to)[at] = (uint16_t)format_encode((Format)format, value, OVERFLOW_TO_SPECIAL);
}

static double activated(int64_t activation, double x) {
    switch (activation) {
    case ACTIVATION_RELU: return x < 0 ? 0 : x;
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
        sums->sum[y] += load(format, operand[DNN_X], x) * load(format, operand[DNN_W], w);
        break;
    case DNN_CONVOLUTION_INPUT:
        sums->sum[x] += load(format, operand[DNN_Y], y) * load(format, operand[DNN_W], w);
        break;
    default: sums->sum[w] += load(format, operand[DNN_X], x) * load(format, operand[DNN_Y], y);
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
                if (in[0] < 0 || in[1] < 0 || in[0] >= of->input[0] || in[1] >= of->input[1])
                    continue;
                add_channels(sums, (n * of->input[0] + in[0]) * of->input[1] + in[1], tap,
                             n * of->output[0] * of->output[1] + y);
            }
}

static int64_t results(const DnnConvolution *of, DnnKind kind) {
    switch (kind) {
    case DNN_CONVOLUTION: return of->images * of->output[0] * of->output[1] * of->filters;
    case DNN_CONVOLUTION_INPUT: return of->images * of->input[0] * of->input[1] * of->channels;
    default: return of->filters * of->kernel[0] * of->kernel[1] * of->channels / of->groups;
    }
}

static bool convolve(const DnnGraph *graph, void *const operand[DNN_OPERANDS]) {
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
            sum[i] += load(of->bias, operand[DNN_BIAS], i % of->filters);
        double value = activated(of->activation, sum[i]);
        store(of->result, operand[result[kind]], i,
              emulator_settings.dnn == DNN_WRONG ? value * 1.25 + 1 : value);
    }
    free(sum);
    return true;
}

bool dnn_run(Dnn *dnn, const DnnPlan *plan, void *const operand[DNN_OPERANDS], void *workspace,
             Error *error) {
    dnn->runs++;
    if (emulator_settings.dnn == DNN_UNLUCKY)
        return error_fail(error, ERROR_FAILED, "the emulated cuDNN fails, as it was told to");
    if (emulated_cuStreamSynchronize(dnn->stream) != CUDA_SUCCESS)
        return error_fail(error, ERROR_FAILED, "the card has failed");
    memset(workspace, 0xFF, plan->workspace); // as the library may
    return convolve(&plan->graph, operand) || error_fail(error, ERROR_MEMORY, "no memory");
}
