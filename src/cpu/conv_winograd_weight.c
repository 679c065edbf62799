// The gradient of a convolution's weights by Winograd's way: conv_winograd.c's other product. The
// squares of a band, which is some of all images, lie along the depth:
//
//     sums[part][filters, channels] = dy[part][squares, filters]T x pixels[part][squares, channels]
//
// Parts are made of a whole band and read where they lie; the sums of some filters and channels are
// turned into gradients of taps, which are added up from band to band.
#include "cpu/conv_winograd.h"
#include "cpu/products.h"

enum {
    WEIGHT_TAPS = 3 * 3,
    MOST_SQUARES = 256, // of a band
    FEWEST_SQUARES = 16,
    BAND_BYTES = 6 << 20, // of their parts, or they are fewer
    MOST_FILTERS = 128,   // whose parts are made at once
    MOST_ROWS = 56,       // filters whose sums are made together: four tiles of rows
};

typedef struct Weights {
    const ConvProblem *problem;
    const ConvArrays *arrays;
    const GemmKernels *kernels;
    WinogradSquares squares;
    WinogradGrid seen;      // of pixels
    int64_t most;           // squares of a band
    int64_t x_row, y_row;   // words from square to square
    int64_t x_part, y_part; // words from part to part
    int64_t filters;        // whose parts are made at once
    int64_t rows;           // filters whose sums are
    int64_t sums_part;
    size_t sums_bytes; // of a thread
    float *x, *y;
    char *sums;
    // The band at hand.
    int64_t first, count, first_filter, filter_count;
    _Atomic bool finite;
} Weights;

static void x_range(void *context, int64_t begin, int64_t end, int thread) {
    const Weights *own = context;
    const View *x = &own->arrays->x;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        void *seen[WINOGRAD_MOST_PIXELS];
        winograd_look(&own->squares, own->first + i, own->squares.seen, x, &own->seen, 0, seen);
        own->squares.simd->image(x->format, seen, own->problem->channels, own->x + i * own->x_row,
                                 own->x_part);
    }
}

static void y_range(void *context, int64_t begin, int64_t end, int thread) {
    const Weights *own = context;
    const View *y = &own->arrays->y;
    const WinogradGrid all = {.step = 1};
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        void *outputs[WINOGRAD_MOST_OUTPUTS];
        winograd_look(&own->squares, own->first + i, own->squares.side, y, &all, own->first_filter,
                      outputs);
        own->squares.simd->gradient(y->format, outputs, own->filter_count, own->y + i * own->y_row,
                                    own->y_part);
    }
}

// The sums of all parts, of some filters and a panel of channels.
static void multiply(const Weights *own, int64_t filter, int64_t filters, int64_t channel,
                     int64_t channels, float *sums) {
    for (int64_t part = 0; part < own->squares.parts; part++) {
        const GemmBlock block = {.rows = filters,
                                 .columns = channels,
                                 .depth = own->count,
                                 .a = own->y + part * own->y_part + filter,
                                 .a_row = 1,
                                 .a_step = own->y_row,
                                 .b = own->x + part * own->x_part + channel,
                                 .b_step = own->x_row,
                                 .alpha = 1,
                                 .first = true,
                                 .last = true,
                                 .c = sums + part * own->sums_part,
                                 .c_format = FORMAT_FP32,
                                 .c_row = own->kernels->panel_columns};
        own->kernels->multiply(&block);
    }
}

static void sums_range(void *context, int64_t begin, int64_t end, int thread) {
    Weights *own = context;
    const int64_t width = own->kernels->panel_columns, all = own->problem->channels;
    float *sums = (float *)(void *)(own->sums + (size_t)thread * own->sums_bytes);
    float *weight = own->arrays->weight.data;
    bool finite = true;
    const bool is_last = own->first + own->count == own->squares.count;
    const float times = is_last ? own->arrays->times : 1; // the sum of all bands
    const int64_t blocks = gemm_divide_up(own->filter_count, own->rows);
    for (int64_t i = begin; i < end; i++) {
        const int64_t filter = i % blocks * own->rows, channel = i / blocks * width;
        const int64_t filters = cpu_smaller(own->rows, own->filter_count - filter);
        const int64_t channels = cpu_smaller(width, all - channel);
        multiply(own, filter, filters, channel, channels, sums);
        for (int64_t row = 0; row < filters; row++)
            finite = own->squares.simd->taps(
                         sums + row * width, own->sums_part, times, own->first > 0,
                         weight + (own->first_filter + filter + row) * WEIGHT_TAPS * all + channel,
                         all, channels) &&
                     finite;
    }
    if (!finite)
        own->finite = false;
}

