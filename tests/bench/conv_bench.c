// tests/bench/conv_bench.c: convolutions of two workloads, each pass in each format, by the CPU
// device, by our own products alone, and by the library in the layouts that it likes best.
//
// Usage: conv_bench [threads [names]]; prints milliseconds (the best of several) and GFLOP/s, of
// all shapes or of those that begin so.
#include <dnnl.h>
#include <omp.h>

#include <time.h>

#include "cpu/conv.h"
#include "kernel/allocator.h"
#include "tests/test.h"

typedef struct Shape {
    const char *name;
    int64_t n, h, w, c, o, k, stride, padding;
} Shape;

static const Shape shapes[] = {
    {"cnn 1->32 28x28", 128, 28, 28, 1, 32, 3, 1, 0},
    {"cnn 32->64 26x26", 128, 26, 26, 32, 64, 3, 1, 0},
    {"resnet 3->64 32x32", 64, 32, 32, 3, 64, 3, 1, 1},
    {"resnet 64->64 32x32", 64, 32, 32, 64, 64, 3, 1, 1},
    {"resnet 64->128 /2", 64, 32, 32, 64, 128, 3, 2, 1},
    {"resnet 128->128 16x16", 64, 16, 16, 128, 128, 3, 1, 1},
    {"resnet 64->128 1x1 /2", 64, 32, 32, 64, 128, 1, 2, 0},
    {"resnet 128->256 1x1", 64, 16, 16, 128, 256, 1, 1, 0},
    {"resnet 256->256 8x8", 64, 8, 8, 256, 256, 3, 1, 1},
    {"resnet 512->512 4x4", 64, 4, 4, 512, 512, 3, 1, 1},
    {"few 1->16 28x28", 64, 28, 28, 1, 16, 3, 1, 1},
    {"few 3->16 28x28", 64, 28, 28, 3, 16, 3, 1, 1},
    {"few 4->8 28x28", 64, 28, 28, 4, 8, 3, 1, 1},
    {"few 8->8 28x28", 64, 28, 28, 8, 8, 3, 1, 1},
    {"few 8->16 28x28 /2", 64, 28, 28, 8, 16, 3, 2, 1},
    {"few 8->16 1x1 /2", 64, 28, 28, 8, 16, 1, 2, 0},
    {"few 12->16 14x14", 64, 14, 14, 12, 16, 3, 1, 1},
    {"few 16->16 14x14", 64, 14, 14, 16, 16, 3, 1, 1},
    {"few 16->32 14x14 /2", 64, 14, 14, 16, 32, 4, 2, 1},
    {"few 32->32 7x7", 64, 7, 7, 32, 32, 3, 1, 1},
    {"gan 1->32 28x28 /2", 64, 28, 28, 1, 32, 4, 2, 1},
    {"gan 3->64 64x64 /2", 32, 64, 64, 3, 64, 4, 2, 1},
    {"gan 64->128 32x32 /2", 32, 32, 32, 64, 128, 4, 2, 1},
    {"gan 128->256 16x16 /2", 32, 16, 16, 128, 256, 4, 2, 1},
    {"gan 256->512 8x8 /2", 32, 8, 8, 256, 512, 4, 2, 1},
    {"gan 512->1 4x4", 32, 4, 4, 512, 1, 4, 1, 0},
    {"gan 512->100 4x4", 32, 4, 4, 512, 100, 4, 1, 0},
};

static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16};
static Device *device;
static Error error;

static int64_t out_size(const Shape *shape, int64_t size) {
    return (size + 2 * shape->padding - shape->k) / shape->stride + 1;
}

static View array(Format format, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t dims[] = {a, b, c, d}, count = a * b * c * d;
    size_t bytes = format_table[format].bytes;
    char *data = allocator_take(device->allocator, (size_t)count * bytes, MEMORY_DATA, &error);
    uint32_t
        numbers[1009]; // that come again and again: to encode each would take longer than all else
    for (int i = 0; i < 1009; i++)
        numbers[i] =
            format_encode(format, (double)(i * 7919 % 1009) / 1009 - 0.5, OVERFLOW_TO_SPECIAL);
    for (int64_t i = 0; i < count; i++)
        memcpy(data + (size_t)i * bytes, &numbers[i % 1009], bytes);
    return view_dense(data, format, 4, dims);
}

