// The gradient of a convolution's weights, a place at a time: conv_places.c's other product. Of one
// tap it is
//
//     dw[filters, channels] = sum over places: dy of the place[images, filters]T x
//                                              x where the tap sees it[images, channels]
//
// Pixels of x and places of dy are packed once, the images of a batch along the depth, and each tap
// multiplies those that it sees: what lies in the padding is no part of any sum. A band of lines is
// packed at a time, so that it stays near.
#include "cpu/conv.h"
#include "cpu/gemm_kernels.h"
#include "cpu/products.h"

enum {
    MOST_IMAGES = 64, // of a band
    FEW_CHANNELS = 32,
    BAND_WORDS = 512, // of the depth of a band, where a line is no longer
    // That are packed, or fewer lines are; in a low format less, which is there to save memory.
    MOST_BYTES = 4 << 20,
    LOW_BYTES = 5 << 19,
};

typedef struct Weights {
    const ConvProblem *problem;
    const ConvArrays *arrays;
    const GemmKernels *kernels;
    int64_t lines, images, words; // of a band, at most
    int64_t x_words, y_words;     // of a pixel, packed
    // The band at hand.
    int64_t line, line_end, first_row, rows, first_image, band_images, depth;
    bool first;
    GemmWord *x, *y;
} Weights;

// The rows of x that the lines begin .. end - 1 of the output see.
static int64_t rows_seen(const ConvProblem *problem, int64_t begin, int64_t end, int64_t *first) {
    const int64_t above = begin * problem->stride[0] - problem->padding[0];
    const int64_t below = (end - 1) * problem->stride[0] - problem->padding[0] +
                          (problem->kernel[0] - 1) * problem->dilation[0] + 1;
    *first = product_larger(above, 0);
    return product_larger(cpu_smaller(below, problem->size[0]) - *first, 0);
}

// The outputs of begin .. end - 1 for which a tap lies in the image.
static int64_t outputs_of(const ConvProblem *problem, int dim, int64_t tap, int64_t begin,
                          int64_t end, int64_t *first) {
    const int64_t stride = problem->stride[dim];
    int64_t count = 0;
    for (int64_t out = begin; out < end; out++) {
        const int64_t at = out * stride - problem->padding[dim] + tap * problem->dilation[dim];
        if (at >= 0 && at < problem->size[dim] && count++ == 0)
            *first = out;
    }
    return count;
}

// ---- packing ------------------------------------------------------------------------------------

static void pack_x(void *context, int64_t begin, int64_t end, int thread) {
    const Weights *own = context;
    const ConvProblem *problem = own->problem;
    const View *x = &own->arrays->x;
    const int64_t image = problem->size[0] * problem->size[1] * problem->channels;
    (void)thread;
    for (int64_t pixel = begin; pixel < end; pixel++) {
        const int64_t at = own->first_image * image +
                           (own->first_row * problem->size[1] + pixel) * problem->channels;
        const GemmSource source = {cpu_at(x, at), x->format, 1, image};
        own->kernels->pack(own->x + pixel * own->x_words, own->kernels->panel_columns, &source,
                           problem->channels, own->band_images);
    }
}

static void pack_y(void *context, int64_t begin, int64_t end, int thread) {
    const Weights *own = context;
    const ConvProblem *problem = own->problem;
    const View *y = &own->arrays->y;
    const int64_t image = problem->out_size[0] * problem->out_size[1] * problem->filters;
    (void)thread;
    for (int64_t place = begin; place < end; place++) {
        const int64_t at = own->first_image * image +
                           (own->line * problem->out_size[1] + place) * problem->filters;
        for (int64_t row = 0, rows; row < problem->filters; row += rows) {
            rows = gemm_next_rows(problem->filters - row, own->kernels->tile_rows);
            const GemmSource source = {cpu_at(y, at + row), y->format, 1, image};
            own->kernels->pack(own->y + place * own->y_words + row * own->depth, (int)rows, &source,
                               rows, own->band_images);
        }
    }
}

// ---- products -----------------------------------------------------------------------------------

static void multiply_range(void *context, int64_t begin, int64_t end, int thread) {
    const Weights *own = context;
    const ConvProblem *problem = own->problem;
    const int width = own->kernels->panel_columns;
    const int64_t taps = problem->kernel[0] * problem->kernel[1], window = conv_window(problem);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t panel = i / taps, tap = i % taps;
        const int64_t at[] = {tap / problem->kernel[1], tap % problem->kernel[1]};
        int64_t line = 0, place = 0;
        const int64_t lines = outputs_of(problem, 0, at[0], own->line, own->line_end, &line);
        const int64_t places = outputs_of(problem, 1, at[1], 0, problem->out_size[1], &place);
        const bool any = lines > 0 && places > 0;
        if (!any && !own->first)
            continue;
        GemmBlock block = {
            .rows = problem->filters,
            .columns = cpu_smaller(width, problem->channels - panel * width),
            .a = own->y,
            .a_packed = true,
            .b = own->x,
            .b_step = width,
            .alpha = own->arrays->times,
            .first = true,
            .last = true,
            .c = cpu_at_mutable(&own->arrays->weight, tap * problem->channels + panel * width),
            .c_format = FORMAT_FP32,
            .c_row = window,
            .accumulate = !own->first};
        if (any) {
            const int64_t row = line * problem->stride[0] - problem->padding[0] +
                                at[0] * problem->dilation[0] - own->first_row;
            const int64_t column =
                place * problem->stride[1] - problem->padding[1] + at[1] * problem->dilation[1];
            block.depth = own->depth;
            block.a += ((line - own->line) * problem->out_size[1] + place) * own->y_words;
            block.b +=
                (row * problem->size[1] + column) * own->x_words + panel * width * own->depth;
            block.further[0] =
                (GemmFurther){places - 1, own->y_words, problem->stride[1] * own->x_words};
            block.further[1] = (GemmFurther){lines - 1, problem->out_size[1] * own->y_words,
                                             problem->stride[0] * problem->size[1] * own->x_words};
        }
        own->kernels->multiply(&block);
    }
}

