// Convolution as a matrix product: the windows of some output pixels are laid out as the rows of a
// matrix, which stays in the cache of the thread that multiplies it. A convolution whose windows
// are single pixels needs no copy: the images are that matrix.
#include <string.h>

#include "cpu/conv.h"
#include "cpu/products.h"

enum { FEWEST_PIXELS = 256, COLUMN_BYTES = 512 << 10, LOW_BYTES = 1 << 20 };

typedef struct ConvColumns {
    const Device *device;
    const ConvProblem *problem;
    const ConvArrays *arrays;
    int64_t filters, channels; // of one group
    int64_t window, lines;     // lines: rows of output pixels, over all images
    int64_t part;              // lines that are multiplied together
    int64_t kernel_rows;       // that are: all, or of gradients of the input one after the other
    Format columns_format;
    size_t columns_bytes, gemm_bytes, per_thread;
    char *workspace;
    // The gradient of the input, summed in fp32: in place, or where that is of another format a
    // worker's own of the images of a stretch, behind its windows and products.
    float *dx;        // NULL: those
    int64_t image;    // numbers of one
    size_t dx_offset; // in the worker's memory
    int64_t weights;
    float *partial; // gradient of the weights, one a worker
} ConvColumns;

// ---- windows ------------------------------------------------------------------------------------

// Where a tap lies along one dimension; -1: in the padding.
static int64_t tap(const ConvProblem *problem, int dim, int64_t out, int64_t kernel) {
    int64_t place =
        out * problem->stride[dim] - problem->padding[dim] + kernel * problem->dilation[dim];
    return place >= 0 && place < problem->size[dim] ? place : -1;
}

static void copy_pixel(char *to, const char *from, size_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 2)
        memcpy(to, from, 2);
    else
        memcpy(to, from, bytes);
}

// The channels of one group that the windows of one line of output pixels see in one row of the
// kernel; `from` is the row of x, or NULL in the padding.
static void gather_row(const ConvColumns *own, const char *from, char *to) {
    const ConvProblem *problem = own->problem;
    size_t element = format_table[own->columns_format].bytes;
    size_t pixel = (size_t)own->channels * element, step = (size_t)own->window * element;
    size_t from_pixel = (size_t)problem->channels * element;
    size_t run = pixel * (size_t)problem->kernel[1];
    bool joined = problem->groups == 1 && problem->dilation[1] == 1;
    for (int64_t out = 0; out < problem->out_size[1]; out++, to += step) {
        int64_t first = out * problem->stride[1] - problem->padding[1];
        int64_t last = first + (problem->kernel[1] - 1) * problem->dilation[1];
        if (!from) {
            memset(to, 0, run);
        } else if (joined && first >= 0 && last < problem->size[1]) {
            memcpy(to, from + (size_t)first * from_pixel, run);
        } else {
            for (int64_t kernel = 0; kernel < problem->kernel[1]; kernel++) {
                int64_t place = tap(problem, 1, out, kernel);
                char *target = to + (size_t)kernel * pixel;
                if (place < 0)
                    memset(target, 0, pixel);
                else
                    copy_pixel(target, from + (size_t)place * from_pixel, pixel);
            }
        }
    }
}

static void gather(const ConvColumns *own, int64_t group, int64_t line, int64_t lines,
                   char *columns) {
    const ConvProblem *problem = own->problem;
    const View *x = &own->arrays->x;
    size_t element = format_table[own->columns_format].bytes;
    size_t row = (size_t)(problem->out_size[1] * own->window) * element;
    size_t run = (size_t)(problem->kernel[1] * own->channels) * element;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t kernel = 0; kernel < problem->kernel[0]; kernel++) {
            int64_t image = (line + i) / problem->out_size[0];
            int64_t place = tap(problem, 0, (line + i) % problem->out_size[0], kernel);
            const char *from = NULL;
            if (place >= 0)
                from = cpu_at(x, (image * problem->size[0] + place) * problem->size[1] *
                                         problem->channels +
                                     group * own->channels);
            gather_row(own, from, columns + (size_t)i * row + (size_t)kernel * run);
        }
}

