// tests/unit/products_test.c: products, attention and convolution of the CPU device against plain
// loops in double, in the shapes and formats that take each of its ways.
#include "cpu/conv.h"
#include "kernel/allocator.h"
#include "tests/test.h"

static Device *device;
static Error error;

static uint64_t random_state = 0x2545F4914F6CDD1Du;

static double random_value(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) * 0x1p-52 - 1;
}

static double get(const View *view, int64_t at) {
    uint32_t bits = 0;
    size_t bytes = format_table[view->format].bytes;
    memcpy(&bits, (const char *)view->data + (size_t)at * bytes, bytes);
    return format_decode(view->format, bits);
}

static void put(const View *view, int64_t at, double value) {
    uint32_t bits = format_encode(view->format, value, OVERFLOW_TO_SPECIAL);
    size_t bytes = format_table[view->format].bytes;
    memcpy((char *)view->data + (size_t)at * bytes, &bits, bytes);
}

static View array(Format format, int ndim, const int64_t *shape) {
    View view = view_dense(NULL, format, ndim, shape);
    int64_t count = view_count(&view);
    view.data = allocator_take(device->allocator, (size_t)count * format_table[format].bytes,
                               MEMORY_DATA, &error);
    for (int64_t i = 0; i < count; i++)
        put(&view, i, random_value());
    return view;
}
#define ARRAY(format, ...)                                                   \
    array(format, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
          (int64_t[]){__VA_ARGS__})

static void drop(View *view) {
    allocator_give(device->allocator, view->data);
}

static double unit(Format format) {
    return format == FORMAT_FP32 ? 0x1p-22 : format == FORMAT_FP16 ? 0x1p-10 : 0x1p-7;
}

static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16};

static void run(const KernelCall *call) {
    CHECK_MESSAGE(device_run(device, call, &error), "%s", error.text);
}

// ---- linear and matmul --------------------------------------------------------------------------

static void linear_takes_rows_with_gaps_in_every_dimension(void) {
    for (int f = 0; f < 3; f++) {
        View all = ARRAY(formats[f], 3, 5, 7, 40), w = ARRAY(formats[f], 24, 33),
             bias = ARRAY(FORMAT_FP16, 24), y = ARRAY(FORMAT_FP32, 3, 4, 7, 24), x = all;
        x.shape[1] = 4;
        x.shape[3] = 33;
        OpAttr attr = {.linear = {ACTIVATION_RELU}};
        run(&(KernelCall){.op = OP_linear, .input = {x, w, bias}, .output = {y}, .attr = &attr});
        for (int64_t i = 0; i < view_count(&y); i++) {
            int64_t column = i % 24, c = i / 24 % 7, b = i / 168 % 4, a = i / 672;
            double sum = get(&bias, column);
            for (int64_t k = 0; k < 33; k++)
                sum += get(&all, ((a * 5 + b) * 7 + c) * 40 + k) * get(&w, column * 33 + k);
            CHECK_NEAR(get(&y, i), sum < 0 ? 0 : sum, 40 * 0x1p-22);
        }
        drop(&all), drop(&w), drop(&bias), drop(&y);
    }
}

static void matmul_walks_batches_that_are_permuted(void) {
    enum { A = 3, B = 2, C = 4, M = 5, K = 6, N = 9 };
    View left = ARRAY(FORMAT_BF16, C, A, B, M, K), right = ARRAY(FORMAT_BF16, A, C, B, N, K),
         y = ARRAY(FORMAT_FP32, A, B, C, M, N), a = left, b = right;
    const int64_t a_stride[] = {B * M * K, M * K, A * B * M * K, K, 1};
    const int64_t b_stride[] = {C * B * N * K, N * K, B * N * K, 1, K};
    const int64_t shape[] = {A, B, C, M, K};
    memcpy(a.shape, shape, sizeof shape);
    memcpy(a.stride, a_stride, sizeof a_stride);
    memcpy(b.shape, shape, sizeof shape);
    b.shape[3] = K;
    b.shape[4] = N;
    memcpy(b.stride, b_stride, sizeof b_stride);
    OpAttr attr = {.has_out_format = false};
    run(&(KernelCall){.op = OP_matmul, .input = {a, b}, .output = {y}, .attr = &attr});
    for (int64_t i = 0; i < view_count(&y); i++) {
        int64_t n = i % N, m = i / N % M, z = i / N / M;
        int64_t at[3] = {z / C / B, z / C % B, z % C};
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            int64_t p = m * K + k, q = k + n * K;
            for (int d = 0; d < 3; d++) {
                p += at[d] * a_stride[d];
                q += at[d] * b_stride[d];
            }
            sum += get(&left, p) * get(&right, q);
        }
        CHECK_NEAR(get(&y, i), sum, 8 * 0x1p-22);
    }
    drop(&left), drop(&right), drop(&y);
}

