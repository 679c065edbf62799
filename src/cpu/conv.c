// Convolution: what a call asks for, and which way it is computed.
#include "cpu/conv.h"

#include <assert.h>

#include "cpu/int8.h"
#include "cpu/kernels.h"
#include "cpu/onednn.h"
#include "cpu/products.h"
#include "cpu/rounded.h"
#include "kernel/allocator.h"
#include "kernel/int8.h"

static ConvProblem problem_of(const Device *device, ConvPass pass, const ConvAttr *attr,
                              const ConvArrays *arrays) {
    const View *x = &arrays->x, *weight = &arrays->weight, *y = &arrays->y;
    ConvProblem problem = {
        .images = x->shape[0],
        .size = {x->shape[1], x->shape[2]},
        .channels = x->shape[3],
        .filters = y->shape[3],
        .out_size = {y->shape[1], y->shape[2]},
        .kernel = {weight->shape[1], weight->shape[2]},
        .groups = attr->groups,
        .pass = (int32_t)pass,
        .activation = pass == CONV_FORWARD ? (int32_t)attr->activation : ACTIVATION_NONE,
        .has_bias = pass == CONV_FORWARD && arrays->bias.data != NULL,
    };
    for (int i = 0; i < 2; i++) {
        problem.stride[i] = attr->stride[i];
        problem.padding[i] = attr->padding[i];
        problem.dilation[i] = attr->dilation[i];
    }
    problem.threads = (int32_t)cpu_workers(device, conv_cost(&problem));
    return problem;
}

// ---- the choice ---------------------------------------------------------------------------------

typedef enum ConvWay {
    WAY_COLUMNS,  // our own product, in the formats given
    WAY_PLACES,   // the same, a place at a time
    WAY_WINOGRAD, // ours of less, in fp32
    WAY_LOW,      // the library in bf16
    WAY_FP32,     // the library in fp32, with conversions where the formats are others
} ConvWay;

static bool is_empty(const ConvProblem *problem) {
    return conv_out_pixels(problem) == 0 || problem->filters == 0 || problem->channels == 0 ||
           problem->size[0] == 0 || problem->size[1] == 0;
}

// The library works along the width, and by vectors of channels; our product's windows are short
// where there are few.
enum { NARROW = 6, VERY_FEW_CHANNELS = 4, SOME_CHANNELS = 32, FEW_CHANNELS = 64 };

static bool is_strided(const ConvProblem *problem) {
    return problem->stride[0] > 1 || problem->stride[1] > 1;
}
static bool is_single(const ConvProblem *problem) {
    return problem->kernel[0] == 1 && problem->kernel[1] == 1;
}

// Where our product was measured to be as fast as the library or faster.
static bool columns_pay(const ConvProblem *problem, ConvPass pass, bool low) {
    if (problem->groups != 1)
        return false;
    const bool strided = is_strided(problem), single = is_single(problem);
    if (problem->out_size[1] < NARROW && !single)
        return true;
    if (problem->channels < FEW_CHANNELS)
        return pass == CONV_BACKWARD_INPUT && problem->channels < VERY_FEW_CHANNELS;
    if (single)
        return low; // no copies in fp32, or of the windows
    return strided && (pass == CONV_BACKWARD_WEIGHT || (low && pass == CONV_FORWARD));
}

// The same of pairs of bf16, which the library multiplies too.
static bool columns_pay_in_pairs(const ConvProblem *problem, ConvPass pass) {
    if (problem->groups != 1)
        return false;
    if (pass == CONV_BACKWARD_INPUT)
        return is_strided(problem) && problem->channels < VERY_FEW_CHANNELS;
    return pass == CONV_BACKWARD_WEIGHT && problem->channels >= FEW_CHANNELS &&
           (is_strided(problem) || is_single(problem));
}

// Which way is the quickest of bf16 on tiles. The library is fast there where images are large. Of
// gradients of weights in bf16 it is not, and oneDNN 2.6.3 writes those of single taps beyond its
// memory.
static ConvWay way_on_tiles(const ConvProblem *problem, ConvPass pass) {
    const bool many = problem->channels >= SOME_CHANNELS;
    if (pass == CONV_BACKWARD_WEIGHT)
        return many || columns_pay(problem, pass, true) ? WAY_COLUMNS : WAY_FP32;
    if (problem->groups != 1)
        return WAY_LOW;
    const bool turned = pass == CONV_BACKWARD_INPUT && is_strided(problem);
    return problem->out_size[1] < NARROW || (turned && problem->channels >= FEW_CHANNELS)
               ? WAY_COLUMNS
               : WAY_LOW;
}

