// Convolution by Winograd's way: a square of two by two outputs at once, of which each pair of
// channels costs 16 multiplications in place of the 36 of 3x3 taps. The pixels that they see, two
// more on a side, are turned into as many parts; of each part the squares are the rows of a product
// with the same part of the weights; and the sums of a square are turned into its outputs:
//
//     sums[part][squares, columns] = pixels[part][squares, depth] x weights[part][depth, columns]
//
// The gradient of the input is the same of dy, with the kernels turned around. All of it is fp32.
// What rounding loses is about what it loses in sums of all taps, and an output is made of no pixel
// that it does not see. Squares of four by four, 36 multiplications in place of 144, mix those:
// next to a large pixel outputs that do not see it would have its rounding, and no zero beside it
// would be one, which is just what is to be counted of bf16 and fp16. So they serve these for the
// gradient of the weights alone, whose sums are over all pixels anyway; some ten times as much
// rounding is little there beside the digits that these have not got. Parts of the weights are made
// once, each thread makes those of some squares at a time, so that they stay near, and the inner
// loops of gemm.h's product multiply.
//
// With 4x4 taps and a stride of two, every other tap of every other line meets every other pixel:
// four convolutions with 2x2 taps, one a phase, of which a square costs 9 multiplications in place
// of 16. Outputs are sums of all four, so that the depth is the channels of each; and each quarter
// of the input's pixels has its gradient from one of them, by a product of its own.
//
// Parts mix pixels, and taps, that an output would not have multiplied with each other; what they
// add falls out again, but for rounding. So an infinity could turn into NaN on the way: where a sum
// is not finite, the caller is told, and computes the whole in another way.
#include "cpu/conv_winograd.h"

#include "cpu/products.h"

enum {
    FEWEST_TILES = 2, // of rows, which are squares, that are multiplied together
    MOST_TILES = 4,
    PARTS_BYTES = 1 << 19, // of their pixels, or they are fewer
    KEPT_BYTES = 5 << 20,  // of parts of pixels, where all of them are so little
    SUMS_COLUMNS = 64,     // that are multiplied before sums are turned into outputs
    WEIGHTS_SQUARES = 8,   // as many cost what it takes to make parts of the weights
    MOST_PHASES = 4,
};

// The taps that lie `step` apart, from one on, and the pixels that they meet.
typedef struct Phase {
    int64_t tap[2];
    WinogradGrid seen;
} Phase;

typedef struct Winograd {
    const Device *device;
    const ConvProblem *problem;
    const ConvArrays *arrays;
    const WinogradKernel *kernel;
    const GemmKernels *kernels;
    const View *from, *to;
    bool forward;
    int64_t depth, columns;
    Phase phase[MOST_PHASES];       // that are summed
    int64_t phases, products, step; // products, one after the other; from tap to tap
    WinogradSquares squares;
    WinogradGrid written;
    int64_t row, together; // words from square to square; squares
    int64_t pixels_part;   // words from part to part
    int64_t sums_part;
    int64_t weights_part, block, first_column; // of the columns whose weights are packed
    size_t per_thread;
    GemmWord *weights;
    float *bias; // in fp32; NULL: none
    char *workspace;
    _Atomic bool finite;
} Winograd;

static float *pixels_of(const Winograd *own, int thread) {
    return (float *)(void *)(own->workspace + (size_t)thread * own->per_thread);
}
static float *sums_of(const Winograd *own, int thread) {
    return pixels_of(own, thread) + own->squares.parts * own->pixels_part;
}

// ---- weights ------------------------------------------------------------------------------------

// Parts of some of the depth of one panel, all of one phase: [columns, steps], or where `columns`
// lie side by side in memory, [steps, columns].
static void weights_to_parts(const Winograd *own, int64_t column, int64_t columns, int64_t step,
                             int64_t steps, float *parts) {
    const View *weight = &own->arrays->weight;
    const int64_t channels = own->problem->channels, side = own->squares.simd->kernel;
    const Phase *phase = &own->phase[step / own->from->shape[3]];
    const int64_t in_phase = step % own->from->shape[3];
    const int64_t lines = own->forward ? columns : steps, length = own->forward ? steps : columns;
    const int64_t first = own->forward ? column : in_phase;
    const int64_t channel = own->forward ? in_phase : column;
    for (int64_t i = 0; i < lines; i++) {
        void *taps[WINOGRAD_MOST_TAPS];
        for (int64_t tap = 0; tap < side * side; tap++) {
            const int64_t at = own->forward ? tap : side * side - 1 - tap;
            const int64_t h = phase->tap[0] + at / side * own->step;
            const int64_t w = phase->tap[1] + at % side * own->step;
            const int64_t line = (first + i) * own->problem->kernel[0] + h;
            taps[tap] =
                cpu_at_mutable(weight, (line * own->problem->kernel[1] + w) * channels + channel);
        }
        own->squares.simd->weights(weight->format, taps, length, parts + i * length,
                                   lines * length);
    }
}

