// Convolution, a place at a time: the images of the batch are the rows of a matrix, and what the
// window of one place sees in each of them lies side by side in its row. A place of the output sums
// over taps of the image; a place of the input's gradient over the places of the output that saw
// it. Both are this product:
//
//     to[images, columns] = sum over taps: from[images, depth] x weights of the tap[depth, columns]
//
// What lies in the padding is no tap of a place: it is neither copied nor multiplied, which is a
// tenth to a third of the work on small images. Weights are packed once, each thread copies the
// rows of a few places, and the inner loops of gemm.h's product multiply them.
#include <string.h>

#include "cpu/conv.h"
#include "cpu/gemm_kernels.h"
#include "cpu/products.h"

enum {
    MOST_TAPS = 64,
    FEWEST_IMAGES = 8, // rows of a tile that keeps the processor busy
    MOST_ROWS = 64,
    MOST_TOGETHER = 8,      // places
    ROW_WORDS = 1024,       // copied of a row at once
    ROWS_BYTES = 256 << 10, // of the places that meet each panel of weights
    // Of weights: those of fewer columns at a time where all take more. In a low format fewer
    // again, as memory is what it is there to save.
    PACKED_BYTES = 3 << 20,
    LOW_BYTES = 2 << 20,
    FEW_CHANNELS = 32, // a panel
    // Numbers of a tap: of more, the rows of one tap alone and a panel of weights outgrow the
    // caches, and take memory without bound.
    MOST_DEPTH = 8 * ROW_WORDS,
};

// A tap that a place sees: which one, in the order in which weights are packed, and where.
typedef struct Seen {
    int64_t tap, pixel;
} Seen;

typedef struct Place {
    int64_t pixel, first_image, images, count;
    Seen seen[MOST_TAPS];
} Place;

typedef struct ConvPlaces {
    const ConvProblem *problem;
    const ConvArrays *arrays;
    const GemmKernels *kernels;
    const View *from, *to;
    bool forward;
    int64_t from_size[2], to_size[2], depth, columns, taps;
    int64_t order[MOST_TAPS][2]; // taps as packed
    int64_t words;               // of a tap's depth
    int64_t rows, row_blocks;    // images that are multiplied together
    int64_t chunk, row;          // taps that are copied at once, and words from row to row
    int64_t together;            // places
    int64_t first_column, block; // columns whose weights are packed
    size_t rows_bytes, partial_bytes, per_thread;
    GemmWord *weights;
    char *workspace;
} ConvPlaces;

// ---- what a place sees --------------------------------------------------------------------------

// Places next to each other have the same taps where those of a stride follow one another.
static int64_t by_stride(int64_t index, int64_t size, int64_t stride) {
    int64_t first = 0;
    for (int64_t count; index >= (count = (size - first + stride - 1) / stride); first++)
        index -= count;
    return first + index * stride;
}

// Where a tap of a place lies along one dimension; -1: nowhere.
static int64_t source_of(const ConvPlaces *own, int dim, int64_t place, int64_t tap) {
    const ConvProblem *problem = own->problem;
    const int64_t stride = problem->stride[dim], shift = tap * problem->dilation[dim];
    int64_t at = own->forward ? place * stride - problem->padding[dim] + shift
                              : place + problem->padding[dim] - shift;
    if (!own->forward && at % stride != 0)
        return -1;
    at = own->forward ? at : at / stride;
    return at >= 0 && at < own->from_size[dim] ? at : -1;
}

