// What scalers promise: the order they insist on, and where the scale goes.
#include "tests/training.h"

// ---- the order of calls -------------------------------------------------------------------------

typedef struct Small { // one weight, trained
    Tensor *weight;
    Optimizer *optimizer;
    Scaler *scaler;
} Small;

static Small small_new(const char *scale) {
    Small small = {.weight = parameter("fc.weight", 1, (float[]){1})};
    small.optimizer = sgd(small.weight, 0.5);
    small.scaler = scaler_named(scale);
    return small;
}

static void small_clear(Small *small) {
    optimizer_free(small->optimizer);
    scaler_free(small->scaler);
    tensor_release(small->weight);
}

static void small_backward(Small *small) {
    optimizer_zero_grad(small->optimizer);
    backward(small->scaler, small->weight, (float[]){1});
}

static void small_iteration(Small *small) {
    small_backward(small);
    DONE(optimizer_step_scaled(small->optimizer, small->scaler, &error));
    DONE(scaler_update(small->scaler, 0, &error));
}

static void each_call_out_of_turn_is_refused_by_name(void) {
    const char *const scales[] = {"1024", "dynamic", "none"};
    for (int i = 0; i < 3; i++) {
        Small small = small_new(scales[i]);
        gradient_set(small.weight, (float[]){1});
        REFUSED(optimizer_step_scaled(small.optimizer, small.scaler, &error), "before any scale()");
        REFUSED(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error),
                "before any scale()");
        CHECK_CONTAINS(error.text, "unscale: called for SGD over 1 parameter in step 1");
        REFUSED(scaler_update(small.scaler, 0, &error), "update: nothing was checked in step 1");
        small_iteration(&small);
        small_iteration(&small);
        gradient_set(small.weight, (float[]){1});
        REFUSED(optimizer_step_scaled(small.optimizer, small.scaler, &error),
                "last called in step 2");

        small_backward(&small);
        DONE(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error));
        REFUSED(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error),
                "unscale: called twice");
        CHECK_CONTAINS(error.text, "before in step 3");
        CHECK_CONTAINS(error.text, "then call step and update");
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        REFUSED(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error),
                "unscale: called after step");
        CHECK_CONTAINS(error.text, "in step 3");
        CHECK_CONTAINS(error.text, "call update");
        REFUSED(optimizer_step_scaled(small.optimizer, small.scaler, &error), "step: called twice");
        CHECK_CONTAINS(error.text, "without update");
        DONE(scaler_update(small.scaler, 0, &error));
        REFUSED(scaler_update(small.scaler, 0, &error), "nothing was checked in step 4");

        small_backward(&small);
        optimizer_zero_grad(small.optimizer);
        REFUSED(optimizer_step_scaled(small.optimizer, small.scaler, &error),
                "no gradient was recorded: call :backward()");
        small_iteration(&small); // none of this has broken anything
        CHECK_INT(optimizer_applied(small.optimizer), 4);
        CHECK_NEAR(value_of(small.weight, 0), 1 - 4 * 0.5, 0);
        small_clear(&small);
    }
}

static void low_gradients_are_refused(void) {
    Small small = small_new("dynamic");
    small_backward(&small);
    Tensor *low = op_cast(engine, small.weight->grad, FORMAT_FP16, &error);
    tensor_release(small.weight->grad);
    small.weight->grad = low;
    REFUSED(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error),
            "unscale: the gradient of fc.weight is fp16");
    small_clear(&small);
}

static void a_scale_that_changes_inside_a_window_is_refused(void) {
    for (int known = 0; known < 2; known++) {
        Small small = small_new("1024");
        if (known)
            small_iteration(&small);
        small_backward(&small);
        DONE(scaler_set(small.scaler, 256, &error));
        backward(small.scaler, small.weight, (float[]){1});
        REFUSED(optimizer_step_scaled(small.optimizer, small.scaler, &error), "from 1024 to 256");
        CHECK_CONTAINS(error.text, "SGD over 1 parameter");
        optimizer_zero_grad(small.optimizer); // a window that is given up
        backward(small.scaler, small.weight, (float[]){1});
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        DONE(scaler_update(small.scaler, 0, &error));
        DONE(scaler_set(small.scaler, 64, &error)); // at a boundary
        small_iteration(&small);
        CHECK_NEAR(value_of(small.weight, 0), 1 - 0.5 * (2 + known), 0);
        small_clear(&small);
    }
}