static void pack_range(void *context, int64_t begin, int64_t end, int thread) {
    const Winograd *own = context;
    const int width = own->kernels->panel_columns;
    const int64_t channels = own->from->shape[3]; // of a phase
    float *parts = sums_of(own, thread);
    // As much as there is room for, in whole vectors of channels.
    const int64_t most = own->sums_part / width / CPU_WINOGRAD_CHANNELS * CPU_WINOGRAD_CHANNELS;
    for (int64_t panel = begin; panel < end; panel++) {
        const int64_t column = own->first_column + panel * width;
        const int64_t columns = cpu_smaller(width, own->columns - column);
        for (int64_t step = 0, steps; step < own->depth; step += steps) {
            steps = cpu_smaller(most, channels - step % channels);
            weights_to_parts(own, column, columns, step, steps, parts);
            GemmWord *to = own->weights + panel * width * own->depth + step * width;
            for (int64_t part = 0; part < own->squares.parts; part++, to += own->weights_part) {
                const GemmSource source = {.data = parts + part * columns * steps,
                                           .format = FORMAT_FP32,
                                           .line_stride = own->forward ? steps : 1,
                                           .step_stride = own->forward ? 1 : columns};
                own->kernels->pack(to, width, &source, columns, steps);
            }
        }
    }
}

// ---- squares ------------------------------------------------------------------------------------

// Sums of some columns: all parts, each of which reads its squares' pixels once more.
static void multiply(const Winograd *own, const GemmWord *pixels, int64_t squares, int64_t at,
                     int64_t columns, float *sums) {
    const int64_t stretches = gemm_divide_up(own->depth, own->kernels->depth_block);
    const int64_t most = gemm_divide_up(own->depth, stretches);
    for (int64_t part = 0; part < own->squares.parts; part++)
        for (int64_t step = 0; step < own->depth; step += most) {
            const GemmBlock block = {.rows = squares,
                                     .columns = columns,
                                     .depth = cpu_smaller(most, own->depth - step),
                                     .a = pixels + part * own->pixels_part + step,
                                     .a_row = own->row,
                                     .a_step = 1,
                                     .b = own->weights + part * own->weights_part +
                                          at * own->depth + step * own->kernels->panel_columns,
                                     .b_step = own->kernels->panel_columns,
                                     .b_panel = own->kernels->panel_columns * own->depth,
                                     .alpha = 1,
                                     .first = step == 0,
                                     .last = true,
                                     .c = sums + part * own->sums_part,
                                     .c_format = FORMAT_FP32,
                                     .c_row = SUMS_COLUMNS};
            own->kernels->multiply(&block);
        }
}

static bool finish(const Winograd *own, int64_t first, int64_t squares, int64_t at, int64_t columns,
                   const float *sums) {
    const int64_t column = own->first_column + at;
    const bool clips = own->problem->activation == ACTIVATION_RELU;
    bool finite = true;
    for (int64_t i = 0; i < squares; i++) {
        void *pixels[WINOGRAD_MOST_OUTPUTS];
        winograd_look(&own->squares, first + i, own->squares.side, own->to, &own->written, column,
                      pixels);
        finite =
            own->squares.simd->outputs(sums + i * SUMS_COLUMNS, own->sums_part, own->arrays->times,
                                       own->bias ? own->bias + column : NULL, clips,
                                       own->to->format, pixels, columns) &&
            finite;
    }
    return finite;
}

static void pixels_to_parts(const Winograd *own, int64_t first, int64_t squares, float *parts) {
    const int64_t channels = own->from->shape[3];
    for (int64_t i = 0; i < squares; i++)
        for (int64_t phase = 0; phase < own->phases; phase++) {
            void *seen[WINOGRAD_MOST_PIXELS];
            winograd_look(&own->squares, first + i, own->squares.seen, own->from,
                          &own->phase[phase].seen, 0, seen);
            own->squares.simd->image(own->from->format, seen, channels,
                                     parts + i * own->row + phase * channels, own->pixels_part);
        }
}

