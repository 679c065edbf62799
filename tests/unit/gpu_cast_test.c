// Copies and casts of arrays whose neighbours lie along another dimension than the last: more than
// a tile, parts of tiles, and dimensions around them. What comes of them is the processor's, to the
// bit.
#include "kernel/random.h"
#include "tests/unit/gpu_fixture.h"

enum { DIMS = 3, MOST = 40000 };

typedef struct Turned {
    int64_t shape[DIMS], stride[DIMS];
} Turned;

static const Turned cases[] = {
    {{70, 45, 1}, {1, 70, 0}},      // a matrix, transposed
    {{3, 64, 64}, {4096, 1, 64}},   // several, in whole tiles
    {{33, 5, 40}, {1, 1400, 35}},   // along the first of three, with gaps between rows
    {{5, 33, 65}, {2145, 1, 33}},   // a number more than tiles have
    {{100, 3, 7}, {1, 100, 300}},   // too narrow for tiles
    {{40, 2, 50}, {1, 0, 40}},      // one dimension is broadcast
    {{9, 31, 129}, {31, 1, 31 * 9}} // neither of the others is outermost
};

static const Format formats[][2] = {{FORMAT_FP32, FORMAT_FP32},   {FORMAT_BF16, FORMAT_BF16},
                                    {FORMAT_UINT8, FORMAT_UINT8}, {FORMAT_INT32, FORMAT_INT32},
                                    {FORMAT_FP32, FORMAT_BF16},   {FORMAT_FP16, FORMAT_FP32},
                                    {FORMAT_INT32, FORMAT_FP16},  {FORMAT_BF16, FORMAT_UINT8},
                                    {FORMAT_FP64, FORMAT_FP64},   {FORMAT_FP32, FORMAT_E4M3}};

// Bits that are a number in every format, and use all of them.
static void *numbers(Format format) {
    const size_t bytes = format_table[format].bytes;
    char *values = malloc(MOST * bytes);
    for (int64_t i = 0; i < MOST; i++) {
        const RandomBlock block = random_block(3, (uint64_t)i);
        const double small = (double)(int32_t)block.word[0] * 0x1p-23;
        if (format == FORMAT_INT32)
            memcpy(values + (size_t)i * bytes, &block.word[1], bytes);
        else
            format_store(format, values + (size_t)i * bytes, small, OVERFLOW_SATURATES);
    }
    return values;
}

static void *cast_on(Device *device, const Turned *turned, const Format *format,
                     const void *values) {
    const OpAttr attr = {.has_out_format = true, .out_format = format[1]};
    KernelCall call = {
        .op = OP_cast, .input_count = 1, .output_count = 1, .attr = &attr, .output = {{0}}};
    void *memory = on_device(device, values, MOST * format_table[format[0]].bytes);
    call.output[0] = view_dense(NULL, format[1], DIMS, turned->shape);
    const size_t bytes = (size_t)view_count(&call.output[0]) * format_table[format[1]].bytes;
    void *result = calloc(1, bytes);
    call.output[0].data = on_device(device, result, bytes);
    call.input[0] = call.output[0];
    call.input[0].data = memory;
    call.input[0].format = format[0];
    memcpy(call.input[0].stride, turned->stride, sizeof turned->stride);
    Error error = {0};
    CHECK_MESSAGE(device_run(device, &call, &error), "%s", error.text);
    device_read(device, result, call.output[0].data, bytes);
    allocator_give(device->allocator, call.output[0].data);
    allocator_give(device->allocator, memory);
    return result;
}

static void turned_arrays_are_the_cpus(void) {
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        void *values = numbers(formats[f][0]);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            const Turned *turned = &cases[c];
            const int64_t count = turned->shape[0] * turned->shape[1] * turned->shape[2];
            const size_t bytes = (size_t)count * format_table[formats[f][1]].bytes;
            void *expected = cast_on(cpu, turned, formats[f], values);
            void *got = cast_on(gpu, turned, formats[f], values);
            CHECK_MESSAGE(memcmp(expected, got, bytes) == 0, "case %zu, %s to %s", c,
                          format_name(formats[f][0]), format_name(formats[f][1]));
            free(expected);
            free(got);
        }
        free(values);
    }
}

int main(void) {
    int status;
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(turned_arrays_are_the_cpus);
    return gpu_test_end();
}