static void accumulation_steps_at_the_boundary(void) {
    Small small = small_new("dynamic");
    for (int window = 0; window < 2; window++) {
        optimizer_zero_grad(small.optimizer);
        for (int i = 0; i < 4; i++)
            backward(small.scaler, small.weight, (float[]){0.25f});
        DONE(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error));
        CHECK_NEAR(value_of(small.weight->grad, 0), 1, 0);
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        DONE(scaler_update(small.scaler, 0, &error));
    }
    CHECK_NEAR(value_of(small.weight, 0), 0, 0);
    small_clear(&small);
}

static void clipping_before_unscaling_is_refused(void) {
    Small small = small_new("1024");
    small_iteration(&small);
    small_backward(&small);
    REFUSED(optimizer_clip_norm(engine, &small.weight, 1, 2, &error),
            "threshold 2 applied at scale 1024 is really 0.00195");
    REFUSED(optimizer_clip_value(engine, &small.weight, 1, 2, &error), "unscale(optimizer) first");
    DONE(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error));
    DONE(optimizer_clip_value(engine, &small.weight, 1, 0.5, &error));
    DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
    DONE(scaler_update(small.scaler, 0, &error));
    CHECK_NEAR(value_of(small.weight, 0), 1 - 0.5 - 0.25, 0);
    small_clear(&small);
}

static void clipping_before_the_first_unscaling_is_refused_too(void) {
    Small small = small_new("1024"), other = small_new("1024");
    gradient_set(small.weight, (float[]){1}); // of a loss that was not scaled
    DONE(optimizer_clip_value(engine, &small.weight, 1, 2, &error));
    small_backward(&small);
    REFUSED(optimizer_clip_value(engine, &small.weight, 1, 2, &error),
            "clip_value: the gradient of fc.weight is not unscaled yet: threshold 2 applied at "
            "scale 1024 is really 0.00195");
    Tensor *norm = NULL;
    REFUSED((norm = optimizer_clip_norm(engine, &small.weight, 1, 2, &error)),
            "unscale(optimizer) first");
    DONE(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error));
    DONE(optimizer_clip_value(engine, &small.weight, 1, 2, &error));
    small_iteration(&other); // a scaler with an open window says nothing of what others serve
    small_backward(&other);
    DONE(optimizer_clip_value(engine, &small.weight, 1, 2, &error));
    tensor_release(norm);
    small_clear(&small);
    small_clear(&other);
}

// ---- several ------------------------------------------------------------------------------------

static void optimizers_that_share_a_scaler_skip_each_for_itself(void) {
    Tensor *weights[] = {parameter("G", 1, (float[]){1}), parameter("D", 1, (float[]){1})};
    Optimizer *optimizers[] = {sgd(weights[0], 1), sgd(weights[1], 1)};
    Scaler *scaler = scaler_named("dynamic");
    bool applied[2];
    backward(scaler, weights[0], (float[]){NAN});
    backward(scaler, weights[1], (float[]){1});
    for (int i = 0; i < 2; i++)
        DONE(optimizer_step_scaled(optimizers[i], scaler, &error));
    DONE(scaler_update(scaler, 0, &error));
    for (int i = 0; i < 2; i++)
        DONE(scaler_applied(scaler, optimizer_gradients(optimizers[i]), &applied[i], &error));
    CHECK(!applied[0] && applied[1]);
    CHECK_NEAR(value_of(weights[0], 0), 1, 0);
    CHECK_NEAR(value_of(weights[1], 0), 0, 0);
    CHECK_NEAR(scaler_get(scaler), 32768, 0); // once
    for (int i = 0; i < 2; i++) {
        optimizer_free(optimizers[i]);
        tensor_release(weights[i]);
    }
    scaler_free(scaler);
}

