// Convolution by the library, a slice of the batch at a time: see cpu/conv.h.
//
// The workspace has a part that lasts the whole call (the weights in the library's order, or the
// sums of their gradient) and one that each slice has for itself (its images in fp32, and the
// library's scratch). While no slice is at work, weights on their way from one order or format to
// the other lie in the second.
#include <string.h>

#include "cpu/conv.h"
#include "cpu/onednn.h"

enum { AT_X, AT_WEIGHT, AT_BIAS, AT_Y, ARRAYS };

// Copies of a slice's images have so many bytes at most, or are those of one image.
enum { SLICE_BYTES = 3 << 19 };

typedef struct Library {
    Device *device;
    const ConvProblem *problem;
    View views[ARRAYS];
    float times;               // of the arrays
    int out;                   // which of them is written
    bool copied[ARRAYS];       // in fp32
    float *buffer[ARRAYS];     // where
    int64_t slice;             // images
    const OneDnnConv *conv[2]; // of a slice, and of the last, which may be smaller
    const OneDnnConv *ordered; // whose order the weights are in
    size_t weight_bytes;       // in that order; 0: ours will do
    void *weights;             // where
    float *more;               // the weights' gradient of slices but the first
    // What sums are multiplied by, and what is added to them, one a channel; NULL: nothing.
    float *zeros, *factors, *offsets;
    char *scratch; // the library's
} Library;

// ---- conversions --------------------------------------------------------------------------------

typedef struct ConvertTask {
    const Device *device;
    View view;
    float *values;
    bool load;
} ConvertTask;

static void convert_range(void *context, int64_t begin, int64_t end, int thread) {
    const ConvertTask *task = context;
    (void)thread;
    if (task->load)
        cpu_load(task->device, task->view.format, cpu_at(&task->view, begin), task->values + begin,
                 end - begin);
    else
        cpu_store(task->device, task->view.format, task->values + begin,
                  cpu_at_mutable(&task->view, begin), end - begin);
}

static void convert(const Device *device, const View *view, float *values, bool load) {
    ConvertTask task = {device, *view, values, load};
    int64_t count = view_count(view);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM, convert_range, &task);
}

typedef struct FinishTask {
    const Library *library;
    View out;
    const float *sums;
} FinishTask;

static void finish_range(void *context, int64_t begin, int64_t end, int thread) {
    const FinishTask *task = context;
    const View *out = &task->out;
    const int64_t channels = out->shape[3];
    (void)thread;
    cpu_simd(task->library->device)
        ->columns->apply(FORMAT_FP32, task->sums + begin * channels, out->format,
                         cpu_at_mutable(out, begin * channels), end - begin, channels,
                         task->library->zeros, task->library->factors, task->library->offsets);
}

// Sums to what is asked for.
static void finish(const Library *library, const View *out, float *sums) {
    if (!library->factors) {
        convert(library->device, out, sums, false);
        return;
    }
    FinishTask task = {library, *out, sums};
    const int64_t count = view_count(out);
    cpu_parallel(library->device, count / out->shape[3], 1, (double)count * CPU_STREAM,
                 finish_range, &task);
}

typedef struct AddTask {
    float *sums;
    const float *more;
} AddTask;

static void add_range(void *context, int64_t begin, int64_t end, int thread) {
    const AddTask *task = context;
    (void)thread;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        task->sums[i] += task->more[i];
}

// ---- slices -------------------------------------------------------------------------------------

static bool has_images(int array) {
    return array == AT_X || array == AT_Y;
}

static Format format_wanted(const ConvProblem *problem, int array, int out) {
    if (array == AT_BIAS)
        return FORMAT_FP32;
    return (Format)(array == out ? problem->out_format : problem->format);
}

static const OneDnnConv *conv_of(const Library *library, int64_t images) {
    ConvProblem problem = *library->problem;
    problem.images = images;
    return onednn_conv(cpu_onednn(library->device), &problem);
}

