// The shape rules: what is refused, and in which words. What they accept, the conformance cases
// try.
#include "ops/shape.h"
#include "tests/test.h"

static double somewhere;

typedef struct Try {
    KernelCall call;
    OpAttr attr;
    View output[OP_MAX_OUTPUTS];
    Error error;
} Try;

static void add(Try *try, Format format, int ndim, const int64_t *shape) {
    try->call.input[try->call.input_count++] = view_dense(&somewhere, format, ndim, shape);
}
#define ADD(try, format, ...)                                                   \
    add(try, format, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        (int64_t[]){__VA_ARGS__})

static bool accepted(Try *try, OpId op) {
    try->call.op = op;
    try->call.attr = &try->attr;
    return shape_rules[op](&try->call, try->output, &try->error);
}

static void a_linear_layer_names_both_sizes(void) {
    Try try = {0};
    ADD(&try, FORMAT_FP32, 32, 64);
    ADD(&try, FORMAT_FP32, 10, 128);
    CHECK(!accepted(&try, OP_linear));
    CHECK_TEXT(try.error.text, "input has 64 features, weight wants 128");
}

static void an_image_before_a_linear_layer_is_to_be_flattened(void) {
    Try image = {0}, sequence = {0};
    ADD(&image, FORMAT_FP32, 8, 5, 5, 4);
    ADD(&image, FORMAT_FP32, 10, 100);
    CHECK(!accepted(&image, OP_linear));
    CHECK_TEXT(image.error.text, "input has 4 features, weight wants 100, as many as a sample has "
                                 "in all: flatten the input first");
    ADD(&sequence, FORMAT_FP32, 8, 5, 4);
    ADD(&sequence, FORMAT_FP32, 10, 100);
    CHECK(!accepted(&sequence, OP_linear));
    CHECK_TEXT(sequence.error.text, "input has 4 features, weight wants 100");
}

static void a_bias_may_be_absent_but_not_wrong(void) {
    Try try = {0};
    ADD(&try, FORMAT_BF16, 3, 5, 8);
    ADD(&try, FORMAT_BF16, 4, 8);
    CHECK(accepted(&try, OP_linear));
    CHECK_INT(try.output[0].ndim, 3);
    CHECK_INT(try.output[0].shape[2], 4);
    CHECK_INT(try.output[0].stride[0], 20);
    CHECK_INT(try.output[0].format, FORMAT_COUNT);
    ADD(&try, FORMAT_FP32, 5);
    CHECK(!accepted(&try, OP_linear));
    CHECK_CONTAINS(try.error.text, "bias has shape [5], [4] is wanted");
}

static void attributes_out_of_range_are_named(void) {
    static const struct {
        int64_t stride, padding, dilation, groups;
        const char *words;
    } rows[] = {
        {0, 0, 1, 1, "stride height is 0"},       {1, -1, 1, 1, "padding height is -1"},
        {1, 0, 0, 1, "dilation height is 0"},     {1, 0, 1, 0, "groups is 0"},
        {1, 0, 1, 3, "do not divide into 3"},     {1, 0, 9, 1, "is smaller than the kernel"},
        {INT64_MAX, 0, 1, 1, "stride height is"}, {1, INT64_MAX, 1, 1, "padding height is"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Try try = {0};
        ADD(&try, FORMAT_FP32, 1, 8, 8, 4);
        ADD(&try, FORMAT_FP32, 6, 3, 3, 4);
        try.attr.conv = (ConvAttr){.stride = {rows[i].stride, rows[i].stride},
                                   .padding = {rows[i].padding, rows[i].padding},
                                   .dilation = {rows[i].dilation, rows[i].dilation},
                                   .groups = rows[i].groups};
        CHECK(!accepted(&try, OP_conv2d));
        CHECK_CONTAINS(try.error.text, rows[i].words);
    }
}

static void sizes_that_overflow_are_refused(void) {
    Try try = {0};
    ADD(&try, FORMAT_FP32, INT64_C(1) << 40, 1);
    ADD(&try, FORMAT_FP32, 1, INT64_C(1) << 40);
    CHECK(!accepted(&try, OP_matmul));
    CHECK_CONTAINS(try.error.text, "too large");
    Try create = {0};
    create.attr.create = (CreateAttr){.ndim = 2, .shape = {-1, 3}};
    CHECK(!accepted(&create, OP_fill));
    CHECK_CONTAINS(create.error.text, "negative");
    create.attr.create = (CreateAttr){.ndim = 3, .shape = {0, INT64_MAX, 2}};
    CHECK(!accepted(&create, OP_fill));
}

static void shapes_broadcast_from_the_right(void) {
    Try try = {0};
    ADD(&try, FORMAT_FP32, 4, 1, 5);
    ADD(&try, FORMAT_FP32, 3, 1);
    CHECK(accepted(&try, OP_add));
    CHECK_INT(try.output[0].ndim, 3);
    CHECK_INT(try.output[0].shape[1], 3);
    Try wrong = {0};
    ADD(&wrong, FORMAT_FP32, 4, 2);
    ADD(&wrong, FORMAT_FP32, 3);
    CHECK(!accepted(&wrong, OP_add));
    CHECK_CONTAINS(wrong.error.text, "shapes [4,2] and [3] do not broadcast");
}

static void classes_must_be_whole_numbers(void) {
    Try try = {0};
    ADD(&try, FORMAT_FP32, 5, 10);
    ADD(&try, FORMAT_FP32, 5);
    CHECK(!accepted(&try, OP_cross_entropy));
    CHECK_CONTAINS(try.error.text, "classes is fp32, int32 is wanted");
}

static void a_reduction_keeps_what_it_should(void) {
    Try try = {0};
    ADD(&try, FORMAT_FP32, 2, 3, 4);
    CHECK(accepted(&try, OP_sum));
    CHECK_INT(try.output[0].ndim, 0);
    try.attr.reduce = (ReduceAttr){.dims = 2, .keep = true};
    CHECK(accepted(&try, OP_sum));
    CHECK_INT(try.output[0].shape[1], 1);
    try.attr.reduce.dims = 8;
    CHECK(!accepted(&try, OP_sum));
}

int main(void) {
    RUN_TEST(a_linear_layer_names_both_sizes);
    RUN_TEST(an_image_before_a_linear_layer_is_to_be_flattened);
    RUN_TEST(a_bias_may_be_absent_but_not_wrong);
    RUN_TEST(attributes_out_of_range_are_named);
    RUN_TEST(sizes_that_overflow_are_refused);
    RUN_TEST(shapes_broadcast_from_the_right);
    RUN_TEST(classes_must_be_whole_numbers);
    RUN_TEST(a_reduction_keeps_what_it_should);
    return test_end();
}
