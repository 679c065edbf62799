// Cases of selection, arrangement and creation.
#include <math.h>

#include "tests/conformance/cases.h"

void cases_embedding(Cases *cases) {
    static const Shape indices[] = {{1, {5}}, {2, {3, 7}}, {0, {0}}, {1, {1}}, {3, {2, 3, 4}}};
    static const Shape weights[] = {{2, {11, 8}}, {2, {1, 3}}, {2, {50, 33}}};
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
        for (size_t w = 0; w < EVERY_KIND * sizeof weights / sizeof *weights; w++) {
            Values values = every_kind[w / 3];
            Case *test = case_new(cases, "%s", values_name(values));
            case_add(cases, test, cases->format, weights[w % 3], LIES_DENSE, values);
            case_add(cases, test, FORMAT_INT32, indices[i], LIES_DENSE,
                     CLASSES(0, (double)weights[w % 3].size[0]));
            test->zeros_expected = values.kind == VALUES_ZEROS;
            case_run(cases, test, i == 1 ? FORMAT_FP32 : cases->format);
        }
    for (int i = 0; i < 2; i++) {
        const double index[] = {0, i ? -1 : 12345, 2};
        Case *test = case_new(cases, "index %g of 11", index[1]);
        case_add(cases, test, cases->format, weights[0], LIES_DENSE, NORMAL);
        case_add_given(test, FORMAT_INT32, SHAPE(3), index);
        case_refused(cases, test, cases->format, i ? "-1" : "12345");
    }
}

void cases_embedding_backward(Cases *cases) {
    static const struct {
        Shape index;
        int64_t rows, features;
    } sizes[] = {
        {{1, {5}}, 11, 8}, {{2, {6, 20}}, 7, 33}, {{1, {1}}, 1, 1}, {{2, {8, 64}}, 50, 48}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4 + EVERY_KIND; k++) {
            Shape dy = sizes[i].index;
            dy.size[dy.ndim++] = sizes[i].features;
            Values values = k == 1 ? INTEGERS : k == 3 ? SPECIAL : NORMAL;
            if (k >= 4)
                values = every_sum(k - 4, cases->format, shape_count(sizes[i].index), 1);
            Case *test = case_new(cases, "%s", values_name(values));
            case_add(cases, test, k == 2 ? FORMAT_FP32 : cases->format, dy, LIES_DENSE, values);
            case_add(cases, test, FORMAT_INT32, sizes[i].index, LIES_DENSE,
                     CLASSES(0, (double)sizes[i].rows));
            test->attr.index.count = sizes[i].rows;
            test->bound[0].absolute = (double)shape_count(sizes[i].index);
            test->zeros_expected = true; // rows that no index names
            case_run(cases, test, FORMAT_FP32);
        }
}

// Whole numbers keep all their digits wherever they are moved to.
static const Format whole_formats[] = {FORMAT_INT32, FORMAT_UINT8};

static const struct {
    Shape x;
    int dim;
    int64_t picked;
} gathers[] = {{{2, {5, 9}}, 1, 4},    {{2, {5, 9}}, 0, 7},       {{1, {6}}, 0, 6},
               {{3, {3, 4, 5}}, 1, 6}, {{4, {2, 3, 4, 5}}, 3, 1}, {{2, {1, 1}}, 1, 1}};
enum { GATHERS = sizeof gathers / sizeof *gathers };

void cases_gather(Cases *cases) {
    for (int at = 0; at < GATHERS * EVERY_KIND; at++) {
        int i = at % GATHERS;
        Values values = every_kind[at / GATHERS];
        Case *test = case_new(cases, "%s, dimension %d", values_name(values), gathers[i].dim);
        Shape index = gathers[i].x;
        index.size[gathers[i].dim] = gathers[i].picked;
        case_add(cases, test, cases->format, gathers[i].x, LIES_DENSE, values);
        case_add(cases, test, FORMAT_INT32, index, LIES_DENSE,
                 CLASSES(0, (double)gathers[i].x.size[gathers[i].dim]));
        test->attr.index.dim = gathers[i].dim;
        test->zeros_expected = values.kind == VALUES_ZEROS;
        case_run(cases, test, cases->format);
    }
    for (int i = 0; i < 2; i++) {
        Case *whole = case_new(cases, "whole numbers");
        case_add(cases, whole, whole_formats[i], SHAPE(7, 9), LIES_DENSE,
                 whole_values(whole_formats[i], false));
        case_add(cases, whole, FORMAT_INT32, SHAPE(7, 3), LIES_DENSE, CLASSES(0, 9));
        whole->attr.index.dim = 1;
        case_run(cases, whole, whole_formats[i]);
    }
    const double index[] = {0, 12345, 1};
    Case *test = case_new(cases, "index 12345 of 4");
    case_add(cases, test, cases->format, SHAPE(4), LIES_DENSE, NORMAL);
    case_add_given(test, FORMAT_INT32, SHAPE(3), index);
    case_refused(cases, test, cases->format, "12345");
}

