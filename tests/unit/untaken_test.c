// Layers that are set to a format in which they do not compute.
#include "precision/untaken.h"
#include "tests/test.h"

static const AutocastRegion on = {.enabled = true}, off = {.enabled = false};
static Policy *policy;

static void begin(const char *name) {
    Preset preset;
    CHECK(preset_resolve(name, NULL, &preset, NULL, 0, NULL));
    policy = policy_new(&preset, NULL);
    CHECK(policy != NULL);
}

// A layer whose only operation this is.
static int add(const char *name, int parent, OpId op, AutocastRegion region) {
    OpFormats formats;
    const int layer = policy_add_layer(policy, name, parent, NULL);
    CHECK(policy_decide(policy, layer, region, op, FORMAT_FP32, FORMAT_FP32, &formats, NULL));
    policy_note_computed(policy, layer, region, op, &formats);
    return layer;
}

static Untaken set(const char *pattern, LayerPrecision precision) {
    CHECK(policy_set(policy, pattern, precision, NULL, NULL));
    return untaken_find(policy, pattern, precision);
}

static void what_is_kept_takes_no_format(void) {
    begin("bf16");
    const int embed = add("embed", 0, OP_embedding, on);
    add("head", 0, OP_linear, on);
    Untaken untaken = set("embed", LAYER_FP16);
    CHECK_INT(untaken.count, 1);
    CHECK_INT(untaken.others, 0);
    CHECK_INT(untaken.layer, embed);
    CHECK_INT(untaken.computed, FORMAT_FP32);
    CHECK_TEXT(untaken.why, "embedding is kept in fp32 (--keep-fp32)");
    CHECK_INT(set("head", LAYER_FP16).count, 0);
    CHECK_INT(set("embed", LAYER_FP32).count, 0);
    CHECK_INT(set("embed", LAYER_AUTO).count, 0);
    untaken = set("*", LAYER_FP16);
    CHECK_INT(untaken.count, 1);
    CHECK_INT(untaken.others, 1);
    policy_free(policy);
}

static void what_is_not_kept_takes_it(void) {
    begin("bf16");
    const Keep keep = {.is_given = true};
    policy_set_keep(policy, &keep);
    add("embed", 0, OP_embedding, on);
    add("norm", 0, OP_layer_norm, on);
    CHECK_INT(set("*", LAYER_FP16).count, 0);
    const Untaken untaken = set("norm", LAYER_MXFP8);
    CHECK_INT(untaken.count, 1);
    CHECK_INT(untaken.computed, FORMAT_BF16);
    CHECK_TEXT(untaken.why, "layer_norm takes mxfp8 by --recipe norms=scaled alone");
    CHECK_TEXT(set("embed", LAYER_MXFP8).why, "embedding takes no mxfp8");
    policy_free(policy);
}

static void what_a_layer_holds_is_what_it_is_set_for(void) {
    begin("bf16");
    const int block = add("block", 0, OP_softmax, on);
    const int norm = add("block.norm", block, OP_layer_norm, on);
    add("block.fc", block, OP_linear, on);
    Untaken untaken = set("block", LAYER_FP16);
    CHECK_INT(untaken.count, 1);
    CHECK_INT(untaken.others, 1);
    CHECK_INT(untaken.layer, norm);
    CHECK(policy_set(policy, "block.norm", LAYER_FP32, NULL, NULL)); // the last match wins
    CHECK_INT(untaken_find(policy, "block", LAYER_FP16).count, 0);
    policy_free(policy);
}

static void what_is_not_known_is_not_said(void) {
    begin("bf16");
    CHECK(policy_add_layer(policy, "relu", 0, NULL) > 0);
    add("out", 0, OP_linear, off);
    CHECK_INT(set("relu", LAYER_FP16).count, 0);
    CHECK_TEXT(set("out", LAYER_FP16).why, "it is computed outside of mp.autocast");
    policy_free(policy);
}

int main(void) {
    RUN_TEST(what_is_kept_takes_no_format);
    RUN_TEST(what_is_not_kept_takes_it);
    RUN_TEST(what_a_layer_holds_is_what_it_is_set_for);
    RUN_TEST(what_is_not_known_is_not_said);
    return test_end();
}
