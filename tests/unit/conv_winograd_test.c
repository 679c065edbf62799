// tests/unit/conv_winograd_test.c: convolution by Winograd's way is the one by windows, where sums
// are exact; the threads do not show in any bit; and what is not finite is told.
#include <math.h>

#include "cpu/conv.h"
#include "kernel/allocator.h"
#include "tests/test.h"

static Device *device;
static Error error;

typedef struct Geometry {
    int64_t images, height, width, channels, filters, padding[2], stride;
} Geometry;

static const float TIMES = 0.375f; // of which few digits are added to whole numbers

// Of `whole` numbers every order of sums gives the same.
static View array(Format format, bool whole, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dims[] = {a, b, c, d}, count = a * b * c * d;
    const size_t bytes = format_table[format].bytes;
    char *data = allocator_take(device->allocator, (size_t)count * bytes, MEMORY_DATA, &error);
    CHECK(data);
    for (int64_t i = 0; i < count; i++) {
        const int64_t random = i * 7919 % 1009;
        const double value = whole ? (double)(random % 3 - 1) : (double)random / 1009 - 0.5;
        uint32_t bits = format_encode(format, value, OVERFLOW_TO_SPECIAL);
        memcpy(data + (size_t)i * bytes, &bits, bytes);
    }
    return view_dense(data, format, 4, dims);
}

typedef struct Call {
    ConvProblem problem;
    ConvArrays arrays;
} Call;

static Call call_of(Format format, ConvPass pass, bool whole, const Geometry *of) {
    const int64_t taps = of->stride == 1 ? 3 : 4;
    const int64_t out[] = {(of->height + 2 * of->padding[0] - taps) / of->stride + 1,
                           (of->width + 2 * of->padding[1] - taps) / of->stride + 1};
    const Format weights = pass == CONV_BACKWARD_WEIGHT ? FORMAT_FP32 : format;
    Call call = {
        .problem = {.images = of->images,
                    .size = {of->height, of->width},
                    .channels = of->channels,
                    .filters = of->filters,
                    .out_size = {out[0], out[1]},
                    .kernel = {taps, taps},
                    .stride = {of->stride, of->stride},
                    .padding = {of->padding[0], of->padding[1]},
                    .dilation = {1, 1},
                    .groups = 1,
                    .pass = (int32_t)pass,
                    .threads = device->threads},
        .arrays = {.x = array(format, whole, of->images, of->height, of->width, of->channels),
                   .weight = array(weights, whole, of->filters, taps, taps, of->channels),
                   .y = array(format, whole, of->images, out[0], out[1], of->filters),
                   .times = whole ? TIMES : 1}};
    if (pass == CONV_FORWARD) {
        call.problem.activation = ACTIVATION_RELU;
        call.problem.has_bias = true;
        call.arrays.bias = array(format, whole, 1, 1, 1, of->filters);
    }
    return call;
}

static View *written(Call *call) {
    return call->problem.pass == CONV_FORWARD          ? &call->arrays.y
           : call->problem.pass == CONV_BACKWARD_INPUT ? &call->arrays.x
                                                       : &call->arrays.weight;
}

static size_t bytes_of(const View *view) {
    return (size_t)view_count(view) * format_table[view->format].bytes;
}

static void end(const Call *call) {
    const View *views[] = {&call->arrays.x, &call->arrays.weight, &call->arrays.y,
                           &call->arrays.bias};
    for (int i = 0; i < 4; i++)
        if (views[i]->data)
            allocator_give(device->allocator, views[i]->data);
}

// Runs; whether all was finite.
static bool run(const Call *call) {
    bool finite = false;
    CHECK(conv_winograd_can(&call->problem, &call->arrays));
    CHECK(conv_winograd_run(device, &call->problem, &call->arrays, &finite, &error));
    return finite;
}

static const Geometry geometries[] = {
    {3, 9, 8, 32, 48, {1, 1}, 1},  // odd, and a panel that is not full
    {5, 7, 5, 64, 80, {0, 2}, 1},  // more columns than are summed at once
    {70, 4, 4, 48, 32, {1, 1}, 1}, // more squares than are multiplied at once
    // A depth that is cut, more weights than are packed at once, squares that are not kept
    // meanwhile or are, and several bands and slices of filters.
    {34, 3, 4, 416, 192, {2, 0}, 1},
    {1, 1, 1, 32, 32, {1, 1}, 1},
    {3, 9, 8, 32, 48, {1, 1}, 2}, // and the same with 4x4 taps and a stride
    {5, 7, 5, 64, 80, {0, 3}, 2},
    {70, 6, 6, 48, 32, {1, 1}, 2},
    {34, 6, 5, 208, 192, {2, 0}, 2},
    {2, 11, 2, 32, 32, {3, 1}, 2}, // pixels that no output sees
    {1, 2, 2, 32, 32, {1, 1}, 2},
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries, STRIDED = 5 };

