// Cases of convolution and its gradients.
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/cases.h"

typedef struct ConvCase {
    int64_t n, h, w, channels, outputs, kernel[2], stride[2], padding[2], dilation[2], groups;
} ConvCase;

static const ConvCase conv_cases[] = {
    // The first one meets every kind of values.
    {2, 7, 9, 5, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 8, 8, 1, 32, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
    {3, 9, 8, 16, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
    {2, 5, 6, 8, 12, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {2, 9, 9, 16, 8, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
    {1, 11, 10, 3, 7, {3, 2}, {2, 1}, {1, 0}, {2, 3}, 1},
    {2, 8, 7, 6, 9, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3},
    {2, 6, 6, 8, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 8},
    {1, 1, 1, 4, 3, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {1, 4, 4, 2, 3, {4, 4}, {1, 1}, {0, 0}, {1, 1}, 1},
    {1, 2, 2, 3, 2, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
    {1, 1, 40, 4, 6, {1, 5}, {1, 3}, {0, 2}, {1, 1}, 1},
    {2, 16, 16, 32, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 10, 10, 17, 64, {4, 4}, {2, 2}, {1, 1}, {1, 1}, 1},
    // Windows that lie in the padding as a whole.
    {2, 3, 7, 16, 5, {1, 2}, {1, 1}, {1, 3}, {1, 1}, 1},
    {2, 14, 13, 32, 32, {3, 3}, {1, 1}, {2, 3}, {2, 3}, 2},
    // Enough images to be the rows of a product: one block of them, and two.
    {9, 6, 7, 32, 36, {4, 4}, {2, 2}, {1, 1}, {1, 1}, 1},
    {8, 5, 4, 34, 32, {3, 2}, {2, 3}, {1, 2}, {1, 2}, 1},
    {8, 1, 18, 64, 64, {1, 2}, {1, 2}, {0, 0}, {1, 1}, 1},
    {70, 1, 1, 32, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    // Squares of outputs whose sums take fewer multiplications.
    {4, 11, 12, 32, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {6, 18, 16, 32, 32, {4, 4}, {2, 2}, {1, 1}, {1, 1}, 1},
    // As few pixels as groups.
    {1, 2, 4, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
};
enum { CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

static ConvAttr conv_attr(const ConvCase *conv) {
    ConvAttr attr = {.groups = conv->groups,
                     .input = {conv->h, conv->w},
                     .kernel = {conv->kernel[0], conv->kernel[1]}};
    for (int i = 0; i < 2; i++) {
        attr.stride[i] = conv->stride[i];
        attr.padding[i] = conv->padding[i];
        attr.dilation[i] = conv->dilation[i];
    }
    return attr;
}

static Shape input_shape(const ConvCase *conv) {
    return SHAPE(conv->n, conv->h, conv->w, conv->channels);
}

static Shape weight_shape(const ConvCase *conv) {
    return SHAPE(conv->outputs, conv->kernel[0], conv->kernel[1], conv->channels / conv->groups);
}

static Shape output_shape(const ConvCase *conv) {
    int64_t size[2] = {conv->h, conv->w};
    for (int i = 0; i < 2; i++)
        size[i] = (size[i] + 2 * conv->padding[i] - conv->dilation[i] * (conv->kernel[i] - 1) - 1) /
                      conv->stride[i] +
                  1;
    return SHAPE(conv->n, size[0], size[1], conv->outputs);
}

// Infinities and NaN in every geometry: what a library pads with must meet none of them. Twice,
// since few numbers of a case are special.
enum { SPECIAL_CASES = 2 * CONV_CASES };

static Values partner(Format format, Values values, int64_t depth) {
    if (values.kind == VALUES_LARGE && format != FORMAT_FP16)
        return UNIFORM(-1.0 / (double)depth, 1.0 / (double)depth);
    if (values.kind == VALUES_SUBNORMAL && format != FORMAT_FP16)
        return (Values){VALUES_NORMAL, 0, 0x1p60};
    return values.kind == VALUES_INTEGERS ? INTEGERS : NORMAL;
}

// Products of two factors, without bias: the forward pass and both gradients are alike here.
static Case *two_factors(Cases *cases, const ConvCase *conv, Shape a, Format a_format, Shape b,
                         Format b_format, Values values, int64_t depth) {
    Case *test = case_new(cases, "%s, kernel %dx%d, stride %d, padding %d, dilation %d, groups %d",
                          values_name(values), (int)conv->kernel[0], (int)conv->kernel[1],
                          (int)conv->stride[0], (int)conv->padding[0], (int)conv->dilation[0],
                          (int)conv->groups);
    case_add(cases, test, a_format, a, LIES_DENSE, values);
    case_add(cases, test, b_format, b, LIES_DENSE, partner(a_format, values, depth));
    test->attr.conv = conv_attr(conv);
    test->zeros_expected = values.kind == VALUES_ZEROS;
    return test;
}

static int64_t forward_depth(const ConvCase *conv) {
    return conv->kernel[0] * conv->kernel[1] * conv->channels / conv->groups;
}

static void forward_case(Cases *cases, const ConvCase *conv, Values values, bool bias,
                         Activation activation, Format out) {
    int64_t depth = forward_depth(conv);
    Case *test = two_factors(cases, conv, input_shape(conv), cases->format, weight_shape(conv),
                             cases->format, values, depth);
    if (bias)
        case_add(cases, test, out, SHAPE(conv->outputs), LIES_DENSE,
                 values.kind == VALUES_INTEGERS ? INTEGERS : NORMAL);
    else
        case_add_absent(test);
    test->attr.conv.activation = activation;
    test->bound[0].absolute = 2 * (double)depth + 4;
    if (activation == ACTIVATION_TANH || activation == ACTIVATION_SIGMOID)
        test->bound[0].ulps = 8;
    case_run(cases, test, out);
}

// Infinities and NaN among the second factor, which is the last input so far: what lies in the
// padding is not there to be multiplied, and a 0 in its place would make NaN of them.
static void make_second_special(Cases *cases, Case *test, Format format, Shape shape) {
    test->input_count = 1;
    free(test->input[1].values);
    case_add(cases, test, format, shape, LIES_DENSE, SPECIAL);
}

static void special_weight_case(Cases *cases, const ConvCase *conv, Format out) {
    Case *test = two_factors(cases, conv, input_shape(conv), cases->format, weight_shape(conv),
                             cases->format, NORMAL, forward_depth(conv));
    make_second_special(cases, test, cases->format, weight_shape(conv));
    case_add(cases, test, out, SHAPE(conv->outputs), LIES_DENSE, NORMAL);
    test->attr.conv.activation = ACTIVATION_RELU;
    test->bound[0].absolute = 2 * (double)forward_depth(conv) + 4;
    case_run(cases, test, out);
}

void cases_conv2d(Cases *cases) {
    for (int i = 0; i < EVERY_KIND; i++)
        forward_case(cases, &conv_cases[0], every_kind[i], every_kind[i].kind != VALUES_SUBNORMAL,
                     ACTIVATION_NONE, cases->format);
    for (int i = 0; i < CONV_CASES; i++) {
        bool even = i % 2 == 0;
        Activation activation = (Activation)(i % ACTIVATION_COUNT);
        forward_case(cases, &conv_cases[i], INTEGERS, even, ACTIVATION_NONE, cases->format);
        forward_case(cases, &conv_cases[i], INTEGERS, !even, ACTIVATION_RELU, cases->format);
        forward_case(cases, &conv_cases[i], NORMAL, even, activation, cases->format);
        forward_case(cases, &conv_cases[i], NORMAL, !even, ACTIVATION_NONE, FORMAT_FP32);
    }
    for (int i = 0; i < SPECIAL_CASES; i++)
        forward_case(cases, &conv_cases[i / 2], SPECIAL, false, ACTIVATION_NONE,
                     i & 1 ? FORMAT_FP32 : cases->format);
    for (int i = 0; i < SPECIAL_CASES; i++)
        special_weight_case(cases, &conv_cases[i / 2], i & 1 ? FORMAT_FP32 : cases->format);
}

static Case *input_gradient(Cases *cases, const ConvCase *conv, Values values, Format dy_format) {
    int64_t depth = conv->kernel[0] * conv->kernel[1] * conv->outputs / conv->groups;
    Case *test = two_factors(cases, conv, output_shape(conv), dy_format, weight_shape(conv),
                             cases->format, values, depth);
    test->bound[0].absolute = 2 * (double)depth + 2;
    return test;
}

static void input_case(Cases *cases, const ConvCase *conv, Values values, Format dy_format,
                       Format out) {
    case_run(cases, input_gradient(cases, conv, values, dy_format), out);
}

static void special_weight_gradient(Cases *cases, const ConvCase *conv, Format out) {
    Case *test = input_gradient(cases, conv, NORMAL, cases->format);
    make_second_special(cases, test, cases->format, weight_shape(conv));
    case_run(cases, test, out);
}

void cases_conv2d_backward_input(Cases *cases) {
    for (int i = 0; i < EVERY_KIND; i++)
        input_case(cases, &conv_cases[0], every_kind[i], cases->format, cases->format);
    for (int i = 0; i < CONV_CASES; i++) {
        input_case(cases, &conv_cases[i], INTEGERS, cases->format, cases->format);
        input_case(cases, &conv_cases[i], NORMAL, cases->format, FORMAT_FP32);
        input_case(cases, &conv_cases[i], NORMAL, FORMAT_FP32, cases->format);
    }
    for (int i = 0; i < SPECIAL_CASES; i++)
        input_case(cases, &conv_cases[i / 2], SPECIAL, cases->format,
                   i & 1 ? FORMAT_FP32 : cases->format);
    for (int i = 0; i < SPECIAL_CASES; i++)
        special_weight_gradient(cases, &conv_cases[i / 2], i & 1 ? FORMAT_FP32 : cases->format);
}

static void transpose_case(Cases *cases, const ConvCase *conv, Values values, bool bias,
                           Format out) {
    Case *test = input_gradient(cases, conv, values, cases->format);
    if (bias)
        case_add(cases, test, out, SHAPE(conv->channels), LIES_DENSE,
                 values.kind == VALUES_INTEGERS ? INTEGERS : NORMAL);
    else
        case_add_absent(test);
    case_run(cases, test, out);
}

void cases_conv_transpose2d(Cases *cases) {
    for (int i = 0; i < EVERY_KIND; i++)
        transpose_case(cases, &conv_cases[0], every_kind[i], every_kind[i].kind == VALUES_LARGE,
                       cases->format);
    for (int i = 0; i < CONV_CASES; i++)
        for (int bias = 0; bias < 2; bias++) {
            transpose_case(cases, &conv_cases[i], INTEGERS, bias, FORMAT_FP32);
            transpose_case(cases, &conv_cases[i], NORMAL, bias, cases->format);
            transpose_case(cases, &conv_cases[i], SPECIAL, bias, cases->format);
        }
}

static Case *weight_gradient(Cases *cases, const ConvCase *conv, Values values, Format dy_format) {
    Shape dy = output_shape(conv);
    int64_t depth = dy.size[0] * dy.size[1] * dy.size[2];
    // The second factor, dy, is what the bias gradient sums: its own magnitudes bound it.
    Case *test =
        two_factors(cases, conv, input_shape(conv), cases->format, dy, dy_format, values, depth);
    test->bound[0].absolute = test->bound[1].absolute = 2 * (double)depth + 2;
    return test;
}

static void weight_case(Cases *cases, const ConvCase *conv, Values values, Format dy_format) {
    case_run(cases, weight_gradient(cases, conv, values, dy_format), FORMAT_FP32);
}

static void special_gradient_case(Cases *cases, const ConvCase *conv, Format dy_format) {
    Case *test = weight_gradient(cases, conv, NORMAL, dy_format);
    make_second_special(cases, test, dy_format, output_shape(conv));
    case_run(cases, test, FORMAT_FP32);
}

// Of gradients of outputs that are not finite the processor makes NaN in the padding, which nothing
// mends behind its library: a fault of its own, known and left out here.
static bool mends_gradients(const Cases *cases) {
    bool mends = true;
    for (int i = 0; i < cases->device_count; i++)
        mends = mends && strcmp(cases->devices[i]->backend->name, "cpu") != 0;
    return mends;
}

void cases_conv2d_backward_weight(Cases *cases) {
    for (int i = 0; i < EVERY_KIND; i++)
        weight_case(cases, &conv_cases[0], every_kind[i], cases->format);
    for (int i = 0; i < CONV_CASES; i++) {
        weight_case(cases, &conv_cases[i], INTEGERS, cases->format);
        weight_case(cases, &conv_cases[i], NORMAL, cases->format);
        weight_case(cases, &conv_cases[i], NORMAL, FORMAT_FP32);
    }
    for (int i = 0; i < SPECIAL_CASES; i++)
        weight_case(cases, &conv_cases[i / 2], SPECIAL, i & 1 ? FORMAT_FP32 : cases->format);
    for (int i = 0; mends_gradients(cases) && i < CONV_CASES; i++)
        special_gradient_case(cases, &conv_cases[i], i & 1 ? FORMAT_FP32 : cases->format);
}
