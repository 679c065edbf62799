// What a trained weight has beside its value: where its memory is counted, how it is written.
#include "tests/unit/engine_fixture.h"

static size_t in_use(MemoryPurpose purpose) {
    return allocator_use(fixture_device->allocator).now[purpose];
}

// Whichever of the two the model trains: what is low counts as weights, the fp32 beside it as
// masters.
static void the_wider_of_value_and_copy_counts_as_master(void) {
    const int64_t shape[1] = {1024};
    for (int low = 0; low < 2; low++) { // masters under O2; O3 with a layer set to fp32
        engine_open("ref", "fp32");
        Format value = low ? FORMAT_FP16 : FORMAT_FP32, copy = low ? FORMAT_FP32 : FORMAT_FP16;
        Tensor *w = tensor_new(fixture_device, value, 1, shape, MEMORY_WEIGHTS, NULL);
        CHECK(parameter_attach(w, "w", 0, false, NULL));
        CHECK(parameter_in_format(w, copy, NULL) != NULL);
        CHECK_INT(in_use(MEMORY_MASTERS), 4096);
        CHECK_INT(in_use(MEMORY_WEIGHTS), 2048);
        const MemoryUse use = allocator_use(fixture_device->allocator);
        CHECK_INT(use.peak[MEMORY_MASTERS], 4096);
        CHECK_INT(use.peak[MEMORY_WEIGHTS], 2048); // what became a master was never a weight
        CHECK_INT(use.lap_peak[MEMORY_WEIGHTS], 2048);
        tensor_release(w);
        engine_close();
    }
}

static Tensor *weights(int64_t n, const float *values) {
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 1, &n, values, MEMORY_WEIGHTS, NULL);
    CHECK(parameter_attach(w, "w", 0, false, NULL));
    return w;
}

static void check_values(const Tensor *tensor, float first, float second) {
    float values[2] = {NAN, NAN};
    CHECK(tensor_read(tensor, values, NULL));
    CHECK_NEAR(values[0], first, 0);
    CHECK_NEAR(values[1], second, 0);
}

static void weights_that_are_written_stay_weights(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *w = weights(2, (float[]){1, 2}), *source = vector(2, (float[]){3, 4});
    size_t before = in_use(MEMORY_WEIGHTS);
    CHECK(parameter_in_format(w, FORMAT_BF16, NULL));
    CHECK_MESSAGE(parameter_write(w, source, &error), "%s", error.text);
    check_values(w, 3, 4);
    CHECK(!parameter_of(w)->low); // it is of the old values
    CHECK_INT(in_use(MEMORY_WEIGHTS) + in_use(MEMORY_MASTERS), before);
    size_t counted = in_use(MEMORY_MASTERS);
    Tensor *other = vector(2, (float[]){5, 6});
    tensor_adopt(w, other);
    check_values(w, 5, 6);
    CHECK_INT(in_use(MEMORY_MASTERS), counted);
    tensor_release(other);
    tensor_release(source);
    tensor_release(w);
    engine_close();
}

static void a_parameter_without_a_master_is_kept_low_itself(void) {
    engine_open("ref", "fp32");
    Tensor *w = weights(2, (float[]){1, 0.1f});
    CHECK(parameter_in_format(w, FORMAT_BF16, NULL));
    CHECK(parameter_store_in(w, FORMAT_FP16, NULL));
    uint16_t kept[2] = {0};
    CHECK(w->view.format == FORMAT_FP16 && tensor_read(w, kept, NULL));
    CHECK(kept[0] == 0x3C00 && kept[1] == 0x2E66);
    CHECK(!parameter_of(w)->low && w->requires_grad);
    CHECK_INT(in_use(MEMORY_MASTERS), 0);
    CHECK(in_use(MEMORY_WEIGHTS) > 0);
    tensor_release(w);
    CHECK_INT(in_use(MEMORY_WEIGHTS), 0);
    engine_close();
}

static void a_tensor_is_written_from_its_own_views(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    float values[4] = {1, 2, 3, 4};
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){2, 2}, values,
                                 MEMORY_DATA, NULL);
    Tensor *turned = op_transpose(engine, w, 0, 1, NULL);
    CHECK_MESSAGE(parameter_write(w, turned, &error), "%s", error.text);
    CHECK(tensor_read(w, values, NULL));
    CHECK(values[0] == 1 && values[1] == 3 && values[2] == 2 && values[3] == 4);
    tensor_release(turned);
    tensor_release(w);
    engine_close();
}

static void only_leaves_of_the_same_shape_are_written(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(vector(2, (float[]){1, 2})), *one = vector(1, (float[]){1});
    Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
    Tensor *wide = vector(4, (float[]){1, 2, 3, 4});
    View gaps = wide->view;
    gaps.shape[0] = 2;
    gaps.stride[0] = 2;
    Tensor *every_other = tensor_view(wide, &gaps, NULL);
    const struct {
        Tensor *target, *source;
        const char *why;
    } cases[] = {{y, x, "copy: [2] fp32 was computed from other tensors"},
                 {x, one, "copy: [1] fp32 cannot be copied onto [2] fp32"},
                 {every_other, x, "copy: [2] fp32 is a view with gaps"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error error = {0};
        CHECK(!parameter_write(cases[i].target, cases[i].source, &error));
        CHECK_CONTAINS(error.text, cases[i].why);
    }
    Tensor *const all[] = {x, one, y, wide, every_other};
    for (int i = 0; i < 5; i++)
        tensor_release(all[i]);
    engine_close();
}

static bool writes(Tensor *tensor, Tensor *source) {
    return parameter_write(tensor, source, NULL);
}

static bool adopts(Tensor *tensor, Tensor *source) {
    tensor_adopt(tensor, source);
    return true;
}

// The derivative of a product needs its factors as they were.
static void a_graph_whose_tensors_were_overwritten_is_refused(void) {
    bool (*const ways[])(Tensor *, Tensor *) = {writes, adopts};
    for (int i = 0; i < 2; i++) {
        engine_open("ref", "fp32");
        Error error = {0};
        Tensor *x = leaf(number(3)), *w = leaf(number(4)), *source = number(5);
        Tensor *square = op_two(engine, OP_mul, w, w, NULL, NULL);
        Tensor *sum = op_two(engine, OP_add, w, square, NULL, NULL);
        Tensor *y = op_two(engine, OP_mul, x, sum, NULL, NULL);
        CHECK(ways[i](w, source));
        CHECK(!engine_backward(engine, y, NULL, NULL, &error));
        CHECK_CONTAINS(error.text, "mul: a tensor that its derivative needs, [] fp32");
        tensor_release(w->grad); // what came before the refusal
        w->grad = NULL;
        tensor_release(sum);
        sum = op_two(engine, OP_add, w, x, NULL, NULL); // a new pass may be walked
        CHECK(engine_backward(engine, sum, NULL, NULL, &error));
        CHECK_NEAR(item(w->grad), 1, 0);
        Tensor *const all[] = {x, w, source, square, sum, y};
        for (int k = 0; k < 6; k++)
            tensor_release(all[k]);
        engine_close();
    }
}

int main(void) {
    RUN_TEST(the_wider_of_value_and_copy_counts_as_master);
    RUN_TEST(weights_that_are_written_stay_weights);
    RUN_TEST(a_parameter_without_a_master_is_kept_low_itself);
    RUN_TEST(a_tensor_is_written_from_its_own_views);
    RUN_TEST(only_leaves_of_the_same_shape_are_written);
    RUN_TEST(a_graph_whose_tensors_were_overwritten_is_refused);
    return test_end();
}
