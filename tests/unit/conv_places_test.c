// tests/unit/conv_places_test.c: convolution a place at a time is the one by windows, where weights
// are packed for some columns at a time and images make several blocks; and the threads do not
// show.
#include "cpu/conv.h"
#include "kernel/allocator.h"
#include "tests/test.h"

static Device *device;
static Error error;

static View array(Format format, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dims[] = {a, b, c, d}, count = a * b * c * d;
    const size_t bytes = format_table[format].bytes;
    char *data = allocator_take(device->allocator, (size_t)count * bytes, MEMORY_DATA, &error);
    CHECK(data);
    for (int64_t i = 0; i < count; i++) { // small whole numbers: every order of sums gives the same
        uint32_t bits =
            format_encode(format, (double)(i * 7919 % 1009 % 3 - 1), OVERFLOW_TO_SPECIAL);
        memcpy(data + (size_t)i * bytes, &bits, bytes);
    }
    return view_dense(data, format, 4, dims);
}

static bool same(const View *a, const View *b) {
    return memcmp(a->data, b->data, (size_t)view_count(a) * format_table[a->format].bytes) == 0;
}

// `images` of 6x6 and 4x4 windows a stride of 2 apart.
static void check_pass(Format format, ConvPass pass, int64_t images, int64_t channels,
                       int64_t filters) {
    enum { SIZE = 6, OUT = 3, KERNEL = 4 };
    const ConvProblem problem = {.images = images,
                                 .size = {SIZE, SIZE},
                                 .channels = channels,
                                 .filters = filters,
                                 .out_size = {OUT, OUT},
                                 .kernel = {KERNEL, KERNEL},
                                 .stride = {2, 2},
                                 .padding = {1, 1},
                                 .dilation = {1, 1},
                                 .groups = 1,
                                 .pass = (int32_t)pass,
                                 .threads = device->threads};
    View x = array(format, images, SIZE, SIZE, channels),
         y = array(format, images, OUT, OUT, filters);
    const Format weights = pass == CONV_BACKWARD_WEIGHT ? FORMAT_FP32 : format;
    View weight = array(weights, filters, KERNEL, KERNEL, channels);
    ConvArrays arrays = {.x = x, .weight = weight, .y = y, .times = 1};
    View *out = pass == CONV_FORWARD          ? &arrays.y
                : pass == CONV_BACKWARD_INPUT ? &arrays.x
                                              : &arrays.weight;
    View other = array(out->format, out->shape[0], out->shape[1], out->shape[2], out->shape[3]);
    CHECK(conv_places_can(device, &problem, &arrays));
    CHECK(conv_places_run(device, &problem, &arrays, &error));
    View places = *out;
    *out = other;
    CHECK(conv_columns_run(device, &problem, &arrays, &error));
    CHECK(same(&places, &other));
    View *arrays_taken[] = {&x, &y, &weight, &other};
    for (int i = 0; i < 4; i++)
        allocator_give(device->allocator, arrays_taken[i]->data);
}

static void places_give_what_windows_give(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_FP16, FORMAT_BF16};
    for (int threads = 1; threads <= 3; threads++) {
        CHECK(device_open("cpu", threads, &device, &error));
        for (int i = 0; i < 3; i++) {
            check_pass(formats[i], CONV_FORWARD, 70, 32, 36);
            check_pass(formats[i], CONV_BACKWARD_INPUT, 70, 36, 32);
            check_pass(formats[i], CONV_BACKWARD_WEIGHT, 70, 40, 36);
            check_pass(formats[i], CONV_BACKWARD_WEIGHT, 9, 33, 17);
            // More weights than are packed at once.
            check_pass(formats[i], CONV_FORWARD, 8, 256, 520);
            check_pass(formats[i], CONV_BACKWARD_INPUT, 8, 520, 256);
        }
        device_close(device);
    }
}

// One tap of so many channels would take a thread's memory by itself.
static void what_is_too_deep_is_left_to_windows(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_BF16};
    CHECK(device_open("cpu", 1, &device, &error));
    for (int64_t deep = 8192; deep <= 1 << 22; deep *= 8)
        for (int i = 0; i < 4; i++) {
            const bool forward = i < 2;
            const Format format = formats[i % 2];
            const ConvProblem problem = {.images = 8,
                                         .size = {1, 1},
                                         .channels = forward ? deep : 32,
                                         .filters = forward ? 32 : deep,
                                         .out_size = {1, 1},
                                         .kernel = {1, 1},
                                         .stride = {1, 1},
                                         .dilation = {1, 1},
                                         .groups = 1,
                                         .pass = forward ? CONV_FORWARD : CONV_BACKWARD_INPUT,
                                         .threads = 1};
            const ConvArrays arrays = {.x = {.format = format},
                                       .weight = {.format = format},
                                       .y = {.format = format},
                                       .times = 1};
            CHECK_INT(conv_places_can(device, &problem, &arrays), deep == 8192);
        }
    device_close(device);
}

int main(void) {
    RUN_TEST(places_give_what_windows_give);
    RUN_TEST(what_is_too_deep_is_left_to_windows);
    return test_end();
}
