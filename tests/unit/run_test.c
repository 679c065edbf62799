// A run counts its steps, names what went wrong, keeps its series and describes itself.
#include "run/run.h"

#include "run/run_private.h"

#include <signal.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/unit/run_fixture.h"

static int told;             // events
static char events[20][512]; // the first of them

static void on_event(void *context, const Run *run, const char *text) {
    (void)context, (void)run;
    if (told < 20)
        snprintf(events[told], sizeof events[0], "%s", text);
    told++;
}

static void begin(const char *precision, const char *loss_scale) {
    told = 0;
    memset(events, 0, sizeof events);
    bool done = model_open(&(RunOptions){
        .device = "ref", .seed = 1, .precision = precision, .loss_scale = loss_scale});
    model_must(done && run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build());
    model.run->observer = (RunObserver){.event = on_event};
}

static void end(void) {
    model_close();
}

static bool step(double x, bool *stop) {
    return model_step(x, false, stop);
}

static bool train(double x) {
    bool stop;
    return step(x, &stop);
}

static const double overflows = 1e38; // finite, but not times the scale

static void steps_are_counted_by_what_became_of_them(void) {
    begin("fp32", "dynamic");
    CHECK(train(1) && train(overflows) && train(1));
    Run *run = model.run;
    CHECK_INT(run->step, 3);
    CHECK_INT(run->applied, 2);
    CHECK_INT(run->skipped, 1);
    CHECK_TEXT(run->culprit, "fc.weight");
    CHECK_NEAR(run->scale_max, 65536, 0);
    CHECK_NEAR(run->scale_last, 32768, 0);
    CHECK_NEAR(run->scale_min, 32768, 0);
    CHECK_INT(run->skips_in_a_row, 0);
    end();
}

static void a_skip_is_told_with_its_culprit_and_its_kind(void) {
    begin("fp32", "dynamic");
    CHECK(train(overflows) && train(1));
    CHECK_INT(told, 1);
    CHECK_CONTAINS(events[0],
                   "step 1 skipped: gradient of fc.weight not finite, scale 65536 -> 32768;");
    CHECK_CONTAINS(events[0], "the loss is finite: the scale was too large");
    CHECK_INT(model.run->diagnosis_count, 0); // an overflow of gradients alone is benign
    end();
}

static void a_skip_names_the_scale_as_it_was_given(void) {
    begin("fp32", "1e12"); // 999999995904 in fp32
    CHECK(train(overflows) && train(1));
    CHECK_CONTAINS(events[0], "in the loss times its scale, 1e+12");
    CHECK_CONTAINS(events[1], "not finite at scale 1e+12;");
    end();
}

static void a_loss_that_is_not_finite_is_diagnosed(void) {
    begin("fp32", "dynamic");
    CHECK(train((double)INFINITY) && train(1));
    CHECK_INT(model.run->diagnosis_count, 1);
    CHECK_TEXT(model.run->diagnoses[0].kind, "loss_not_finite");
    CHECK_CONTAINS(model.run->diagnoses[0].text, "loss is inf after step 1");
    end();
}

static void twenty_skips_at_the_floor_end_the_run(void) {
    begin("fp32", "dynamic");
    model.run->scale_rule.floor = 65536;
    scaler_free(model.scaler);
    model.scaler = model.run->scaler =
        scaler_new(&model.run->engine->scalers, &model.run->scale_rule, &error);
    int steps = 0;
    while (steps < 100 && train((double)NAN))
        steps++;
    CHECK_INT(steps, 19);
    CHECK_INT(error.code, ERROR_FAILED);
    CHECK_CONTAINS(error.text, "the loss scale cannot help any more: 20 steps in a row");
    CHECK_CONTAINS(error.text, "data outside of every layer, forward");
    CHECK_CONTAINS(error.text, "forward");
    run_finish(model.run, &error);
    CHECK_INT(model.run->status, RUN_FAILED);
    end();
}

