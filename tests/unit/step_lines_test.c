// Parts of a profiled step as lines: by layer, by operation, and what is said of those that differ.
#include "compare/step_lines.h"
#include "tests/test.h"

static const StepPart parts[] = {
    {"fc", "cast", "forward", "fp32", "fp16", 1, 0.001, 0, 4096, 0, 0},
    {"fc", "linear", "forward", "fp16", "fp16", 1, 0.002, 1e6, 64, 0.001, 16},
    {"fc", "matmul", "backward", "fp16", "fp16", 2, 0.004, 1e6, 64, 0.001, 8},
    {"in", "cast", "forward", "fp32", "bf16", 1, 0.001, 0, 64, 0, 0},
    {"", "relu", "forward", "fp16", "fp16", 1, 0.0005, 0, 64, 0, 0},
    {"", "update of weights", "step", "", "", 1, 0.0001, 0, 0, 0, 0},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void casts_do_not_hide_what_a_layer_computes_in(void) {
    StepLine lines[PARTS];
    CHECK_INT(step_lines(parts, PARTS, STEP_BY_LAYER, lines), 4);
    CHECK_TEXT(lines[0].part.layer, "fc");
    CHECK_TEXT(lines[0].part.from, "fp16");
    CHECK_TEXT(lines[0].part.way, "");
    CHECK_TEXT(lines[0].part.operation, "");
    CHECK_INT(lines[0].part.columns, 8);
    CHECK_NEAR(lines[0].part.seconds, 0.007, 1e-9);
    CHECK_NEAR(lines[0].limited, 0.006, 1e-9);
    CHECK_TEXT(lines[1].part.layer, "in"); // where there are casts alone they are what is told
    CHECK_TEXT(lines[1].part.from, "fp32");
    CHECK_TEXT(lines[1].part.to, "bf16");
    CHECK_TEXT(lines[2].part.operation, "relu"); // outside of all by operation
    CHECK_TEXT(lines[3].part.operation, "update of weights");
}

static void an_operation_is_of_no_layer(void) {
    StepLine lines[PARTS];
    CHECK_INT(step_lines(parts, PARTS, STEP_BY_OPERATION, lines), 5);
    CHECK_TEXT(lines[0].part.operation, "matmul");
    CHECK_TEXT(lines[0].part.layer, "");
    CHECK_TEXT(lines[1].part.operation, "cast");
    CHECK_TEXT(lines[1].part.from, "fp32");
    CHECK_TEXT(lines[1].part.to, "");
    CHECK_NEAR(lines[1].part.calls, 2, 1e-9);
    CHECK_INT(step_lines(parts, PARTS, STEP_BY_PART, lines), PARTS);
    CHECK_TEXT(lines[0].part.operation, "matmul");
}

int main(void) {
    RUN_TEST(casts_do_not_hide_what_a_layer_computes_in);
    RUN_TEST(an_operation_is_of_no_layer);
    return test_end();
}
