// The reference device's other kernels against values that can be checked by hand: what selects and
// arranges, reductions, creation, point-wise functions.
#include "kernel/random.h"
#include "tests/unit/ref_arrays.h"

// ---- selection and arrangement ------------------------------------------------------------------

static void embedding_picks_rows_and_adds_their_gradients(void) {
    View w = array_of(FORMAT_FP32, SHAPE(3, 2), VALUES(1, 2, 3, 4, 5, 6));
    View index = array_of(FORMAT_INT32, SHAPE(3), VALUES(2, 0, 2));
    View y = array(FORMAT_FP32, SHAPE(3, 2)), dw = array(FORMAT_FP32, SHAPE(3, 2));
    CHECK(RUN(embedding, NULL, IN(w, index), y));
    CHECK_VALUES(y, 0, 5, 6, 1, 2, 5, 6);
    CHECK(RUN(embedding_backward, NULL, IN(y, index), dw));
    CHECK_VALUES(dw, 0, 1, 2, 0, 0, 10, 12);
    set(&index, 1, 3);
    CHECK(!RUN(embedding, NULL, IN(w, index), y));
    CHECK_TEXT(last_error.text, "index 3 at position 2: the embedding has 3 rows");
    set(&index, 1, -1);
    CHECK(!RUN(embedding_backward, NULL, IN(y, index), dw));
    CHECK_CONTAINS(last_error.text, "index -1 at position 2");
}

static void gather_follows_its_dimension(void) {
    OpAttr attr = {.index = {.dim = 0}};
    View x = array_of(FORMAT_FP32, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    View index = array_of(FORMAT_INT32, SHAPE(1, 2), VALUES(1, 0));
    View y = array(FORMAT_FP32, SHAPE(1, 2)), dx = array(FORMAT_FP32, SHAPE(2, 2));
    CHECK(RUN(gather, &attr, IN(x, index), y));
    CHECK_VALUES(y, 0, 3, 2);
    CHECK(RUN(gather_backward, &attr, IN(y, index), dx));
    CHECK_VALUES(dx, 0, 0, 2, 3, 0);
    set(&index, 0, 2);
    CHECK(!RUN(gather, &attr, IN(x, index), y));
    CHECK_TEXT(last_error.text, "index 2 at position 1: dimension 1 has 2 elements");
}

static void cat_and_pad_place_their_inputs(void) {
    OpAttr attr = {.index = {.dim = 1}};
    View a = array_of(FORMAT_FP32, SHAPE(2, 1), VALUES(1, 2));
    View b = array_of(FORMAT_FP16, SHAPE(2, 2), VALUES(3, 4, 5, 6));
    View y = array(FORMAT_FP32, SHAPE(2, 3));
    CHECK(RUN(cat, &attr, IN(a, b), y));
    CHECK_VALUES(y, 0, 1, 3, 4, 2, 5, 6);
    OpAttr border = {.pad = {.before = {1, 0}, .after = {0, 1}, .value = 9}};
    View padded = array(FORMAT_FP32, SHAPE(3, 2));
    CHECK(RUN(pad, &border, IN(a), padded));
    CHECK_VALUES(padded, 0, 9, 9, 1, 9, 2, 9);
}

static void where_broadcasts_all_three(void) {
    View condition = array_of(FORMAT_UINT8, SHAPE(2), VALUES(1, 0));
    View x = array_of(FORMAT_FP32, SHAPE(2, 1), VALUES(1, 2)), other = number(7);
    View y = array(FORMAT_FP32, SHAPE(2, 2));
    CHECK(RUN(where, NULL, IN(condition, x, other), y));
    CHECK_VALUES(y, 0, 1, 7, 2, 7);
}

static void cast_rounds_and_makes_dense(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 2), VALUES(2049, 1, 65520, -0x1p-25));
    View y = array(FORMAT_FP16, SHAPE(2, 2));
    x.stride[0] = 1;
    x.stride[1] = 2;
    CHECK(RUN(cast, NULL, IN(x), y));
    CHECK_VALUES(y, 0, 2048, INFINITY, 1, 0);
    View low = array_of(FORMAT_FP16, SHAPE(2), VALUES(0x1p-24, -0.5));
    View bits = array(FORMAT_E4M3, SHAPE(2)), back = array(FORMAT_FP64, SHAPE(2));
    CHECK(RUN(cast, NULL, IN(low), back));
    CHECK_VALUES(back, 0, 0x1p-24, -0.5);
    View large = array_of(FORMAT_FP32, SHAPE(2), VALUES(1.1875, 464.01));
    CHECK(RUN(cast, NULL, IN(large), bits));
    CHECK_INT(((uint8_t *)bits.data)[0], 0x3A);
    CHECK_INT(((uint8_t *)bits.data)[1], 0x7E);
}