static void see(const ConvPlaces *own, int64_t index, Place *place) {
    const ConvProblem *problem = own->problem;
    const int64_t at = index / own->row_blocks, block = index % own->row_blocks;
    const int64_t stride[] = {own->forward ? 1 : problem->stride[0],
                              own->forward ? 1 : problem->stride[1]};
    const int64_t h = by_stride(at / own->to_size[1], own->to_size[0], stride[0]);
    const int64_t w = by_stride(at % own->to_size[1], own->to_size[1], stride[1]);
    place->pixel = h * own->to_size[1] + w;
    place->first_image = block * own->rows;
    place->images = cpu_smaller(own->rows, problem->images - place->first_image);
    place->count = 0;
    for (int64_t tap = 0; tap < own->taps; tap++) {
        const int64_t row = source_of(own, 0, h, own->order[tap][0]);
        const int64_t column = source_of(own, 1, w, own->order[tap][1]);
        if (row >= 0 && column >= 0)
            place->seen[place->count++] = (Seen){tap, row * own->from_size[1] + column};
    }
}

// ---- copies -------------------------------------------------------------------------------------

// The taps that follow `first` both in the order of packing and, where pixels must be neighbours,
// in memory.
static int64_t run_of(const Place *place, int64_t first, int64_t end, bool neighbours) {
    int64_t count = 1;
    for (const Seen *seen = &place->seen[first]; first + count < end; count++)
        if (seen[count].tap != seen->tap + count ||
            (neighbours && seen[count].pixel != seen->pixel + count))
            break;
    return count;
}

static void copy_rows(const ConvPlaces *own, const Place *place, int64_t first, int64_t end,
                      GemmWord *to) {
    const int64_t image = own->from_size[0] * own->from_size[1] * own->depth;
    for (int64_t tap = first, run; tap < end; tap += run, to += run * own->words) {
        run = run_of(place, tap, end, true);
        const int64_t at = place->first_image * image + place->seen[tap].pixel * own->depth;
        const GemmSource source = {cpu_at(own->from, at), own->from->format, image, 1};
        own->kernels->copy(to, own->row, &source, place->images, run * own->depth);
    }
}

static void pack_range(void *context, int64_t begin, int64_t end, int thread) {
    const ConvPlaces *own = context;
    const int width = own->kernels->panel_columns;
    const View *weight = &own->arrays->weight;
    const int64_t window = own->taps * own->problem->channels, channels = own->problem->channels;
    (void)thread;
    for (int64_t panel = begin; panel < end; panel++) {
        GemmWord *to = own->weights + panel * width * own->taps * own->words;
        const int64_t column = own->first_column + panel * width;
        const int64_t columns = cpu_smaller(width, own->columns - column);
        for (int64_t tap = 0; tap < own->taps; tap++, to += own->words * width) {
            const int64_t at = own->order[tap][0] * own->problem->kernel[1] + own->order[tap][1];
            GemmSource source = {.format = weight->format, .line_stride = 1, .step_stride = window};
            source.data = cpu_at(weight, at * channels + column);
            if (own->forward) {
                source.data = cpu_at(weight, column * window + at * channels);
                source.line_stride = window;
                source.step_stride = 1;
            }
            own->kernels->pack(to, width, &source, columns, own->depth);
        }
    }
}

// ---- products -----------------------------------------------------------------------------------

// The taps first .. end - 1 of a place by one panel of weights.
static void multiply(const ConvPlaces *own, const Place *place, int64_t first, int64_t end,
                     int64_t panel, const GemmWord *rows, float *partial) {
    const GemmKernels *kernels = own->kernels;
    const int width = kernels->panel_columns;
    const int64_t column = own->first_column + panel * width;
    const int64_t image = own->to_size[0] * own->to_size[1] * own->columns;
    const int64_t at = place->first_image * image + place->pixel * own->columns + column;
    const View *bias = &own->arrays->bias;
    GemmBlock block = {.rows = place->images,
                       .columns = cpu_smaller(width, own->columns - column),
                       .a_row = own->row,
                       .a_step = 1,
                       .b_step = width,
                       .alpha = own->arrays->times,
                       .partial = partial ? partial + panel * width : NULL,
                       .partial_row = own->block,
                       .c = cpu_at_mutable(own->to, at),
                       .c_format = own->to->format,
                       .c_row = image,
                       .bias = bias->data ? cpu_at(bias, column) : NULL,
                       .bias_format = bias->format,
                       .activation = product_activation((Activation)own->problem->activation)};
    int64_t tap = first;
    do { // once even of a place that sees nothing: the bias and the activation remain
        const int64_t run = tap < end ? run_of(place, tap, end, false) : 0;
        block.depth = run * own->words;
        block.a = rows + (tap - first) * own->words;
        block.b = own->weights;
        if (run > 0)
            block.b += (panel * own->taps + place->seen[tap].tap) * own->words * width;
        block.first = tap == 0;
        tap += run;
        block.last = tap == place->count;
        kernels->multiply(&block);
    } while (tap < end);
}