// As many images as the copies have room for, dealt out evenly.
static void choose_slice(Library *library) {
    int64_t bytes = 0, images = library->problem->images;
    for (int i = 0; i < ARRAYS; i++)
        if (library->copied[i] && has_images(i))
            bytes += view_count(&library->views[i]) * (int64_t)sizeof(float);
    int64_t slices = cpu_smaller((bytes + SLICE_BYTES - 1) / SLICE_BYTES, images);
    library->slice = slices > 1 ? (images + slices - 1) / slices : images;
    int64_t last = images % library->slice;
    library->conv[0] = conv_of(library, library->slice);
    library->conv[1] = last ? conv_of(library, last) : library->conv[0];
    const bool sums = library->out == AT_WEIGHT && library->conv[0] && library->conv[1];
    if (sums && !onednn_conv_same_order(library->conv[0], library->conv[1])) {
        library->slice = 1; // no last one that differs: what is added up lies in one order
        library->conv[0] = library->conv[1] = conv_of(library, 1);
    }
}

// Images of an array, or all of one that has none.
static View slice_of(const Library *library, int array, int64_t first, int64_t images) {
    View view = library->views[array];
    if (!view.data || !has_images(array))
        return view;
    int64_t image = view_count(&view) / library->problem->images;
    view.data = cpu_at_mutable(&view, first * image);
    view.shape[0] = images;
    return view;
}

static size_t carve(size_t *used, size_t bytes) {
    size_t at = *used;
    *used += cpu_line(bytes);
    return at;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t weights_size(const Library *library) {
    return (size_t)view_count(&library->views[AT_WEIGHT]) * sizeof(float);
}

static bool adds_slices(const Library *library) {
    return library->out == AT_WEIGHT && library->slice < library->problem->images;
}

// Factors and offsets, where sums are multiplied before the bias comes.
static void fill_lines(Library *library) {
    const View *bias = &library->views[AT_BIAS];
    const int64_t channels = library->views[library->out].shape[3];
    for (int64_t i = 0; i < channels; i++) {
        library->factors[i] = library->times;
        library->offsets[i] = library->zeros[i] = 0;
    }
    if (bias->data)
        cpu_load(library->device, bias->format, bias->data, library->offsets, channels);
}

static bool lay_out(Library *library, Error *error) {
    const OneDnnConv *const *conv = library->conv;
    size_t used = 0, at[ARRAYS] = {0};
    library->weight_bytes =
        larger(onednn_conv_weight_bytes(conv[0]), onednn_conv_weight_bytes(conv[1]));
    const bool plain = library->weight_bytes == 0; // the library takes our order
    const bool passes = !plain && library->copied[AT_WEIGHT];
    const size_t weights = carve(&used, library->weight_bytes);
    const size_t sums = plain ? weights_size(library) : library->weight_bytes;
    const size_t more = carve(&used, adds_slices(library) ? sums : 0);
    const size_t line =
        library->times == 1 ? 0 : (size_t)library->views[library->out].shape[3] * sizeof(float);
    const size_t factors = carve(&used, line), offsets = carve(&used, line),
                 zeros = carve(&used, line);
    for (int i = 0; i < ARRAYS; i++)
        if (library->copied[i] && !has_images(i) && !(i == AT_WEIGHT && passes))
            at[i] = carve(&used, (size_t)view_count(&library->views[i]) * sizeof(float));
    at[AT_WEIGHT] = passes ? used : at[AT_WEIGHT];
    const size_t lasts = used;
    const size_t scratch = carve(
        &used, larger(onednn_conv_scratch_bytes(conv[0]), onednn_conv_scratch_bytes(conv[1])));
    for (int i = 0; i < ARRAYS; i++) {
        const View view = slice_of(library, i, 0, library->slice);
        if (library->copied[i] && has_images(i))
            at[i] = carve(&used, (size_t)view_count(&view) * sizeof(float));
    }
    if (passes)
        used = larger(used, lasts + weights_size(library));
    char *memory = device_workspace(library->device, used, error);
    if (!memory)
        return false;
    for (int i = 0; i < ARRAYS; i++)
        library->buffer[i] = (float *)(void *)(memory + at[i]);
    library->weights = memory + weights;
    library->more = (float *)(void *)(memory + more);
    library->scratch = memory + scratch;
    if (library->times == 1)
        return true;
    library->factors = (float *)(void *)(memory + factors);
    library->offsets = (float *)(void *)(memory + offsets);
    library->zeros = (float *)(void *)(memory + zeros);
    fill_lines(library);
    return true;
}

// ---- a slice ------------------------------------------------------------------------------------

// The weights as this one takes them.
static bool bring_weights(Library *library, const OneDnnConv *conv, Error *error) {
    const View *weight = &library->views[AT_WEIGHT];
    const bool same = library->ordered && onednn_conv_same_order(conv, library->ordered);
    library->ordered = conv;
    if (library->out == AT_WEIGHT || same)
        return true;
    void *ours = weight->data;
    if (library->copied[AT_WEIGHT])
        convert(library->device, weight, ours = library->buffer[AT_WEIGHT], true);
    return onednn_conv_weight_bytes(conv) == 0 ||
           onednn_conv_order_weights(conv, ours, library->weights, error);
}

// Where the library finds the weights, or leaves their gradient.
static void *weights_for(const Library *library) {
    if (library->weight_bytes > 0)
        return library->weights;
    return library->copied[AT_WEIGHT] ? library->buffer[AT_WEIGHT] : library->views[AT_WEIGHT].data;
}

static bool run_slice(Library *library, int64_t first, int64_t images, Error *error) {
    const Device *device = library->device;
    const OneDnnConv *conv = library->conv[images < library->slice];
    if (!bring_weights(library, conv, error))
        return false;
    View given[ARRAYS], theirs[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        given[i] = theirs[i] = slice_of(library, i, first, images);
        if (!library->copied[i] || i == AT_WEIGHT)
            continue;
        theirs[i] = view_dense(library->buffer[i], FORMAT_FP32, given[i].ndim, given[i].shape);
        // What is no image's stays from the first slice on.
        if (i != library->out && (has_images(i) || first == 0))
            convert(device, &given[i], library->buffer[i], true);
    }
    const bool adds = library->out == AT_WEIGHT && first > 0;
    float *sums = theirs[AT_WEIGHT].data = weights_for(library);
    if (adds)
        theirs[AT_WEIGHT].data = library->more;
    const ConvArrays arrays = {theirs[AT_X], theirs[AT_WEIGHT], theirs[AT_BIAS], theirs[AT_Y], 1};
    if (!onednn_conv_run(conv, &arrays, library->scratch, error))
        return false;
    if (adds) { // in whatever order
        AddTask task = {sums, library->more};
        const size_t bytes = library->weight_bytes ? library->weight_bytes : weights_size(library);
        const int64_t count = (int64_t)(bytes / sizeof(float));
        cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM, add_range, &task);
    }
    if (library->out != AT_WEIGHT && library->copied[library->out])
        finish(library, &given[library->out], library->buffer[library->out]);
    return true;
}

