// Cases of the matrix products.
#include <math.h>
#include <stdlib.h>

#include "precision/recipe.h"
#include "tests/conformance/cases.h"

double sum_terms(int64_t count) {
    return 8 + 2 * sqrt((double)count);
}

// Partial sums in fp32 err by at most one unit a term, whatever their order; the second counts what
// the products themselves, or their splitting into halves, lose.
static Bound product_bound(int64_t depth) {
    return (Bound){.absolute = 2 * (double)depth + 2};
}

// What the second factor holds when the first holds `values`: no product leaves fp32.
static Values partner(Format format, Values values, int64_t depth) {
    if (values.kind == VALUES_LARGE && format != FORMAT_FP16)
        return UNIFORM(-1.0 / (double)depth, 1.0 / (double)depth);
    if (values.kind == VALUES_SUBNORMAL && format != FORMAT_FP16)
        return (Values){VALUES_NORMAL, 0, 0x1p60};
    if (values.kind == VALUES_INTEGERS || values.kind == VALUES_ZEROS)
        return INTEGERS;
    return NORMAL;
}

static void matmul_case(Cases *cases, Shape a, Layout a_lies, Shape b, Layout b_lies, Values values,
                        Format out) {
    int64_t depth = a.size[a.ndim - 1];
    Case *test = case_new(cases, "%s", values_name(values));
    case_add(cases, test, cases->format, a, a_lies, values);
    case_add(cases, test, cases->format, b, b_lies, partner(cases->format, values, depth));
    test->bound[0] = product_bound(depth);
    test->zeros_expected = values.kind == VALUES_ZEROS;
    case_run(cases, test, out);
}

void cases_matmul(Cases *cases) {
    static const struct {
        Shape a, b;
    } shapes[] = {
        {{2, {17, 33}}, {2, {33, 19}}},
        {{2, {1, 1}}, {2, {1, 1}}},
        {{2, {1, 64}}, {2, {64, 1}}},
        {{2, {64, 1}}, {2, {1, 48}}},
        {{2, {32, 32}}, {2, {32, 32}}},
        {{2, {65, 130}}, {2, {130, 67}}},
        {{2, {3, 300}}, {2, {300, 5}}},
        {{3, {3, 7, 12}}, {3, {3, 12, 9}}},
        {{3, {4, 5, 16}}, {2, {16, 8}}},
        {{4, {2, 3, 16, 20}}, {4, {2, 3, 20, 24}}},
        {{4, {2, 1, 3, 4}}, {2, {4, 6}}},
        {{3, {1, 31, 2}}, {3, {1, 2, 31}}},
        {{2, {128, 96}}, {2, {96, 160}}},
        {{2, {0, 4}}, {2, {4, 3}}},
        {{4, {2, 3, 64, 20}}, {4, {2, 3, 20, 72}}},
    };
    static const Layout layouts[] = {LIES_DENSE, LIES_TRANSPOSED, LIES_SLICED};
    for (int i = 0; i < EVERY_KIND; i++)
        matmul_case(cases, shapes[0].a, LIES_DENSE, shapes[0].b, LIES_DENSE, every_kind[i],
                    cases->format);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        matmul_case(cases, shapes[i].a, LIES_DENSE, shapes[i].b, LIES_DENSE, INTEGERS,
                    cases->format);
        matmul_case(cases, shapes[i].a, LIES_DENSE, shapes[i].b, LIES_DENSE, NORMAL, FORMAT_FP32);
        for (int k = 1; k < 9; k++) {
            Values values = k & 1 ? NORMAL : INTEGERS;
            matmul_case(cases, shapes[i].a, layouts[k / 3], shapes[i].b, layouts[k % 3], values,
                        cases->format);
        }
    }
    matmul_case(cases, SHAPE(5, 9, 8), LIES_BROADCAST, SHAPE(5, 8, 7), LIES_DENSE, INTEGERS,
                cases->format);
    matmul_case(cases, SHAPE(5, 9, 8), LIES_DENSE, SHAPE(5, 8, 7), LIES_BROADCAST, NORMAL,
                cases->format);
    // Large enough for every thread and for the blocked routes.
    matmul_case(cases, SHAPE(257, 259), LIES_DENSE, SHAPE(259, 263), LIES_TRANSPOSED, NORMAL,
                cases->format);
    matmul_case(cases, SHAPE(130, 256), LIES_DENSE, SHAPE(256, 96), LIES_DENSE, INTEGERS,
                cases->format);
}

typedef struct LinearCase {
    Shape x;
    int64_t features;
    Layout x_lies, weight_lies;
    bool bias;
    Activation activation;
    Format bias_format;
    Layout bias_lies;
} LinearCase;

