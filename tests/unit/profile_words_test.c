// What a profile says is to be done about where the time goes.
#include <math.h>
#include <string.h>

#include "cli/profile/profile.h"
#include "tests/test.h"

static ProfileReport report;
static ProfileRow rows[8];

// A step of one second.
static void begin(void) {
    memset(rows, 0, sizeof rows);
    report = (ProfileReport){.rows = rows, .step_seconds = 1};
}

static ProfileRow *add(const char *layer, const char *way, int work, double seconds) {
    ProfileRow *row = &rows[report.row_count++];
    *row = (ProfileRow){.operation = parts_work_name(work),
                        .way = way,
                        .work = work,
                        .calls = 1,
                        .seconds = seconds,
                        .from = FORMAT_BF16,
                        .to = FORMAT_BF16};
    snprintf(row->layer, sizeof row->layer, "%s", layer);
    return row;
}

static void add_product(const char *layer, double seconds, double reach, int64_t columns) {
    ProfileRow *row = add(layer, "forward", OP_linear, seconds);
    row->multiplications = 1;
    row->limited = seconds;
    row->at_limit = reach * seconds;
    row->columns = columns;
}

static void add_cast(const char *layer, double seconds) {
    add(layer, "forward", OP_cast, seconds)->from = FORMAT_FP32;
    report.casts++;
    report.cast_seconds += seconds;
}

// The only thing said, or the first.
static const char *said(void) {
    profile_find_words(&report);
    return report.word_count > 0 ? report.words[0] : "nothing";
}

static void narrow_products_are_too_small_to_gain(void) {
    begin();
    add_product("head", 0.41, 0.02, 10);
    CHECK_TEXT(said(),
               "head: 41 % of the time in products, most of them of 10 columns at most: too "
               "small to gain from lower formats");
    CHECK_INT(report.word_count, 1);
}

static void a_narrow_product_does_not_speak_for_those_that_take_longer(void) {
    begin();
    add_product("conv1", 0.15, 0.4, 9);
    add_product("conv1", 0.26, 0.4, 96);
    CHECK_CONTAINS(said(), "conv1: 41 % of the time in products that reach 40 %");
}

static void products_say_how_far_they_are_from_the_limit(void) {
    begin();
    add_product("wide", 0.5, 0.8, 512);
    CHECK_CONTAINS(said(), "wide: 50 % of the time in products that reach 80 % of what large ones "
                           "do in bf16: only a faster format gains here");
    begin();
    add_product("wide", 0.3, 0.1, 512);
    add_product("wide", 0.2, 0.1, 512); // its other way
    CHECK_CONTAINS(said(), "wide: 50 % of the time in products that reach 10 % of what large ones "
                           "do in bf16: more rows (a larger batch)");
    CHECK_INT(report.word_count, 1);
}

static void no_faster_format_is_promised_where_there_is_none(void) {
    static const struct {
        double reach;
        const char *told;
    } cases[] = {{0.8, "no format is faster on this device, so little is to be gained"},
                 {0.5, "larger batches gain part of that; no format is faster on this device"},
                 {0.1, "more rows (a larger batch) or wider layers"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        report.is_fastest[FORMAT_BF16] = true;
        add_product("wide", 0.5, cases[i].reach, 512);
        CHECK_CONTAINS(said(), cases[i].told);
        CHECK(strstr(report.words[0], "a faster format") == NULL);
    }
    begin();
    report.is_fastest[FORMAT_FP32] = true; // another one
    add_product("wide", 0.5, 0.5, 512);
    CHECK_CONTAINS(said(), "a faster format, where `mpbench bench` shows one, gains part of that");
}

static void layers_that_have_little_each_are_told_of_together(void) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_product(names[i], 0.09, 0.4, 64);
    CHECK_CONTAINS(said(), "all layers together: 45 % of the time in products that reach 40 %");
}

static void casts_name_where_most_of_them_are(void) {
    begin();
    add_cast("conv1", 0.1);
    add_cast("conv2", 0.02);
    CHECK_TEXT(said(), "casts take 12 % (2 a step): most in conv1, 10 %, where its input is cast "
                       "from fp32 to bf16 each step: see whether --layer conv1=fp32 is faster");
    begin();
    add_cast("conv1", 0.04);
    add_cast("conv2", 0.04);
    add_cast("conv3", 0.03);
    CHECK_CONTAINS(said(), "casts between formats take 11 %, in many places");
    begin();
    add_cast("conv1", 0.01);
    CHECK(strstr(said(), "casts between") == NULL);
    begin();
    for (const char *layer = "abc"; *layer; layer++)
        add((char[]){*layer, 0}, "forward", OP_scale_factor, 0.04);
    report.cast_seconds = 0.12;
    CHECK_CONTAINS(said(), "casts take 12 %, in many layers: most is scale_factor, the rounding");
}

static void what_lies_between_and_what_is_the_steps_is_told(void) {
    begin();
    add_product("a", 0.05, 0.5, 64);
    report.between = 0.6;
    CHECK_CONTAINS(said(), "60 % of a step lies between its operations");
    begin();
    add("", "step", WORK_BATCH, 0.3);
    CHECK_CONTAINS(said(), "30 % of the time waits for the next batch");
    begin();
    add("", "step", WORK_UPDATE, 0.2);
    CHECK_CONTAINS(said(), "the update of weights takes 20 %");
}

static void where_nothing_stands_out_the_largest_is_named(void) {
    begin();
    add("pool", "forward", OP_relu, 0.08);
    CHECK_TEXT(said(), "no part stands out; relu in pool takes most, 8 % of a step");
}

int main(void) {
    RUN_TEST(narrow_products_are_too_small_to_gain);
    RUN_TEST(a_narrow_product_does_not_speak_for_those_that_take_longer);
    RUN_TEST(products_say_how_far_they_are_from_the_limit);
    RUN_TEST(no_faster_format_is_promised_where_there_is_none);
    RUN_TEST(layers_that_have_little_each_are_told_of_together);
    RUN_TEST(casts_name_where_most_of_them_are);
    RUN_TEST(what_lies_between_and_what_is_the_steps_is_told);
    RUN_TEST(where_nothing_stands_out_the_largest_is_named);
    return test_end();
}