// The gradient of the weights to our order and the format that is asked for.
static bool finish_weights(const Library *library, Error *error) {
    const View *weight = &library->views[AT_WEIGHT];
    const bool copied = library->copied[AT_WEIGHT];
    void *ours = copied ? (void *)library->buffer[AT_WEIGHT] : weight->data;
    if (library->weight_bytes > 0 &&
        !onednn_conv_order_weights(library->ordered, ours, library->weights, error))
        return false;
    if (copied)
        finish(library, weight, ours);
    return true;
}

bool conv_library_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                      bool *possible, Error *error) {
    static const int written[] = {
        [CONV_FORWARD] = AT_Y, [CONV_BACKWARD_INPUT] = AT_X, [CONV_BACKWARD_WEIGHT] = AT_WEIGHT};
    Library library = {.device = device,
                       .problem = problem,
                       .views = {arrays->x, arrays->weight, arrays->bias, arrays->y},
                       .times = arrays->times,
                       .out = written[problem->pass]};
    for (int i = 0; i < ARRAYS; i++)
        library.copied[i] = library.views[i].data &&
                            (library.views[i].format != format_wanted(problem, i, library.out) ||
                             (i == library.out && library.times != 1));
    choose_slice(&library);
    *possible = library.conv[0] && library.conv[1];
    if (!*possible)
        return true;
    if (!lay_out(&library, error))
        return false;
    for (int64_t first = 0, images; first < problem->images; first += images) {
        images = cpu_smaller(problem->images - first, library.slice);
        if (!run_slice(&library, first, images, error))
            return false;
    }
    return library.out != AT_WEIGHT || finish_weights(&library, error);
}