// Where places were measured to be faster than the others: on small images, of which much is
// padding that they leave out, and of gradients of weights where several windows share a pixel,
// which they pack once. `low`: other formats than fp32 are read, which the others convert
// beforehand; `pairs`: not so, but of bf16 as it is. Of strides the library is at the machine's
// limit with vectors of AVX-512, and short of it by a quarter and more with those of AVX2.
static bool places_pay(const ConvProblem *problem, bool low, bool pairs) {
    enum { SMALL = 8 };
    const int64_t width = problem->out_size[1];
    if (is_single(problem))
        return false;
    if (width < NARROW)
        return true;
    if (problem->channels < FEW_CHANNELS || problem->filters < FEW_CHANNELS)
        return false;
    const bool strided = is_strided(problem), converted = low && !pairs;
    const bool library_is_slow = converted || isa_level() == ISA_AVX2;
    if (problem->pass == CONV_BACKWARD_WEIGHT) {
        const bool shared =
            problem->kernel[0] * problem->kernel[1] >= 4 * problem->stride[0] * problem->stride[1];
        return width <= SMALL || (shared && (strided || converted));
    }
    return strided ? width <= SMALL || library_is_slow : width <= SMALL && pairs;
}

// Where Winograd's way was measured to be faster than all others, which take so many times its
// multiplications: `pairs` of bf16 are multiplied twice as fast as what it multiplies, and on small
// images gradients of weights are sums of few squares, whose parts pass through memory. With
// vectors of AVX-512 the library computes sooner what is summed by the smaller squares.
static bool winograd_pays(const Device *device, const ConvProblem *problem,
                          const ConvArrays *arrays, bool pairs) {
    const bool of_weight = problem->pass == CONV_BACKWARD_WEIGHT;
    const bool is_short = of_weight && problem->out_size[1] < NARROW;
    const double fewest = pairs ? 2.7 : is_short ? 1.6 : 1.3;
    if (of_weight && !winograd_takes_larger(arrays) && isa_level() >= ISA_AVX512)
        return false;
    return conv_winograd_can(problem, arrays) &&
           conv_winograd_saves(device, problem, arrays) > fewest;
}

static const View *written_by(ConvPass pass, const ConvArrays *arrays) {
    return pass == CONV_FORWARD          ? &arrays->y
           : pass == CONV_BACKWARD_INPUT ? &arrays->x
                                         : &arrays->weight;
}

// Without Winograd's, unless that is `quick` enough.
static ConvWay choose_way(const Device *device, const ConvProblem *problem,
                          const ConvArrays *arrays, bool quick) {
    const ConvPass pass = (ConvPass)problem->pass;
    const bool bf16_pays = isa_has_amx() || cpu_has_pairs(device);
    const View *views[] = {&arrays->x, &arrays->weight, &arrays->y};
    const View *out = written_by(pass, arrays);
    bool all_bf16 = true, low = false;
    for (int i = 0; i < 3; i++) {
        if (views[i] == out)
            continue;
        all_bf16 = all_bf16 && views[i]->format == FORMAT_BF16;
        low = low || views[i]->format != FORMAT_FP32;
    }
    if (is_empty(problem))
        return WAY_COLUMNS;
    const bool on_tiles = all_bf16 && isa_has_amx();
    if (quick && !on_tiles && winograd_pays(device, problem, arrays, all_bf16 && bf16_pays))
        return WAY_WINOGRAD;
    if (!on_tiles && places_pay(problem, low, all_bf16 && bf16_pays) &&
        conv_places_can(device, problem, arrays))
        return WAY_PLACES;
    // Of groups the library's pairs mix sums of weights that are not finite with their neighbours'.
    const bool mixes = pass == CONV_BACKWARD_WEIGHT && problem->groups > 1;
    if (all_bf16 && bf16_pays && onednn_has_bf16() && out->format != FORMAT_FP16 && !mixes)
        return on_tiles                              ? way_on_tiles(problem, pass)
               : columns_pay_in_pairs(problem, pass) ? WAY_COLUMNS
                                                     : WAY_LOW;
    return columns_pay(problem, pass, low) ? WAY_COLUMNS : WAY_FP32;
}

