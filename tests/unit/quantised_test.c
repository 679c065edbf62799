// Weights in formats of few bits, read back from the file by another way than they were written:
// element by element, and held against what the reference device multiplies.
#include "checkpoint/quantised.h"
#include "checkpoint/weights.h"
#include "kernel/kernel.h"
#include "precision/recipe.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { ROWS = 5, DEPTH = 70, COUNT = ROWS * DEPTH };

static Device *ref;
static char folder[TEST_FOLDER_SIZE];
static float weights[COUNT];
static const char *taker; // of the weight, as the notes say; NULL: they do not
static const float bias[] = {1.25f, -3, 1e-3f};

static void make_weights(void) {
    uint32_t drawn = 7;
    for (int i = 0; i < COUNT; i++) {
        drawn = drawn * 1664525u + 1013904223u;
        weights[i] = ldexpf((float)(int32_t)drawn * 0x1p-31f, i % 9 - 4);
    }
    memset(weights + 2 * DEPTH, 0, 32 * sizeof *weights); // a block of zeros
}

// A checkpoint's weights, beside what is none.
static SafeFile *open_checkpoint(const char *path) {
    Error error = {0};
    char hash[HASH_HEX_SIZE];
    uint64_t bytes;
    const int64_t shape[] = {ROWS, DEPTH}, vector[] = {3};
    SafeWriter *writer = safe_writer_new(path, &error);
    CHECK(!taker || safe_note(writer, "taker/a.b.weight", taker, &error));
    CHECK(safe_declare(writer, "weight/a.b.weight", SAFE_F32, 2, shape, &error));
    CHECK(safe_declare(writer, "optimizer0/state", SAFE_F32, 1, vector, &error));
    CHECK(safe_declare(writer, "buffer/a.mean", SAFE_F32, 1, vector, &error));
    CHECK(safe_write(writer, weights, sizeof weights, &error));
    CHECK(safe_write(writer, bias, sizeof bias, &error));
    CHECK(safe_write(writer, bias, sizeof bias, &error));
    CHECK_MESSAGE(safe_finish(writer, hash, &bytes, &error), "%s", error.text);
    safe_writer_free(writer);
    return safe_open(path, &error);
}

// All in `format`, but the layers that match `kept`, if there is one, in fp32.
static Policy *policy_in(Format format, const char *kept) {
    Error error = {0};
    const Preset preset = {.mode = POLICY_CLASSES, .low = format};
    Policy *policy = policy_new(&preset, &error);
    CHECK(policy_add_layer(policy, "a", 0, &error) == 1);
    CHECK(policy_add_layer(policy, "a.b", 1, &error) == 2);
    CHECK(!kept || policy_set(policy, kept, LAYER_FP32, NULL, &error));
    return policy;
}

static SafeFile *written(SafeFile *from, const char *path, Format format, const char *kept,
                         Error *error) {
    char hash[HASH_HEX_SIZE];
    uint64_t bytes;
    Policy *policy = policy_in(format, kept);
    FILE *stream = fopen(path, "wb");
    SafeWriter *writer = safe_writer_to(stream, path, error);
    bool done =
        quantised_write(from, policy, writer, error) && safe_finish(writer, hash, &bytes, error);
    safe_writer_free(writer);
    policy_free(policy);
    fclose(stream);
    return done ? safe_open(path, error) : NULL;
}

static const void *read_entry(SafeFile *file, const char *name, int64_t *size) {
    static uint8_t buffers[4][8 * COUNT];
    static int next;
    Error error = {0};
    const SafeEntry *entry = safe_header_find(safe_header(file), name);
    *size = entry ? (int64_t)(entry->end - entry->begin) : -1;
    uint8_t *buffer = buffers[next++ % 4];
    return entry && safe_read(file, entry, buffer, &error) ? buffer : NULL;
}

static uint32_t bits_at(const uint8_t *row, int64_t at, int bits) {
    uint32_t value = 0;
    for (int i = 0; i < bits; i++) {
        int64_t bit = at * bits + i;
        value |= (uint32_t)(row[bit / 8] >> bit % 8 & 1) << i;
    }
    return value;
}

// What the reference device multiplies in place of the weights, in double.
static void worths(Format format, double *worth) {
    Error error = {0};
    int64_t shape[] = {ROWS, DEPTH};
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP64};
    attr.factor.by = recipe_scale(&recipe_usual, format, FACTOR_WEIGHT, false);
    attr.factor.by.first = attr.factor.by.dims = 1;
    KernelCall call = {.op = OP_scale_factor, .input_count = 1, .output_count = 1, .attr = &attr};
    call.input[0] = view_dense(weights, FORMAT_FP32, 2, shape);
    call.output[0] = view_dense(worth, FORMAT_FP64, 2, shape);
    CHECK_MESSAGE(device_run(ref, &call, &error), "%s", error.text);
}