void cases_gather_backward(Cases *cases) {
    for (int i = 0; i < GATHERS; i++)
        for (int k = 0; k < 3 + EVERY_KIND; k++) {
            Values values = k ? NORMAL : INTEGERS;
            if (k >= 3)
                values = every_sum(k - 3, cases->format, gathers[i].picked, 1);
            Case *test = case_new(cases, "%s, dimension %d", values_name(values), gathers[i].dim);
            Shape index = gathers[i].x;
            index.size[gathers[i].dim] = gathers[i].picked;
            case_add(cases, test, k == 2 ? FORMAT_FP32 : cases->format, index, LIES_DENSE, values);
            case_add(cases, test, FORMAT_INT32, index, LIES_DENSE,
                     CLASSES(0, (double)gathers[i].x.size[gathers[i].dim]));
            test->attr.index.dim = gathers[i].dim;
            test->attr.index.count = gathers[i].x.size[gathers[i].dim];
            test->bound[0].absolute = (double)gathers[i].picked;
            test->zeros_expected = true;
            case_run(cases, test, cases->format);
        }
}

static void whole_cat(Cases *cases) {
    static const Format formats[][3] = {{FORMAT_INT32, FORMAT_INT32, FORMAT_INT32},
                                        {FORMAT_UINT8, FORMAT_UINT8, FORMAT_UINT8},
                                        {FORMAT_UINT8, FORMAT_INT32, FORMAT_INT32}};
    for (int i = 0; i < 4; i++) {
        Case *test = case_new(cases, "whole numbers");
        Format first = i < 3 ? formats[i][0] : cases->format, out = i < 3 ? formats[i][2] : first;
        Format second = i < 3 ? formats[i][1] : FORMAT_INT32;
        case_add(cases, test, first, SHAPE(3, 5), LIES_DENSE,
                 i < 3 ? whole_values(first, false) : INTEGERS);
        case_add(cases, test, second, SHAPE(4, 5), LIES_DENSE, whole_values(second, i == 3));
        case_run(cases, test, out);
    }
}

void cases_cat(Cases *cases) {
    whole_cat(cases);
    static const struct {
        int dim, count;
        Shape parts[4];
    } sizes[] = {
        {0, 2, {{2, {3, 5}}, {2, {4, 5}}}},
        {1, 3, {{2, {3, 5}}, {2, {3, 1}}, {2, {3, 8}}}},
        {0, 1, {{1, {7}}}},
        {3, 2, {{4, {2, 3, 4, 5}}, {4, {2, 3, 4, 6}}}},
        {1, 4, {{3, {2, 1, 33}}, {3, {2, 2, 33}}, {3, {2, 0, 33}}, {3, {2, 5, 33}}}},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Values values = every_kind[k];
            Case *test = case_new(cases, "%s, dimension %d", values_name(values), sizes[i].dim);
            for (int p = 0; p < sizes[i].count; p++) {
                // Formats meet: the widest of them is the output's.
                bool wide = k == 1 && p == 1;
                case_add(cases, test, wide ? FORMAT_FP32 : cases->format, sizes[i].parts[p],
                         LIES_DENSE, values);
            }
            test->attr.index.dim = sizes[i].dim;
            test->zeros_expected = values.kind == VALUES_ZEROS;
            case_run(cases, test, k == 1 ? FORMAT_FP32 : cases->format);
        }
    // As many as there can be.
    Case *test = case_new(cases, "%d inputs", OP_MAX_INPUTS);
    for (int p = 0; p < OP_MAX_INPUTS; p++)
        case_add(cases, test, cases->format, SHAPE(3, p % 3 + 1), LIES_DENSE, NORMAL);
    test->attr.index.dim = 1;
    case_run(cases, test, cases->format);
}

void cases_pad(Cases *cases) {
    static const struct {
        Shape x;
        PadAttr pad;
    } sizes[] = {
        {{1, {5}}, {{2}, {3}, 0.5}},
        {{2, {4, 7}}, {{0, 1}, {2, 0}, -1}},
        {{4, {2, 3, 3, 4}}, {{0, 1, 1, 0}, {0, 1, 2, 0}, 0.25}},
        {{2, {3, 3}}, {{0, 0}, {0, 0}, 7}},
        {{3, {1, 1, 1}}, {{1, 1, 1}, {1, 1, 1}, 2}},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Case *test = case_new(cases, "%s", values_name(every_kind[k]));
            case_add(cases, test, cases->format, sizes[i].x, LIES_DENSE, every_kind[k]);
            test->attr.pad = sizes[i].pad;
            test->zeros_expected = every_kind[k].kind == VALUES_ZEROS;
            case_run(cases, test, cases->format);
        }
    for (int i = 0; i < 2; i++) {
        Case *test = case_new(cases, "whole numbers");
        case_add(cases, test, whole_formats[i], SHAPE(4, 5), LIES_DENSE,
                 whole_values(whole_formats[i], false));
        test->attr.pad = (PadAttr){{1, 2}, {0, 3}, i ? 255 : -2147483647.0};
        case_run(cases, test, whole_formats[i]);
    }
}

