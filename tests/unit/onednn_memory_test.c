// tests/unit/onednn_memory_test.c: whatever convolution the library is given, it writes nothing but
// what it was asked for, and that is what windows give.
#include <unistd.h>

#include "cpu/onednn.h"
#include "tests/test.h"

enum { GUARD = 4096, UNTOUCHED = 0xA5, LINE = 64 };

static Device *device;
static Error error;

// Memory with as much behind it that nobody is to write.
typedef struct Guarded {
    unsigned char *data;
    size_t bytes;
} Guarded;

static Guarded guarded(size_t bytes) {
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
    Guarded memory = {aligned_alloc(LINE, whole + GUARD), bytes};
    CHECK(memory.data);
    memset(memory.data, UNTOUCHED, whole + GUARD);
    return memory;
}

static bool is_kept(const Guarded *memory) {
    bool kept = true;
    for (size_t i = 0; i < GUARD; i++)
        kept = kept && memory->data[memory->bytes + i] == UNTOUCHED;
    return kept;
}

// Of small whole numbers, none of them 0: every order of sums gives the same.
static View numbers(const Guarded *memory, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dims[] = {a, b, c, d}, count = a * b * c * d;
    CHECK((size_t)count * sizeof(float) == memory->bytes);
    for (int64_t i = 0; i < count; i++)
        ((float *)(void *)memory->data)[i] = (float)(i * 7919 % 1009 % 3 + 1);
    return view_dense(memory->data, FORMAT_FP32, 4, dims);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Whether the library has a way, and what it computes, with all it wrote, is right.
static void check_problem(const ConvProblem *problem) {
    const OneDnnConv *conv = onednn_conv(cpu_onednn(device), problem);
    if (!conv)
        return;
    enum { X, WEIGHT, Y, ORDERED, SCRATCH, WANTED, MEMORIES };
    const int64_t filters = problem->filters, *kernel = problem->kernel, *out = problem->out_size;
    const int64_t x = problem->images * problem->size[0] * problem->size[1] * problem->channels;
    const int64_t weight = filters * kernel[0] * kernel[1] * problem->channels;
    const int64_t y = problem->images * out[0] * out[1] * filters;
    const int64_t most = larger(larger(x, weight), y);
    const size_t ordered = onednn_conv_weight_bytes(conv);
    Guarded memory[MEMORIES] = {
        guarded((size_t)x * sizeof(float)),       guarded((size_t)weight * sizeof(float)),
        guarded((size_t)y * sizeof(float)),       guarded(ordered),
        guarded(onednn_conv_scratch_bytes(conv)), guarded((size_t)most * sizeof(float))};
    ConvArrays arrays = {
        .x = numbers(&memory[X], problem->images, problem->size[0], problem->size[1],
                     problem->channels),
        .weight = numbers(&memory[WEIGHT], filters, kernel[0], kernel[1], problem->channels),
        .y = numbers(&memory[Y], problem->images, out[0], out[1], filters),
        .times = 1};
    View *written = problem->pass == CONV_FORWARD          ? &arrays.y
                    : problem->pass == CONV_BACKWARD_INPUT ? &arrays.x
                                                           : &arrays.weight;
    View *const ours = &arrays.weight;
    const View given = *ours;
    ConvArrays theirs = arrays;
    if (ordered > 0)
        theirs.weight.data = memory[ORDERED].data;
    if (ordered > 0 && problem->pass != CONV_BACKWARD_WEIGHT)
        CHECK(onednn_conv_order_weights(conv, given.data, memory[ORDERED].data, &error));
    CHECK(onednn_conv_run(conv, &theirs, memory[SCRATCH].data, &error));
    if (ordered > 0 && problem->pass == CONV_BACKWARD_WEIGHT)
        CHECK(onednn_conv_order_weights(conv, given.data, memory[ORDERED].data, &error));
    for (int i = 0; i < MEMORIES; i++)
        CHECK(is_kept(&memory[i]));
    const void *had = written->data;
    written->data = memory[WANTED].data;
    CHECK(conv_columns_run(device, problem, &arrays, &error));
    CHECK(memcmp(had, written->data, (size_t)view_count(written) * sizeof(float)) == 0);
    for (int i = 0; i < MEMORIES; i++)
        free(memory[i].data);
}

static void of_all_kernels_strides_and_channels(int threads) {
    static const int64_t channels[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20, 24, 32};
    enum { COUNT = sizeof channels / sizeof *channels, SIZE = 8 };
    CHECK(device_open("cpu", threads, &device, &error));
    for (int pass = 0; pass < 3; pass++)
        for (int which = 0; which < COUNT * COUNT; which++)
            for (int64_t kernel = 1; kernel <= 3; kernel += 2)
                for (int64_t stride = 1; stride <= 2; stride++)
                    for (int64_t images = 1; images <= 3; images += 2) {
                        const int64_t padding = kernel / 2;
                        const int64_t out = (SIZE + 2 * padding - kernel) / stride + 1;
                        check_problem(&(ConvProblem){.images = images,
                                                     .size = {SIZE, SIZE},
                                                     .channels = channels[which % COUNT],
                                                     .filters = channels[which / COUNT],
                                                     .out_size = {out, out},
                                                     .kernel = {kernel, kernel},
                                                     .stride = {stride, stride},
                                                     .padding = {padding, padding},
                                                     .dilation = {1, 1},
                                                     .groups = 1,
                                                     .pass = pass,
                                                     .threads = threads});
                    }
    device_close(device);
}

static void it_stays_within_its_memory(void) {
    alarm(120); // threads that wait for each other by memory that was written over wait for ever
    of_all_kernels_strides_and_channels(1);
}

static void so_do_two_threads(void) {
    alarm(120);
    of_all_kernels_strides_and_channels(2);
}

int main(void) {
    RUN_TEST(it_stays_within_its_memory);
    RUN_TEST(so_do_two_threads);
    return test_end();
}