static void scalers_go_their_own_ways(void) {
    Small a = small_new("1024"), b = small_new("dynamic");
    small_backward(&a);
    small_backward(&b);
    DONE(optimizer_step_scaled(b.optimizer, b.scaler, &error));
    DONE(scaler_unscale(a.scaler, optimizer_gradients(a.optimizer), &error));
    DONE(scaler_update(b.scaler, 0, &error));
    DONE(optimizer_step_scaled(a.optimizer, a.scaler, &error));
    REFUSED(scaler_applied(a.scaler, optimizer_gradients(b.optimizer), &(bool){false}, &error),
            "call step first");
    CHECK_NEAR(value_of(a.weight, 0), 0.5, 0);
    CHECK_NEAR(value_of(b.weight, 0), 0.5, 0);
    small_clear(&b);
    DONE(scaler_update(a.scaler, 0, &error));
    small_clear(&a);
}

static void an_optimizer_may_go_at_any_time(void) {
    Small small = small_new("dynamic");
    small_backward(&small);
    DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
    optimizer_free(small.optimizer); // what it found still counts
    DONE(scaler_update(small.scaler, 0, &error));
    CHECK_INT(scaler_state(small.scaler).good, 1);
    for (int i = 0; i < 3; i++) { // others, perhaps where it lay
        small.optimizer = sgd(small.weight, 0.5);
        small_iteration(&small);
        optimizer_free(small.optimizer);
    }
    small.optimizer = sgd(small.weight, 0.5);
    small_backward(&small);
    DONE(scaler_unscale(small.scaler, optimizer_gradients(small.optimizer), &error));
    scaler_free(small.scaler);
    small.scaler = scaler_named("none");
    small_clear(&small);
}

static void no_scale_still_skips_what_is_not_finite(void) {
    Small small = small_new("none");
    Tensor *loss = slope_loss(small.weight, (float[]){1});
    Tensor *scaled = engine_scale_loss(engine, small.scaler, loss, &error);
    CHECK(scaled == loss);
    tensor_release(scaled);
    tensor_release(loss);
    backward(small.scaler, small.weight, (float[]){INFINITY});
    DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
    DONE(scaler_update(small.scaler, 0, &error));
    CHECK_NEAR(value_of(small.weight, 0), 1, 0);
    CHECK_INT(optimizer_report(small.optimizer).skipped, 1);
    CHECK_INT(scaler_state(small.scaler).skips_at_floor, 1);
    CHECK_NEAR(scaler_get(small.scaler), 1, 0);
    REFUSED(scaler_set(small.scaler, 2, &error), "leaves the loss as it is");
    small_clear(&small);
}

// ---- where the scale goes -----------------------------------------------------------------------

static void a_scale_that_is_given_is_taken(void) {
    Small small = small_new("dynamic");
    DONE(scaler_update(small.scaler, 512, &error)); // nothing need be checked for that
    CHECK_NEAR(scaler_get(small.scaler), 512, 0);
    REFUSED(scaler_update(small.scaler, INFINITY, &error), "the scale is inf");
    REFUSED(scaler_update(small.scaler, -1, &error), "the scale is -1");
    small_backward(&small);
    DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
    DONE(scaler_update(small.scaler, 128, &error));
    CHECK_NEAR(scaler_get(small.scaler), 128, 0);
    ScaleState state = scaler_state(small.scaler);
    state.scale = 4;
    state.good = 1999;
    scaler_load(small.scaler, &state);
    small_iteration(&small);
    CHECK_NEAR(scaler_get(small.scaler), 8, 0);
    small_clear(&small);
}

// The rules that measure gradients, in double and without any of the engine.
static double simulate_logmax(const double *largest, int steps) {
    double mean = 0, mean_weight = 0, variance = 0, variance_weight = 0, scale = 65536;
    for (int i = 0; i < steps; i++) {
        double x = isfinite(largest[i]) ? log2(largest[i]) : 128;
        mean += 0.01 * (x - mean);
        mean_weight += 0.01 * (1 - mean_weight);
        double away = x - mean / mean_weight;
        variance += 0.001 * (away * away - variance);
        variance_weight += 0.001 * (1 - variance_weight);
        double top = mean / mean_weight + 3.09 * sqrt(variance / variance_weight);
        scale = fmin(fmax(exp2(16 - top), 1), 0x1p24);
    }
    return scale;
}