// ---- what the library fills up with -------------------------------------------------------------

// In bf16 the library multiplies pairs. Of an odd number of channels the last one is paired with
// the next pixel's first, whose weight is 0: harmless, unless that number is not finite. On tiles
// it puts few channels of several pixels side by side, and fills up with those behind them.
static bool pairs_with_neighbours(const ConvProblem *problem) {
    enum { SIDE_BY_SIDE = 8 };
    int64_t channels = problem->channels / problem->groups;
    int64_t filters = problem->filters / problem->groups;
    if (problem->groups > 1 && channels == 1 && filters == 1)
        return false; // channels are not summed
    switch ((ConvPass)problem->pass) {
    case CONV_FORWARD: return channels % 2 == 1 || (isa_has_amx() && channels < SIDE_BY_SIDE);
    case CONV_BACKWARD_INPUT: return filters % 2 == 1;
    // Sums over pixels: of an odd number in a row the last is paired with the pixel behind it.
    case CONV_BACKWARD_WEIGHT: return problem->out_size[1] % 2 == 1;
    }
    return true;
}

// On tiles it also multiplies weights by pixels around dy that there are not, which are 0 to it.
static bool meets_what_is_not_finite(const Device *device, const ConvProblem *problem,
                                     const ConvArrays *arrays) {
    if (problem->pass == CONV_BACKWARD_INPUT && isa_has_amx() &&
        !conv_is_finite(device, &arrays->weight))
        return true;
    const bool reads_x = problem->pass != CONV_BACKWARD_INPUT;
    const bool reads_y = problem->pass != CONV_FORWARD;
    return pairs_with_neighbours(problem) && ((reads_x && !conv_is_finite(device, &arrays->x)) ||
                                              (reads_y && !conv_is_finite(device, &arrays->y)));
}

// ---- RELU ---------------------------------------------------------------------------------------

typedef struct ReluTask {
    const Device *device;
    const View *view;
} ReluTask;

// The library's own takes NaN for 0 and would hide that something has overflowed.
static void relu_range(void *context, int64_t begin, int64_t end, int thread) {
    const ReluTask *task = context;
    const View *view = task->view;
    (void)thread;
    float buffer[CPU_BLOCK], clipped[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, begin, end) {
        cpu_load(task->device, view->format, cpu_at(view, at), buffer, size);
        cpu_simd(task->device)->pointwise->unary[OP_relu](buffer, clipped, size, 0, 0);
        cpu_store(task->device, view->format, clipped, cpu_at_mutable(view, at), size);
    }
}

static void relu(const Device *device, const View *view) {
    ReluTask task = {device, view};
    int64_t count = view_count(view);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM, relu_range, &task);
}

static bool run_way(Device *device, ConvWay way, const ConvProblem *problem,
                    const ConvArrays *arrays, Error *error) {
    if (way == WAY_WINOGRAD) {
        bool finite;
        if (!conv_winograd_run(device, problem, arrays, &finite, error))
            return false;
        if (finite)
            return true;
        way = choose_way(device, problem, arrays, false);
    }
    if (way == WAY_PLACES) // no padding is multiplied
        return conv_places_run(device, problem, arrays, error);
    if (conv_pads_special(device, problem, arrays))
        return conv_bands_run(device, problem, arrays, error);
    if (way == WAY_LOW && meets_what_is_not_finite(device, problem, arrays))
        way = WAY_COLUMNS;
    bool low = way == WAY_LOW, clips = problem->activation == ACTIVATION_RELU;
    Format out = written_by((ConvPass)problem->pass, arrays)->format;
    ConvProblem theirs = *problem;
    const bool plain = arrays->times == 1; // else sums are multiplied before all else
    theirs.format = low ? FORMAT_BF16 : FORMAT_FP32;
    theirs.out_format = low && out == FORMAT_BF16 && plain ? FORMAT_BF16 : FORMAT_FP32;
    theirs.activation = clips ? ACTIVATION_NONE : problem->activation;
    theirs.has_bias = problem->has_bias && plain;
    bool has_library = way != WAY_COLUMNS && (plain || theirs.activation == ACTIVATION_NONE);
    if (has_library && !conv_library_run(device, &theirs, arrays, &has_library, error))
        return false;
    if (!has_library)
        return conv_columns_run(device, problem, arrays, error);
    if (clips)
        relu(device, &arrays->y);
    return true;
}

