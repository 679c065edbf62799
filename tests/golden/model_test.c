// What must hold of whole models in every format, on every device: derivatives, loss scales, skips,
// repetition, changes of precision, accumulation, memory.
#include "tests/device.h"
#include "tests/golden/model.h"

static ModelOptions place; // the kind and device of the test that runs

static ModelOptions in_precision(const char *precision) {
    ModelOptions options = place;
    options.precision = precision;
    return options;
}

static const char *const precisions[] = {"fp32", "bf16", "fp16"};
enum { PRECISIONS = 3 };

// ---- derivatives --------------------------------------------------------------------------------

static double loss_beside(Model *model, int parameter, const double *start, const double *direction,
                          double step) {
    double moved[MODEL_MOST], value = NAN;
    int64_t count = tensor_count(model->parameters[parameter]);
    for (int64_t i = 0; i < count; i++)
        moved[i] = start[i] + step * direction[i];
    model_write(model, model->parameters[parameter], moved);
    engine_seed(model->engine, 7); // the same dropout
    Tensor *loss = model_loss(model, 0, 0, MODEL_BATCH);
    if (loss)
        DONE(tensor_item(loss, &value, &error));
    tensor_release(loss);
    model_write(model, model->parameters[parameter], start);
    return value;
}

static void derivatives_follow_differences(void) {
    Model model;
    ModelOptions options = in_precision("fp32");
    options.format = FORMAT_FP64;
    model_open(&model, options);
    engine_seed(model.engine, 7);
    model_backward(&model, 0, 0, MODEL_BATCH, 1);
    for (int p = 0; p < model.count && !test_why[0]; p++) {
        double start[MODEL_MOST], gradient[MODEL_MOST], direction[MODEL_MOST];
        double slope = 0, length = 0;
        uint64_t state = 77 + (uint64_t)p;
        int64_t count = tensor_count(model.parameters[p]);
        CHECK(model.parameters[p]->grad);
        model_values(model.parameters[p], start);
        model_values(model.parameters[p]->grad, gradient);
        for (int64_t i = 0; i < count; i++) {
            direction[i] = model_number(&state);
            slope += gradient[i] * direction[i];
            length += fabs(gradient[i] * direction[i]);
        }
        const double h = 2e-4; // small, since a maximum in the pool may change hands
        double ahead = loss_beside(&model, p, start, direction, h);
        double behind = loss_beside(&model, p, start, direction, -h);
        double measured = (ahead - behind) / (2 * h);
        // Statistics are kept in fp32: 1e-7 of the loss is 3e-4 of the difference.
        CHECK_MESSAGE(fabs(measured - slope) <= 5e-4 + 2e-3 * length,
                      "parameter %d: the derivative is %.9g, differences give %.9g", p, slope,
                      measured);
    }
    model_zero_grad(&model);
    model_close(&model);
}

// The walk back in fp32 comes out as that of the reference device.
static void gradients_agree_with_the_reference(void) {
    Model model, oracle;
    model_open(&model, in_precision("fp32"));
    ModelOptions options = in_precision("fp32");
    options.device = "ref";
    options.format = FORMAT_FP64;
    model_open(&oracle, options);
    double loss = model_backward(&model, 0, 0, MODEL_BATCH, 1);
    CHECK_NEAR(loss, model_backward(&oracle, 0, 0, MODEL_BATCH, 1), 1e-5);
    for (int p = 0; p < model.count; p++) {
        double got[MODEL_MOST], wanted[MODEL_MOST];
        model_values(model.parameters[p]->grad, got);
        model_values(oracle.parameters[p]->grad, wanted);
        for (int64_t i = 0; i < tensor_count(model.parameters[p]); i++)
            CHECK_MESSAGE(fabs(got[i] - wanted[i]) <= 1e-5 + 1e-4 * fabs(wanted[i]),
                          "%s[%d] is %.9g, expected %.9g", parameter_of(model.parameters[p])->name,
                          (int)i, got[i], wanted[i]);
    }
    model_zero_grad(&model);
    model_zero_grad(&oracle);
    model_close(&model);
    model_close(&oracle);
}

// ---- loss scales --------------------------------------------------------------------------------

static void unscaled_gradients(const char *precision, double scale, double *gradients, int *count) {
    Model model;
    ModelOptions options = in_precision(precision);
    options.scale = scale;
    model_open(&model, options);
    model_backward(&model, 0, 0, MODEL_BATCH, 1);
    DONE(scaler_unscale(model.scaler, optimizer_gradients(model.optimizer), &error));
    CHECK(!optimizer_report(model.optimizer).found_inf);
    *count = 0;
    for (int p = 0; p < model.count; p++) {
        model_values(model.parameters[p]->grad, gradients + *count);
        *count += (int)tensor_count(model.parameters[p]);
    }
    model_close(&model);
}