// Gradients of weights are not had with a stride.
static bool can(const Geometry *geometry, ConvPass pass) {
    return geometry->stride == 1 || pass != CONV_BACKWARD_WEIGHT;
}

// Sums in squares of two by two are exact; larger ones, of gradients of weights of lower formats,
// are so but for what three does not divide.
static bool is_like(const View *is, const void *wanted, bool exact) {
    const size_t bytes = format_table[is->format].bytes;
    const double digits = is->format == FORMAT_BF16 ? 0x1p-7 : 0x1p-10;
    bool like = true;
    for (int64_t i = 0; i < view_count(is); i++) {
        uint32_t one = 0, other = 0;
        memcpy(&one, (const char *)is->data + (size_t)i * bytes, bytes);
        memcpy(&other, (const char *)wanted + (size_t)i * bytes, bytes);
        const double a = format_decode(is->format, one), b = format_decode(is->format, other);
        like = like && fabs(a - b) <= (exact ? 0 : digits * (fabs(b) + 1));
    }
    return like;
}

static void it_gives_what_windows_give(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_FP16, FORMAT_BF16};
    for (int threads = 1; threads <= 3; threads++) {
        CHECK(device_open("cpu", threads, &device, &error));
        for (int i = 0; i < 3 * 3 * GEOMETRIES; i++) {
            if (!can(&geometries[i / 9], (ConvPass)(i / 3 % 3)))
                continue;
            Call call = call_of(formats[i % 3], (ConvPass)(i / 3 % 3), true, &geometries[i / 9]);
            View *out = written(&call);
            CHECK(run(&call));
            void *had = malloc(bytes_of(out));
            CHECK(had);
            memcpy(had, out->data, bytes_of(out));
            CHECK(conv_columns_run(device, &call.problem, &call.arrays, &error));
            CHECK(is_like(out, had, i % 3 == 0 || call.problem.pass != CONV_BACKWARD_WEIGHT));
            free(had);
            end(&call);
        }
        device_close(device);
    }
}

static void threads_do_not_show(void) {
    for (int i = 0; i < 3 * GEOMETRIES; i++) {
        if (!can(&geometries[i / 3], (ConvPass)(i % 3)))
            continue;
        void *had = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            CHECK(device_open("cpu", threads, &device, &error));
            const Format format = i % 2 ? FORMAT_BF16 : FORMAT_FP32;
            Call call = call_of(format, (ConvPass)(i % 3), false, &geometries[i / 3]);
            View *out = written(&call);
            CHECK(run(&call));
            if (!had) {
                had = malloc(bytes_of(out));
                CHECK(had);
                memcpy(had, out->data, bytes_of(out));
            }
            CHECK(memcmp(had, out->data, bytes_of(out)) == 0);
            end(&call);
            device_close(device);
        }
        free(had);
    }
}

static void what_is_not_finite_is_told(void) {
    CHECK(device_open("cpu", 2, &device, &error));
    for (int i = 0; i < 2 * 3 * 2; i++) {
        const Geometry *geometry = &geometries[i / 6 ? STRIDED : 0];
        if (!can(geometry, (ConvPass)(i / 2 % 3)))
            continue;
        Call call = call_of(FORMAT_FP32, (ConvPass)(i / 2 % 3), false, geometry);
        const View *read[] = {&call.arrays.x, &call.arrays.weight, &call.arrays.y};
        for (int k = 0; k < 3; k++)
            if (read[k] != written(&call)) {
                float *last = (float *)read[k]->data + view_count(read[k]) - 1, was = *last;
                CHECK(run(&call));
                *last = i % 2 ? INFINITY : NAN;
                CHECK(!run(&call));
                *last = was;
            }
        end(&call);
    }
    device_close(device);
}

// Whether a tap lies between an output and a pixel, along one dimension.
static bool meets(const ConvProblem *problem, int64_t output, int64_t pixel) {
    const int64_t tap = pixel + problem->padding[0] - output * problem->stride[0];
    return tap >= 0 && tap < problem->kernel[0];
}