static bool run(Device *device, ConvPass pass, const ConvAttr *attr, const ConvArrays *arrays,
                Error *error) {
    ConvProblem problem = problem_of(device, pass, attr, arrays);
    return run_way(device, choose_way(device, &problem, arrays, true), &problem, arrays, error);
}

// ---- the input's gradient as a convolution of dy ------------------------------------------------

// Weights [O,KH,KW,C] to [C,KH,KW,O], each kernel turned around.
typedef struct TurnTask {
    const View *from, *to;
} TurnTask;

enum { TURN_BLOCK = 16 };

#define TURN(type)                                                                       \
    do {                                                                                 \
        const type *from = (const type *)task->from->data + (taps - 1 - tap) * channels; \
        type *to = (type *)task->to->data + tap * filters;                               \
        for (int64_t c = begin; c < end; c++)                                            \
            for (int64_t o = first; o < last; o++)                                       \
                to[c * taps * filters + o] = from[o * taps * channels + c];              \
    } while (0)

static void turn_range(void *context, int64_t all_begin, int64_t all_end, int thread) {
    const TurnTask *task = context;
    const int64_t *shape = task->from->shape;
    int64_t filters = shape[0], taps = shape[1] * shape[2], channels = shape[3];
    (void)thread;
    for (int64_t begin = all_begin, end; begin < all_end; begin = end) {
        end = cpu_smaller(begin + TURN_BLOCK, all_end);
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t first = 0, last; first < filters; first = last) {
                last = cpu_smaller(first + TURN_BLOCK, filters);
                if (task->from->format == FORMAT_FP32)
                    TURN(uint32_t);
                else
                    TURN(uint16_t);
            }
    }
}

// The library is about half as fast again forwards as backwards, and our product needs no sums over
// overlapping windows there.
static bool can_turn(const ConvProblem *problem, ConvWay way) {
    bool can = problem->groups == 1 && way != WAY_LOW && way != WAY_PLACES && way != WAY_WINOGRAD &&
               !is_empty(problem) && problem->channels >= VERY_FEW_CHANNELS &&
               problem->out_size[1] >= NARROW;
    for (int i = 0; i < 2; i++)
        can = can && problem->stride[i] == 1 && problem->kernel[i] > 1 &&
              problem->dilation[i] * (problem->kernel[i] - 1) >= problem->padding[i];
    return can;
}

static bool run_turned(Device *device, const ConvAttr *attr, const ConvArrays *arrays,
                       Error *error) {
    const View *weight = &arrays->weight;
    int64_t shape[] = {weight->shape[3], weight->shape[1], weight->shape[2], weight->shape[0]};
    size_t bytes = (size_t)view_count(weight) * format_table[weight->format].bytes;
    void *memory = allocator_take(device->allocator, bytes, MEMORY_WORKSPACE, error);
    if (!memory)
        return false;
    ConvArrays turned = {arrays->y, view_dense(memory, weight->format, 4, shape), arrays->bias,
                         arrays->x, arrays->times};
    TurnTask task = {weight, &turned.weight};
    cpu_parallel(device, shape[0], TURN_BLOCK, (double)view_count(weight), turn_range, &task);
    ConvAttr forward = *attr;
    forward.activation = ACTIVATION_NONE;
    for (int i = 0; i < 2; i++)
        forward.padding[i] = attr->dilation[i] * (weight->shape[1 + i] - 1) - attr->padding[i];
    bool done = run(device, CONV_FORWARD, &forward, &turned, error);
    allocator_give(device->allocator, memory);
    return done;
}

// ---- the kernels --------------------------------------------------------------------------------

static bool conv2d(Device *device, const KernelCall *call, Error *error) {
    if (int8_is_given(call))
        return cpu_int8_conv2d(device, call, error);
    ConvArrays arrays = {call->input[0], call->input[1], call->input[2], call->output[0],
                         product_times(call->attr)};
    return run(device, CONV_FORWARD, &call->attr->conv, &arrays, error);
}

bool cpu_conv2d(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, conv2d, error);
}

typedef struct BiasTask {
    const Device *device;
    const float *sums;
    View out;
    const float *zeros, *ones, *bias; // one a channel
} BiasTask;