// A few places: each panel of weights meets all of them, and stays near meanwhile.
static void run_places(const ConvPlaces *own, Place *places, int64_t count, char *memory) {
    const int64_t panels = gemm_divide_up(cpu_smaller(own->block, own->columns - own->first_column),
                                          own->kernels->panel_columns);
    GemmWord *rows = (GemmWord *)(void *)memory;
    float *partial = own->partial_bytes ? (float *)(void *)(memory + own->rows_bytes) : NULL;
    const int64_t of_place = own->rows * own->row, of_partial = own->rows * own->block;
    bool more = true;
    for (int64_t first = 0; more; first += own->chunk) {
        more = false;
        for (int64_t i = 0; i < count; i++) {
            const int64_t end = cpu_smaller(first + own->chunk, places[i].count);
            copy_rows(own, &places[i], first, end, rows + i * of_place);
            more = more || end < places[i].count;
        }
        for (int64_t panel = 0; panel < panels; panel++)
            for (int64_t i = 0; i < count; i++)
                if (first == 0 || first < places[i].count)
                    multiply(own, &places[i], first,
                             cpu_smaller(first + own->chunk, places[i].count), panel,
                             rows + i * of_place, partial ? partial + i * of_partial : NULL);
    }
}

static void places_range(void *context, int64_t begin, int64_t end, int thread) {
    const ConvPlaces *own = context;
    char *memory = own->workspace + (size_t)thread * own->per_thread;
    Place places[MOST_TOGETHER];
    for (int64_t index = begin, count; index < end; index += count) {
        count = cpu_smaller(own->together, end - index);
        for (int64_t i = 0; i < count; i++)
            see(own, index + i, &places[i]);
        run_places(own, places, count, memory);
    }
}

// ---- the whole ----------------------------------------------------------------------------------

// Taps of the forward pass lie in our order of weights. Those of the input's gradient that a place
// sees are a stride apart: these follow one another.
static void order_taps(ConvPlaces *own) {
    const ConvProblem *problem = own->problem;
    int64_t stride[2], at = 0;
    for (int i = 0; i < 2; i++)
        stride[i] = own->forward ? 1 : cpu_smaller(problem->stride[i], problem->kernel[i]);
    for (int64_t row = 0; row < problem->kernel[0]; row++)
        for (int64_t column = 0; column < problem->kernel[1]; column++) {
            // All columns of a class of rows before the next class.
            const int64_t h = by_stride(row, problem->kernel[0], stride[0]);
            const int64_t w = by_stride(column, problem->kernel[1], stride[1]);
            own->order[at][0] = h;
            own->order[at++][1] = w;
        }
}