static void check_scaled(SafeFile *from, const char *path, Format format) {
    Error error = {0};
    const FormatInfo *info = &format_table[format], *element = &format_table[info->element];
    const char *name = format_name(format);
    const int own = element->sign_bits + element->exponent_bits + element->mantissa_bits;
    SafeFile *file = written(from, path, format, NULL, &error);
    CHECK_MESSAGE(file != NULL, "%s: %s", name, error.text);
    if (!file)
        return;
    int64_t size, scale_size, all_size;
    static double worth[COUNT];
    const uint8_t *numbers = read_entry(file, "a.b.weight", &size),
                  *scales = read_entry(file, "a.b.weight.scale", &scale_size);
    const float *all = read_entry(file, "a.b.weight.scale_of_all", &all_size);
    const int64_t row = (DEPTH * own + 7) / 8,
                  blocks = info->block ? (DEPTH + info->block - 1) / info->block : 0;
    CHECK_MESSAGE(size == ROWS * row, "%s: %lld bytes of elements", name, (long long)size);
    CHECK_MESSAGE(scale_size == (blocks ? ROWS * blocks : 4), "%s: %lld bytes of scales", name,
                  (long long)scale_size);
    CHECK_MESSAGE((all != NULL) == (info->scale == FORMAT_E4M3), "%s: a scale of all", name);
    worths(format, worth);
    for (int i = 0; i < COUNT && numbers && scales; i++) {
        double scale = 0, is = format_decode(info->element,
                                             bits_at(numbers + i / DEPTH * row, i % DEPTH, own));
        if (blocks)
            scale =
                format_decode(info->scale, scales[i / DEPTH * blocks + i % DEPTH / info->block]);
        else
            scale = format_load(FORMAT_FP32, scales);
        if (all) // scales meet in fp32
            scale = (double)((float)scale * *all);
        CHECK_MESSAGE((float)(is * scale) == (float)worth[i], "%s: number %d is %g, not %g", name,
                      i, is * scale, worth[i]);
    }
    CHECK_MESSAGE(quantised_bytes(format, 2, (const int64_t[]){ROWS, DEPTH}) ==
                      size + scale_size + (all ? all_size : 0),
                  "%s: bytes", name);
    safe_close(file);
}

static void elements_and_scales_make_what_is_multiplied(void) {
    char path[512], from_path[512];
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    SafeFile *from = open_checkpoint(from_path);
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_is_scaled((Format)i))
            check_scaled(from, path, (Format)i);
    safe_close(from);
}

static void rows_of_int8_are_within_half_a_step(void) {
    char path[512], from_path[512];
    Error error = {0};
    int64_t size, scale_size;
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    SafeFile *from = open_checkpoint(from_path);
    SafeFile *file = written(from, path, FORMAT_INT8, NULL, &error);
    const int8_t *numbers = read_entry(file, "a.b.weight", &size);
    const float *steps = read_entry(file, "a.b.weight.scale", &scale_size);
    CHECK_INT(size, COUNT);
    CHECK_INT(scale_size, 4 * ROWS);
    for (int row = 0; row < ROWS; row++) {
        int largest = 0;
        for (int i = row * DEPTH; i < (row + 1) * DEPTH; i++) {
            largest = abs(numbers[i]) > largest ? abs(numbers[i]) : largest;
            CHECK_NEAR((double)numbers[i] * (double)steps[row], (double)weights[i],
                       0.5001 * (double)steps[row]);
        }
        CHECK_INT(largest, 127);
    }
    safe_close(file);
    safe_close(from);
}

// A convolution's: [out, height, width, in].
static const int64_t kernel_shape[] = {3, 3, 3, 20};
enum { KERNEL_ROWS = 27, KERNEL_DEPTH = 20, KERNEL_COUNT = KERNEL_ROWS * KERNEL_DEPTH };
static float kernel[KERNEL_COUNT];

static SafeFile *written_kernel(Format format) {
    char path[512], from_path[512], hash[HASH_HEX_SIZE];
    uint64_t bytes;
    Error error = {0};
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    for (int i = 0; i < KERNEL_COUNT; i++)
        kernel[i] = weights[i % COUNT] * (float)(1 + i / KERNEL_DEPTH);
    SafeWriter *writer = safe_writer_new(from_path, &error);
    CHECK(safe_declare(writer, "weight/a.b.weight", SAFE_F32, 4, kernel_shape, &error));
    CHECK(safe_write(writer, kernel, sizeof kernel, &error));
    CHECK_MESSAGE(safe_finish(writer, hash, &bytes, &error), "%s", error.text);
    safe_writer_free(writer);
    SafeFile *from = safe_open(from_path, &error);
    SafeFile *file = written(from, path, format, NULL, &error);
    CHECK_MESSAGE(file != NULL, "%s", error.text);
    safe_close(from);
    return file;
}