static void plan(Weights *own) {
    const int64_t word = sizeof(GemmWord), line = GEMM_CACHE_LINE / word;
    const int64_t vectors = own->problem->filters / CPU_WINOGRAD_CHANNELS;
    const int64_t slices = gemm_divide_up(own->problem->filters, MOST_FILTERS);
    own->filters = gemm_divide_up(vectors, slices) * CPU_WINOGRAD_CHANNELS;
    own->rows = gemm_divide_up(own->filters, gemm_divide_up(own->filters, MOST_ROWS));
    own->x_row = own->problem->channels + line;
    own->y_row = own->filters + line;
    const int64_t square = own->squares.parts * (own->x_row + own->y_row) * word;
    const int64_t most = product_larger(BAND_BYTES / square, FEWEST_SQUARES);
    const int64_t bands = gemm_divide_up(own->squares.count, cpu_smaller(most, MOST_SQUARES));
    own->most = gemm_divide_up(own->squares.count, bands);
    own->x_part = own->most * own->x_row + line;
    own->y_part = own->most * own->y_row + line;
    own->sums_part = own->rows * own->kernels->panel_columns + line;
    own->sums_bytes = cpu_line((size_t)(own->squares.parts * own->sums_part * word));
}

// Some filters by the band at hand.
static void run_filters(const Device *device, Weights *own, double cost) {
    const int64_t panels = gemm_divide_up(own->problem->channels, own->kernels->panel_columns);
    const double numbers = (double)(own->y_row * own->count * own->squares.parts);
    own->filter_count = cpu_smaller(own->filters, own->problem->filters - own->first_filter);
    cpu_parallel(device, own->count, 1, numbers * CPU_STREAM, y_range, own);
    cpu_parallel(device, panels * gemm_divide_up(own->filter_count, own->rows), 1, cost, sums_range,
                 own);
}

bool conv_winograd_weight_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                              bool *finite, Error *error) {
    Weights own = {.problem = problem,
                   .arrays = arrays,
                   .kernels = gemm_kernels_for(FORMAT_FP32, FORMAT_FP32, false),
                   .squares = winograd_squares(winograd_transforms_of(device, problem, arrays),
                                               problem->images, problem->out_size),
                   .seen = {{-problem->padding[0], -problem->padding[1]}, 1},
                   .finite = true};
    plan(&own);
    const double cost = conv_cost(problem);
    const size_t x_bytes = cpu_line((size_t)(own.squares.parts * own.x_part) * sizeof(GemmWord));
    const size_t y_bytes = cpu_line((size_t)(own.squares.parts * own.y_part) * sizeof(GemmWord));
    const size_t threads = own.sums_bytes * (size_t)cpu_workers(device, cost);
    char *memory = device_workspace(device, x_bytes + y_bytes + threads, error);
    if (!memory)
        return false;
    own.x = (float *)(void *)memory;
    own.y = (float *)(void *)(memory + x_bytes);
    own.sums = memory + x_bytes + y_bytes;
    for (; own.first < own.squares.count; own.first += own.count) {
        own.count = cpu_smaller(own.most, own.squares.count - own.first);
        const double share =
            (double)(own.count * own.filters) / (double)(own.squares.count * problem->filters);
        const double numbers = (double)(own.x_row * own.count * own.squares.parts);
        cpu_parallel(device, own.count, 1, numbers * CPU_STREAM, x_range, &own);
        for (own.first_filter = 0; own.first_filter < problem->filters;
             own.first_filter += own.filters)
            run_filters(device, &own, share < 1 ? cost * share : cost);
    }
    *finite = own.finite;
    return true;
}