// The layers are not to blame, nor the data: another scale may do.
static void a_fixed_scale_that_is_too_large_is_told_to_be(void) {
    begin("fp32", "1e30");
    int steps = 0;
    while (steps < 100 && train(overflows))
        steps++;
    CHECK_INT(steps, RUN_SKIPS_AT_FLOOR - 1);
    CHECK_CONTAINS(error.text, "20 steps in a row were skipped with the loss scale fixed at 1e+30");
    CHECK_CONTAINS(error.text, "too large: one that finds its own, --loss-scale dynamic");
    CHECK(!strstr(error.text, "--layer"));
    end();
}

static void a_scale_that_can_still_fall_does_not_end_the_run(void) {
    begin("fp32", "1e30");
    model.run->scale_rule.kind = SCALE_DYNAMIC;
    model.run->scale_rule.floor = 1;
    scaler_free(model.scaler);
    model.scaler = model.run->scaler =
        scaler_new(&model.run->engine->scalers, &model.run->scale_rule, &error);
    for (int i = 0; i < 40; i++) // 1e30 has a hundred halvings to 1
        CHECK(train(overflows));
    CHECK_INT(model.run->skipped, 40);
    end();
}

static void points_are_read_a_step_later(void) {
    begin("fp32", NULL);
    CHECK(train(2));
    CHECK_INT(run_series(model.run, "loss")->count, 0);
    CHECK(train(4) && train(6));
    const RunSeries *loss = run_series(model.run, "loss");
    CHECK_INT(loss->count, 2);
    CHECK_NEAR(loss->first, 1, 1e-6);
    run_finish(model.run, NULL);
    CHECK_INT(loss->count, 3);
    CHECK_NEAR(loss->last, 3, 0.1);
    CHECK_NEAR(loss->best, 1, 1e-6);
    end();
}

static void an_optimizer_that_goes_takes_only_its_own_count_along(void) {
    begin("fp32", NULL);
    Optimizer *first = model.optimizer;
    Tensor *weight = model.weight = number(0.5);
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_SGD);
    OptimizerGroup group = {&weight, 1, 1, 0};
    CHECK(parameter_attach(weight, "late.weight", 0, false, &error));
    model.optimizer = optimizer_new(model.run->engine, &options, &group, 1, &error);
    run_add_optimizer(model.run, model.optimizer);
    CHECK(train(1));
    CHECK_INT(model.run->applied, 1);
    run_remove_optimizer(model.run, first);
    Tensor *first_weight = tensor_hold(optimizer_parameter(first, 0));
    optimizer_free(first);
    tensor_release(first_weight);
    bool stop;
    CHECK(run_step_ended(model.run, &stop, &error)); // nothing was updated in it
    CHECK_INT(model.run->applied, 1);
    CHECK_INT(model.run->skipped, 0);
    tensor_release(first_weight);
    end();
}

static void a_point_of_many_values_is_refused(void) {
    begin("fp32", NULL);
    int64_t shape = 2;
    float values[2] = {1, 2};
    Tensor *two =
        tensor_from_host(model.run->device, FORMAT_FP32, 1, &shape, values, MEMORY_DATA, &error);
    CHECK(!run_log(model.run, "loss", two, &error));
    CHECK_CONTAINS(error.text, "log: loss: one value is wanted");
    tensor_release(two);
    end();
}

static void names_of_the_runs_own_series_are_refused(void) {
    static const char *const own[] = {"scale", "grad_norm", "step_seconds"};
    begin("fp32", NULL);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char part[120];
        error = (Error){0};
        CHECK_MESSAGE(!run_log_number(model.run, own[i], 42, &error), "%s was taken", own[i]);
        snprintf(part, sizeof part, "log: %s: the run records a series of this name", own[i]);
        CHECK_CONTAINS(error.text, part);
        snprintf(part, sizeof part, "call yours my_%s", own[i]);
        CHECK_CONTAINS(error.text, part);
        CHECK(!run_log(model.run, own[i], model.weight, &error));
    }
    CHECK(run_log_number(model.run, "my_scale", 42, &error));
    CHECK_INT(model.run->series_count, 1);
    end();
}