// Adds the gradient of every tap of so many rows of the kernel to the input pixel that it saw; `dx`
// begins with image `first`.
static void scatter(const ConvColumns *own, int64_t group, int64_t line, int64_t lines,
                    int64_t kernel_row, const float *columns, float *dx, int64_t first) {
    const ConvProblem *problem = own->problem;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t out = 0; out < problem->out_size[1]; out++)
            for (int64_t kh = kernel_row; kh < kernel_row + own->kernel_rows; kh++) {
                int64_t h = tap(problem, 0, (line + i) % problem->out_size[0], kh);
                for (int64_t kw = 0; kw < problem->kernel[1]; kw++, columns += own->channels) {
                    int64_t w = tap(problem, 1, out, kw);
                    if (h < 0 || w < 0)
                        continue;
                    int64_t image = (line + i) / problem->out_size[0] - first;
                    int64_t pixel = (image * problem->size[0] + h) * problem->size[1] + w;
                    float *to = dx + pixel * problem->channels + group * own->channels;
                    for (int64_t c = 0; c < own->channels; c++)
                        to[c] += columns[c];
                }
            }
}

// ---- products -----------------------------------------------------------------------------------

static bool is_plain(const ConvProblem *problem) {
    bool plain = problem->groups == 1;
    for (int i = 0; i < 2; i++)
        plain = plain && problem->kernel[i] == 1 && problem->stride[i] == 1 &&
                problem->padding[i] == 0 && problem->out_size[i] == problem->size[i];
    return plain;
}

// The product of one group over `pixels` output pixels, of which `first` is the first one.
static Gemm product_of(const ConvColumns *own, int64_t group, int64_t first, int64_t pixels,
                       const void *columns) {
    const ConvProblem *problem = own->problem;
    const int64_t taps = own->window / product_larger(problem->kernel[0], 1) * own->kernel_rows;
    const ConvArrays *arrays = own->arrays;
    int64_t y_first = first * problem->filters + group * own->filters;
    int64_t weight_first = group * own->filters * own->window;
    const void *weight = arrays->weight.data ? cpu_at(&arrays->weight, weight_first) : NULL;
    void *y = cpu_at_mutable(&arrays->y, y_first);
    Gemm gemm = {.batch = {1, 1}, .alpha = arrays->times, .threads = 1};
    gemm.pairs = cpu_has_pairs(own->device);
    switch ((ConvPass)problem->pass) {
    case CONV_FORWARD:
        gemm.rows = pixels;
        gemm.columns = own->filters;
        gemm.depth = own->window;
        gemm.a = (GemmOperand){columns, own->columns_format, own->window, 1, {0}};
        gemm.b = (GemmOperand){weight, arrays->weight.format, 1, own->window, {0}};
        gemm.c = (GemmResult){y, arrays->y.format, problem->filters, {0}};
        if (arrays->bias.data)
            gemm.bias = cpu_at(&arrays->bias, group * own->filters);
        gemm.bias_format = arrays->bias.format;
        gemm.activation = product_activation((Activation)problem->activation);
        break;
    case CONV_BACKWARD_INPUT:
        gemm.rows = pixels;
        gemm.columns = taps;
        gemm.depth = own->filters;
        gemm.a = (GemmOperand){y, arrays->y.format, problem->filters, 1, {0}};
        gemm.b = (GemmOperand){weight, arrays->weight.format, own->window, 1, {0}};
        gemm.c = (GemmResult){(void *)(uintptr_t)columns, own->columns_format, taps, {0}};
        break;
    case CONV_BACKWARD_WEIGHT:
        gemm.rows = own->filters;
        gemm.columns = own->window;
        gemm.depth = pixels;
        gemm.a = (GemmOperand){y, arrays->y.format, 1, problem->filters, {0}};
        gemm.b = (GemmOperand){columns, own->columns_format, own->window, 1, {0}};
        gemm.c = (GemmResult){NULL, FORMAT_FP32, own->window, {0}};
        break;
    }
    return gemm;
}