static void check_shape(SafeFile *file, const char *name, int ndim, const int64_t *shape) {
    const SafeEntry *entry = safe_header_find(safe_header(file), name);
    CHECK_MESSAGE(entry && entry->ndim == ndim &&
                      memcmp(entry->shape, shape, (size_t)ndim * sizeof *shape) == 0,
                  "the shape of %s", name);
}

static float largest_in(const float *values, int64_t count) {
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    return largest;
}

static void rows_of_int8_are_those_of_the_first_dimension(void) {
    int64_t size;
    SafeFile *file = written_kernel(FORMAT_INT8);
    const int64_t count = KERNEL_COUNT / kernel_shape[0];
    check_shape(file, "a.b.weight", 4, kernel_shape);
    check_shape(file, "a.b.weight.scale", 1, kernel_shape);
    const int8_t *numbers = read_entry(file, "a.b.weight", &size);
    const float *steps = read_entry(file, "a.b.weight.scale", &size);
    for (int i = 0; i < KERNEL_COUNT && numbers && steps; i++) {
        const float *row = kernel + i / count * count;
        const double step = (double)largest_in(row, count) / 127;
        CHECK_NEAR((double)steps[i / count], step, 1e-6 * step);
        CHECK_NEAR((double)numbers[i] * step, (double)kernel[i], 0.5001 * step);
    }
    safe_close(file);
}

// 20 are a block of 32 that is not full, or one of 16 and one of 4: none goes on in the next row.
static void blocks_lie_along_the_last_dimension(void) {
    static const Format formats[] = {FORMAT_MXFP4, FORMAT_NVFP4};
    for (size_t at = 0; at < sizeof formats / sizeof *formats; at++) {
        int64_t size;
        const FormatInfo *info = &format_table[formats[at]];
        const int64_t block = info->block, blocks = (KERNEL_DEPTH + block - 1) / block;
        SafeFile *file = written_kernel(formats[at]);
        check_shape(file, "a.b.weight", 4, (const int64_t[]){3, 3, 3, KERNEL_DEPTH / 2});
        check_shape(file, "a.b.weight.scale", 4, (const int64_t[]){3, 3, 3, blocks});
        const uint8_t *numbers = read_entry(file, "a.b.weight", &size);
        const uint8_t *scales = read_entry(file, "a.b.weight.scale", &size);
        const float *all = read_entry(file, "a.b.weight.scale_of_all", &size);
        for (int i = 0; i < KERNEL_COUNT && numbers && scales; i++) {
            const int64_t row = i / KERNEL_DEPTH, in_row = i % KERNEL_DEPTH;
            const int64_t own = in_row / block, left = KERNEL_DEPTH - own * block;
            const double largest = (double)largest_in(kernel + row * KERNEL_DEPTH + own * block,
                                                      left < block ? left : block);
            const double scale =
                format_decode(info->scale, scales[row * blocks + own]) * (all ? (double)*all : 1);
            const double is =
                format_decode(info->element, bits_at(numbers + row * KERNEL_DEPTH / 2, in_row, 4));
            // Powers of two are up to twice as large as is needed, those of e4m3 a 16th off; the
            // largest elements are 2 apart.
            CHECK_MESSAGE(largest == 0 ||
                              (6 * scale <= 2.001 * largest && 6 * scale >= 0.93 * largest),
                          "%s: a scale of %g for %g", info->name, scale, largest);
            CHECK_NEAR(is * scale, (double)kernel[i], 1.1 * scale);
        }
        safe_close(file);
    }
}

static void vectors_and_layers_that_are_named_stay_as_they_are(void) {
    char path[512], from_path[512];
    Error error = {0};
    int64_t size;
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    SafeFile *from = open_checkpoint(from_path);
    SafeFile *file = written(from, path, FORMAT_MXFP4, "a.b", &error);
    CHECK_INT(safe_header(file)->count, 2); // no state of an optimizer
    CHECK(memcmp(read_entry(file, "a.b.weight", &size), weights, sizeof weights) == 0);
    CHECK(memcmp(read_entry(file, "a.mean", &size), bias, sizeof bias) == 0);
    safe_close(file);
    weights[3] = INFINITY;
    safe_close(from);
    from = open_checkpoint(from_path);
    CHECK(!written(from, path, FORMAT_NVFP4, NULL, &error));
    CHECK_CONTAINS(error.text, "a.b.weight: not all of it is finite");
    CHECK((file = written(from, path, FORMAT_BF16, NULL, &error)) != NULL);
    safe_close(file);
    safe_close(from);
}