static void squares_range(void *context, int64_t begin, int64_t end, int thread) {
    Winograd *own = context;
    float *pixels = pixels_of(own, thread), *sums = sums_of(own, thread);
    const int64_t all = cpu_smaller(own->block, own->columns - own->first_column);
    const bool kept = own->first_column > 0 && end - begin <= own->together;
    bool finite = true;
    for (int64_t first = begin, squares; first < end; first += squares) {
        squares = cpu_smaller(own->together, end - first);
        if (!kept) // else they were made for the columns before
            pixels_to_parts(own, first, squares, pixels);
        for (int64_t at = 0, columns; at < all; at += columns) {
            columns = cpu_smaller(SUMS_COLUMNS, all - at);
            multiply(own, pixels, squares, at, columns, sums);
            finite = finish(own, first, squares, at, columns, sums) && finite;
        }
    }
    if (!finite)
        own->finite = false;
}

// ---- the whole ----------------------------------------------------------------------------------

static void plan(Winograd *own, int workers) {
    const int64_t width = own->kernels->panel_columns, parts = own->squares.parts;
    const int64_t word = sizeof(GemmWord), line = GEMM_CACHE_LINE / word;
    const int64_t panels = gemm_divide_up(own->columns, width);
    const int64_t most =
        product_larger(own->kernel->packed_bytes / (parts * own->depth * width * word), 1);
    own->block = gemm_divide_up(panels, gemm_divide_up(panels, most)) * width;
    own->weights_part = own->block * own->depth + line;
    // Rows and parts do not fall on the same few lines of the first-level cache.
    own->row = own->depth + line;
    const int64_t tile = own->kernels->tile_rows, square_bytes = parts * own->row * word;
    own->together =
        tile *
        cpu_smaller(product_larger(PARTS_BYTES / (square_bytes * tile), FEWEST_TILES), MOST_TILES);
    const int64_t of_worker = gemm_divide_up(own->squares.count, workers);
    if (own->block < own->columns && of_worker * workers * square_bytes <= KEPT_BYTES)
        own->together = product_larger(own->together, of_worker);
    own->pixels_part = own->together * own->row + line;
    own->sums_part = own->together * SUMS_COLUMNS + line;
    own->per_thread = cpu_line((size_t)(parts * (own->pixels_part + own->sums_part) * word));
}

// Of all outputs along a dimension, how many taps lie in the image.
static int64_t taps_seen(const ConvProblem *problem, int dim) {
    const int64_t stride = problem->stride[dim];
    int64_t count = 0;
    for (int64_t tap = 0; tap < problem->kernel[dim]; tap++) {
        const int64_t shift = problem->padding[dim] - tap;
        const int64_t begin = shift > 0 ? gemm_divide_up(shift, stride) : 0;
        const int64_t last = problem->size[dim] - 1 + shift; // in pixels
        const int64_t end = last < 0 ? 0 : last / stride + 1;
        count += product_larger(cpu_smaller(problem->out_size[dim], end) - begin, 0);
    }
    return count;
}

// ---- phases -------------------------------------------------------------------------------------

// Of a forward pass all at once: outputs lie one after the other.
static void sum_phases(Winograd *own) {
    const ConvProblem *problem = own->problem;
    own->phases = own->step * own->step;
    for (int64_t i = 0; i < own->phases; i++) {
        Phase *phase = &own->phase[i];
        phase->seen.step = own->step;
        phase->tap[0] = i / own->step;
        phase->tap[1] = i % own->step;
        for (int dim = 0; dim < 2; dim++)
            phase->seen.first[dim] = phase->tap[dim] - problem->padding[dim];
    }
    own->written = (WinogradGrid){.step = 1};
    own->squares = winograd_squares(own->squares.simd, problem->images, problem->out_size);
}