// ---- convolution --------------------------------------------------------------------------------

typedef struct ConvCase {
    int64_t n, h, w, c, o, kernel, stride, padding, dilation, groups;
} ConvCase;

static const ConvCase conv_cases[] = {
    {2, 12, 12, 32, 32, 3, 1, 1, 1, 1}, // the library; its gradient turned around
    {2, 12, 12, 32, 32, 3, 1, 2, 2, 1}, // dilated
    {3, 12, 11, 16, 24, 3, 2, 1, 1, 1}, // strided
    {2, 9, 9, 16, 32, 1, 1, 0, 1, 1},   // single pixels
    {5, 4, 4, 32, 16, 3, 1, 1, 1, 1},   // narrow
    {2, 8, 8, 3, 5, 5, 1, 2, 1, 1},     // few channels
    {1, 9, 9, 16, 16, 3, 1, 1, 1, 16},  // each channel for itself
    {1, 80, 70, 2, 3, 4, 1, 0, 1, 1},   // lines in several stretches
    {2, 9, 9, 6, 4, 3, 1, 4, 1, 2},     // padding wider than the kernel
};

static int64_t out_size(const ConvCase *conv, int64_t size) {
    return (size + 2 * conv->padding - conv->dilation * (conv->kernel - 1) - 1) / conv->stride + 1;
}

// Calls `add` for each product that the convolution is a sum of: elements of x, w and y.
static void each_product(const ConvCase *conv, void (*add)(void *, int64_t, int64_t, int64_t),
                         void *context) {
    int64_t oh = out_size(conv, conv->h), ow = out_size(conv, conv->w);
    int64_t channels = conv->c / conv->groups, filters = conv->o / conv->groups;
    for (int64_t i = 0; i < conv->n * oh * ow * conv->kernel * conv->kernel; i++) {
        int64_t kw = i % conv->kernel, kh = i / conv->kernel % conv->kernel;
        int64_t pixel = i / conv->kernel / conv->kernel;
        int64_t w = pixel % ow * conv->stride - conv->padding + kw * conv->dilation;
        int64_t h = pixel / ow % oh * conv->stride - conv->padding + kh * conv->dilation;
        if (w < 0 || h < 0 || w >= conv->w || h >= conv->h)
            continue;
        int64_t x = ((pixel / ow / oh * conv->h + h) * conv->w + w) * conv->c;
        for (int64_t o = 0; o < conv->o; o++)
            for (int64_t c = 0; c < channels; c++)
                add(context, x + o / filters * channels + c,
                    ((o * conv->kernel + kh) * conv->kernel + kw) * channels + c,
                    pixel * conv->o + o);
    }
}

typedef struct Sums {
    View x, w, y;
    double *x_sum, *w_sum, *y_sum;
} Sums;

static void add_product(void *context, int64_t x, int64_t w, int64_t y) {
    Sums *sums = context;
    sums->x_sum[x] += get(&sums->y, y) * get(&sums->w, w);
    sums->w_sum[w] += get(&sums->y, y) * get(&sums->x, x);
    sums->y_sum[y] += get(&sums->x, x) * get(&sums->w, w);
}