// Of what is below a layer, too, that is set; and whatever the policy says, in fp32 of buffers and
// of what no weights are written in.
static void formats_are_those_of_the_policy(void) {
    const SafeHeader none = {.count = 0};
    Policy *policy = policy_in(FORMAT_INT8, NULL);
    CHECK_INT(quantised_format(policy, &none, "a.b.weight", true), FORMAT_INT8);
    CHECK_INT(quantised_format(policy, &none, "weight", true), FORMAT_INT8);
    CHECK_INT(quantised_format(policy, &none, "a.b.mean", false), FORMAT_FP32);
    policy_free(policy);
    policy = policy_in(FORMAT_INT8, "a");
    CHECK_INT(quantised_format(policy, &none, "a.b.weight", true), FORMAT_FP32);
    CHECK_INT(quantised_format(policy, &none, "a.b.list.1", true), FORMAT_FP32);
    CHECK_INT(quantised_format(policy, &none, "c.weight", true), FORMAT_INT8);
    policy_free(policy);
    policy = policy_in(FORMAT_FP64, NULL);
    CHECK_INT(quantised_format(policy, &none, "a.b.weight", true), FORMAT_FP32);
    policy_free(policy);
}

static void what_16_bits_do_not_hold_is_refused(void) {
    char path[512], from_path[512];
    Error error = {0};
    const float kept = weights[3];
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    const struct {
        float weight;
        Format format;
        const char *refused; // NULL: it is not
    } cases[] = {{65519, FORMAT_FP16, NULL},
                 {-65520, FORMAT_FP16, "a.b.weight: it holds numbers beyond 65504, the largest of"},
                 {-65520, FORMAT_BF16, NULL},
                 {-65520, FORMAT_INT8, NULL},
                 {0x1.ffp127f, FORMAT_BF16, "a.b.weight: it holds numbers beyond 3.38953e+38"},
                 {INFINITY, FORMAT_FP16, NULL}}; // as it was
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weights[3] = cases[i].weight;
        SafeFile *from = open_checkpoint(from_path);
        SafeFile *file = written(from, path, cases[i].format, NULL, &error);
        CHECK_MESSAGE((file != NULL) == !cases[i].refused, "case %zu: %s", i, error.text);
        if (cases[i].refused)
            CHECK_CONTAINS(error.text, cases[i].refused);
        safe_close(file);
        safe_close(from);
    }
    weights[3] = kept;
}

// Where nobody sets its layer: an evaluation looks its rows up in fp32.
static void what_no_product_takes_is_left_alone(void) {
    char path[512], from_path[512];
    Error error = {0};
    int64_t size;
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(path, sizeof path, "%s/to", folder);
    taker = "embedding";
    SafeFile *from = open_checkpoint(from_path);
    taker = NULL;
    CHECK_TEXT(weights_taker(safe_header(from), "a.b.weight"), "embedding");
    CHECK(!weights_taker(safe_header(from), "a.b"));
    SafeFile *file = written(from, path, FORMAT_NVFP4, NULL, &error);
    CHECK(memcmp(read_entry(file, "a.b.weight", &size), weights, sizeof weights) == 0);
    safe_close(file);
    Policy *policy = policy_in(FORMAT_NVFP4, NULL);
    CHECK(policy_set(policy, "a", LAYER_INT8, NULL, &error));
    CHECK_INT(quantised_format(policy, safe_header(from), "a.b.weight", true), FORMAT_INT8);
    policy_free(policy);
    safe_close(from);
}

int main(void) {
    Error error = {0};
    make_weights();
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    if (!device_open("ref", 1, &ref, &error))
        return 1;
    RUN_TEST(elements_and_scales_make_what_is_multiplied);
    RUN_TEST(rows_of_int8_are_within_half_a_step);
    RUN_TEST(what_no_product_takes_is_left_alone);
    RUN_TEST(what_16_bits_do_not_hold_is_refused);
    RUN_TEST(rows_of_int8_are_those_of_the_first_dimension);
    RUN_TEST(blocks_lie_along_the_last_dimension);
    RUN_TEST(vectors_and_layers_that_are_named_stay_as_they_are);
    RUN_TEST(formats_are_those_of_the_policy);
    device_close(ref);
    test_folder_remove(folder);
    return test_end();
}