static void logmax_follows_the_largest_gradient(void) {
    enum { STEPS = 12 };
    const double largest[STEPS] = {1, 0.5, 2, 0.75, 3, 0.001, 0.01, 0.3, INFINITY, 1, 1, 0.125};
    Small small = small_new("logmax");
    for (int i = 0; i < STEPS; i++) {
        optimizer_zero_grad(small.optimizer);
        backward(small.scaler, small.weight, (float[]){(float)-largest[i]});
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        DONE(scaler_update(small.scaler, 0, &error));
        double expected = simulate_logmax(largest, i + 1);
        CHECK_NEAR(scaler_get(small.scaler), expected, 1e-5 * expected);
    }
    small_clear(&small);
}

static void adaptive_grows_while_gradients_are_quiet(void) {
    const struct {
        float slope;
        double scale;
    } steps[] = {{1, 1024},        {1e-8f, 1126.4},  {1e-8f, 1239.04},   {NAN, 619.52},
                 {1e-8f, 681.472}, {1e-6f, 681.472}, {INFINITY, 340.736}};
    Small small = small_new("adaptive");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        optimizer_zero_grad(small.optimizer);
        backward(small.scaler, small.weight, &steps[i].slope);
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        DONE(scaler_update(small.scaler, 0, &error));
        CHECK_NEAR(scaler_get(small.scaler), steps[i].scale, 1e-3);
    }
    ScaleState state = scaler_state(small.scaler);
    state.scale = 65000;
    scaler_load(small.scaler, &state);
    optimizer_zero_grad(small.optimizer);
    backward(small.scaler, small.weight, (float[]){1e-9f});
    DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
    DONE(scaler_update(small.scaler, 0, &error));
    CHECK_NEAR(scaler_get(small.scaler), 65536, 0);
    small_clear(&small);
}

static void skips_at_the_floor_are_counted(void) {
    Small small = small_new("keras");
    ScaleState state = scaler_state(small.scaler);
    state.scale = 4;
    scaler_load(small.scaler, &state);
    for (int i = 0; i < 5; i++) {
        optimizer_zero_grad(small.optimizer);
        backward(small.scaler, small.weight, (float[]){NAN});
        DONE(optimizer_step_scaled(small.optimizer, small.scaler, &error));
        DONE(scaler_update(small.scaler, 0, &error));
    }
    CHECK_NEAR(scaler_get(small.scaler), 1, 0);
    CHECK_INT(scaler_state(small.scaler).skips_at_floor, 3);
    small_iteration(&small);
    CHECK_INT(scaler_state(small.scaler).skips_at_floor, 0);
    small_clear(&small);
}

// ---- rules --------------------------------------------------------------------------------------

static void presets_are_what_others_default_to(void) {
    const struct {
        const char *name;
        double init, interval, hysteresis, floor;
    } presets[] = {{"dynamic", 65536, 2000, 1, 1},   {"torch", 65536, 2000, 1, 0},
                   {"apex", 65536, 2000, 1, 0},      {"keras", 32768, 2000, 1, 1},
                   {"deepspeed", 65536, 1000, 2, 1}, {"megatron", 4294967296, 1000, 2, 1},
                   {"fairseq", 128, 16384, 1, 1e-4}};
    ScaleRule rule;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        DONE(scale_rule_parse(presets[i].name, &rule, &error));
        CHECK_MESSAGE(rule.kind == SCALE_DYNAMIC && rule.growth == 2 && rule.backoff == 0.5 &&
                          rule.init == presets[i].init && rule.floor == presets[i].floor &&
                          (double)rule.interval == presets[i].interval &&
                          (double)rule.hysteresis == presets[i].hysteresis,
                      "%s", presets[i].name);
    }
    for (const ScalePreset *preset = scale_preset_table; preset->name; preset++)
        DONE(scale_rule_check(&preset->rule, &error));
    DONE(scale_rule_parse("1024", &rule, &error));
    CHECK_INT(rule.kind, SCALE_STATIC);
    CHECK_NEAR(scale_state_initial(&rule).scale, 1024, 0);
    CHECK_TEXT(scale_kind_name(rule.kind), "static");
    DONE(scale_rule_parse("(1+1)^15", &rule, &error));
    CHECK_NEAR(rule.init, 32768, 0);
    REFUSED(scale_rule_parse("2^", &rule, &error), "2^: column 3: expected a number");
    DONE(scale_rule_parse("2^24", &rule, &error)); // as screens write it
    CHECK_NEAR(scale_state_initial(&rule).scale, 0x1p24, 0);
}