static void compare(const char *what, const ConvCase *conv, const View *got, const double *sums,
                    double depth) {
    for (int64_t i = 0; i < view_count(got); i++) {
        double allowed = unit(got->format) * fabs(sums[i]) + depth * 0x1p-22;
        CHECK_MESSAGE(fabs(get(got, i) - sums[i]) <= allowed,
                      "%s, %s, c %d, o %d, kernel %d: [%d] is %g, expected %g", what,
                      format_name(got->format), (int)conv->c, (int)conv->o, (int)conv->kernel,
                      (int)i, get(got, i), sums[i]);
    }
}

static void check_conv(const ConvCase *conv, Format format, bool columns) {
    int64_t oh = out_size(conv, conv->h), ow = out_size(conv, conv->w), k = conv->kernel;
    Sums sums = {.x = ARRAY(format, conv->n, conv->h, conv->w, conv->c),
                 .w = ARRAY(format, conv->o, k, k, conv->c / conv->groups),
                 .y = ARRAY(format, conv->n, oh, ow, conv->o)};
    View dx = ARRAY(format, conv->n, conv->h, conv->w, conv->c),
         dbias = ARRAY(FORMAT_FP32, conv->o),
         dw = ARRAY(FORMAT_FP32, conv->o, k, k, conv->c / conv->groups),
         y = ARRAY(format, conv->n, oh, ow, conv->o);
    sums.x_sum = calloc((size_t)view_count(&dx), sizeof(double));
    sums.w_sum = calloc((size_t)view_count(&dw), sizeof(double));
    sums.y_sum = calloc((size_t)view_count(&y), sizeof(double));
    each_product(conv, add_product, &sums);
    OpAttr attr = {.conv = {.stride = {conv->stride, conv->stride},
                            .padding = {conv->padding, conv->padding},
                            .dilation = {conv->dilation, conv->dilation},
                            .groups = conv->groups,
                            .input = {conv->h, conv->w},
                            .kernel = {k, k}}};
    if (columns) {
        ConvProblem problem = {.images = conv->n,
                               .size = {conv->h, conv->w},
                               .channels = conv->c,
                               .filters = conv->o,
                               .out_size = {oh, ow},
                               .kernel = {k, k},
                               .stride = {conv->stride, conv->stride},
                               .padding = {conv->padding, conv->padding},
                               .dilation = {conv->dilation, conv->dilation},
                               .groups = conv->groups,
                               .pass = CONV_FORWARD,
                               .threads = 2};
        ConvArrays forward = {.x = sums.x, .weight = sums.w, .y = y, .times = 1};
        ConvArrays input = {.x = dx, .weight = sums.w, .y = sums.y, .times = 1};
        ConvArrays weight = {.x = sums.x, .weight = dw, .y = sums.y, .times = 1};
        CHECK(conv_columns_run(device, &problem, &forward, &error));
        problem.pass = CONV_BACKWARD_INPUT;
        CHECK(conv_columns_run(device, &problem, &input, &error));
        problem.pass = CONV_BACKWARD_WEIGHT;
        CHECK(conv_columns_run(device, &problem, &weight, &error));
    } else {
        run(&(KernelCall){
            .op = OP_conv2d, .input = {sums.x, sums.w}, .output = {y}, .attr = &attr});
        run(&(KernelCall){.op = OP_conv2d_backward_input,
                          .input = {sums.y, sums.w},
                          .output = {dx},
                          .attr = &attr});
        run(&(KernelCall){.op = OP_conv2d_backward_weight,
                          .input = {sums.x, sums.y},
                          .output = {dw, dbias},
                          .attr = &attr});
    }
    double window = (double)(k * k * conv->c / conv->groups), pixels = (double)(conv->n * oh * ow);
    compare("y", conv, &y, sums.y_sum, window);
    compare("dx", conv, &dx, sums.x_sum, (double)(k * k * conv->o / conv->groups));
    compare("dw", conv, &dw, sums.w_sum, pixels);
    for (int64_t o = 0; o < conv->o && !columns; o++) { // the bias is no matter of the way
        double sum = 0;
        for (int64_t i = o; i < view_count(&sums.y); i += conv->o)
            sum += get(&sums.y, i);
        CHECK_NEAR(get(&dbias, o), sum, pixels * 0x1p-22);
    }
    View *views[] = {&sums.x, &sums.w, &sums.y, &dx, &dw, &dbias, &y};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        drop(views[i]);
    free(sums.x_sum), free(sums.w_sum), free(sums.y_sum);
}