static void dropout_follows_the_stream(void) {
    OpAttr attr = {.dropout = {.probability = 0.25, .stream = {.seed = 5, .offset = 100}}};
    View x = array(FORMAT_FP32, SHAPE(400)), y = array(FORMAT_FP32, SHAPE(400));
    int kept = 0;
    for (int i = 0; i < 400; i++)
        set(&x, i, 3);
    CHECK(RUN(dropout, &attr, IN(x), y));
    for (int i = 0; i < 400; i++) {
        RandomBlock block = random_block(5, 100 + (uint64_t)i / 4);
        CHECK_NEAR(at(&y, i), random_uniform(block.word[i % 4]) < 0.25f ? 0 : 4, 0);
        kept += at(&y, i) != 0;
    }
    CHECK(kept > 260 && kept < 340);
}

// ---- reductions, creation -----------------------------------------------------------------------

static void reductions_take_any_dimensions(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 1, 3), VALUES(1, 2, 3, 4, 5, 9));
    View rows = array(FORMAT_FP32, SHAPE(2, 1)), columns = array(FORMAT_FP32, SHAPE(1, 1, 3));
    View all = array(FORMAT_FP32, 0, NULL);
    OpAttr last = {.reduce = {.dims = 1u << 2}}, outer = {.reduce = {.dims = 3, .keep = true}};
    CHECK(RUN(sum, &last, IN(x), rows));
    CHECK_VALUES(rows, 0, 6, 18);
    CHECK(RUN(mean, &outer, IN(x), columns));
    CHECK_VALUES(columns, 0, 2.5, 3.5, 6);
    CHECK(RUN(mean, NULL, IN(x), all));
    CHECK_VALUES(all, 0, 4);
    CHECK(RUN(min, &outer, IN(x), columns));
    CHECK_VALUES(columns, 0, 1, 2, 3);
    set(&x, 1, NAN);
    CHECK(RUN(max, &last, IN(x), rows));
    CHECK_VALUES(rows, 0, NAN, 9);
    x.stride[2] = 0; // broadcast
    CHECK(RUN(sum, &last, IN(x), rows));
    CHECK_VALUES(rows, 0, 3, 12);
}