static void rules_that_cannot_work_are_refused(void) {
    ScaleRule rule;
    REFUSED(scale_rule_parse("dynamik", &rule, &error), "did you mean dynamic?");
    const char *const numbers[] = {"-1",    "0",   "1e39", "1024x", "2^",
                                   "2^200", "inf", "nan",  "1e-50"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        REFUSED(scale_rule_parse(numbers[i], &rule, &error), "wanted");
    REFUSED(scale_rule_parse("", &rule, &error), "not known; one of dynamic none");
    REFUSED(scale_rule_parse("kerras", &rule, &error), "did you mean keras?");
    const struct {
        ScaleRule rule;
        const char *name;
    } rules[] = {
        {{SCALE_DYNAMIC, 0, 2, 0.5, 1, 8, 1, 1}, "init is 0"},
        {{SCALE_DYNAMIC, NAN, 2, 0.5, 1, 8, 1, 1}, "init is nan"},
        {{SCALE_DYNAMIC, 4, 1, 0.5, 1, 8, 1, 1}, "growth is 1"},
        {{SCALE_DYNAMIC, 4, 2, 1, 1, 8, 1, 1}, "backoff is 1"},
        {{SCALE_DYNAMIC, 4, 2, 0.5, -1, 8, 1, 1}, "floor is -1"},
        {{SCALE_DYNAMIC, 4, 2, 0.5, 1, INFINITY, 1, 1}, "ceiling is inf"},
        {{SCALE_DYNAMIC, 4, 2, 0.5, 1, 8, 0, 1}, "interval is 0"},
        {{SCALE_DYNAMIC, 4, 2, 0.5, 1, 8, 1, 0}, "hysteresis is 0"},
        {{SCALE_DYNAMIC, 16, 2, 0.5, 1, 8, 1, 1}, "from the floor 1 to the ceiling 8"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        REFUSED(scaler_new(&engine->scalers, &rules[i].rule, &error), rules[i].name);
}

// Under O2 all operations inside a region are low: a scaled loss would be past what fp16 holds.
static void a_loss_is_scaled_in_fp32_inside_a_region_too(void) {
    Preset preset;
    DONE(preset_resolve("O2", device, &preset, NULL, 0, &error));
    policy_free(engine->policy);
    engine->policy = policy_new(&preset, &error);
    Scaler *scaler = scaler_named("65536");
    Tensor *loss = constant(0, 1, (float[]){2});
    engine->autocast.enabled = true;
    Tensor *scaled = engine_scale_loss(engine, scaler, loss, &error);
    engine->autocast.enabled = false;
    double value = 0;
    DONE(scaled && tensor_item(scaled, &value, &error));
    CHECK_NEAR(value, 131072, 0);
    tensor_release(scaled);
    tensor_release(loss);
    scaler_free(scaler);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(each_call_out_of_turn_is_refused_by_name),
        TEST(low_gradients_are_refused),
        TEST(a_scale_that_changes_inside_a_window_is_refused),
        TEST(accumulation_steps_at_the_boundary),
        TEST(clipping_before_unscaling_is_refused),
        TEST(clipping_before_the_first_unscaling_is_refused_too),
        TEST(optimizers_that_share_a_scaler_skip_each_for_itself),
        TEST(scalers_go_their_own_ways),
        TEST(an_optimizer_may_go_at_any_time),
        TEST(no_scale_still_skips_what_is_not_finite),
        TEST(a_scale_that_is_given_is_taken),
        TEST(logmax_follows_the_largest_gradient),
        TEST(adaptive_grows_while_gradients_are_quiet),
        TEST(skips_at_the_floor_are_counted),
        TEST(presets_are_what_others_default_to),
        TEST(rules_that_cannot_work_are_refused),
        TEST(a_loss_is_scaled_in_fp32_inside_a_region_too),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
