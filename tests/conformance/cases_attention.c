// Cases of attention and its gradient.
#include <math.h>
#include <stdlib.h>

#include "tests/conformance/cases.h"

typedef struct AttentionCase {
    int64_t batch, queries, keys, heads, depth;
    bool causal;
    Layout layout;
} AttentionCase;

static const AttentionCase attention_cases[] = {
    {2, 7, 7, 3, 8, false, LIES_DENSE},     {2, 7, 7, 3, 8, true, LIES_DENSE},
    {1, 1, 1, 1, 1, true, LIES_DENSE},      {1, 5, 11, 2, 16, false, LIES_DENSE},
    {2, 33, 33, 2, 5, true, LIES_DENSE},    {1, 64, 64, 2, 32, true, LIES_DENSE},
    {1, 70, 70, 1, 64, false, LIES_DENSE},  {2, 9, 9, 2, 16, true, LIES_SLICED},
    {2, 9, 9, 4, 16, false, LIES_PERMUTED}, {1, 130, 130, 2, 16, true, LIES_PERMUTED},
    {1, 200, 200, 1, 64, true, LIES_DENSE},
};
enum { ATTENTION_CASES = sizeof attention_cases / sizeof *attention_cases };

static Shape query_shape(const AttentionCase *attention) {
    return SHAPE(attention->batch, attention->queries, attention->heads, attention->depth);
}

static Shape key_shape(const AttentionCase *attention) {
    return SHAPE(attention->batch, attention->keys, attention->heads, attention->depth);
}

static Shape sums_shape(const AttentionCase *attention) {
    return SHAPE(2, attention->batch, attention->heads, attention->queries);
}

// How far a score may be off, in units of 2^-24: it is a sum of `depth` products.
static double score_units(const AttentionCase *attention, double scale, const Case *test, int q,
                          int k) {
    return scale * case_largest(test, q) * case_largest(test, k) *
           (sqrt((double)attention->depth) * sum_terms(attention->depth) / 4 + 4);
}

static Case *forward(Cases *cases, const AttentionCase *attention, OpId op, Format format,
                     Values values) {
    Case *test = case_new(cases, "%s%s", values_name(values), attention->causal ? ", causal" : "");
    test->op = op;
    test->output_count = op_table[op].outputs;
    case_add(cases, test, format, query_shape(attention), attention->layout, values);
    case_add(cases, test, format, key_shape(attention), attention->layout, values);
    case_add(cases, test, format, key_shape(attention), attention->layout, values);
    test->attr.attention =
        (AttentionAttr){.scale = 1 / sqrt((double)attention->depth), .causal = attention->causal};
    return test;
}

// How far a share may be off that is itself a factor: rounded to eleven digits of TF32, where the
// layer multiplies in it, in the truth and in what is held against it, each in a place of its own;
// or by tiles, which take nothing wider.
static double share_units(const Cases *cases, bool by_tiles) {
    const double rounding = 0x1p13;
    if (cases->compute == FORMAT_TF32)
        return 2 * rounding;
    return by_tiles && cases->format != FORMAT_FP32 ? rounding : 0;
}

static Bound *bounds_of(Case *test, int by_tiles) {
    test->has_tiles = true;
    return by_tiles ? test->by_tiles : test->bound;
}

// Scores without a rounding: queries of 1, one deep. What they have in common must not be seen in
// their shares, however large it is.
static const AttentionCase exact_scores = {2, 33, 33, 2, 1, true, LIES_DENSE};

static Case *exact(Cases *cases, Values keys, Values values) {
    Case *test =
        case_new(cases, "%s at keys %s %g", values_name(values), values_name(keys), keys.high);
    test->op = OP_attention;
    test->output_count = op_table[OP_attention].outputs;
    case_add(cases, test, cases->format, query_shape(&exact_scores), LIES_DENSE, UNIFORM(1, 1));
    case_add(cases, test, cases->format, key_shape(&exact_scores), LIES_DENSE, keys);
    case_add(cases, test, cases->format, key_shape(&exact_scores), LIES_DENSE, values);
    test->attr.attention = (AttentionAttr){.scale = 1, .causal = true};
    return test;
}

static void exact_case(Cases *cases, Values keys, Values values) {
    Case *test = exact(cases, keys, values);
    double units = 2 * fmin(case_spread(test, 1), 104) + sum_terms(exact_scores.keys) + 16;
    test->signed_inputs = 3;
    for (int tiles = 0; tiles < 2; tiles++) {
        Bound *bound = bounds_of(test, tiles);
        bound[0].absolute = units + share_units(cases, tiles);
        bound[1] = (Bound){.ulps = 2, .constant = units};
    }
    test->ignored[1] = keys.kind == VALUES_SPECIAL; // of a row without a sum
    test->zeros_expected = true;
    case_run(cases, test, FORMAT_FP32);
}

static void forward_case(Cases *cases, const AttentionCase *attention, Values values, Format out) {
    Case *test = forward(cases, attention, OP_attention, cases->format, values);
    double units = score_units(attention, test->attr.attention.scale, test, 0, 1);
    // Only the values' signs are dropped: A is what the shares weigh.
    test->signed_inputs = 3;
    for (int tiles = 0; tiles < 2; tiles++) {
        Bound *bound = bounds_of(test, tiles);
        bound[0].absolute = 2 * units + sum_terms(attention->keys) + 16 + share_units(cases, tiles);
        bound[1] = (Bound){.ulps = 2, .constant = units + sum_terms(attention->keys) + 8};
    }
    test->zeros_expected = values.kind == VALUES_ZEROS;
    case_run(cases, test, out);
}