static void the_end_comes_when_it_was_asked_for(void) {
    begin("fp32", NULL);
    bool stop = true;
    model.run->step_limit = 2;
    CHECK(step(1, &stop));
    CHECK(!stop);
    CHECK(step(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_FINISHED);
    end();
    begin("fp32", NULL);
    run_request_stop(SIGTERM);
    CHECK(step(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    run_request_stop(0);
    end();
}

static void the_command_line_beats_the_experiment(void) {
    static const RunLayerRule theirs[] = {{"fc*", LAYER_BF16, NULL}, {"head", LAYER_FP32, NULL}};
    static const RunLayerRule ours[] = {{"fc*", LAYER_FP32, NULL}};
    RunOptions options = {
        .device = "ref", .seed = 1, .precision = "fp16", .layers = ours, .layer_count = 1};
    Run *run = run_new(&options, &error);
    CHECK(run && run_configure(run, "tiny", "bf16", theirs, 2, &error));
    CHECK_TEXT(run->precision, "fp16");
    CHECK_INT(run->scale_rule.kind, SCALE_DYNAMIC); // what fp16 asks for
    Policy *policy = run->engine->policy;
    int fc = policy_add_layer(policy, "fc1", 0, &error);
    int head = policy_add_layer(policy, "head", 0, &error);
    int other = policy_add_layer(policy, "other", 0, &error);
    CHECK_INT(policy_layer(policy, fc)->in_force, LAYER_FP32);
    CHECK_INT(policy_layer(policy, head)->in_force, LAYER_FP32);
    CHECK_INT(policy_layer(policy, other)->in_force, LAYER_AUTO);
    run_free(run);
}

static void auto_says_what_it_chose_and_why(void) {
    RunOptions options = {.device = "ref", .seed = 1};
    Run *run = run_new(&options, &error);
    run->observer = (RunObserver){.context = &model, .event = on_event};
    told = 0;
    CHECK(run_configure(run, "tiny", NULL, NULL, 0, &error));
    CHECK_TEXT(run->precision, "fp32");
    CHECK_INT(told, 1);
    CHECK_CONTAINS(events[0], "precision auto: fp32, since");
    run_free(run);
}

static void changes_wait_for_the_boundary(void) {
    begin("fp16", "none");
    Policy *policy = model.run->engine->policy;
    CHECK(policy_queue(policy, "fc", LAYER_FP32, &error));
    CHECK_INT(policy_layer(policy, 1)->in_force, LAYER_AUTO);
    CHECK(train(1));
    CHECK_INT(policy_layer(policy, 1)->in_force, LAYER_FP32);
    CHECK_TEXT(events[0], "precision changed after step 1: fc=fp32");
    CHECK(policy_queue(policy, "fc", LAYER_AUTO, &error));
    CHECK(train(1));
    CHECK_TEXT(events[1], "precision changed after step 2: no layer is set apart any more");
    end();
}

static void a_pattern_that_matches_nothing_is_refused(void) {
    static const RunLayerRule rules[] = {{"fx", LAYER_FP32, NULL}};
    begin("fp32", NULL);
    model.options.layers = rules;
    model.options.layer_count = 1;
    CHECK(!train(1));
    CHECK_INT(error.code, ERROR_USAGE);
    CHECK_CONTAINS(error.text, "--layer fx: no layer of the model has such a name");
    end();
}

static void gradients_that_vanish_unscaled_are_told(void) {
    begin("fp16", "none");
    for (int i = 0; i < 9; i++)
        CHECK(train(1));
    parameter_of(model.weight)->round_to = FORMAT_FP16; // as after a product in fp16
    CHECK(train(1e-9));
    CHECK_INT(model.run->diagnosis_count, 1);
    CHECK_TEXT(model.run->diagnoses[0].kind, "no_scaler");
    CHECK_CONTAINS(model.run->diagnoses[0].text, "100 % of the gradients");
    end();
}

// What layer fc gives in fp16 in the second step, which is the first to be sampled.
static void gives_in_fp16(double value) {
    begin("fp16", "none");
    CHECK(train(1));
    Engine *engine = model.run->engine;
    Tensor *wide = number(value);
    engine->layer = 1;
    Tensor *low = op_cast(engine, wide, FORMAT_FP16, &error);
    engine->layer = 0;
    tensor_release(wide);
    tensor_release(low);
    CHECK(train(1));
}

static void a_layer_near_the_end_of_fp16_is_told(void) {
    gives_in_fp16(-60000);
    CHECK_INT(model.run->diagnosis_count, 1);
    CHECK_TEXT(model.run->diagnoses[0].kind, "near_overflow");
    CHECK_TEXT(model.run->diagnoses[0].layer, "fc");
    CHECK_CONTAINS(model.run->diagnoses[0].text, "use --layer fc=bf16");
    end();
    gives_in_fp16(50000);
    CHECK_INT(model.run->diagnosis_count, 0);
    end();
}

static void steps_of_casts_are_told(void) {
    begin("fp16", "none");
    RunSampler *sampler = &run_state(model.run)->sampler;
    *sampler = (RunSampler){
        .count = 20, .total_seconds = 1, .cast_seconds = 0.3, .casts = 60, .cast_bytes = 30 << 20};
    run_check_casts(run_state(model.run));
    CHECK_INT(model.run->diagnosis_count, 0);
    sampler->cast_seconds = 0.6;
    run_check_casts(run_state(model.run));
    CHECK_INT(model.run->diagnosis_count, 1);
    CHECK_CONTAINS(model.run->diagnoses[0].text, "60 % of the time of steps");
    CHECK_CONTAINS(model.run->diagnoses[0].text, "(3 a step, which move 1.5 MiB)");
    CHECK_CONTAINS(model.run->diagnoses[0].text, "in one format");
    end();
}

static void steps_of_small_operations_are_told(void) {
    for (int i = 0; i < 2; i++) {
        begin(i == 0 ? "bf16" : "fp32", "none");
        RunSampler *sampler = &run_state(model.run)->sampler;
        *sampler = (RunSampler){.count = 20, .operations = 400, .op_seconds = 400 * 6e-6};
        run_check_kernels(run_state(model.run));
        CHECK_INT(model.run->diagnosis_count, 0);
        sampler->op_seconds = 400 * 4e-6;
        run_check_kernels(run_state(model.run));
        CHECK_INT(model.run->diagnosis_count, i == 0); // fp32 has nothing to gain
        if (i == 0) {
            CHECK_TEXT(model.run->diagnoses[0].kind, "small_kernels");
            CHECK_CONTAINS(model.run->diagnoses[0].text, "the 20 operations of a step take 4.0 us");
        }
        end();
    }
}

static void count_energy(const char *path, const char *microjoules) {
    FILE *out = fopen(path, "w");
    CHECK(out && fputs(microjoules, out) >= 0);
    if (out)
        fclose(out);
}

// Counters go around within minutes: who looks at the end alone misses whole turns.
static void energy_is_sampled_without_a_history_too(void) {
    char folder[TEST_FOLDER_SIZE], path[TEST_FOLDER_SIZE + 16];
    bool stop;
    if (!test_folder_make(folder, sizeof folder))
        return;
    begin("fp32", NULL);
    RunState *state = run_state(model.run);
    snprintf(path, sizeof path, "%s/energy_uj", folder);
    count_energy(path, "9000000");
    state->energy = (Energy){.count = 1, .zones = {{.last = 9000000, .range = 10000000}}};
    snprintf(state->energy.zones[0].path, sizeof state->energy.zones[0].path, "%s", path);
    static const char *const turns[] = {"2000000", "1000000", "9000000"}; // 3, 9 and 8 J
    for (int i = 0; i < 3; i++) {
        count_energy(path, turns[i]);
        state->next_energy = 0;
        CHECK(step(1, &stop));
    }
    run_finish(model.run, NULL);
    CHECK_NEAR(state->energy.joules, 20, 1e-9);
    test_folder_remove(folder);
    end();
}

static void it_describes_itself_in_json(void) {
    static const char *const parts[] = {
        "{\"id\":7,\"name\":\"tiny\",\"experiment\":\"tiny\",\"status\":\"finished\"",
        "\"precision\":\"fp32\",\"precision_label\":\"fp32\",\"device\":\"ref\"",
        "\"seed\":1,\"steps\":3,\"applied\":2,\"skipped\":1",
        "\"loss\":{\"first\":0.5,",
        "\"metrics\":{\"accuracy\":0.5,\"odd\":\"nan\"}",
        "\"scale\":{\"last\":32768,\"min\":32768,\"max\":65536}",
        "\"params\":{\"lr\":0.001,\"width\":32,\"wide\":true,\"kind\":\"a\"}",
        "\"layers\":[{\"name\":\"fc\",\"precision\":\"fp32\"}]",
        "\"diagnoses\":[],\"error\":null}",
    };
    static char text[2000];
    begin(NULL, "dynamic");
    const RecordParameter parameters[] = {{"lr", RECORD_NUMBER, .number = 0.001},
                                          {"width", RECORD_INTEGER, .integer = 32},
                                          {"wide", RECORD_BOOLEAN, .integer = 1},
                                          {"kind", RECORD_TEXT, .text = "a"}};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        CHECK(run_add_parameter(model.run, &parameters[i], &error));
    CHECK(train(1) && train(overflows) && train(1));
    CHECK(run_result(model.run, "accuracy", 0.25, &error));
    CHECK(run_result(model.run, "accuracy", 0.5, &error)); // the last one counts
    CHECK(run_result(model.run, "odd", (double)NAN, &error));
    run_finish(model.run, NULL);
    FILE *stream = fmemopen(text, sizeof text, "w");
    JsonWriter json = {.stream = stream};
    RunRecord record;
    model.run->id = 7;
    CHECK(run_describe(model.run, &record, &error));
    record_write_json(&record, true, &json);
    record_clear(&record);
    fclose(stream);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CHECK_MESSAGE(strstr(text, parts[i]), "%s is missing in %.700s", parts[i], text);
    end();
}

int main(void) {
    RUN_TEST(steps_are_counted_by_what_became_of_them);
    RUN_TEST(a_skip_is_told_with_its_culprit_and_its_kind);
    RUN_TEST(a_skip_names_the_scale_as_it_was_given);
    RUN_TEST(a_loss_that_is_not_finite_is_diagnosed);
    RUN_TEST(twenty_skips_at_the_floor_end_the_run);
    RUN_TEST(a_fixed_scale_that_is_too_large_is_told_to_be);
    RUN_TEST(a_scale_that_can_still_fall_does_not_end_the_run);
    RUN_TEST(points_are_read_a_step_later);
    RUN_TEST(an_optimizer_that_goes_takes_only_its_own_count_along);
    RUN_TEST(a_point_of_many_values_is_refused);
    RUN_TEST(names_of_the_runs_own_series_are_refused);
    RUN_TEST(the_end_comes_when_it_was_asked_for);
    RUN_TEST(the_command_line_beats_the_experiment);
    RUN_TEST(auto_says_what_it_chose_and_why);
    RUN_TEST(changes_wait_for_the_boundary);
    RUN_TEST(a_pattern_that_matches_nothing_is_refused);
    RUN_TEST(gradients_that_vanish_unscaled_are_told);
    RUN_TEST(a_layer_near_the_end_of_fp16_is_told);
    RUN_TEST(steps_of_casts_are_told);
    RUN_TEST(steps_of_small_operations_are_told);
    RUN_TEST(energy_is_sampled_without_a_history_too);
    RUN_TEST(it_describes_itself_in_json);
    return test_end();
}