static bool run_plain(Device *device, const ConvColumns *own, Error *error) {
    const ConvProblem *problem = own->problem;
    const View *x = &own->arrays->x;
    Gemm gemm = product_of(own, 0, 0, conv_out_pixels(problem), x->data);
    if (problem->pass == CONV_BACKWARD_WEIGHT)
        gemm.c.data = own->arrays->weight.data;
    return product_run(device, &gemm, error);
}

// One stretch of lines, all groups; `partial` is where the gradient of the weights is summed, `dx`
// that of the input, from `first_image` on.
static void run_part(const ConvColumns *own, int64_t line, int64_t lines, char *memory,
                     float *partial, float *dx, int64_t first_image) {
    const ConvProblem *problem = own->problem;
    int64_t width = problem->out_size[1];
    for (int64_t group = 0; group < problem->groups; group++) {
        Gemm gemm = product_of(own, group, line * width, lines * width, memory);
        if (problem->pass != CONV_BACKWARD_INPUT)
            gather(own, group, line, lines, memory);
        if (problem->pass == CONV_BACKWARD_WEIGHT) {
            gemm.c.data = partial + group * own->filters * own->window;
            gemm.accumulate = true;
        }
        if (problem->pass != CONV_BACKWARD_INPUT) {
            gemm_run(&gemm, memory + own->columns_bytes);
            continue;
        }
        const char *weight = gemm.b.data;
        const size_t step = (size_t)gemm.columns * format_table[own->arrays->weight.format].bytes;
        for (int64_t row = 0; row < problem->kernel[0]; row += own->kernel_rows) {
            gemm.b.data = weight + (size_t)(row / own->kernel_rows) * step;
            gemm_run(&gemm, memory + own->columns_bytes);
            scatter(own, group, line, lines, row, (const float *)(const void *)memory, dx,
                    first_image);
        }
    }
}

// Lines begin .. end - 1, a stretch at a time: a part of one image, or several whole ones where
// they are shorter than a stretch. Of the input gradient a worker has whole images, since lines
// next to each other add to the same pixels.
static void run_lines(void *context, int64_t begin, int64_t end, int thread) {
    const ConvColumns *own = context;
    char *memory = own->workspace + (size_t)thread * own->per_thread;
    float *partial = own->partial + thread * own->weights;
    int64_t height = own->problem->out_size[0];
    const View *x = &own->arrays->x;
    const bool sums_apart = own->problem->pass == CONV_BACKWARD_INPUT && !own->dx;
    float *sums = (float *)(void *)(memory + own->dx_offset);
    for (int64_t line = begin, lines; line < end; line += lines) {
        lines = cpu_smaller(own->part, end - line);
        if (own->part < height) // no stretch across images: their tails are alike
            lines = cpu_smaller(lines, height - line % height);
        if (!sums_apart) {
            run_part(own, line, lines, memory, partial, own->dx, 0);
            continue;
        }
        int64_t image = line / height, numbers = product_larger(lines / height, 1) * own->image;
        if (line % height == 0)
            memset(sums, 0, (size_t)numbers * sizeof *sums);
        run_part(own, line, lines, memory, partial, sums, image);
        if ((line + lines) % height == 0)
            cpu_store(own->device, x->format, sums, cpu_at_mutable(x, image * own->image), numbers);
    }
}

// ---- a gradient of large weights ----------------------------------------------------------------

typedef struct GatherTask {
    const ConvColumns *own;
    int64_t group, line;
    char *columns;
} GatherTask;