static void bias_range(void *context, int64_t begin, int64_t end, int thread) {
    const BiasTask *task = context;
    const View *out = &task->out;
    int64_t channels = out->shape[3];
    (void)thread;
    cpu_simd(task->device)
        ->columns->apply(FORMAT_FP32, task->sums + begin * channels, out->format,
                         cpu_at_mutable(out, begin * channels), end - begin, channels, task->zeros,
                         task->ones, task->bias);
}

// The sums in fp32 first, so that they are rounded once, with their bias.
static bool run_biased(Device *device, ConvWay way, ConvProblem *problem, const ConvArrays *arrays,
                       Error *error) {
    const View *out = &arrays->x;
    const int64_t count = view_count(out), channels = out->shape[3];
    float *memory = allocator_take(
        device->allocator, (size_t)(count + 3 * channels) * sizeof(float), MEMORY_WORKSPACE, error);
    if (!memory)
        return false;
    float *zeros = memory + count, *ones = zeros + channels, *bias = ones + channels;
    ConvArrays sums = *arrays;
    sums.x = view_dense(memory, FORMAT_FP32, out->ndim, out->shape);
    sums.bias = (View){.data = NULL};
    bool done = run_way(device, way, problem, &sums, error);
    for (int64_t c = 0; done && c < channels; c++) {
        zeros[c] = 0;
        ones[c] = 1;
    }
    if (done) {
        cpu_load(device, arrays->bias.format, arrays->bias.data, bias, channels);
        BiasTask task = {device, memory, *out, zeros, ones, bias};
        cpu_parallel(device, channels ? count / channels : 0, 1, (double)count * CPU_STREAM,
                     bias_range, &task);
    }
    allocator_give(device->allocator, memory);
    return done;
}

static bool input_gradient(Device *device, const KernelCall *call, const View *bias, Error *error) {
    ConvArrays arrays = {call->output[0], call->input[1], *bias, call->input[0],
                         product_times(call->attr)};
    const ConvAttr *attr = &call->attr->conv;
    ConvProblem problem = problem_of(device, CONV_BACKWARD_INPUT, attr, &arrays);
    ConvWay way = choose_way(device, &problem, &arrays, true);
    if (can_turn(&problem, way))
        return run_turned(device, attr, &arrays, error);
    return bias->data ? run_biased(device, way, &problem, &arrays, error)
                      : run_way(device, way, &problem, &arrays, error);
}

static bool backward_input(Device *device, const KernelCall *call, Error *error) {
    return input_gradient(device, call, &(View){.data = NULL}, error);
}

bool cpu_conv2d_backward_input(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, backward_input, error);
}

static bool conv_transpose2d(Device *device, const KernelCall *call, Error *error) {
    return input_gradient(device, call, &call->input[2], error);
}

bool cpu_conv_transpose2d(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, conv_transpose2d, error);
}

// The sum of dy over all pixels, `times` (NULL: 1). The library's own adds up in memory, by vectors
// of four.
static bool bias_gradient(Device *device, const View *dy, const float *times, const View *bias,
                          Error *error) {
    const int64_t filters = dy->shape[3];
    if (filters == 0)
        return true;
    const int64_t shape[] = {view_count(dy) / filters, filters};
    OpAttr attr = {.reduce = {.dims = 1}};
    KernelCall sum = {.op = OP_sum, .input_count = 1, .output_count = 1, .attr = &attr};
    sum.input[0] = view_dense(dy->data, dy->format, 2, shape);
    sum.output[0] = *bias;
    if (!cpu_sum(device, &sum, error))
        return false;
    assert(!times || bias->format == FORMAT_FP32);
    float *sums = bias->data;
    for (int64_t i = 0; times && i < filters; i++)
        sums[i] *= *times;
    return true;
}

static bool backward_weight(Device *device, const KernelCall *call, Error *error) {
    ConvArrays arrays = {
        call->input[0], call->output[0], {.data = NULL}, call->input[1], product_times(call->attr)};
    return run(device, CONV_BACKWARD_WEIGHT, &call->attr->conv, &arrays, error);
}

// A bias is no factor: its gradient is the sum of what was given.
bool cpu_conv2d_backward_weight(Device *device, const KernelCall *call, Error *error) {
    const View *dy = &call->input[1], *bias = &call->output[1];
    return (!bias->data || bias_gradient(device, dy, call->attr->times[1], bias, error)) &&
           rounded_run(device, call, backward_weight, error);
}
