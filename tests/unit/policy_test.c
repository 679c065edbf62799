// The policy: which format an operation runs in, by class, preset, layer and region.
#include "precision/policy.h"
#include "tests/test.h"

static const AutocastRegion on = {.enabled = true}, off = {.enabled = false};

static Policy *policy_of(const char *name) {
    Preset preset;
    Error error = {0};
    if (!preset_resolve(name, NULL, &preset, NULL, 0, &error)) {
        printf("not ok preset %s: %s\n", name, error.text);
        exit(1);
    }
    return policy_new(&preset, NULL);
}

// The output's format of an operation whose inputs are all in `input`.
static Format output_of(const Policy *policy, int layer, AutocastRegion region, OpId op,
                        Format input) {
    OpFormats formats = {.output = FORMAT_COUNT};
    if (!policy_decide(policy, layer, region, op, input, input, &formats, NULL))
        return FORMAT_COUNT;
    return formats.output;
}

static void each_class_does_what_the_table_says(void) {
    Policy *policy = policy_of("fp16");
    CHECK_INT(output_of(policy, 0, on, OP_linear, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_attention, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_softmax, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_layer_norm, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_cross_entropy, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_sum, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_relu, FORMAT_FP16), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_mean, FORMAT_FP16), FORMAT_FP16);
    OpFormats formats;
    CHECK(policy_decide(policy, 0, on, OP_add, FORMAT_FP16, FORMAT_FP32, &formats, NULL));
    CHECK_INT(formats.output, FORMAT_FP32);
    policy_free(policy);
}

static void outside_autocast_nothing_is_cast(void) {
    Policy *policy = policy_of("fp16");
    CHECK_INT(output_of(policy, 0, off, OP_linear, FORMAT_FP32), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, off, OP_linear, FORMAT_FP16), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, off, OP_softmax, FORMAT_FP16), FORMAT_FP16);
    policy_free(policy);
}

static void a_format_given_to_the_region_beats_the_preset(void) {
    Policy *policy = policy_of("fp16");
    AutocastRegion region = {.enabled = true, .given = true, .format = FORMAT_BF16};
    CHECK_INT(output_of(policy, 0, region, OP_linear, FORMAT_FP32), FORMAT_BF16);
    policy_free(policy);
}

static void a_layer_set_beats_the_class_and_is_inherited(void) {
    Policy *policy = policy_of("fp16");
    int block = policy_add_layer(policy, "block", 0, NULL);
    int inner = policy_add_layer(policy, "block.fc", block, NULL);
    int other = policy_add_layer(policy, "other", 0, NULL);
    int matched = 0;
    CHECK(policy_set(policy, "block", LAYER_FP32, &matched, NULL));
    CHECK_INT(matched, 1);
    CHECK_INT(output_of(policy, inner, on, OP_linear, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, inner, on, OP_relu, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, other, on, OP_linear, FORMAT_FP16), FORMAT_FP16);
    CHECK(policy_set(policy, "block.fc", LAYER_BF16, NULL, NULL));
    CHECK_INT(output_of(policy, inner, on, OP_linear, FORMAT_FP32), FORMAT_BF16);
    CHECK(policy_set(policy, "block.fc", LAYER_AUTO, NULL, NULL));
    CHECK_INT(output_of(policy, inner, on, OP_linear, FORMAT_FP16), FORMAT_FP32);
    policy_free(policy);
}

// Else bf16 of a layer of such operations, which the diagnoses of an overflow advise, did nothing.
static void a_layer_of_other_16_bits_casts_what_comes_in(void) {
    static const OpId others[] = {OP_add, OP_mul, OP_relu, OP_mean, OP_where};
    Policy *policy = policy_of("fp16");
    int layer = policy_add_layer(policy, "norm", 0, NULL);
    OpFormats formats;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        policy_set_layer(policy, layer, LAYER_BF16);
        CHECK(
            policy_decide(policy, layer, on, others[i], FORMAT_FP16, FORMAT_FP16, &formats, NULL));
        CHECK(formats.cast_inputs && formats.inputs == FORMAT_BF16);
        CHECK_INT(formats.output, FORMAT_BF16);
        CHECK(
            policy_decide(policy, layer, on, others[i], FORMAT_FP32, FORMAT_FP32, &formats, NULL));
        CHECK(!formats.cast_inputs);
        CHECK_INT(formats.output, FORMAT_FP32);
        policy_set_layer(policy, layer, LAYER_FP16);
        CHECK_INT(output_of(policy, layer, on, others[i], FORMAT_BF16), FORMAT_FP16);
        CHECK_INT(output_of(policy, layer, off, others[i], FORMAT_BF16), FORMAT_BF16);
    }
    policy_free(policy);
}