typedef struct Timed {
    KernelCall call;
    ConvProblem problem;
    ConvArrays arrays;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arguments[4];
} Timed;

static void by_device(const Timed *timed) {
    if (!device_run(device, &timed->call, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
}

static void by_columns(const Timed *timed) {
    if (!conv_columns_run(device, &timed->problem, &timed->arrays, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
}

static void by_places(const Timed *timed) {
    if (!conv_places_run(device, &timed->problem, &timed->arrays, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
}

static void by_winograd(const Timed *timed) {
    bool finite;
    if (!conv_winograd_run(device, &timed->problem, &timed->arrays, &finite, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
}

static void by_library(const Timed *timed) {
    dnnl_primitive_execute(timed->primitive, timed->stream, 3, timed->arguments);
}

// Processor time of all threads, for each: what others take of a busy machine is no part of it.
static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return ((double)now.tv_sec + (double)now.tv_nsec * 1e-9) / device->threads;
}

static double measure(void (*run)(const Timed *), const Timed *timed) {
    double best = 1e30, spent = 0;
    run(timed);
    for (int i = 0; i < 3 || (spent < 0.05 && i < 100); i++) {
        double start = processor_seconds();
        run(timed);
        double seconds = processor_seconds() - start;
        best = seconds < best ? seconds : best;
        spent += seconds;
    }
    return best;
}

// The library's own choice of layouts for everything, as if no neighbour had to be suited.
static void library_open(Timed *timed, const Shape *shape, int pass, dnnl_engine_t engine) {
    int64_t oh = out_size(shape, shape->h), ow = out_size(shape, shape->w);
    dnnl_dims_t x = {shape->n, shape->c, shape->h, shape->w}, y = {shape->n, shape->o, oh, ow},
                w = {shape->o, shape->c, shape->k, shape->k},
                stride = {shape->stride, shape->stride}, none = {0, 0},
                padding = {shape->padding, shape->padding};
    dnnl_memory_desc_t mx, mw, my;
    dnnl_memory_desc_init_by_tag(&mx, 4, x, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&mw, 4, w, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&my, 4, y, dnnl_f32, dnnl_format_tag_any);
    dnnl_convolution_desc_t forward, conv;
    dnnl_primitive_desc_t hint, description;
    dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training,
                                               dnnl_convolution_direct, &mx, &mw, NULL, &my, stride,
                                               none, padding, padding);
    dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL);
    conv = forward;
    if (pass == CONV_BACKWARD_INPUT)
        dnnl_dilated_convolution_backward_data_desc_init(&conv, dnnl_convolution_direct, &mx, &mw,
                                                         &my, stride, none, padding, padding);
    if (pass == CONV_BACKWARD_WEIGHT)
        dnnl_dilated_convolution_backward_weights_desc_init(
            &conv, dnnl_convolution_direct, &mx, &mw, NULL, &my, stride, none, padding, padding);
    dnnl_primitive_desc_create(&description, &conv, NULL, engine, hint);
    static const int names[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    static const dnnl_query_t queries[3][3] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    dnnl_primitive_create(&timed->primitive, description);
    for (int i = 0; i < 3; i++) {
        const dnnl_memory_desc_t *md =
            dnnl_primitive_desc_query_md(description, queries[pass][i], 0);
        timed->arguments[i].arg = names[pass][i];
        dnnl_memory_create(&timed->arguments[i].memory, md, engine, DNNL_MEMORY_ALLOCATE);
        void *data;
        dnnl_memory_get_data_handle(timed->arguments[i].memory, &data);
        memset(data, 0, dnnl_memory_desc_get_size(md));
    }
    dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_desc_destroy(description);
}

static void library_close(Timed *timed) {
    dnnl_primitive_destroy(timed->primitive);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(timed->arguments[i].memory);
}

static void set_pass(Timed *timed, const Shape *shape, int pass, const View *x, const View *w,
                     const View *y, const OpAttr *attr) {
    static const OpId ops[] = {OP_conv2d, OP_conv2d_backward_input, OP_conv2d_backward_weight};
    const View *inputs[3][2] = {{x, w}, {y, w}, {x, y}}, *outputs[] = {y, x, w};
    timed->call = (KernelCall){.op = ops[pass], .attr = attr, .output = {*outputs[pass]}};
    timed->call.input[0] = *inputs[pass][0];
    timed->call.input[1] = *inputs[pass][1];
    timed->arrays = (ConvArrays){.x = *x, .weight = *w, .y = *y, .times = 1};
    timed->problem = (ConvProblem){.images = shape->n,
                                   .size = {shape->h, shape->w},
                                   .channels = shape->c,
                                   .filters = shape->o,
                                   .out_size = {y->shape[1], y->shape[2]},
                                   .kernel = {shape->k, shape->k},
                                   .stride = {shape->stride, shape->stride},
                                   .padding = {shape->padding, shape->padding},
                                   .dilation = {1, 1},
                                   .groups = 1,
                                   .pass = pass,
                                   .threads = device->threads};
}

static void bench(const Shape *shape, dnnl_engine_t engine, dnnl_stream_t stream) {
    static const char *const names[] = {"forward", "input", "weight"};
    int64_t oh = out_size(shape, shape->h), ow = out_size(shape, shape->w);
    double flops = 2.0 * (double)(shape->n * oh * ow * shape->o * shape->c * shape->k * shape->k);
    OpAttr attr = {.conv = {.stride = {shape->stride, shape->stride},
                            .padding = {shape->padding, shape->padding},
                            .dilation = {1, 1},
                            .groups = 1,
                            .input = {shape->h, shape->w},
                            .kernel = {shape->k, shape->k}}};
    for (int pass = 0; pass < 3; pass++) {
        printf("%-22s %-8s", shape->name, names[pass]);
        Timed timed = {.stream = stream};
        for (int f = 0; f < 3; f++) {
            Format format = formats[f], w_format = pass == 2 ? FORMAT_FP32 : format;
            View x = array(format, shape->n, shape->h, shape->w, shape->c);
            View w = array(w_format, shape->o, shape->k, shape->k, shape->c);
            View y = array(format, shape->n, oh, ow, shape->o);
            set_pass(&timed, shape, pass, &x, &w, &y, &attr);
            double ours = measure(by_device, &timed), columns = measure(by_columns, &timed);
            double places = conv_places_can(device, &timed.problem, &timed.arrays)
                                ? measure(by_places, &timed)
                                : 0;
            printf(" | %s %7.2f %4.0f own %7.2f %4.0f", format_name(format), ours * 1e3,
                   flops / ours * 1e-9, columns * 1e3, flops / columns * 1e-9);
            if (places > 0)
                printf(" places %7.2f %4.0f", places * 1e3, flops / places * 1e-9);
            if (conv_winograd_can(&timed.problem, &timed.arrays)) {
                const double winograd = measure(by_winograd, &timed);
                printf(" winograd %7.2f %4.0f", winograd * 1e3, flops / winograd * 1e-9);
            }
            allocator_give(device->allocator, x.data);
            allocator_give(device->allocator, w.data);
            allocator_give(device->allocator, y.data);
        }
        library_open(&timed, shape, pass, engine);
        double library = measure(by_library, &timed);
        library_close(&timed);
        printf(" | library fp32 %7.2f %4.0f\n", library * 1e3, flops / library * 1e-9);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    if (!device_open("cpu", threads, &device, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    omp_set_num_threads(device->threads);
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        return 1;
    printf("%s, %d threads; milliseconds and GFLOP/s\n", device->name, device->threads);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (argc < 3 || strncmp(shapes[i].name, argv[2], strlen(argv[2])) == 0)
            bench(&shapes[i], engine, stream);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    device_close(device);
    return 0;
}