static void convolution_agrees_whichever_way_is_taken(void) {
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        for (int f = 0; f < 3; f++)
            check_conv(&conv_cases[i], formats[f], false);
}

static void convolution_by_columns_agrees_in_every_geometry(void) {
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        for (int f = 0; f < 3; f++)
            check_conv(&conv_cases[i], formats[f], true);
}

static void convolution_shows_nan_through_activations(void) {
    View x = ARRAY(FORMAT_FP32, 1, 8, 8, 16), w = ARRAY(FORMAT_FP32, 16, 3, 3, 16),
         y = ARRAY(FORMAT_FP32, 1, 8, 8, 16);
    put(&x, 0, NAN);
    OpAttr attr = {.conv = {.stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1}};
    for (int i = 0; i < ACTIVATION_COUNT; i++) {
        attr.conv.activation = (Activation)i;
        run(&(KernelCall){.op = OP_conv2d, .input = {x, w}, .output = {y}, .attr = &attr});
        CHECK_MESSAGE(isnan(get(&y, 0)), "activation %d gives %g", i, get(&y, 0));
        CHECK(!isnan(get(&y, view_count(&y) - 1)));
        CHECK(i != ACTIVATION_RELU || get(&y, view_count(&y) - 1) >= 0);
    }
    drop(&x), drop(&w), drop(&y);
}

// More weights than a stretch of windows has numbers, and pixels of two stretches.
static const ConvCase large_weights = {1, 260, 1, 64, 256, 3, 1, 1, 1, 1};

static void gradient_of_large_weights_agrees(void) {
    for (int f = 0; f < 2; f++)
        check_conv(&large_weights, formats[f], true);
}

static void gradient_of_large_weights_is_the_same_for_any_number_of_threads(void) {
    const ConvCase *conv = &large_weights;
    View x = ARRAY(FORMAT_BF16, conv->n, conv->h, conv->w, conv->c),
         y = ARRAY(FORMAT_BF16, conv->n, conv->h, conv->w, conv->o),
         one = ARRAY(FORMAT_FP32, conv->o, 3, 3, conv->c),
         more = ARRAY(FORMAT_FP32, conv->o, 3, 3, conv->c);
    ConvProblem problem = {.images = conv->n,
                           .size = {conv->h, conv->w},
                           .channels = conv->c,
                           .filters = conv->o,
                           .out_size = {conv->h, conv->w},
                           .kernel = {3, 3},
                           .stride = {1, 1},
                           .padding = {1, 1},
                           .dilation = {1, 1},
                           .groups = 1,
                           .pass = CONV_BACKWARD_WEIGHT};
    for (int threads = 1; threads <= 3; threads++) {
        Device *own;
        CHECK(device_open("cpu", threads, &own, &error));
        problem.threads = threads;
        ConvArrays arrays = {.x = x, .weight = threads == 1 ? one : more, .y = y, .times = 1};
        CHECK(conv_columns_run(own, &problem, &arrays, &error));
        size_t bytes = (size_t)view_count(&one) * sizeof(float);
        CHECK(threads == 1 || memcmp(one.data, more.data, bytes) == 0);
        device_close(own);
    }
    drop(&x), drop(&y), drop(&one), drop(&more);
}

// Copied in fp32 the batch is two slices, of six images and of five.
static void convolution_by_slices_agrees(void) {
    const ConvCase conv = {11, 64, 64, 16, 16, 2, 1, 0, 1, 16};
    check_conv(&conv, FORMAT_FP16, false);
}

