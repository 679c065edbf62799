// Selection on a card, beyond the sizes of the conformance tests: many indices of many rows, some
// of them far more frequent than others, as words are. All sums are of whole numbers, so that they
// are exact in any order, and the processor's to the bit.
#include "kernel/random.h"
#include "tests/unit/gpu_fixture.h"

static uint32_t random_word(uint64_t position) {
    return random_block(99, position).word[0];
}

// Of 0 to rows - 1, the low ones most: the first is a tenth of all.
static int32_t *frequent_index(int64_t count, int64_t rows) {
    int32_t *index = malloc((size_t)count * sizeof *index);
    for (int64_t i = 0; i < count; i++) {
        const double u = (double)random_uniform(random_word((uint64_t)i));
        index[i] = i % 10 == 3 ? 0 : (int32_t)(u * u * u * (double)rows);
    }
    return index;
}

static void *whole_gradients(Format format, int64_t count) {
    const size_t bytes = format_table[format].bytes;
    char *values = malloc((size_t)count * bytes);
    for (int64_t i = 0; i < count; i++)
        format_store(format, values + (size_t)i * bytes,
                     (double)(random_word((uint64_t)i) % 9) - 4.0, OVERFLOW_SATURATES);
    return values;
}

typedef struct Sums {
    OpId op;
    Format format; // of the gradients; sums are fp32
    int dim;       // gather_backward
    int64_t count; // along the index's dimension; the other one has `depth`
    int64_t rows, depth;
} Sums;

// A gradient by index, on one device; the caller frees it.
static float *sums_on(Device *device, const Sums *sums, const int32_t *index, const void *dy) {
    const bool embedding = sums->op == OP_embedding_backward;
    const int64_t all = sums->count * sums->depth, total = sums->rows * sums->depth;
    const int64_t indices = embedding ? sums->count : all;
    const int64_t shape[] = {sums->dim ? sums->depth : sums->count,
                             sums->dim ? sums->count : sums->depth};
    const int64_t out[] = {sums->dim ? sums->depth : sums->rows,
                           sums->dim ? sums->rows : sums->depth};
    const OpAttr attr = {.index = {.dim = sums->dim, .count = sums->rows}};
    float *result = malloc((size_t)total * sizeof *result);
    KernelCall call = {.op = sums->op, .input_count = 2, .output_count = 1, .attr = &attr};
    call.input[0] =
        view_dense(on_device(device, dy, (size_t)all * format_table[sums->format].bytes),
                   sums->format, 2, shape);
    call.input[1] = view_dense(on_device(device, index, (size_t)indices * sizeof *index),
                               FORMAT_INT32, embedding ? 1 : 2, shape);
    memset(result, 0xD7, (size_t)total * sizeof *result);
    call.output[0] =
        view_dense(on_device(device, result, (size_t)total * sizeof *result), FORMAT_FP32, 2, out);
    Error error = {0};
    CHECK_MESSAGE(device_run(device, &call, &error), "%s", error.text);
    device_read(device, result, call.output[0].data, (size_t)total * sizeof *result);
    allocator_give(device->allocator, call.input[0].data);
    allocator_give(device->allocator, call.input[1].data);
    allocator_give(device->allocator, call.output[0].data);
    return result;
}

static void expect_the_cpus(const Sums *sums) {
    const bool embedding = sums->op == OP_embedding_backward;
    const int64_t indices = embedding ? sums->count : sums->count * sums->depth;
    int32_t *index = frequent_index(indices, sums->rows);
    void *dy = whole_gradients(sums->format, sums->count * sums->depth);
    float *expected = sums_on(cpu, sums, index, dy), *got = sums_on(gpu, sums, index, dy);
    const int64_t total = sums->rows * sums->depth;
    int64_t at = 0;
    while (at < total && expected[at] == got[at])
        at++;
    CHECK_MESSAGE(at == total, "%s of %lld indices, %lld rows of %lld: sum %lld is %g, not %g",
                  op_table[sums->op].name, (long long)sums->count, (long long)sums->rows,
                  (long long)sums->depth, (long long)at, (double)got[at], (double)expected[at]);
    free(index);
    free(dy);
    free(expected);
    free(got);
}

// ---- tests --------------------------------------------------------------------------------------