// Of the gradient of the input one: pixel step * i + tap - padding is met by output i through the
// first of its taps, by output i - 1 through the next, and so on.
static void take_phase(Winograd *own, int64_t which) {
    const ConvProblem *problem = own->problem;
    Phase *phase = &own->phase[0];
    own->phases = 1;
    phase->tap[0] = which / own->step;
    phase->tap[1] = which % own->step;
    phase->seen.step = 1;
    own->written.step = own->step;
    int64_t written[2];
    for (int dim = 0; dim < 2; dim++) {
        const int64_t before = problem->padding[dim] - phase->tap[dim];
        const int64_t output = before > 0 ? gemm_divide_up(before, own->step) : 0;
        own->written.first[dim] = output * own->step - before;
        phase->seen.first[dim] = output - (own->squares.simd->kernel - 1);
        written[dim] = gemm_divide_up(problem->size[dim] - own->written.first[dim], own->step);
    }
    own->squares = winograd_squares(own->squares.simd, problem->images, written);
}

static void begin_product(Winograd *own, int64_t which) {
    if (own->forward)
        sum_phases(own);
    else
        take_phase(own, which);
    own->depth = own->phases * own->from->shape[3];
    own->columns = own->to->shape[3];
    own->first_column = 0;
}

static Winograd winograd(const Device *device, const ConvProblem *problem,
                         const ConvArrays *arrays) {
    Winograd own = {.device = device,
                    .problem = problem,
                    .arrays = arrays,
                    .kernel = winograd_kernel_of(problem),
                    .kernels = gemm_kernels_for(FORMAT_FP32, FORMAT_FP32, false),
                    .forward = problem->pass == CONV_FORWARD,
                    .step = problem->stride[0],
                    .squares = {.simd = winograd_transforms_of(device, problem, arrays)},
                    .finite = true};
    own.products = own.forward ? 1 : own.step * own.step;
    own.from = own.forward ? &arrays->x : &arrays->y;
    own.to = own.forward ? &arrays->y : &arrays->x;
    return own;
}

double conv_winograd_saves(const Device *device, const ConvProblem *problem,
                           const ConvArrays *arrays) {
    const double taps = (double)(taps_seen(problem, 0) * taps_seen(problem, 1) * problem->images);
    if (problem->pass == CONV_BACKWARD_WEIGHT) {
        const WinogradSquares squares = winograd_squares(
            winograd_transforms_of(device, problem, arrays), problem->images, problem->out_size);
        return taps / (double)(squares.parts * (squares.count + WEIGHTS_SQUARES));
    }
    Winograd own = winograd(device, problem, arrays);
    double multiplied = 0;
    for (int64_t i = 0; i < own.products; i++) {
        begin_product(&own, i);
        multiplied +=
            (double)(own.phases * own.squares.parts * (own.squares.count + WEIGHTS_SQUARES));
    }
    return taps / multiplied;
}

static bool run_product(Device *device, Winograd *own, Error *error) {
    const double cost = conv_cost(own->problem) / (double)own->products;
    const double packing = (double)view_count(&own->arrays->weight) / (double)own->products;
    const int workers = cpu_workers(device, cost);
    plan(own, workers);
    const View *bias = &own->arrays->bias;
    const bool has_bias = own->forward && bias->data;
    const size_t bias_bytes = has_bias ? cpu_line((size_t)own->columns * sizeof(float)) : 0;
    const size_t weights =
        cpu_line((size_t)(own->squares.parts * own->weights_part) * sizeof(GemmWord));
    const size_t threads = own->per_thread * (size_t)workers;
    char *memory = device_workspace(device, bias_bytes + weights + threads, error);
    if (!memory)
        return false;
    if (has_bias) {
        own->bias = (float *)(void *)memory;
        cpu_load(device, bias->format, bias->data, own->bias, own->columns);
    }
    own->weights = (GemmWord *)(void *)(memory + bias_bytes);
    own->workspace = memory + bias_bytes + weights;
    for (; own->first_column < own->columns; own->first_column += own->block) {
        const int64_t packed = cpu_smaller(own->block, own->columns - own->first_column);
        cpu_parallel(device, gemm_divide_up(packed, own->kernels->panel_columns), 1,
                     packing < cost ? packing : cost, pack_range, own);
        cpu_parallel(device, own->squares.count, 1, cost, squares_range, own);
    }
    return true;
}

bool conv_winograd_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                       bool *finite, Error *error) {
    if (problem->pass == CONV_BACKWARD_WEIGHT)
        return conv_winograd_weight_run(device, problem, arrays, finite, error);
    Winograd own = winograd(device, problem, arrays);
    for (int64_t i = 0; i < own.products; i++) {
        begin_product(&own, i);
        if (own.squares.count > 0 &&
            !run_product(device, &own, error)) // of few pixels some have none
            return false;
    }
    *finite = own.finite;
    return true;
}