void cases_attention(Cases *cases) {
    const Values kinds[] = {NORMAL, INTEGERS, ZEROS, UNIFORM(-8, 8)};
    for (int k = 0; k < EVERY_KIND; k++) {
        exact_case(cases, every_kind[k], NORMAL);
        exact_case(cases, NORMAL, every_sum(k, cases->format, 1, 1));
    }
    for (int i = 0; i < ATTENTION_CASES; i++) {
        forward_case(cases, &attention_cases[i], kinds[i % 4], cases->format);
        forward_case(cases, &attention_cases[i], NORMAL, cases->format);
        forward_case(cases, &attention_cases[i], NORMAL, FORMAT_FP32);
    }
}

static void backward_case(Cases *cases, const AttentionCase *attention, Format dy_format,
                          Format out) {
    const Format format = cases->format;
    Case *before = forward(cases, attention, OP_attention, format, NORMAL);
    double *y = case_solve(cases, before, 0), *sums = case_solve(cases, before, 1);
    Case *test = case_new(cases, "normal%s", attention->causal ? ", causal" : "");
    case_add(cases, test, dy_format, query_shape(attention), attention->layout, NORMAL);
    // The inputs of the forward pass, as they lay.
    for (int i = 0; i < 3; i++) {
        test->input[test->input_count++] = before->input[i];
        before->input[i].values = NULL;
    }
    test->attr = before->attr;
    case_free(before);
    if (y && sums) {
        case_add_given(test, format, query_shape(attention), y);
        case_add_given(test, FORMAT_FP32, sums_shape(attention), sums);
        double scale = test->attr.attention.scale, depth = (double)attention->depth;
        double dy = case_largest(test, 0), q = case_largest(test, 1), k = case_largest(test, 2),
               v = case_largest(test, 3);
        for (int tiles = 0; tiles < 2; tiles++) {
            double share =
                2 * score_units(attention, scale, test, 1, 2) + 16 + share_units(cases, tiles);
            // The gradient of a score: a sum of `depth` products of dy and v, less that of y.
            double score = dy * v * sqrt(depth) * (share + sum_terms(attention->depth));
            double many = sqrt((double)attention->queries) + sum_terms(attention->queries) / 4;
            Bound *bound = bounds_of(test, tiles);
            bound[0].constant = 2 * scale * score * k;
            bound[1].constant = 2 * scale * score * q * many;
            bound[2].constant = share * dy * many;
        }
        case_run(cases, test, out);
    } else {
        case_free(test);
    }
    free(y);
    free(sums);
}

static void exact_backward_case(Cases *cases, Values gradient, Values keys, Values values) {
    const AttentionCase *attention = &exact_scores;
    Case *before = exact(cases, keys, values);
    double *y = case_solve(cases, before, 0), *sums = case_solve(cases, before, 1);
    Case *test = case_new(cases, "%s at keys %s %g, values %s", values_name(gradient),
                          values_name(keys), keys.high, values_name(values));
    case_add(cases, test, cases->format, query_shape(attention), LIES_DENSE, gradient);
    for (int i = 0; i < 3; i++) {
        test->input[test->input_count++] = before->input[i];
        before->input[i].values = NULL;
    }
    test->attr = before->attr;
    case_free(before);
    if (y && sums) {
        case_add_given(test, FORMAT_FP32, query_shape(attention), y);
        case_add_given(test, FORMAT_FP32, sums_shape(attention), sums);
        double dy = case_largest(test, 0), k = case_largest(test, 2), v = case_largest(test, 3);
        double count = (double)attention->queries;
        for (int tiles = 0; tiles < 2; tiles++) {
            double units = sum_terms(attention->queries) + 32 + share_units(cases, tiles);
            double score = 2 * dy * v * units;
            Bound *bound = bounds_of(test, tiles);
            // Of each key's gradient the parts cancel; of a query's, what the keys have in common.
            bound[0].constant = score * k;
            bound[1].constant = score * count;
            bound[2].constant = dy * count * units;
            for (int i = 0; i < 3; i++)
                bound[i].vanishing = count * (1 + v) * (1 + k) * (1 + dy);
        }
        test->zeros_expected = true;
        case_run(cases, test, FORMAT_FP32);
    } else {
        case_free(test);
    }
    free(y);
    free(sums);
}

void cases_attention_backward(Cases *cases) {
    for (int k = 0; k < EVERY_KIND; k++) {
        Values summed = every_sum(k, cases->format, exact_scores.queries, 3);
        exact_backward_case(cases, NORMAL, summed, NORMAL);
        exact_backward_case(cases, summed, NORMAL, NORMAL);
        exact_backward_case(cases, NORMAL, NORMAL, summed);
    }
    for (int i = 0; i < ATTENTION_CASES; i++) {
        backward_case(cases, &attention_cases[i], cases->format, cases->format);
        backward_case(cases, &attention_cases[i], FORMAT_FP32, i & 1 ? cases->format : FORMAT_FP32);
    }
}
