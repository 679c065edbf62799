// Cases of operations along one dimension.
#include "tests/conformance/cases.h"

typedef struct Line {
    Shape x;
    int dim;
} Line;

static const Line lines[] = {
    {{1, {7}}, 0},          {{2, {5, 9}}, 0},      {{2, {5, 9}}, 1},       {{3, {3, 4, 5}}, 1},
    {{4, {2, 3, 1, 5}}, 2}, {{1, {1}}, 0},         {{2, {3, 70}}, 1},      {{2, {33, 32}}, 1},
    {{2, {6, 520}}, 0},     {{3, {2, 3, 600}}, 1}, {{2, {600, 2}}, 0},     {{2, {0, 3}}, 0},
    {{2, {3, 0}}, 1},       {{2, {2, 1100}}, 1},   {{3, {2, 1100, 3}}, 1},
};
enum { LINES = sizeof lines / sizeof *lines };

// Of products no more than so many factors, or all are 0 or infinite.
static bool is_short(const Line *line) {
    return line->x.size[line->dim] <= 16;
}

static Shape without(const Line *line) {
    Shape shape = {line->x.ndim - 1, {0}};
    for (int i = 0; i < line->x.ndim; i++)
        if (i != line->dim)
            shape.size[i - (i > line->dim)] = line->x.size[i];
    return shape;
}

void cases_cumsum(Cases *cases) {
    for (int i = 0; i < LINES; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            const int64_t terms = lines[i].x.size[lines[i].dim];
            Values values = every_sum(k, cases->format, terms, 1);
            Case *test = case_new(cases, "%s, dimension %d, %s", values_name(values), lines[i].dim,
                                  k & 1 ? "backwards" : "forwards");
            case_add(cases, test, cases->format, lines[i].x, LIES_DENSE, values);
            test->attr.line = (LineAttr){lines[i].dim, k & 1};
            test->bound[0].absolute = (double)terms + 2;
            test->zeros_expected = values.kind != VALUES_NORMAL;
            case_run(cases, test, k & 2 ? FORMAT_FP32 : cases->format);
        }
}

void cases_prod(Cases *cases) {
    for (int i = 0; i < LINES; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Values values = is_short(&lines[i]) ? every_kind[k] : UNIFORM(0.95, 1.05);
            Case *test = case_new(cases, "%s, dimension %d", values_name(values), lines[i].dim);
            case_add(cases, test, cases->format, lines[i].x, LIES_DENSE, values);
            test->attr.line.dim = lines[i].dim;
            test->bound[0].result = 2 * (double)lines[i].x.size[lines[i].dim] + 2;
            test->zeros_expected = true;
            case_run(cases, test, k & 2 ? FORMAT_FP32 : cases->format);
        }
}

void cases_prod_backward(Cases *cases) {
    static const double with_zeros[] = {2, 0, 3, 5, 0, 0, 7, 11, 13};
    for (int i = 0; i < LINES; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Values values = is_short(&lines[i]) ? every_kind[k] : UNIFORM(0.95, 1.05);
            Case *test = case_new(cases, "%s, dimension %d", values_name(values), lines[i].dim);
            case_add(cases, test, k & 1 ? FORMAT_FP32 : cases->format, without(&lines[i]),
                     LIES_DENSE, UNIFORM(1, 2));
            case_add(cases, test, cases->format, lines[i].x, LIES_DENSE, values);
            test->attr.line.dim = lines[i].dim;
            test->bound[0].result = 2 * (double)lines[i].x.size[lines[i].dim] + 4;
            test->zeros_expected = true;
            case_run(cases, test, k & 2 ? FORMAT_FP32 : cases->format);
        }
    Case *test = case_new(cases, "one zero, two, and none");
    case_add(cases, test, cases->format, SHAPE(3), LIES_DENSE, INTEGERS);
    case_add_given(test, cases->format, SHAPE(3, 3), with_zeros);
    test->attr.line.dim = 1;
    test->zeros_expected = true;
    case_run(cases, test, cases->format);
}

// ---- drawn anew ---------------------------------------------------------------------------------

typedef struct Drawing {
    Shape x;
    ResampleAttr attr; // without the size, which is x's
} Drawing;