static void a_scale_of_two_to_the_k_changes_no_bit(void) {
    static const double scales[] = {0x1p-6, 2, 0x1p10, 0x1p16};
    static double plain[MODEL_MOST], scaled[MODEL_MOST];
    for (int p = 0; p < 2; p++) { // fp32 and bf16, whose exponents reach far
        int count, other;
        unscaled_gradients(precisions[p], 1, plain, &count);
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            unscaled_gradients(precisions[p], scales[s], scaled, &other);
            for (int i = 0; i < count; i++)
                CHECK_MESSAGE(plain[i] == scaled[i], "%s, scale %g: gradient %d is %.9g, not %.9g",
                              precisions[p], scales[s], i, scaled[i], plain[i]);
        }
    }
}

// ---- skips --------------------------------------------------------------------------------------

// Steps 0, 1 and 2; between them a poisoned one that must leave no trace.
static void a_poisoned_step_leaves_every_bit(void) {
    for (int p = 0; p < PRECISIONS; p++) {
        Model model, control;
        static ModelState before, after, expected;
        model_open(&model, in_precision(precisions[p]));
        model_open(&control, in_precision(precisions[p]));
        for (int step = 0; step < 2; step++) {
            model_step(&model, step, false);
            model_step(&control, step, false);
        }
        model_save(&model, &before);
        uint64_t position = model.engine->random_position;
        model_step(&model, 5, true);
        model_save(&model, &after);
        CHECK_MESSAGE(model_difference(&before, &after) < 0, "%s: value %d has changed",
                      precisions[p], model_difference(&before, &after));
        CHECK_INT(after.applied, 2);
        CHECK_INT(optimizer_report(model.optimizer).skipped, 1);
        model.engine->random_position = position;
        model_step(&model, 2, false);
        model_step(&control, 2, false);
        model_save(&model, &after);
        model_save(&control, &expected);
        CHECK_MESSAGE(model_difference(&after, &expected) < 0,
                      "%s: value %d went another way after the skip", precisions[p],
                      model_difference(&after, &expected));
        CHECK_MESSAGE(model_difference(&before, &after) >= 0, "a clean step changed nothing");
        model_close(&model);
        model_close(&control);
    }
}