static void second_step_asks_the_system_for_nothing(void) {
    View x = ARRAY(FORMAT_BF16, 2, 12, 12, 32), w = ARRAY(FORMAT_BF16, 32, 3, 3, 32),
         y = ARRAY(FORMAT_BF16, 2, 12, 12, 32), dx = ARRAY(FORMAT_BF16, 2, 12, 12, 32);
    OpAttr attr = {.conv = {.stride = {1, 1},
                            .padding = {1, 1},
                            .dilation = {1, 1},
                            .groups = 1,
                            .input = {12, 12},
                            .kernel = {3, 3}}};
    uint64_t calls = 0;
    for (int step = 0; step < 4; step++) {
        run(&(KernelCall){.op = OP_conv2d, .input = {x, w}, .output = {y}, .attr = &attr});
        run(&(KernelCall){
            .op = OP_conv2d_backward_input, .input = {y, w}, .output = {dx}, .attr = &attr});
        if (step == 1)
            calls = allocator_use(device->allocator).system_calls;
    }
    CHECK_INT(allocator_use(device->allocator).system_calls, calls);
    drop(&x), drop(&w), drop(&y), drop(&dx);
}

// ---- attention ----------------------------------------------------------------------------------

// Queries, keys and values as slices of one array [B,T,3,H,D]; more queries than one block holds.
static void attention_reads_slices_of_one_array(void) {
    enum { B = 2, T = 150, H = 3, D = 20, WIDTH = 3 * H * D };
    for (int f = 0; f < 3; f++) {
        View all = ARRAY(formats[f], B, T, 3, H, D), y = ARRAY(FORMAT_FP32, B, T, H, D),
             sums = ARRAY(FORMAT_FP32, 2, B, H, T), part[3];
        for (int i = 0; i < 3; i++) {
            part[i] = view_dense(all.data, formats[f], 4, (int64_t[]){B, T, H, D});
            part[i].stride[0] = (int64_t)T * WIDTH;
            part[i].stride[1] = WIDTH;
            part[i].data = (char *)all.data + (size_t)i * H * D * format_table[formats[f]].bytes;
        }
        OpAttr attr = {.attention = {.scale = 0.25, .causal = true}};
        run(&(KernelCall){.op = OP_attention,
                          .input = {part[0], part[1], part[2]},
                          .output = {y, sums},
                          .attr = &attr});
        for (int64_t row = 0; row < (int64_t)B * T * H; row++) {
            int64_t h = row % H, t = row / H % T, b = row / H / T;
            double shares[T], total = 0, expected[D] = {0};
            for (int64_t j = 0; j <= t; j++) {
                double score = 0;
                for (int64_t d = 0; d < D; d++)
                    score += get(&all, (b * T + t) * WIDTH + h * D + d) *
                             get(&all, (b * T + j) * WIDTH + H * D + h * D + d);
                total += shares[j] = exp(0.25 * score);
            }
            for (int64_t j = 0; j <= t; j++)
                for (int64_t d = 0; d < D; d++)
                    expected[d] +=
                        shares[j] / total * get(&all, (b * T + j) * WIDTH + 2 * H * D + h * D + d);
            for (int64_t d = 0; d < D; d++)
                CHECK_NEAR(get(&y, row * D + d), expected[d], 2e-6);
            int64_t at = (b * H + h) * T + t;
            CHECK_NEAR(get(&sums, at) + get(&sums, B * H * T + at), log(total), 2e-6);
        }
        drop(&all), drop(&y), drop(&sums);
    }
}

int main(void) {
    if (!device_open("cpu", 2, &device, &error)) {
        printf("not ok cpu: %s\n", error.text);
        return 1;
    }
    RUN_TEST(linear_takes_rows_with_gaps_in_every_dimension);
    RUN_TEST(matmul_walks_batches_that_are_permuted);
    RUN_TEST(convolution_agrees_whichever_way_is_taken);
    RUN_TEST(convolution_by_columns_agrees_in_every_geometry);
    RUN_TEST(convolution_shows_nan_through_activations);
    RUN_TEST(gradient_of_large_weights_agrees);
    RUN_TEST(gradient_of_large_weights_is_the_same_for_any_number_of_threads);
    RUN_TEST(convolution_by_slices_agrees);
    RUN_TEST(second_step_asks_the_system_for_nothing);
    RUN_TEST(attention_reads_slices_of_one_array);
    device_close(device);
    return test_end();
}