static void run_band(const Device *device, Weights *own) {
    const ConvProblem *problem = own->problem;
    const int64_t panels = gemm_divide_up(problem->channels, own->kernels->panel_columns);
    const int64_t pixels = own->rows * problem->size[1];
    const int64_t places = (own->line_end - own->line) * problem->out_size[1];
    const int64_t taps = problem->kernel[0] * problem->kernel[1];
    const double images = (double)own->band_images;
    cpu_parallel(device, pixels, 1, (double)(pixels * problem->channels) * images * CPU_STREAM,
                 pack_x, own);
    cpu_parallel(device, places, 1, (double)(places * problem->filters) * images * CPU_STREAM,
                 pack_y, own);
    const double share = (double)places * images / (double)conv_out_pixels(problem);
    cpu_parallel(device, panels * taps, 1, conv_cost(problem) * share, multiply_range, own);
    own->first = false;
}

// ---- the whole ----------------------------------------------------------------------------------

// Bytes of a band, those of x and in all.
static int64_t packed_bytes(const Weights *own, int64_t *of_x) {
    const ConvProblem *problem = own->problem;
    const int64_t seen =
        (own->lines - 1) * problem->stride[0] + (problem->kernel[0] - 1) * problem->dilation[0] + 1;
    const int64_t pixels = cpu_smaller(seen, problem->size[0]) * problem->size[1];
    const int64_t places = own->lines * problem->out_size[1], word = sizeof(GemmWord);
    *of_x = (int64_t)cpu_line((size_t)(pixels * own->x_words * word));
    return *of_x + places * own->y_words * word;
}

static int64_t most_bytes(const Weights *own) {
    return own->arrays->x.format == FORMAT_FP32 ? MOST_BYTES : LOW_BYTES;
}

static void plan(Weights *own) {
    const ConvProblem *problem = own->problem;
    const int64_t lanes = own->kernels->vector_columns, width = own->kernels->panel_columns;
    const int64_t blocks = gemm_divide_up(problem->images, MOST_IMAGES);
    own->images = gemm_divide_up(problem->images, blocks);
    own->words = gemm_words(own->kernels, own->images);
    // What packing writes beyond its end meets nobody else's.
    own->x_words = gemm_divide_up(problem->channels, width) * width * own->words + lanes;
    own->y_words = gemm_divide_up(problem->filters * own->words, lanes) * lanes + lanes;
    own->lines = cpu_smaller(product_larger(BAND_WORDS / (own->words * problem->out_size[1]), 1),
                             problem->out_size[0]);
    int64_t of_x;
    while (own->lines > 1 && packed_bytes(own, &of_x) > most_bytes(own))
        own->lines--;
}

static Weights weights_of(const Device *device, const ConvProblem *problem,
                          const ConvArrays *arrays) {
    Weights own = {.problem = problem, .arrays = arrays, .first = true};
    own.kernels = gemm_kernels_for(arrays->x.format, arrays->y.format, cpu_has_pairs(device));
    plan(&own);
    return own;
}

bool conv_places_weight_can(const Device *device, const ConvProblem *problem,
                            const ConvArrays *arrays) {
    if (arrays->weight.format != FORMAT_FP32 || problem->channels < FEW_CHANNELS)
        return false;
    const Weights own = weights_of(device, problem, arrays);
    int64_t of_x;
    return packed_bytes(&own, &of_x) <= most_bytes(&own);
}

bool conv_places_weight_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                            Error *error) {
    Weights own = weights_of(device, problem, arrays);
    int64_t of_x;
    const size_t bytes = (size_t)packed_bytes(&own, &of_x);
    char *memory = device_workspace(device, bytes, error);
    if (!memory)
        return false;
    own.x = (GemmWord *)(void *)memory;
    own.y = (GemmWord *)(void *)(memory + of_x);
    for (; own.first_image < problem->images; own.first_image += own.images) {
        own.band_images = cpu_smaller(own.images, problem->images - own.first_image);
        own.depth = gemm_words(own.kernels, own.band_images);
        for (own.line = 0; own.line < problem->out_size[0]; own.line = own.line_end) {
            own.line_end = cpu_smaller(own.line + own.lines, problem->out_size[0]);
            own.rows = rows_seen(problem, own.line, own.line_end, &own.first_row);
            run_band(device, &own);
        }
    }
    return true;
}