// Running statistics in particular, which the forward pass moves before anybody knows.
static void a_poisoned_step_takes_running_statistics_back(void) {
    Model model;
    double before[4], after[4];
    model_open(&model, in_precision("bf16"));
    model_step(&model, 0, false);
    model_values(model.buffers[1], before);
    CHECK_MESSAGE(before[0] != 1, "the running variance has not moved at all");
    model_step(&model, 1, true);
    model_values(model.buffers[1], after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    model_close(&model);
}

// ---- repetition ---------------------------------------------------------------------------------

static void the_same_seed_gives_the_same_bits(void) {
    static ModelState first, second;
    for (int p = 0; p < PRECISIONS; p++)
        for (int threads = 1; threads <= 2; threads++) {
            for (int turn = 0; turn < 2; turn++) {
                Model model;
                ModelOptions options = in_precision(precisions[p]);
                options.threads = threads;
                model_open(&model, options);
                for (int step = 0; step < 4; step++)
                    model_step(&model, step, false);
                model_save(&model, turn ? &second : &first);
                model_close(&model);
            }
            CHECK_MESSAGE(model_difference(&first, &second) < 0, "%s, %d threads: value %d",
                          precisions[p], threads, model_difference(&first, &second));
        }
}

// ---- changes of precision -----------------------------------------------------------------------

// A run that sets `pattern` to fp32 after three steps, against a fresh engine that begins in the
// state of that moment with `options`.
static void toggled_equals(const char *precision, const char *pattern, ModelOptions options) {
    Model toggled, fresh;
    static ModelState state, end, expected;
    model_open(&toggled, in_precision(precision));
    for (int step = 0; step < 3; step++)
        model_step(&toggled, step, false);
    model_save(&toggled, &state);
    DONE(policy_queue(toggled.engine->policy, pattern, LAYER_FP32, &error));
    CHECK_INT(policy_apply_queued(toggled.engine->policy), 1);
    model_open(&fresh, options);
    model_load(&fresh, &state);
    for (int step = 3; step < 6; step++) {
        double loss = model_step(&toggled, step, false);
        double other = model_step(&fresh, step, false);
        CHECK_MESSAGE(loss == other, "%s, %s: the loss of step %d is %.9g, not %.9g", precision,
                      pattern, step, loss, other);
    }
    model_save(&toggled, &end);
    model_save(&fresh, &expected);
    CHECK_MESSAGE(model_difference(&end, &expected) < 0, "%s, %s: value %d differs", precision,
                  pattern, model_difference(&end, &expected));
    CHECK_INT(end.applied, expected.applied);
    model_close(&toggled);
    model_close(&fresh);
}

static void a_toggled_layer_is_as_if_it_had_begun_so(void) {
    for (int p = 1; p < PRECISIONS; p++) {
        ModelOptions options = in_precision(precisions[p]);
        options.layer = "head";
        toggled_equals(precisions[p], "head", options);
        options.layer = "body";
        toggled_equals(precisions[p], "body", options);
    }
}

static void all_layers_in_fp32_are_an_fp32_run(void) {
    for (int p = 1; p < PRECISIONS; p++)
        toggled_equals(precisions[p], "*", in_precision("fp32"));
}

// A toggle that changed nothing would pass the two above.
static void a_toggled_layer_computes_otherwise(void) {
    Model plain, toggled;
    ModelOptions options = in_precision("bf16");
    model_open(&plain, options);
    options.layer = "head";
    model_open(&toggled, options);
    CHECK(model_step(&plain, 0, false) != model_step(&toggled, 0, false));
    model_close(&plain);
    model_close(&toggled);
}

// ---- accumulation -------------------------------------------------------------------------------

static void two_half_batches_are_one_whole(void) {
    Model whole, halves;
    model_open(&whole, in_precision("fp32"));
    model_open(&halves, in_precision("fp32"));
    whole.evaluating = halves.evaluating =
        true; // statistics of a batch are not those of its halves
    model_backward(&whole, 0, 0, MODEL_BATCH, 1);
    model_backward(&halves, 0, 0, MODEL_BATCH / 2, 0.5);
    model_backward(&halves, 0, MODEL_BATCH / 2, MODEL_BATCH / 2, 0.5);
    for (int p = 0; p < whole.count; p++) {
        double a[MODEL_MOST], b[MODEL_MOST];
        model_values(whole.parameters[p]->grad, a);
        model_values(halves.parameters[p]->grad, b);
        for (int64_t i = 0; i < tensor_count(whole.parameters[p]); i++)
            CHECK_MESSAGE(fabs(a[i] - b[i]) <= 1e-6 + 1e-5 * fabs(a[i]), "%s[%d]: %.9g and %.9g",
                          parameter_of(whole.parameters[p])->name, (int)i, a[i], b[i]);
    }
    model_close(&whole);
    model_close(&halves);
}

// ---- memory -------------------------------------------------------------------------------------

static void a_steady_training_asks_the_system_for_nothing(void) {
    for (int p = 0; p < PRECISIONS; p++) {
        Model model;
        MemoryUse settled = {0};
        model_open(&model, in_precision(precisions[p]));
        for (int step = 1; step <= 12; step++) {
            model_step(&model, step, step == 6);
            MemoryUse use = allocator_use(model.device->allocator);
            if (step == 2)
                settled = use;
            if (step <= 2)
                continue;
            CHECK_MESSAGE(use.system_calls == settled.system_calls,
                          "%s, step %d: the system was asked %llu times, %llu after step 2",
                          precisions[p], step, (unsigned long long)use.system_calls,
                          (unsigned long long)settled.system_calls);
            CHECK_MESSAGE(use.total_now == settled.total_now,
                          "%s, step %d: %zu bytes are in use, %zu after step 2", precisions[p],
                          step, use.total_now, settled.total_now);
        }
        model_close(&model);
    }
}

int main(void) {
    static const struct {
        const char *name;
        void (*body)(void);
        bool on_any, has_batch_norm;
    } tests[] = {
        {"derivatives_follow_differences", derivatives_follow_differences, false, false},
        {"gradients_agree_with_the_reference", gradients_agree_with_the_reference, true, false},
        {"a_scale_of_two_to_the_k_changes_no_bit", a_scale_of_two_to_the_k_changes_no_bit, true,
         false},
        {"a_poisoned_step_leaves_every_bit", a_poisoned_step_leaves_every_bit, true, false},
        {"a_poisoned_step_takes_running_statistics_back",
         a_poisoned_step_takes_running_statistics_back, true, true},
        {"the_same_seed_gives_the_same_bits", the_same_seed_gives_the_same_bits, true, false},
        {"a_toggled_layer_is_as_if_it_had_begun_so", a_toggled_layer_is_as_if_it_had_begun_so, true,
         false},
        {"all_layers_in_fp32_are_an_fp32_run", all_layers_in_fp32_are_an_fp32_run, true, false},
        {"a_toggled_layer_computes_otherwise", a_toggled_layer_computes_otherwise, true, false},
        {"two_half_batches_are_one_whole", two_half_batches_are_one_whole, true, false},
        {"a_steady_training_asks_the_system_for_nothing",
         a_steady_training_asks_the_system_for_nothing, true, false},
    };
    static const char *const kinds[MODEL_KINDS] = {"images", "attention"};
    const char *const *devices = test_device_names();
    for (int d = 0; devices[d]; d++)
        for (int kind = 0; kind < MODEL_KINDS; kind++) {
            place = (ModelOptions){
                .kind = (ModelKind)kind, .device = devices[d], .threads = 1, .format = FORMAT_FP32};
            for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
                char name[128];
                if ((strcmp(devices[d], "ref") != 0 && !tests[i].on_any) ||
                    (kind != MODEL_IMAGES && tests[i].has_batch_norm))
                    continue;
                snprintf(name, sizeof name, "%s_%s_%s", tests[i].name, kinds[kind], devices[d]);
                test_run(name, tests[i].body);
            }
        }
    return test_end();
}