static void linear_case(Cases *cases, LinearCase linear, Values values, Format out) {
    int64_t depth = linear.x.size[linear.x.ndim - 1];
    Case *test = case_new(cases, "%s, activation %d", values_name(values), (int)linear.activation);
    Values other = partner(cases->format, values, depth);
    case_add(cases, test, cases->format, linear.x, linear.x_lies, values);
    case_add(cases, test, cases->format, SHAPE(linear.features, depth), linear.weight_lies, other);
    if (linear.bias)
        case_add(cases, test, linear.bias_format, SHAPE(linear.features), linear.bias_lies,
                 values.kind == VALUES_INTEGERS ? INTEGERS : NORMAL);
    else
        case_add_absent(test);
    test->attr.linear.activation = linear.activation;
    test->bound[0] = product_bound(depth + 1);
    if (linear.activation == ACTIVATION_TANH || linear.activation == ACTIVATION_SIGMOID)
        test->bound[0].ulps = 8;
    test->zeros_expected = values.kind == VALUES_ZEROS;
    case_run(cases, test, out);
}

void cases_linear(Cases *cases) {
    const Format low = cases->format;
    static const Shape shapes[] = {{2, {17, 33}},  {1, {7}},        {2, {1, 1}},
                                   {2, {32, 128}}, {3, {3, 5, 16}}, {4, {2, 3, 2, 9}},
                                   {2, {129, 64}}, {2, {8, 300}}};
    static const int64_t features[] = {19, 5, 1, 64, 16, 33, 66, 10};
    for (int i = 0; i < EVERY_KIND; i++)
        linear_case(cases,
                    (LinearCase){SHAPE(17, 33), 19, LIES_DENSE, LIES_DENSE,
                                 every_kind[i].kind != VALUES_SUBNORMAL, ACTIVATION_NONE, low,
                                 LIES_DENSE},
                    every_kind[i], low);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int activation = 0; activation < ACTIVATION_COUNT; activation++) {
            LinearCase linear = {shapes[i],   features[i], LIES_DENSE,
                                 LIES_DENSE,  true,        (Activation)activation,
                                 FORMAT_FP32, LIES_DENSE};
            bool exact = activation == ACTIVATION_NONE || activation == ACTIVATION_RELU;
            linear_case(cases, linear, exact ? INTEGERS : NORMAL, low);
            linear.bias_format = low;
            linear_case(cases, linear, NORMAL, FORMAT_FP32);
            linear.bias = false;
            linear_case(cases, linear, NORMAL, low);
            linear.bias = true;
            linear.x_lies = LIES_SLICED;
            linear.weight_lies = activation & 1 ? LIES_SLICED : LIES_DENSE;
            linear_case(cases, linear, exact ? INTEGERS : NORMAL, low);
            linear.x_lies = linear.weight_lies = LIES_DENSE;
            linear.bias_lies = LIES_SLICED;
            linear_case(cases, linear, NORMAL, low);
        }
    // What an activation makes of NaN and infinities.
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        linear_case(cases,
                    (LinearCase){shapes[i], features[i], LIES_DENSE, LIES_DENSE, i % 2 == 0,
                                 ACTIVATION_RELU, low, LIES_DENSE},
                    SPECIAL, low);
    LinearCase broadcast = {SHAPE(6, 24), 9, LIES_BROADCAST, LIES_DENSE, true, 0, low, LIES_DENSE};
    linear_case(cases, broadcast, INTEGERS, low);
    LinearCase large = {SHAPE(130, 257), 134, LIES_DENSE, LIES_DENSE, true,
                        ACTIVATION_RELU, low, LIES_DENSE};
    linear_case(cases, large, NORMAL, low);
    linear_case(cases, large, INTEGERS, FORMAT_FP32);
}

// ---- factors in scaled formats ------------------------------------------------------------------

typedef struct ScaleCase {
    Shape shape;
    Layout lies;
    int first, dims; // the depth
} ScaleCase;

enum { MOST_WAYS = 64 };

static bool is_same_way(const ScaleAttr *a, const ScaleAttr *b) {
    return a->element == b->element && a->scale == b->scale && a->block == b->block &&
           a->lines == b->lines && a->up == b->up && a->best == b->best &&
           a->at_random == b->at_random && a->hadamard == b->hadamard;
}

static int add_way(ScaleAttr ways[MOST_WAYS], int count, ScaleAttr way) {
    way.up = way.up && way.scale == FORMAT_E8M0; // of no other
    for (int i = 0; i < count; i++)
        if (is_same_way(&ways[i], &way))
            return count;
    if (count == MOST_WAYS)
        abort();
    ways[count] = way;
    return count + 1;
}