static void a_layer_in_tf32_keeps_fp32_and_multiplies_in_tf32(void) {
    static const OpId others[] = {OP_softmax, OP_batch_norm, OP_add, OP_relu, OP_bce};
    Policy *policy = policy_of("fp16");
    int layer = policy_add_layer(policy, "head", 0, NULL);
    policy_set_layer(policy, layer, LAYER_TF32);
    OpFormats formats;
    CHECK(policy_decide(policy, layer, on, OP_linear, FORMAT_FP16, FORMAT_FP16, &formats, NULL));
    CHECK(formats.cast_inputs && formats.inputs == FORMAT_FP32);
    CHECK(formats.compute == FORMAT_TF32 && formats.output == FORMAT_FP32);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(
            policy_decide(policy, layer, on, others[i], FORMAT_FP16, FORMAT_FP16, &formats, NULL));
        CHECK(formats.compute == formats.inputs && formats.output == FORMAT_FP32);
    }
    CHECK(policy_decide(policy, layer, off, OP_linear, FORMAT_FP32, FORMAT_FP32, &formats, NULL));
    CHECK(formats.compute == FORMAT_FP32 && formats.output == FORMAT_FP32);
    policy_free(policy);
}

static void the_last_rule_wins_for_layers_to_come_too(void) {
    Policy *policy = policy_of("fp16");
    CHECK(policy_set(policy, "*", LAYER_FP32, NULL, NULL));
    CHECK(policy_set(policy, "attn*", LAYER_BF16, NULL, NULL));
    int attention = policy_add_layer(policy, "attn1", 0, NULL);
    int head = policy_add_layer(policy, "head", 0, NULL);
    CHECK_INT(policy_layer(policy, attention)->in_force, LAYER_BF16);
    CHECK_INT(policy_layer(policy, head)->in_force, LAYER_FP32);
    policy_free(policy);
}

static void a_queued_change_waits_for_the_boundary(void) {
    Policy *policy = policy_of("fp16");
    int head = policy_add_layer(policy, "head", 0, NULL);
    CHECK(policy_queue(policy, "head", LAYER_FP32, NULL));
    CHECK_INT(policy_layer(policy, head)->in_force, LAYER_AUTO);
    CHECK_INT(policy_apply_queued(policy), 1);
    CHECK_INT(policy_layer(policy, head)->in_force, LAYER_FP32);
    CHECK_INT(policy_apply_queued(policy), 0);
    policy_free(policy);
}

static void all_low_presets_spare_batch_norm_and_losses(void) {
    Policy *policy = policy_of("O2");
    CHECK_INT(output_of(policy, 0, on, OP_softmax, FORMAT_FP16), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_layer_norm, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_cross_entropy, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_mse, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_batch_norm, FORMAT_FP32), FORMAT_FP32);
    CHECK(policy_preset(policy)->masters);
    policy_free(policy);
    policy = policy_of("O3");
    CHECK(!policy_preset(policy)->masters);
    CHECK_TEXT(policy_preset(policy)->loss_scale, "1");
    policy_free(policy);
}

static Policy *policy_keeping(const char *name, const char *kinds) {
    Keep keep;
    Error error = {0};
    CHECK_MESSAGE(keep_parse(kinds, &keep, &error), "%s", error.text);
    Policy *policy = policy_of(name);
    policy_set_keep(policy, &keep);
    return policy;
}