static void gather_range(void *context, int64_t begin, int64_t end, int thread) {
    const GatherTask *task = context;
    const ConvColumns *own = task->own;
    size_t element = format_table[own->columns_format].bytes;
    size_t line = (size_t)(own->problem->out_size[1] * own->window) * element;
    (void)thread;
    gather(own, task->group, task->line + begin, end - begin, task->columns + (size_t)begin * line);
}

static Gemm product_together(const ConvColumns *own, int64_t group, int64_t line, int64_t lines,
                             const void *columns) {
    int64_t width = own->problem->out_size[1];
    Gemm gemm = product_of(own, group, line * width, lines * width, columns);
    gemm.threads = own->device->threads;
    gemm.accumulate = line > 0;
    return gemm;
}

// One sum, to which all threads add a stretch of lines after the other: sums of each worker's own
// would take more memory than all else.
static bool run_together(Device *device, ConvColumns *own, Error *error) {
    const View *weight = &own->arrays->weight;
    const bool direct = weight->format == FORMAT_FP32;
    size_t products = 0;
    const int64_t lengths[] = {own->part, own->lines % own->part};
    for (int i = 0; i < 2; i++) {
        Gemm gemm = product_together(own, 0, 1, lengths[i], NULL);
        size_t bytes = gemm_workspace_size(&gemm);
        products = bytes > products ? bytes : products;
    }
    size_t sums_bytes = direct ? 0 : cpu_line((size_t)own->weights * sizeof(float));
    char *memory = device_workspace(device, own->columns_bytes + sums_bytes + products + 1, error);
    if (!memory)
        return false;
    float *sums = direct ? weight->data : (float *)(void *)(memory + own->columns_bytes);
    if (own->lines == 0)
        memset(sums, 0, (size_t)own->weights * sizeof *sums);
    for (int64_t line = 0, lines; line < own->lines; line += lines) {
        lines = cpu_smaller(own->part, own->lines - line);
        for (int64_t group = 0; group < own->problem->groups; group++) {
            GatherTask task = {own, group, line, memory};
            double numbers = (double)(lines * own->problem->out_size[1] * own->window);
            cpu_parallel(device, lines, 1, numbers * CPU_STREAM, gather_range, &task);
            Gemm gemm = product_together(own, group, line, lines, memory);
            gemm.c.data = sums + group * own->filters * own->window;
            gemm_run(&gemm, memory + own->columns_bytes + sums_bytes);
        }
    }
    if (!direct)
        cpu_store(device, weight->format, sums, weight->data, own->weights);
    return true;
}

// ---- the whole ----------------------------------------------------------------------------------

// Whole images of a stretch. In a low format fewer: weights are then packed once more, and memory
// is what the format is there to save. The gradient of weights stays: it is summed stretch by
// stretch.
static int64_t choose_images(const ConvColumns *own, int64_t windows_bytes, int64_t images) {
    const ConvPass pass = (ConvPass)own->problem->pass;
    if (own->arrays->x.format == FORMAT_FP32 || pass == CONV_BACKWARD_WEIGHT)
        return images;
    const int64_t sums = pass == CONV_BACKWARD_INPUT ? own->image * (int64_t)sizeof(float) : 0;
    const int64_t room = LOW_BYTES / product_larger(windows_bytes + sums, 1);
    return cpu_smaller(images, product_larger(room, 1));
}