#define PADDED(rule, dim, before, count) \
    { dim, RESAMPLE_##rule, 0, count, before }
static const Drawing paddings[] = {
    {{2, {5, 9}}, PADDED(REFLECT, 0, 2, 9)},       {{2, {5, 9}}, PADDED(REFLECT, 1, 8, 25)},
    {{3, {2, 4, 5}}, PADDED(REPLICATE, 1, 3, 12)}, {{1, {1}}, PADDED(REPLICATE, 0, 4, 7)},
    {{2, {5, 9}}, PADDED(CIRCULAR, 1, 9, 27)},     {{4, {2, 3, 4, 5}}, PADDED(CIRCULAR, 2, 1, 5)},
    {{3, {1, 7, 600}}, PADDED(REFLECT, 1, 1, 9)},  {{2, {3, 4}}, PADDED(CIRCULAR, 0, 0, 3)},
    {{2, {6, 13}}, PADDED(MEAN, 1, 0, 5)},         {{3, {2, 12, 5}}, PADDED(MEAN, 1, 0, 4)},
    {{2, {3, 4}}, PADDED(MEAN, 1, 0, 9)},          {{2, {17, 3}}, PADDED(MEAN, 0, 0, 1)},
    {{2, {1, 3}}, PADDED(MEAN, 0, 0, 3)},          {{1, {33}}, PADDED(MEAN, 0, 0, 7)},
};
static const Drawing drawings[] = {
    {{2, {5, 9}}, PADDED(LINEAR, 1, 0, 18)},      {{3, {2, 4, 5}}, PADDED(LINEAR, 1, 0, 7)},
    {{3, {2, 9, 5}}, PADDED(LINEAR, 1, 0, 4)},    {{1, {1}}, PADDED(LINEAR, 0, 0, 5)},
    {{2, {5, 3}}, PADDED(LINEAR, 0, 0, 1)},       {{2, {5, 3}}, PADDED(LINEAR, 0, 0, 5)},
    {{2, {5, 9}}, PADDED(CORNERS, 1, 0, 17)},     {{3, {2, 4, 5}}, PADDED(CORNERS, 1, 0, 9)},
    {{2, {9, 3}}, PADDED(CORNERS, 0, 0, 4)},      {{1, {1}}, PADDED(CORNERS, 0, 0, 3)},
    {{2, {5, 3}}, PADDED(CORNERS, 0, 0, 1)},      {{3, {1, 6, 700}}, PADDED(LINEAR, 1, 0, 13)},
    {{4, {2, 3, 8, 4}}, PADDED(LINEAR, 2, 0, 24)}};

typedef struct Drawings {
    const Drawing *list;
    int count;
} Drawings;

static Drawings drawings_of(OpId op) {
    if (op == OP_interpolate)
        return (Drawings){drawings, sizeof drawings / sizeof *drawings};
    return (Drawings){paddings, sizeof paddings / sizeof *paddings};
}

// How many elements one is made of, at most.
static double parts_of(const ResampleAttr *attr) {
    return attr->rule == RESAMPLE_MEAN ? (double)(attr->size / attr->count + 2) : 2;
}

static void drawing_case(Cases *cases, const Drawing *drawing, bool back, Values values,
                         Format out) {
    ResampleAttr attr = drawing->attr;
    attr.size = drawing->x.size[attr.dim];
    Shape shape = drawing->x;
    if (back)
        shape.size[attr.dim] = attr.count;
    Case *test = case_new(cases, "%s, rule %d, dimension %d of %d to %d", values_name(values),
                          (int)attr.rule, attr.dim, (int)attr.size, (int)attr.count);
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    test->attr.resample = attr;
    double terms = back ? (double)(3 * attr.count / attr.size + attr.count) : parts_of(&attr);
    test->bound[0].absolute = terms + 3;
    test->zeros_expected = true;
    case_run(cases, test, out);
}

void cases_resample(Cases *cases) {
    const Drawings all = drawings_of(cases->op);
    for (int i = 0; i < all.count; i++)
        for (int k = 0; k < EVERY_KIND; k++)
            drawing_case(cases, &all.list[i], false, every_kind[k],
                         k & 1 ? FORMAT_FP32 : cases->format);
}

void cases_resample_backward(Cases *cases) {
    for (int op = 0; op < 2; op++) {
        const Drawings all = drawings_of(op ? OP_interpolate : OP_resample);
        for (int i = 0; i < all.count; i++)
            for (int k = 0; k < EVERY_KIND; k++)
                drawing_case(cases, &all.list[i], true,
                             every_sum(k, cases->format, all.list[i].attr.count, 1),
                             k & 1 ? FORMAT_FP32 : cases->format);
    }
}