static void plan(ConvPlaces *own) {
    const ConvProblem *problem = own->problem;
    const int64_t width = own->kernels->panel_columns, lanes = own->kernels->vector_columns;
    own->words = own->depth / own->kernels->word_numbers;
    own->row_blocks = gemm_divide_up(problem->images, MOST_ROWS);
    own->rows = gemm_divide_up(problem->images, own->row_blocks);
    own->chunk = cpu_smaller(product_larger(ROW_WORDS / own->words, 1), own->taps);
    // A copy ends in whole vectors; and rows that far apart do not fall on the same few lines of
    // the first-level cache.
    own->row = (gemm_divide_up(own->chunk * own->words, lanes) + 1) * lanes;
    const int64_t row_bytes = own->rows * own->row * (int64_t)sizeof(GemmWord);
    const int64_t near = own->from->format == FORMAT_FP32 ? ROWS_BYTES : ROWS_BYTES / 2;
    own->together = cpu_smaller(product_larger(near / row_bytes, 1), MOST_TOGETHER);
    const int64_t panel_bytes = own->taps * own->words * width * (int64_t)sizeof(GemmWord);
    const int64_t panels = gemm_divide_up(own->columns, width);
    const int64_t room = own->from->format == FORMAT_FP32 ? PACKED_BYTES : LOW_BYTES;
    const int64_t most = product_larger(room / panel_bytes, 1);
    own->block = gemm_divide_up(panels, gemm_divide_up(panels, most)) * width;
    own->rows_bytes = cpu_line((size_t)(own->together * row_bytes) + 64);
    if (own->to->format != FORMAT_FP32)
        own->partial_bytes =
            cpu_line((size_t)(own->together * own->rows * own->block) * sizeof(float));
    own->per_thread = own->rows_bytes + own->partial_bytes;
}

bool conv_places_can(const Device *device, const ConvProblem *problem, const ConvArrays *arrays) {
    if (problem->groups != 1 || problem->images < FEWEST_IMAGES)
        return false;
    if (problem->pass == CONV_BACKWARD_WEIGHT)
        return conv_places_weight_can(device, problem, arrays);
    const int64_t depth = problem->pass == CONV_FORWARD ? problem->channels : problem->filters;
    return depth % 2 == 0 && depth >= FEW_CHANNELS && depth <= MOST_DEPTH &&
           problem->kernel[0] * problem->kernel[1] <= MOST_TAPS;
}

bool conv_places_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                     Error *error) {
    if (problem->pass == CONV_BACKWARD_WEIGHT)
        return conv_places_weight_run(device, problem, arrays, error);
    ConvPlaces own = {.problem = problem,
                      .arrays = arrays,
                      .forward = problem->pass == CONV_FORWARD,
                      .taps = problem->kernel[0] * problem->kernel[1]};
    own.from = own.forward ? &arrays->x : &arrays->y;
    own.to = own.forward ? &arrays->y : &arrays->x;
    own.depth = own.forward ? problem->channels : problem->filters;
    own.columns = own.forward ? problem->filters : problem->channels;
    for (int i = 0; i < 2; i++) {
        own.from_size[i] = own.forward ? problem->size[i] : problem->out_size[i];
        own.to_size[i] = own.forward ? problem->out_size[i] : problem->size[i];
    }
    own.kernels = gemm_kernels_for(own.from->format, arrays->weight.format, cpu_has_pairs(device));
    order_taps(&own);
    plan(&own);
    const double cost = conv_cost(problem);
    const int64_t panels = own.block / own.kernels->panel_columns;
    const size_t weights =
        cpu_line((size_t)(own.block * own.taps * own.words + own.kernels->vector_columns) *
                 sizeof(GemmWord));
    const size_t threads = own.per_thread * (size_t)cpu_workers(device, cost);
    char *memory = device_workspace(device, weights + threads, error);
    if (!memory)
        return false;
    own.weights = (GemmWord *)(void *)memory;
    own.workspace = memory + weights;
    for (; own.first_column < own.columns; own.first_column += own.block) {
        const int64_t left = cpu_smaller(
            panels, gemm_divide_up(own.columns - own.first_column, own.kernels->panel_columns));
        cpu_parallel(device, left, 1, (double)view_count(&arrays->weight) * CPU_STREAM, pack_range,
                     &own);
        cpu_parallel(device, own.to_size[0] * own.to_size[1] * own.row_blocks, 1, cost,
                     places_range, &own);
    }
    return true;
}