static void plan_parts(ConvColumns *own) {
    const ConvProblem *problem = own->problem;
    int64_t width = problem->out_size[1], height = problem->out_size[0];
    int64_t element = (int64_t)format_table[own->columns_format].bytes;
    int64_t pixels =
        product_larger(COLUMN_BYTES / element / product_larger(own->window, 1), FEWEST_PIXELS);
    own->part = product_larger(pixels / product_larger(width, 1), 1);
    const int64_t taps = own->window / product_larger(problem->kernel[0], 1) * own->kernel_rows;
    if (own->part >= height)
        own->part = choose_images(own, height * width * taps * element,
                                  own->part / product_larger(height, 1)) *
                    height;
    own->part = product_larger(cpu_smaller(own->part, own->lines), 1);
    own->columns_bytes = cpu_line((size_t)(own->part * width * taps * element));
    // All lengths that run_lines comes to.
    for (int64_t lines = own->part; lines > 0; lines -= own->part < height ? 1 : height) {
        Gemm gemm = product_of(own, 0, 0, lines * width, NULL);
        gemm.accumulate = problem->pass == CONV_BACKWARD_WEIGHT;
        size_t bytes = gemm_workspace_size(&gemm);
        own->gemm_bytes = bytes > own->gemm_bytes ? bytes : own->gemm_bytes;
    }
    own->per_thread = own->columns_bytes + cpu_line(own->gemm_bytes);
}

// Where the gradient of the input is summed.
static void plan_sums(ConvColumns *own) {
    const ConvProblem *problem = own->problem;
    const View *x = &own->arrays->x;
    if (x->format == FORMAT_FP32) {
        own->dx = x->data;
        return;
    }
    int64_t images = product_larger(own->part / product_larger(problem->out_size[0], 1), 1);
    own->dx_offset = own->per_thread;
    own->per_thread += cpu_line((size_t)(images * own->image) * sizeof(float));
}

// Gives the sums of all workers to the output, in its format.
static void finish_weights(const ConvColumns *own, int workers) {
    for (int worker = 1; worker < workers; worker++)
        for (int64_t i = 0; i < own->weights; i++)
            own->partial[i] += own->partial[worker * own->weights + i];
    cpu_store(own->device, own->arrays->weight.format, own->partial, own->arrays->weight.data,
              own->weights);
}

bool conv_columns_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                      Error *error) {
    ConvColumns own = {
        .device = device,
        .problem = problem,
        .arrays = arrays,
        .filters = problem->filters / problem->groups,
        .channels = problem->channels / problem->groups,
        .window = conv_window(problem),
        .lines = problem->images * problem->out_size[0],
        .columns_format = arrays->x.format,
        .kernel_rows = problem->kernel[0],
        .image = problem->size[0] * problem->size[1] * problem->channels,
    };
    bool weights = problem->pass == CONV_BACKWARD_WEIGHT;
    if (is_plain(problem))
        return run_plain(device, &own, error);

    bool input = problem->pass == CONV_BACKWARD_INPUT;
    if (input)
        own.columns_format = FORMAT_FP32;
    // Of what is summed apart, so that both together take no more than the windows of fp32.
    if (input && arrays->x.format != FORMAT_FP32)
        own.kernel_rows = cpu_smaller(problem->kernel[0], 1);
    plan_parts(&own);
    own.weights = weights ? problem->filters * own.window : 0;
    if (own.weights * (int64_t)sizeof(float) > COLUMN_BYTES)
        return run_together(device, &own, error);
    double cost = conv_cost(problem);
    int workers = cpu_workers(device, cost);
    if (input)
        plan_sums(&own);
    size_t threads = own.per_thread * (size_t)workers;
    size_t sums = cpu_line((size_t)(own.weights * workers) * sizeof(float));
    own.workspace = device_workspace(device, threads + sums + 64, error);
    if (!own.workspace)
        return false;
    own.partial = (float *)(void *)(own.workspace + threads);
    memset(own.partial, 0, (size_t)(own.weights * workers) * sizeof(float));
    if (input && (own.dx || own.lines == 0)) // 0 in every format
        memset(arrays->x.data, 0,
               (size_t)view_count(&arrays->x) * format_table[arrays->x.format].bytes);
    cpu_parallel(device, own.lines,
                 input || own.part >= problem->out_size[0] ? product_larger(problem->out_size[0], 1)
                                                           : own.part,
                 cost, run_lines, &own);
    if (weights)
        finish_weights(&own, workers);
    return true;
}