static void random_numbers_lie_where_they_should(void) {
    enum { COUNT = 500 };
    OpAttr attr = {.create = {.a = -2, .b = 3}, .random = {.seed = 7, .offset = 3}};
    View y = array(FORMAT_FP64, SHAPE(COUNT)), whole = array(FORMAT_INT32, SHAPE(COUNT));
    double sum = 0, squares = 0;
    int seen[5] = {0};
    CHECK(run_op(OP_uniform, &attr, 0, NULL, IN(y)));
    CHECK_NEAR(at(&y, 5), -2 + 5 * (double)random_uniform(random_block(7, 4).word[1]), 0);
    CHECK(run_op(OP_randint, &attr, 0, NULL, IN(whole)));
    for (int i = 0; i < COUNT; i++) {
        CHECK(at(&y, i) >= -2 && at(&y, i) < 3);
        CHECK(at(&whole, i) >= -2 && at(&whole, i) < 3);
        CHECK_NEAR(at(&whole, i), floor(at(&y, i)), 0); // the same words, rounded down
        seen[(int)at(&whole, i) + 2]++;
    }
    for (int i = 0; i < 5; i++)
        CHECK(seen[i] > 60);
    CHECK(run_op(OP_normal, &attr, 0, NULL, IN(y)));
    for (int i = 0; i < COUNT; i++) {
        double z = (at(&y, i) + 2) / 3;
        sum += z;
        squares += z * z;
    }
    CHECK_NEAR(sum / COUNT, 0, 0.2);
    CHECK_NEAR(squares / COUNT, 1, 0.25);
    RandomBlock block = random_block(7, 3);
    double radius = sqrt(-2 * log(1 - (double)random_uniform(block.word[2])));
    double angle = 2 * acos(-1) * (double)random_uniform(block.word[3]);
    CHECK_NEAR(at(&y, 2), -2 + 3 * radius * cos(angle), 1e-12);
    CHECK_NEAR(at(&y, 3), -2 + 3 * radius * sin(angle), 1e-12);
    View low = array(FORMAT_FP16, SHAPE(COUNT));
    for (int k = 0; k < 2; k++) { // nothing lies between; half would be rounded to the limit
        attr.create = (CreateAttr){.a = 1, .b = 1 + k * 0x1p-10};
        CHECK(run_op(OP_uniform, &attr, 0, NULL, IN(low)));
        for (int i = 0; i < COUNT; i++)
            CHECK_NEAR(at(&low, i), 1, 0);
    }
}

static void constants_are_filled_in(void) {
    OpAttr attr = {.create = {.a = 1.5, .b = 0.25}};
    View y = array(FORMAT_BF16, SHAPE(3));
    CHECK(run_op(OP_fill, &attr, 0, NULL, IN(y)));
    CHECK_VALUES(y, 0, 1.5, 1.5, 1.5);
    CHECK(run_op(OP_arange, &attr, 0, NULL, IN(y)));
    CHECK_VALUES(y, 0, 1.5, 1.75, 2);
}

// ---- point-wise ---------------------------------------------------------------------------------

static void functions_and_derivatives_are_the_known_ones(void) {
    View x = array_of(FORMAT_FP32, SHAPE(3), VALUES(-1, 0, 2)), y = array(FORMAT_FP64, SHAPE(3));
    View dy = array_of(FORMAT_FP64, SHAPE(3), VALUES(1, 2, 3)), dx = array(FORMAT_FP64, SHAPE(3));
    CHECK(RUN(gelu, NULL, IN(x), y));
    CHECK_VALUES(y, 1e-7, -0.158655254, 0, 1.954499736);
    CHECK(RUN(relu, NULL, IN(x), y));
    CHECK_VALUES(y, 0, 0, 0, 2);
    CHECK(RUN(relu_backward, NULL, IN(dy, y), dx));
    CHECK_VALUES(dx, 0, 0, 0, 3);
    OpAttr slope = {.scalar = {.a = 0.1}};
    CHECK(RUN(leaky_relu_backward, &slope, IN(dy, x), dx));
    CHECK_VALUES(dx, 1e-12, 0.1, 0.2, 3); // the slope at 0 is that of the left, as in PyTorch
    CHECK(RUN(sigmoid, NULL, IN(x), y));
    CHECK_VALUES(y, 1e-9, 0.2689414214, 0.5, 0.8807970780);
    CHECK(RUN(sigmoid_backward, NULL, IN(dy, y), dx));
    CHECK_VALUES(dx, 1e-9, 0.1966119332, 0.5, 0.3149807562);
}

