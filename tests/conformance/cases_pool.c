// Cases of pooling and its gradients.
#include <stdlib.h>

#include "tests/conformance/cases.h"

typedef struct PoolCase {
    Shape x;
    int64_t kernel[2], stride[2], padding[2];
} PoolCase;

static const PoolCase pool_cases[] = {
    {{4, {2, 6, 8, 5}}, {2, 2}, {2, 2}, {0, 0}},    {{4, {1, 7, 9, 3}}, {3, 3}, {2, 2}, {1, 1}},
    {{4, {2, 5, 5, 16}}, {3, 2}, {1, 1}, {1, 0}},   {{4, {1, 1, 1, 1}}, {1, 1}, {1, 1}, {0, 0}},
    {{4, {3, 7, 7, 8}}, {7, 7}, {7, 7}, {0, 0}},    {{4, {1, 9, 4, 33}}, {2, 3}, {3, 2}, {0, 1}},
    {{4, {2, 16, 16, 64}}, {2, 2}, {2, 2}, {0, 0}}, {{4, {1, 20, 20, 2}}, {16, 16}, {2, 2}, {0, 0}},
    {{4, {2, 7, 10, 21}}, {2, 3}, {2, 3}, {0, 0}},  {{4, {2, 9, 8, 16}}, {2, 2}, {2, 2}, {0, 0}},
};
enum { POOL_CASES = sizeof pool_cases / sizeof *pool_cases };

static PoolAttr pool_attr(const PoolCase *pool) {
    PoolAttr attr = {.input = {pool->x.size[1], pool->x.size[2]}};
    for (int i = 0; i < 2; i++) {
        attr.kernel[i] = pool->kernel[i];
        attr.stride[i] = pool->stride[i];
        attr.padding[i] = pool->padding[i];
    }
    return attr;
}

static Shape output_shape(const PoolCase *pool) {
    Shape shape = pool->x;
    for (int i = 0; i < 2; i++)
        shape.size[1 + i] =
            (pool->x.size[1 + i] + 2 * pool->padding[i] - pool->kernel[i]) / pool->stride[i] + 1;
    return shape;
}

static Case *pool_case(Cases *cases, const PoolCase *pool, OpId op, Format format, Shape shape,
                       Values values) {
    Case *test = case_new(cases, "%s, kernel %dx%d, stride %d, padding %d", values_name(values),
                          (int)pool->kernel[0], (int)pool->kernel[1], (int)pool->stride[0],
                          (int)pool->padding[0]);
    test->op = op;
    test->output_count = op_table[op].outputs;
    test->attr.pool = pool_attr(pool);
    test->zeros_expected = values.kind == VALUES_ZEROS;
    case_add(cases, test, format, shape, LIES_DENSE, values);
    return test;
}

static double window(const PoolCase *pool) {
    return (double)(pool->kernel[0] * pool->kernel[1]);
}

void cases_max_pool2d(Cases *cases) {
    for (int i = 0; i < POOL_CASES; i++)
        for (int k = 0; k <= EVERY_KIND; k++) {
            Values values = k < EVERY_KIND ? every_kind[k] : UNIFORM(-5, -1);
            Case *test =
                pool_case(cases, &pool_cases[i], cases->op, cases->format, pool_cases[i].x, values);
            // Where, among several NaN, or among numbers that are all flushed.
            test->ignored[1] = values.kind == VALUES_SPECIAL || values.kind == VALUES_SUBNORMAL;
            test->zeros_expected = true; // places are 0 often
            case_run(cases, test, cases->format);
        }
}

void cases_max_pool2d_backward(Cases *cases) {
    for (int i = 0; i < POOL_CASES; i++)
        for (int k = 0; k < 3 + EVERY_KIND; k++) {
            const PoolCase *pool = &pool_cases[i];
            Values values = k ? NORMAL : INTEGERS;
            if (k >= 3)
                values = every_sum(k - 3, cases->format, (int64_t)window(pool), 1);
            Case *before = pool_case(cases, pool, OP_max_pool2d, cases->format, pool->x, NORMAL);
            double *where = case_solve(cases, before, 1);
            case_free(before);
            if (!where)
                return;
            Case *test = pool_case(cases, pool, cases->op, k == 1 ? FORMAT_FP32 : cases->format,
                                   output_shape(pool), values);
            case_add_given(test, FORMAT_UINT8, output_shape(pool), where);
            free(where);
            test->bound[0].absolute = window(pool);
            test->zeros_expected = true; // all that was not the largest gets 0
            case_run(cases, test, k == 2 ? FORMAT_FP32 : cases->format);
        }
}

void cases_avg_pool2d(Cases *cases) {
    for (int i = 0; i < POOL_CASES; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Values values = every_sum(k, cases->format, (int64_t)window(&pool_cases[i]), 1);
            Case *test =
                pool_case(cases, &pool_cases[i], cases->op, cases->format, pool_cases[i].x, values);
            test->bound[0].absolute = window(&pool_cases[i]) + 2;
            case_run(cases, test, k == 1 ? FORMAT_FP32 : cases->format);
        }
}

void cases_avg_pool2d_backward(Cases *cases) {
    for (int i = 0; i < POOL_CASES; i++)
        for (int k = 0; k < 3 + EVERY_KIND; k++) {
            const PoolCase *pool = &pool_cases[i];
            Values values = k ? NORMAL : INTEGERS;
            if (k >= 3)
                values = every_sum(k - 3, cases->format, (int64_t)window(pool), 1);
            Case *test = pool_case(cases, pool, cases->op, k == 1 ? FORMAT_FP32 : cases->format,
                                   output_shape(pool), values);
            test->bound[0].absolute = window(pool) + 2;
            case_run(cases, test, k == 2 ? FORMAT_FP32 : cases->format);
        }
}