void cases_cast(Cases *cases) {
    static const Format targets[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16, FORMAT_INT32,
                                     FORMAT_UINT8};
    static const Shape shapes[] = {
        {2, {17, 9}}, {0, {0}}, {1, {1}}, {4, {2, 3, 4, 5}}, {2, {0, 3}}};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int k = 0; k < EVERY_KIND; k++) {
                bool floating = format_is_floating(targets[t]);
                if (!floating && every_kind[k].kind == VALUES_LARGE)
                    continue; // past the end of int32, where formats differ by one
                Case *test = case_new(cases, "%s", values_name(every_kind[k]));
                case_add(cases, test, cases->format, shapes[i],
                         (Layout)((i + (size_t)k) % LIES_COUNT), every_kind[k]);
                test->attr.has_out_format = true;
                test->attr.out_format = targets[t];
                test->zeros_expected = !floating || every_kind[k].kind == VALUES_ZEROS ||
                                       every_kind[k].kind == VALUES_SUBNORMAL;
                case_run(cases, test, targets[t]);
            }
    static const Format whole[] = {FORMAT_INT32, FORMAT_UINT8};
    for (int i = 0; i < 2; i++) {
        Case *test = case_new(cases, "from %s", format_name(whole[i]));
        case_add(cases, test, whole[i], SHAPE(5, 50), i ? LIES_TRANSPOSED : LIES_DENSE,
                 CLASSES(0, 256));
        test->attr.has_out_format = true;
        test->attr.out_format = cases->format;
        case_run(cases, test, cases->format);
    }
}

void cases_dropout(Cases *cases) {
    static const Shape shapes[] = {{1, {7}}, {2, {33, 65}}, {0, {0}}, {2, {300, 260}}};
    static const double probabilities[] = {0, 0.1, 0.5, 0.75};
    for (int i = 0; i < 4; i++)
        for (int at = 0; at < 4 * EVERY_KIND; at++) {
            int p = at % 4;
            Values values = every_kind[at / 4];
            if (i == 3 && at >= 8)
                break; // of the large one, two kinds will do
            Case *test =
                case_new(cases, "%s, probability %g", values_name(values), probabilities[p]);
            case_add(cases, test, cases->format, shapes[i], LIES_DENSE, values);
            test->attr.dropout.probability = probabilities[p];
            test->attr.dropout.stream = (RandomAttr){.seed = 77, .offset = (uint64_t)(1000 * i)};
            // The factor is rounded to fp32, where it is no power of two.
            test->bound[0].ulps = probabilities[p] == 0.1 ? 2 : 0;
            test->zeros_expected = probabilities[p] > 0.7 || shape_count(shapes[i]) < 10 ||
                                   values.kind == VALUES_ZEROS;
            case_run(cases, test, cases->format);
        }
}

void cases_create(Cases *cases) {
    static const Shape shapes[] = {{1, {1}},     {1, {7}},    {1, {1027}},
                                   {1, {70001}}, {2, {3, 5}}, {0, {0}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 2; k++) {
            if (cases->op == OP_arange && shapes[i].ndim != 1)
                continue;
            Case *test = case_new(cases, "%lld elements", (long long)shape_count(shapes[i]));
            CreateAttr *attr = &test->attr.create;
            attr->ndim = shapes[i].ndim;
            for (int d = 0; d < shapes[i].ndim; d++)
                attr->shape[d] = shapes[i].size[d];
            attr->a = k ? -2.5 : 0.25;
            attr->b = k ? 1.5 : 2;
            if (cases->op == OP_randint) {
                attr->a = k ? -1000000 : 0;
                attr->b = k ? 2000000000 : 10;
            }
            test->attr.random = (RandomAttr){.seed = 0x123456789u + (uint64_t)k, .offset = 5 + i};
            test->attr.has_out_format = cases->op != OP_randint;
            test->attr.out_format = cases->format;
            if (cases->op == OP_uniform) {
                test->bound[0].constant = 8;
                test->has_limit = true;
                test->limit = attr->b;
            }
            // A sine and a logarithm of a number near 1, each in fp32.
            if (cases->op == OP_normal)
                test->bound[0].constant = 128;
            test->zeros_expected = cases->op == OP_randint || shape_count(shapes[i]) == 1;
            case_run(cases, test, cases->format);
        }
}