static void what_is_not_kept_runs_low_with_its_weights(void) {
    OpFormats formats;
    Policy *policy = policy_keeping("fp16", "losses+softmax");
    CHECK(policy_decide(policy, 0, on, OP_layer_norm, FORMAT_FP32, FORMAT_FP32, &formats, NULL));
    CHECK(formats.cast_inputs);
    CHECK_INT(formats.inputs, FORMAT_FP16);
    CHECK_INT(formats.output, FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_exp, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_embedding, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_softmax, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_mse, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(policy_state_format(policy, 0, on, OP_batch_norm), FORMAT_FP16);
    CHECK_INT(policy_state_format(policy, 0, off, OP_batch_norm), FORMAT_FP32);
    int layer = policy_add_layer(policy, "head", 0, NULL);
    CHECK(policy_set(policy, "head", LAYER_FP32, NULL, NULL));
    CHECK_INT(output_of(policy, layer, on, OP_layer_norm, FORMAT_FP32), FORMAT_FP32);
    policy_free(policy);
}

static void what_is_kept_is_so_under_every_preset(void) {
    Policy *policy = policy_keeping("O2", "all");
    CHECK_INT(output_of(policy, 0, on, OP_layer_norm, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_embedding, FORMAT_FP32), FORMAT_FP32);
    CHECK_INT(output_of(policy, 0, on, OP_linear, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(policy_state_format(policy, 0, on, OP_batch_norm), FORMAT_FP32);
    policy_free(policy);
    policy = policy_keeping("O2", "none");
    CHECK_INT(output_of(policy, 0, on, OP_batch_norm, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(output_of(policy, 0, on, OP_cross_entropy, FORMAT_FP32), FORMAT_FP16);
    policy_free(policy);
    policy = policy_keeping("fp32", "none");
    CHECK_INT(output_of(policy, 0, on, OP_cross_entropy, FORMAT_FP32), FORMAT_FP32);
    policy_free(policy);
}

static void kinds_to_keep_are_known_by_name(void) {
    Keep keep;
    Error error = {0};
    CHECK(keep_parse(NULL, &keep, NULL) && !keep.is_given);
    CHECK(keep_parse("batch_norm,losses", &keep, NULL) && keep.is_given);
    CHECK(keep.kept[KEEP_BATCH_NORM] && keep.kept[KEEP_LOSSES] && !keep.kept[KEEP_SOFTMAX]);
    CHECK(!keep_parse("batchnorm", &keep, &error));
    CHECK_MESSAGE(strstr(error.text, "did you mean batch_norm?"), "%s", error.text);
    CHECK(!keep_parse("", &keep, &error));
}

static void without_masters_parameters_are_kept_low(void) {
    static const struct {
        const char *preset;
        Format kept;
    } cases[] = {
        {"O3", FORMAT_FP16}, {"O2", FORMAT_FP32}, {"fp16", FORMAT_FP32}, {"fp32", FORMAT_FP32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Policy *policy = policy_of(cases[i].preset);
        CHECK_INT(policy_storage(policy, FORMAT_FP32), cases[i].kept);
        policy_free(policy);
    }
}

static void bce_on_probabilities_is_banned_under_a_low_format(void) {
    Policy *policy = policy_of("fp16");
    Error error = {0};
    OpFormats formats;
    CHECK(!policy_decide(policy, 0, on, OP_bce, FORMAT_FP16, FORMAT_FP16, &formats, &error));
    CHECK_CONTAINS(error.text, "bce_with_logits");
    CHECK(policy_decide(policy, 0, off, OP_bce, FORMAT_FP32, FORMAT_FP32, &formats, &error));
    policy_free(policy);
}

static void formats_that_cannot_be_trained_in_are_refused_by_name(void) {
    Error error = {0};
    Preset preset;
    LayerPrecision layer;
    CHECK(!preset_resolve("mxfp8", NULL, &preset, NULL, 0, &error));
    CHECK_INT(error.code, ERROR_UNAVAILABLE);
    CHECK_CONTAINS(error.text, "mxfp8");
    CHECK(!layer_precision_parse("e2m1", NULL, &layer, &error)); // an element alone
    CHECK_INT(error.code, ERROR_USAGE);
    CHECK_CONTAINS(error.text, "one of auto fp32 tf32 bf16 fp16 e4m3 e5m2 fp8 mxfp8");
    CHECK(!preset_resolve("fp12", NULL, &preset, NULL, 0, &error));
    CHECK_INT(error.code, ERROR_USAGE);
}

static bool keeps_to_what_trains(const Device *device, OpId op, Format format) {
    (void)device, (void)op;
    return format_trains(format);
}

static void tf32_is_trained_in_where_the_device_multiplies_in_it(void) {
    static const char *const names[] = {"cpu", "ref"};
    Error error = {0};
    Preset preset;
    LayerPrecision layer;
    for (int i = 0; i < 2; i++) {
        Device *device = NULL;
        char why[160];
        CHECK(device_open(names[i], 1, &device, &error));
        CHECK(layer_precision_parse("tfloat32", device, &layer, &error));
        CHECK_INT(layer, LAYER_TF32);
        CHECK(layer_precision_check(layer, device, &error));
        CHECK(preset_resolve("tfloat32", device, &preset, NULL, 0, &error));
        CHECK_TEXT(preset.name, "tf32");
        CHECK_TEXT(preset.loss_scale, "none");
        CHECK_INT(preset.low, FORMAT_TF32);
        // It rounds, which costs: nothing is gained, and `auto` never takes it.
        CHECK(device->backend->gain(device, FORMAT_TF32) == 1);
        CHECK(preset_resolve("auto", device, &preset, why, sizeof why, &error));
        CHECK(preset.low != FORMAT_TF32);
        device_close(device);
    }
    CHECK(!preset_resolve("tf32", NULL, &preset, NULL, 0, &error));
    CHECK(layer_precision_parse("tf32", NULL, &layer, &error)); // until the device is known
}

static void a_device_that_does_not_multiply_in_tf32_refuses_it(void) {
    Error error = {0};
    Preset preset;
    LayerPrecision layer;
    Device *device = NULL;
    CHECK(device_open("cpu", 1, &device, &error));
    const Backend *own = device->backend;
    Backend less = *own;
    less.supports = keeps_to_what_trains;
    device->backend = &less;
    CHECK(!preset_resolve("tf32", device, &preset, NULL, 0, &error));
    CHECK_INT(error.code, ERROR_UNAVAILABLE);
    CHECK_TEXT(error.text, "tf32: this device multiplies nothing in it, use fp32 or bf16");
    CHECK(!layer_precision_parse("tf32", device, &layer, &error));
    CHECK(!layer_precision_check(LAYER_TF32, device, &error));
    CHECK_INT(error.code, ERROR_UNAVAILABLE);
    device->backend = own;
    device_close(device);
}

static void scaled_formats_are_presets_beside_bf16(void) {
    static const char *const names[] = {"fp8",   "mxfp8", "mxfp6", "mxfp6_e2m3", "mxfp4",
                                        "nvfp4", "e4m3",  "e5m2",  "hybrid",     "mxfp6_e3m2"};
    Device *devices[2];
    CHECK(device_open("cpu", 1, &devices[0], NULL) && device_open("ref", 1, &devices[1], NULL));
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            Preset preset;
            Error error = {0};
            CHECK_MESSAGE(preset_resolve(names[i], devices[d], &preset, NULL, 0, &error), "%s",
                          error.text);
            CHECK_INT(preset.low, format_named(names[i]));
            CHECK_TEXT(preset.loss_scale, "none");
            CHECK(preset.masters);
            Policy *policy = policy_new(&preset, NULL);
            OpFormats formats;
            CHECK(
                policy_decide(policy, 0, on, OP_linear, FORMAT_FP32, FORMAT_FP32, &formats, NULL));
            CHECK_INT(formats.compute, preset.low);
            CHECK_INT(formats.output, FORMAT_BF16);
            CHECK(policy_decide(policy, 0, on, OP_attention, FORMAT_BF16, FORMAT_BF16, &formats,
                                NULL));
            CHECK_INT(formats.compute, FORMAT_BF16);
            CHECK(
                policy_decide(policy, 0, on, OP_softmax, FORMAT_BF16, FORMAT_BF16, &formats, NULL));
            CHECK_INT(formats.output, FORMAT_FP32);
            policy_free(policy);
        }
    device_close(devices[0]), device_close(devices[1]);
}

// What it gives is kept as the rest of the run is.
static void a_layer_in_a_scaled_format_keeps_the_runs_own(void) {
    static const struct {
        const char *preset;
        Format kept;
    } rows[] = {{"fp32", FORMAT_FP32},
                {"bf16", FORMAT_BF16},
                {"fp16", FORMAT_FP16},
                {"O2", FORMAT_FP16},
                {"O0", FORMAT_FP32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Policy *policy = policy_of(rows[i].preset);
        int layer = policy_add_layer(policy, "head", 0, NULL);
        policy_set_layer(policy, layer, LAYER_NVFP4);
        OpFormats formats;
        CHECK(
            policy_decide(policy, layer, on, OP_linear, FORMAT_FP32, FORMAT_FP32, &formats, NULL));
        CHECK_INT(formats.compute, FORMAT_NVFP4);
        CHECK_INT(formats.output, rows[i].kept);
        policy_free(policy);
    }
}

static void names_of_other_tools_are_formats_and_presets(void) {
    Error error = {0};
    Preset preset;
    LayerPrecision layer;
    CHECK(preset_resolve("half", NULL, &preset, NULL, 0, &error));
    CHECK_TEXT(preset.name, "fp16");
    CHECK(preset_resolve("bfloat16", NULL, &preset, NULL, 0, &error));
    CHECK_TEXT(preset.name, "bf16");
    CHECK(layer_precision_parse("float32", NULL, &layer, &error));
    CHECK_INT(layer, LAYER_FP32);
    CHECK(!layer_precision_parse("double", NULL, &layer, &error));
    CHECK_CONTAINS(error.text, "one of auto fp32 tf32 bf16 fp16");
}

static void every_format_that_trains_is_a_preset_and_a_layers(void) {
    for (int i = 0; i < FORMAT_COUNT; i++) {
        Preset preset;
        LayerPrecision layer = LAYER_AUTO;
        Error error = {0};
        const char *name = format_name((Format)i);
        CHECK(preset_resolve(name, NULL, &preset, NULL, 0, &error) == format_trains((Format)i));
        CHECK(layer_precision_parse(name, NULL, &layer, &error) ==
              (format_trains((Format)i) || precision_is_untrained(name)));
        if (!format_trains((Format)i))
            continue;
        CHECK_TEXT(layer_precision_name(layer), name);
        CHECK_INT(layer_precision_format(layer), i);
        CHECK_INT(preset.low, i);
    }
}

static void auto_says_why(void) {
    Preset preset;
    char why[160] = "";
    CHECK(preset_resolve("auto", NULL, &preset, why, sizeof why, NULL));
    CHECK_TEXT(preset.name, "fp32");
    CHECK(strlen(why) > 20);
}

static double gains[FORMAT_COUNT];

static double given_gain(const Device *device, Format format) {
    (void)device;
    return gains[format];
}

static void auto_takes_what_the_device_gains_more_from(void) {
    static const struct {
        double fp16, bf16;
        const char *chosen, *why[2];
    } cases[] = {
        {2, 5, "bf16", {"bf16 are about 5 times as fast", "fp16 2 times"}},
        {3, 2, "fp16", {"fp16 are about 3 times as fast", "bf16 2 times"}},
        {2, 2, "fp16", {"fp16 are about 2 times as fast", "bf16 2 times"}},
        {2, 1, "fp16", {"fp16 are about 2 times as fast", "bf16 are no faster"}},
        {1, 2, "bf16", {"bf16 are about 2 times as fast", "fp16 are no faster"}},
        {1, 1, "fp32", {"neither bf16 nor fp16 is faster", ""}},
    };
    const Backend backend = {.gain = given_gain};
    const Device device = {.backend = &backend};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Preset preset;
        char why[160] = "";
        gains[FORMAT_FP16] = cases[i].fp16;
        gains[FORMAT_BF16] = cases[i].bf16;
        CHECK(preset_resolve("auto", &device, &preset, why, sizeof why, NULL));
        Preset unasked;
        CHECK(preset_resolve("auto", &device, &unasked, NULL, 0, NULL));
        CHECK_TEXT(unasked.name, preset.name);
        CHECK(preset_resolve_evaluated("auto", &device, &unasked, NULL));
        CHECK_TEXT(unasked.name, preset.name);
        CHECK_TEXT(preset.name, cases[i].chosen);
        CHECK_CONTAINS(why, cases[i].why[0]);
        CHECK_CONTAINS(why, cases[i].why[1]);
    }
}

// What it says of a layer that does this alone.
static Format computed_by(Policy *policy, OpId op, Format first) {
    OpFormats formats;
    const int layer = policy_add_layer(policy, op_table[op].name, 0, NULL);
    CHECK(policy_decide(policy, layer, on, op, first, FORMAT_FP32, &formats, NULL));
    policy_note_computed(policy, layer, on, op, &formats);
    const PolicyLayer *noted = policy_layer(policy, layer);
    CHECK_INT(policy_foresee(policy, policy_preset(policy), layer),
              noted->knows_computed ? noted->computed : FORMAT_FP16);
    return noted->knows_computed ? noted->computed : FORMAT_COUNT;
}

static void a_layer_that_multiplies_nothing_is_told_by_its_weights(void) {
    Policy *policy = policy_of("fp16");
    const Keep keep = {.is_given = true, .kept[KEEP_LOSSES] = true};
    CHECK_INT(computed_by(policy, OP_linear, FORMAT_FP32), FORMAT_FP16);
    CHECK_INT(computed_by(policy, OP_batch_norm, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(computed_by(policy, OP_embedding, FORMAT_FP32), FORMAT_FP32);
    CHECK_INT(computed_by(policy, OP_layer_norm, FORMAT_FP16), FORMAT_FP32);
    CHECK_INT(computed_by(policy, OP_relu, FORMAT_FP16), FORMAT_COUNT); // as what it is given
    policy_free(policy);
    policy = policy_of("fp16");
    policy_set_keep(policy, &keep);
    CHECK_INT(computed_by(policy, OP_batch_norm, FORMAT_FP16), FORMAT_FP16);
    CHECK_INT(computed_by(policy, OP_embedding, FORMAT_FP32), FORMAT_FP16);
    policy_free(policy);
}

static void a_layer_that_is_no_product_is_in_no_scaled_format(void) {
    Policy *policy = policy_of("bf16");
    OpFormats formats;
    const int block = policy_add_layer(policy, "block", 0, NULL);
    const int relu = policy_add_layer(policy, "block.relu", block, NULL);
    const Preset *preset = policy_preset(policy);
    CHECK(policy_set(policy, "block", LAYER_MXFP4, NULL, NULL));
    CHECK_INT(policy_foresee(policy, preset, relu), FORMAT_MXFP4); // nothing is known yet
    for (int layer = block; layer <= relu; layer++) {
        CHECK(policy_decide(policy, layer, on, OP_relu, FORMAT_BF16, FORMAT_BF16, &formats, NULL));
        policy_note_computed(policy, layer, on, OP_relu, &formats);
    }
    CHECK_INT(policy_foresee(policy, preset, relu), FORMAT_BF16);
    CHECK_INT(policy_foresee(policy, preset, block), FORMAT_MXFP4); // which is for what it holds
    policy_free(policy);
}

int main(void) {
    RUN_TEST(each_class_does_what_the_table_says);
    RUN_TEST(outside_autocast_nothing_is_cast);
    RUN_TEST(a_format_given_to_the_region_beats_the_preset);
    RUN_TEST(a_layer_set_beats_the_class_and_is_inherited);
    RUN_TEST(a_layer_of_other_16_bits_casts_what_comes_in);
    RUN_TEST(a_layer_in_tf32_keeps_fp32_and_multiplies_in_tf32);
    RUN_TEST(the_last_rule_wins_for_layers_to_come_too);
    RUN_TEST(a_queued_change_waits_for_the_boundary);
    RUN_TEST(all_low_presets_spare_batch_norm_and_losses);
    RUN_TEST(what_is_not_kept_runs_low_with_its_weights);
    RUN_TEST(what_is_kept_is_so_under_every_preset);
    RUN_TEST(kinds_to_keep_are_known_by_name);
    RUN_TEST(without_masters_parameters_are_kept_low);
    RUN_TEST(bce_on_probabilities_is_banned_under_a_low_format);
    RUN_TEST(formats_that_cannot_be_trained_in_are_refused_by_name);
    RUN_TEST(scaled_formats_are_presets_beside_bf16);
    RUN_TEST(a_layer_in_a_scaled_format_keeps_the_runs_own);
    RUN_TEST(tf32_is_trained_in_where_the_device_multiplies_in_it);
    RUN_TEST(a_device_that_does_not_multiply_in_tf32_refuses_it);
    RUN_TEST(names_of_other_tools_are_formats_and_presets);
    RUN_TEST(every_format_that_trains_is_a_preset_and_a_layers);
    RUN_TEST(auto_says_why);
    RUN_TEST(auto_takes_what_the_device_gains_more_from);
    RUN_TEST(a_layer_that_multiplies_nothing_is_told_by_its_weights);
    RUN_TEST(a_layer_that_is_no_product_is_in_no_scaled_format);
    return test_end();
}