// How factors are rounded in every scaled format of the table, by what a recipe may change of it.
static int ways_to_scale(ScaleAttr ways[MOST_WAYS]) {
    static const char *const recipes[] = {"", "scales=floor", "gradients=e5m2", "fp8=blocks",
                                          "blocks=best"};
    static const char *const chances[] = {"rounding=nearest", "rounding=random"},
                             *const turns[] = {"hadamard=off", "hadamard=on"};
    int count = 0;
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
        for (int more = 0; more < 4; more++) {
            Recipe recipe;
            if (!recipe_parse(recipes[r], &recipe, NULL) ||
                !recipe_change(chances[more % 2], &recipe, NULL) ||
                !recipe_change(turns[more / 2], &recipe, NULL))
                abort();
            for (int f = 0; f < FORMAT_COUNT; f++)
                for (int role = 0; format_is_scaled((Format)f) && role < FACTOR_ROLES; role++)
                    count = add_way(ways, count,
                                    recipe_scale(&recipe, (Format)f, (FactorRole)role, more / 2));
        }
    return count;
}

static void scale_case(Cases *cases, const ScaleCase *shape, const ScaleAttr *way, Values values) {
    Case *test = case_new(cases, "%s as %s by %s of %d x %d%s%s%s%s", values_name(values),
                          format_name(way->element), format_name(way->scale), way->block,
                          way->lines, way->up ? ", up" : "", way->at_random ? ", at random" : "",
                          way->hadamard ? ", turned" : "", way->best ? ", the best" : "");
    case_add(cases, test, cases->format, shape->shape, shape->lies, values);
    test->attr.factor.by = *way;
    test->attr.factor.by.first = shape->first;
    test->attr.factor.by.dims = shape->dims;
    test->attr.factor.stream = (RandomAttr){.seed = 11, .offset = 5};
    test->zeros_expected = values.kind == VALUES_ZEROS || values.kind == VALUES_SUBNORMAL ||
                           values.kind == VALUES_TINY;
    case_run(cases, test, way->scale == FORMAT_E8M0 ? FORMAT_BF16 : FORMAT_FP32);
}

void cases_scale_factor(Cases *cases) {
    static const ScaleCase shapes[] = {
        {{2, {5, 96}}, LIES_DENSE, 1, 1},         {{2, {5, 96}}, LIES_TRANSPOSED, 1, 1},
        {{2, {70, 150}}, LIES_DENSE, 0, 1},       {{2, {3, 33}}, LIES_SLICED, 1, 1},
        {{2, {129, 300}}, LIES_DENSE, 1, 1},      {{4, {2, 3, 5, 7}}, LIES_DENSE, 0, 3},
        {{3, {4, 40, 20}}, LIES_STEPPED, 1, 1},   {{1, {1}}, LIES_DENSE, 0, 1},
        {{2, {200, 140}}, LIES_TRANSPOSED, 0, 1}, {{2, {0, 4}}, LIES_DENSE, 1, 1},
        {{4, {3, 2, 2, 200}}, LIES_DENSE, 3, 1},  {{2, {700, 3}}, LIES_DENSE, 0, 1},
        {{3, {2, 40, 650}}, LIES_DENSE, 1, 1}, // wider than what is looked at together
    };
    ScaleAttr ways[MOST_WAYS];
    const int count = ways_to_scale(ways);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int w = 0; w < count; w++)
            scale_case(cases, &shapes[i], &ways[w], NORMAL);
    for (int k = 0; k < EVERY_KIND; k++)
        for (int w = 0; w < count; w++)
            scale_case(cases, &shapes[k % 3], &ways[w], every_kind[k]);
    for (int i = 1; i < 3; i++) // turned, and across the depth: each by loops of its own
        for (int w = 0; w < count; w++)
            scale_case(cases, &shapes[i], &ways[w], SPECIAL);
}

// Rows as they come in training, and rows of anything.
void cases_scale_history(Cases *cases) {
    static const Shape shapes[] = {{2, {6, 19}}, {2, {3, 4}}, {2, {9, 40}}, {2, {0, 4}}};
    static const Layout layouts[] = {LIES_DENSE, LIES_TRANSPOSED, LIES_STEPPED};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k <= EVERY_KIND; k++) {
            const Values values = k == EVERY_KIND ? CLASSES(0, 30) : every_kind[k];
            Case *test = case_new(cases, "%s", values_name(values));
            case_add(cases, test, FORMAT_FP32, shapes[i].size[0] ? shapes[i] : SHAPE(3, 5),
                     layouts[k % 3], values);
            test->attr.history =
                (HistoryAttr){.largest = {448, 112, 57344}, .roles = 3, .is_recent = k % 2};
            test->zeros_expected = true; // of many rows nothing is left but what was met
            case_run(cases, test, FORMAT_FP32);
        }
}