// One pixel is so large that its rounding alone is more than all others: outputs that do not see it
// stay what they are, and where these are zeros, zeros.
static void no_output_is_made_of_what_it_does_not_see(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_FP16, FORMAT_BF16};
    enum { AT = 5, CHANNELS = 32 };
    CHECK(device_open("cpu", 2, &device, &error));
    for (int i = 0; i < 2 * 2 * 2 * 3; i++) {
        const Geometry geometry = {1, 20, 20, CHANNELS, CHANNELS, {1, 1}, 1 + i / 12};
        const Format format = formats[i % 3];
        const ConvPass pass = i / 3 % 2 ? CONV_BACKWARD_INPUT : CONV_FORWARD;
        const double others = i / 6 % 2 ? 0 : 0x1p-10, large = 0x1.8p14;
        Call call = call_of(format, pass, true, &geometry);
        call.problem.activation = ACTIVATION_NONE; // and the bias is all zeros
        if (call.arrays.bias.data)
            memset(call.arrays.bias.data, 0, bytes_of(&call.arrays.bias));
        View *to = written(&call), *from = to == &call.arrays.y ? &call.arrays.x : &call.arrays.y;
        const size_t bytes = format_table[format].bytes;
        for (int64_t k = 0; k < view_count(from); k++) {
            const bool is_large = k / CHANNELS == AT * from->shape[2] + AT;
            // Whole numbers of digits that are all kept would hide what is lost.
            const double value = is_large ? large + (double)(8 * (k % 7)) : others;
            uint32_t bits = format_encode(format, value, OVERFLOW_TO_SPECIAL);
            memcpy((char *)from->data + (size_t)k * bytes, &bits, bytes);
        }
        CHECK(run(&call));
        void *had = malloc(bytes_of(to));
        CHECK(had);
        memcpy(had, to->data, bytes_of(to));
        CHECK(conv_columns_run(device, &call.problem, &call.arrays, &error));
        bool like = true;
        for (int64_t k = 0; k < view_count(to); k++) {
            const int64_t h = k / CHANNELS / to->shape[2], w = k / CHANNELS % to->shape[2];
            const ConvProblem *of = &call.problem;
            if (pass == CONV_FORWARD ? meets(of, h, AT) && meets(of, w, AT)
                                     : meets(of, AT, h) && meets(of, AT, w))
                continue;
            uint32_t one = 0, other = 0;
            memcpy(&one, (const char *)had + (size_t)k * bytes, bytes);
            memcpy(&other, (const char *)to->data + (size_t)k * bytes, bytes);
            like = like && format_decode(format, one) == format_decode(format, other);
        }
        CHECK(like);
        free(had);
        end(&call);
    }
    device_close(device);
}

// By a number that has all the digits that there are: parts that were multiplied would not add up
// to the same, nor to zeros.
static void what_is_left_apart_multiplies_each_result_once(void) {
    static const float times = 0.3f;
    CHECK(device_open("cpu", 2, &device, &error));
    for (int i = 0; i < 3 * GEOMETRIES; i++) {
        if (!can(&geometries[i / 3], (ConvPass)(i % 3)))
            continue;
        Call call = call_of(FORMAT_FP32, (ConvPass)(i % 3), true, &geometries[i / 3]);
        call.problem.activation = ACTIVATION_NONE;
        if (call.arrays.bias.data)
            memset(call.arrays.bias.data, 0, bytes_of(&call.arrays.bias));
        View *out = written(&call);
        call.arrays.times = 1;
        CHECK(run(&call));
        float *had = malloc(bytes_of(out));
        CHECK(had);
        memcpy(had, out->data, bytes_of(out));
        call.arrays.times = times;
        CHECK(run(&call));
        const float *is = out->data;
        bool like = true;
        for (int64_t k = 0; k < view_count(out); k++)
            like = like && is[k] == times * had[k];
        CHECK(like);
        free(had);
        end(&call);
    }
    device_close(device);
}

int main(void) {
    RUN_TEST(it_gives_what_windows_give);
    RUN_TEST(what_is_left_apart_multiplies_each_result_once);
    RUN_TEST(threads_do_not_show);
    RUN_TEST(no_output_is_made_of_what_it_does_not_see);
    RUN_TEST(what_is_not_finite_is_told);
    return test_end();
}
