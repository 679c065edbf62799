// What a card draws is what the processor draws, to the bit: from one seed runs can be compared
// across devices.
#include "base/isa.h"
#include "kernel/random.h"
#include "tests/unit/gpu_fixture.h"

static const int64_t counts[] = {1, 7, 8, 1027, 70001};
static const Format formats[] = {
#define FORMAT(...)
#define TRAINED(id, ...) FORMAT_##id,
#define UNTRAINED(...)
#include "number/formats.def"
};
enum { COUNTS = sizeof counts / sizeof *counts, FORMATS = sizeof formats / sizeof *formats };

// ---- both devices -------------------------------------------------------------------------------

// Runs an operation of one array, or of none, on a device; the caller frees what it gives.
static void *result(Device *device, OpId op, const OpAttr *attr, const float *x, Format format,
                    int64_t count) {
    const size_t bytes = (size_t)count * format_table[format].bytes;
    unsigned char *host = malloc(bytes), *in = malloc(bytes);
    memset(host, 0xD7, bytes);
    KernelCall call = {.op = op, .output_count = 1, .attr = attr};
    call.output[0] = view_dense(on_device(device, host, bytes), format, 1, &count);
    if (x) {
        for (int64_t i = 0; i < count; i++)
            format_store(format, in + (size_t)i * format_table[format].bytes, (double)x[i],
                         OVERFLOW_SATURATES);
        call.input_count = 1;
        call.input[0] = view_dense(on_device(device, in, bytes), format, 1, &count);
    }
    OpAttr here = *attr;
    RandomAttr *random = op == OP_dropout ? &here.dropout.stream : &here.random;
    const uint64_t *base = random->base;
    if (base)
        random->base = on_device(device, base, sizeof *base);
    call.attr = &here;
    Error error = {0};
    CHECK_MESSAGE(device_run(device, &call, &error), "%s", error.text);
    device_read(device, host, call.output[0].data, bytes);
    allocator_give(device->allocator, call.output[0].data);
    if (x)
        allocator_give(device->allocator, call.input[0].data);
    if (base)
        allocator_give(device->allocator, (void *)(uintptr_t)random->base);
    free(in);
    return host;
}

static void expect_equal(OpId op, const OpAttr *attr, const float *x, Format format,
                         int64_t count) {
    void *expected = result(cpu, op, attr, x, format, count);
    void *got = result(gpu, op, attr, x, format, count);
    const size_t bytes = format_table[format].bytes;
    int64_t at = 0;
    while (at < count && memcmp((char *)expected + (size_t)at * bytes,
                                (char *)got + (size_t)at * bytes, bytes) == 0)
        at++;
    CHECK_MESSAGE(at == count, "%s in %s, %lld elements: element %lld is %.9g, on the cpu %.9g",
                  op_table[op].name, format_name(format), (long long)count, (long long)at,
                  format_load(format, (char *)got + (size_t)at * bytes),
                  format_load(format, (char *)expected + (size_t)at * bytes));
    free(expected);
    free(got);
}

static OpAttr drawing(double a, double b, uint64_t offset) {
    return (OpAttr){.create = {.ndim = 1, .a = a, .b = b},
                    .random = {.seed = 0x9E3779B97F4A7C15u, .offset = offset}};
}

// An operation in all formats and sizes, with each of these pairs of numbers.
static void draw_everywhere(OpId op, const double (*pairs)[2], int count) {
    for (int f = 0; f < FORMATS; f++)
        for (int k = 0; k < COUNTS * count; k++) {
            OpAttr attr = drawing(pairs[k / COUNTS][0], pairs[k / COUNTS][1], (uint64_t)(3 * k));
            Format format = op == OP_randint ? FORMAT_INT32 : formats[f];
            expect_equal(op, &attr, NULL, format, counts[k % COUNTS]);
        }
}

// ---- tests --------------------------------------------------------------------------------------

static void uniform_numbers_are_the_cpus(void) {
    static const double pairs[][2] = {{0, 1}, {-2.5, 1.5}, {-0.1, 0.1}, {1e-3, 1e6}};
    draw_everywhere(OP_uniform, pairs, 4);
}

static void normal_numbers_are_the_cpus(void) {
    static const double pairs[][2] = {{0, 1}, {0, 0.02}, {-3, 7.7}, {1000, 1e-3}};
    if (isa_level() < ISA_AVX2) {
        SKIP("this processor has no fused steps, and rounds its polynomials otherwise");
        return;
    }
    draw_everywhere(OP_normal, pairs, 4);
}

static void whole_numbers_are_the_cpus(void) {
    static const double pairs[][2] = {{0, 10}, {-1000000, 2000000000}, {-2147483648.0, 2147483647}};
    draw_everywhere(OP_randint, pairs, 3);
}

static void dropout_keeps_what_the_cpu_keeps(void) {
    static const double probabilities[] = {0, 0.1, 0.5, 0.9};
    static float x[70001];
    for (int i = 0; i < 70001; i++)
        x[i] = random_uniform(random_block(5, (uint64_t)i).word[0]) - 0.5f;
    for (int f = 0; f < FORMATS; f++)
        for (int k = 0; k < COUNTS * 4; k++) {
            OpAttr attr = {.dropout = {.probability = probabilities[k / COUNTS],
                                       .stream = {.seed = 12345, .offset = (uint64_t)k << 33}}};
            expect_equal(OP_dropout, &attr, x, formats[f], counts[k % COUNTS]);
        }
}

// A step that is repeated without the host counts from what lies in the device's memory.
static void drawing_counts_from_the_devices_memory(void) {
    static const float x[1027] = {1};
    const uint64_t base = UINT64_C(0xFFFFFFF0); // the next block carries
    OpAttr attr = drawing(0, 1, 100), dropout = {.dropout = {.probability = 0.5}};
    attr.random.base = dropout.dropout.stream.base = &base;
    expect_equal(OP_uniform, &attr, NULL, FORMAT_FP32, 1027);
    expect_equal(OP_dropout, &dropout, x, FORMAT_FP32, 1027);
    OpAttr other = attr;
    other.random.base = NULL;
    void *based = result(gpu, OP_uniform, &attr, NULL, FORMAT_FP32, 1027);
    void *plain = result(gpu, OP_uniform, &other, NULL, FORMAT_FP32, 1027);
    CHECK(memcmp(based, plain, 1027 * sizeof(float)) != 0);
    free(based);
    free(plain);
}

static void fill_and_arange_are_the_cpus(void) {
    static const double pairs[][2] = {{0.1, 0.3}, {-7, 2}, {20000001, 1}};
    draw_everywhere(OP_arange, pairs, 3);
    draw_everywhere(OP_fill, pairs, 3);
    for (int k = 0; k < 3; k++) {
        OpAttr attr = drawing(pairs[k][0], pairs[k][1], 0);
        expect_equal(OP_arange, &attr, NULL, FORMAT_INT32, 1027);
        expect_equal(OP_fill, &attr, NULL, FORMAT_INT32, 1027);
        expect_equal(OP_fill, &attr, NULL, FORMAT_UINT8, 1027);
    }
}

int main(void) {
    int status;
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(uniform_numbers_are_the_cpus);
    RUN_TEST(normal_numbers_are_the_cpus);
    RUN_TEST(whole_numbers_are_the_cpus);
    RUN_TEST(dropout_keeps_what_the_cpu_keeps);
    RUN_TEST(drawing_counts_from_the_devices_memory);
    RUN_TEST(fill_and_arange_are_the_cpus);
    return gpu_test_end();
}