static void embedding_gradients_are_the_cpus(void) {
    static const Sums sizes[] = {
        {OP_embedding_backward, FORMAT_BF16, 0, 9001, 3000, 16}, // two digits, five tiles
        {OP_embedding_backward, FORMAT_FP32, 0, 5000, 70000, 7}, // three digits
        {OP_embedding_backward, FORMAT_FP16, 0, 4096, 256,
         264},                                                // past the last digit of eight bits
        {OP_embedding_backward, FORMAT_BF16, 0, 2048, 1, 8},  // all of one row
        {OP_embedding_backward, FORMAT_FP16, 0, 1500, 2, 33}, // the same, not 16 bytes wide
        {OP_embedding_backward, FORMAT_FP32, 0, 127, 1, 40},  // the most that a warp does alone
        {OP_embedding_backward, FORMAT_FP32, 0, 128, 1, 40},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        expect_the_cpus(&sizes[i]);
}

static void gather_gradients_are_the_cpus(void) {
    static const Sums sizes[] = {
        {OP_gather_backward, FORMAT_FP32, 0, 500, 70, 20},
        {OP_gather_backward, FORMAT_BF16, 1, 300, 90, 30},
        {OP_gather_backward, FORMAT_FP32, 1, 1, 5000, 60},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        expect_the_cpus(&sizes[i]);
}

// Sums that depend on their order are the same each time.
static void gradients_repeat_to_the_bit(void) {
    const Sums sums = {OP_embedding_backward, FORMAT_FP32, 0, 6000, 50, 24};
    int32_t *index = frequent_index(sums.count, sums.rows);
    float *dy = malloc((size_t)(sums.count * sums.depth) * sizeof *dy);
    for (int64_t i = 0; i < sums.count * sums.depth; i++)
        dy[i] = random_uniform(random_word((uint64_t)i)) - 0.5f;
    float *first = sums_on(gpu, &sums, index, dy), *again = sums_on(gpu, &sums, index, dy);
    CHECK(memcmp(first, again, (size_t)(sums.rows * sums.depth) * sizeof *first) == 0);
    free(index);
    free(dy);
    free(first);
    free(again);
}

// An index past the end is told with its lowest position, and the other rows are what they were.
static void wrong_index_is_told_of_a_gradient(void) {
    const Sums sums = {OP_embedding_backward, FORMAT_FP32, 0, 5000, 300, 8};
    int32_t *index = frequent_index(sums.count, sums.rows);
    void *dy = whole_gradients(FORMAT_FP32, sums.count * sums.depth);
    index[4321] = 300;
    index[4000] = -1;
    free(sums_on(gpu, &sums, index, dy));
    Error error = {0};
    CHECK(!device_check(gpu, &error));
    CHECK_TEXT(error.text, "index -1 at position 4001: the embedding has 300 rows");
    gpu->status = (DeviceStatus){.check.fault = FAULT_NONE};
    free(index);
    free(dy);
}

// One column more than blocks side by side can have. The card is as good as before.
static void what_no_launch_takes_is_refused_by_name(void) {
    const int64_t depth = INT64_C(65535) * 32 + 1, one = 1, shape[] = {1, depth};
    const int32_t first = 0;
    float *gradient = calloc((size_t)depth, sizeof *gradient);
    const OpAttr attr = {.index = {.count = 1}};
    KernelCall call = {
        .op = OP_embedding_backward, .input_count = 2, .output_count = 1, .attr = &attr};
    call.input[0] = view_dense(on_device(gpu, gradient, (size_t)depth * sizeof *gradient),
                               FORMAT_FP32, 2, shape);
    call.input[1] = view_dense(on_device(gpu, &first, sizeof first), FORMAT_INT32, 1, &one);
    call.output[0] = view_dense(on_device(gpu, gradient, (size_t)depth * sizeof *gradient),
                                FORMAT_FP32, 2, shape);
    Error error = {0};
    CHECK(!device_run(gpu, &call, &error) && error.code == ERROR_UNAVAILABLE);
    CHECK_CONTAINS(error.text, "gpu_kernel_embedding_often");
    CHECK_CONTAINS(error.text, "1 x 65536 x 1 blocks, more than one launch takes");
    CHECK_MESSAGE(device_check(gpu, &error), "%s", error.text);
    for (int i = 0; i < call.input_count; i++)
        allocator_give(gpu->allocator, call.input[i].data);
    allocator_give(gpu->allocator, call.output[0].data);
    free(gradient);
}

int main(void) {
    int status;
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(embedding_gradients_are_the_cpus);
    RUN_TEST(gather_gradients_are_the_cpus);
    RUN_TEST(gradients_repeat_to_the_bit);
    RUN_TEST(wrong_index_is_told_of_a_gradient);
    RUN_TEST(what_no_launch_takes_is_refused_by_name);
    return gpu_test_end();
}