// Each derivative against the difference of its function, over the inputs that the table names.
static void derivatives_match_differences(void) {
#define SAVE_X x
#define SAVE_Y y
#define UNARY(name, class, saved, forward, derivative, error, low, high, text)               \
    for (double point = low + 0.05; point < high; point += (high - low) / 7.3) {             \
        OpAttr attr = {.scalar = {.a = -0.6, .b = 0.7}};                                     \
        View x = array_of(FORMAT_FP64, SHAPE(3), VALUES(point - 1e-6, point, point + 1e-6)); \
        View y = array(FORMAT_FP64, SHAPE(3)), dx = array(FORMAT_FP64, SHAPE(3));            \
        View dy = array_of(FORMAT_FP64, SHAPE(3), VALUES(1, 1, 1));                          \
        CHECK(RUN(name, &attr, IN(x), y));                                                   \
        CHECK(RUN(name##_backward, &attr, IN(dy, saved), dx));                               \
        double change = (at(&y, 2) - at(&y, 0)) / 2e-6;                                      \
        CHECK_MESSAGE(fabs(at(&dx, 1) - change) <= 1e-6 * (1 + fabs(change)),                \
                      #name " at %g: %.9g, by difference %.9g", point, at(&dx, 1), change);  \
    }
#define LOSS(name, class, forward, derivative, low, high, text)                             \
    for (double point = low + 0.05; point < high; point += (high - low) / 7.3) {            \
        View t = number(0.4), y = number(0), dx = number(0), two = number(2);               \
        View below = number(point - 1e-6), x = number(point), above = number(point + 1e-6); \
        CHECK(RUN(name, NULL, IN(above, t), y));                                            \
        double change = at(&y, 0);                                                          \
        CHECK(RUN(name, NULL, IN(below, t), y));                                            \
        change = (change - at(&y, 0)) / 1e-6; /* twice the derivative: dloss is 2 */        \
        CHECK(RUN(name##_backward, NULL, IN(two, x, t), dx));                               \
        CHECK_MESSAGE(fabs(at(&dx, 0) - change) <= 1e-6 * (1 + fabs(change)),               \
                      #name " at %g: %.9g, by difference %.9g", point, at(&dx, 0), change); \
    }
#include "kernel/pointwise.def"
}

static void pairs_broadcast_and_nan_stays(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 1), VALUES(1, NAN));
    View y = array_of(FORMAT_FP16, SHAPE(2), VALUES(3, -4)), z = array(FORMAT_FP32, SHAPE(2, 2));
    View mask = array(FORMAT_UINT8, SHAPE(2, 2));
    CHECK(RUN(sub, NULL, IN(x, y), z));
    CHECK_VALUES(z, 0, -2, 5, NAN, NAN);
    CHECK(RUN(maximum, NULL, IN(x, y), z));
    CHECK_VALUES(z, 0, 3, 1, NAN, NAN);
    CHECK(RUN(greater, NULL, IN(x, y), mask));
    CHECK_VALUES(mask, 0, 0, 1, 0, 0);
}

static void losses_are_means(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2), VALUES(1, 4)), dx = array(FORMAT_FP32, SHAPE(2));
    View t = array_of(FORMAT_FP32, SHAPE(2), VALUES(0, 1)), loss = number(0), dloss = number(10);
    CHECK(RUN(mse, NULL, IN(x, t), loss));
    CHECK_VALUES(loss, 0, 5);
    CHECK(RUN(mse_backward, NULL, IN(dloss, x, t), dx));
    CHECK_VALUES(dx, 0, 10, 30);
    CHECK(RUN(l1, NULL, IN(x, t), loss));
    CHECK_VALUES(loss, 0, 2);
    View far = array_of(FORMAT_FP32, SHAPE(2), VALUES(-1000, 1000));
    CHECK(RUN(bce_with_logits, NULL, IN(far, t), loss));
    CHECK_VALUES(loss, 0, 0);
}

int main(void) {
    if (!ref_test_begin())
        return 1;
    RUN_TEST(embedding_picks_rows_and_adds_their_gradients);
    RUN_TEST(gather_follows_its_dimension);
    RUN_TEST(cat_and_pad_place_their_inputs);
    RUN_TEST(where_broadcasts_all_three);
    RUN_TEST(cast_rounds_and_makes_dense);
    RUN_TEST(dropout_follows_the_stream);
    RUN_TEST(reductions_take_any_dimensions);
    RUN_TEST(random_numbers_lie_where_they_should);
    RUN_TEST(constants_are_filled_in);
    RUN_TEST(functions_and_derivatives_are_the_known_ones);
    RUN_TEST(derivatives_match_differences);
    RUN_TEST(pairs_broadcast_and_nan_stays);
    RUN_TEST(losses_are_means);
    return ref_test_end();
}
