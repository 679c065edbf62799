// What the sides of a comparison are called: what tells them apart comes first and is never cut.
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

typedef struct Called { // what of a run its label may be made of
    const char *precision;
    const RecordLayer *layers;
    int layer_count;
    const char *kept, *recipe, *note; // of --keep-fp32, the fact, an option; NULL: none
} Called;

static const RecordLayer norm_set[] = {
    {.name = "conv1", .parent = -1, .precision = "fp16", .set = "auto"},
    {.name = "norm1", .parent = -1, .precision = "bf16", .set = "bf16"}};
static const RecordLayer conv_set[] = {
    {.name = "conv1", .parent = -1, .precision = "bf16", .set = "bf16"},
    {.name = "norm1", .parent = -1, .precision = "fp16", .set = "auto"}};
static const RecordLayer both_set[] = {
    {.name = "conv1", .parent = -1, .precision = "fp16", .set = "fp16"},
    {.name = "norm1", .parent = -1, .precision = "fp16", .set = "fp16"},
    {.name = "head", .parent = -1, .precision = "fp32", .set = "auto"}};

static Comparison *compare_called(const Called *called, int count) {
    RunRecord *runs = calloc((size_t)count, sizeof *runs);
    Error error = {0};
    CHECK(runs);
    for (int i = 0; i < count; i++) {
        Planted planted = {"a", called[i].precision, 1, 0.9, 50, 0.1, 0.2, 0.05, 0};
        RecordOption options[2] = {{.name = "keep-fp32"}, {.name = "batch"}};
        RecordFact fact = {.name = RECORD_FACT_RECIPE};
        int used = 0;
        runs[i] = planted_record(&planted);
        snprintf(options[0].value, sizeof options[0].value, "%s",
                 called[i].kept ? called[i].kept : "all");
        used = 1;
        if (called[i].note)
            snprintf(options[used++].value, sizeof options[1].value, "%s", called[i].note);
        snprintf(fact.value, sizeof fact.value, "%s", called[i].recipe ? called[i].recipe : "");
        CHECK(record_set_layers(&runs[i], called[i].layers, called[i].layer_count, &error));
        CHECK(record_set_options(&runs[i], options, used, &error));
        CHECK(record_set_facts(&runs[i], &fact, called[i].recipe != NULL, &error));
    }
    const CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, count, &options, &error);
    CHECK_MESSAGE(comparison, "%s", error.text);
    return comparison;
}

static void what_stays_in_fp32_is_named_beside_other_runs(void) {
    const Called runs[] = {{.precision = "fp32"},
                           {"fp16", norm_set, 2, "losses", NULL, NULL},
                           {.precision = "fp16", .kept = "losses"}};
    Comparison *comparison = compare_called(runs, 3);
    CHECK_TEXT(comparison->groups[0].label, "fp32");
    CHECK_TEXT(comparison->groups[1].label, "fp16 norm1=bf16 keep=losses");
    CHECK_TEXT(comparison->groups[2].label, "fp16 keep=losses");
    compare_free(comparison);
}

static void a_policy_is_named_beside_other_runs(void) {
    const Called runs[] = {
        {.precision = "fp32"}, {.precision = "fp16"}, {"fp32", both_set, 3, NULL, NULL, NULL}};
    Comparison *comparison = compare_called(runs, 3);
    CHECK_TEXT(comparison->groups[0].label, "fp32");
    CHECK_TEXT(comparison->groups[1].label, "fp16");
    CHECK_TEXT(comparison->groups[2].label, "fp32 +2 layers");
    compare_free(comparison);
}

static void layers_of_one_number_are_told_apart_by_name(void) {
    const Called runs[] = {{"fp16", norm_set, 2, NULL, NULL, NULL},
                           {"fp16", conv_set, 2, NULL, NULL, NULL}};
    Comparison *comparison = compare_called(runs, 2);
    CHECK_TEXT(comparison->groups[0].label, "fp16 norm1=bf16");
    CHECK_TEXT(comparison->groups[1].label, "fp16 conv1=bf16");
    compare_free(comparison);
}

static void only_those_alike_are_told_apart_further(void) {
    const Called runs[] = {{.precision = "fp16", .kept = "losses", .note = "1"},
                           {.precision = "fp16", .kept = "losses", .note = "2"},
                           {.precision = "fp32", .kept = "losses", .note = "2"}};
    Comparison *comparison = compare_called(runs, 3);
    CHECK_TEXT(comparison->groups[0].label, "fp16 keep=losses, batch=1");
    CHECK_TEXT(comparison->groups[1].label, "fp16 keep=losses, batch=2");
    CHECK_TEXT(comparison->groups[2].label, "fp32 keep=losses");
    compare_free(comparison);
}

#define ALIKE "all,of,this,is,said,of,the,one,and,of,the,other,too,"
static void long_values_keep_where_they_differ(void) {
    const Called runs[] = {{.precision = "fp16", .note = ALIKE "end=1"},
                           {.precision = "fp16", .note = ALIKE "end=2"}};
    Comparison *comparison = compare_called(runs, 2);
    CHECK_CONTAINS(comparison->groups[0].label, "end=1");
    CHECK_CONTAINS(comparison->groups[1].label, "end=2");
    compare_free(comparison);
}

// What is usual is in no recipe that a run tells.
static void a_usual_part_of_a_recipe_is_named_beside_another(void) {
    const Called runs[] = {{.precision = "mxfp8", .recipe = "scales=floor,norms=scaled"},
                           {.precision = "mxfp8", .recipe = "scales=floor"},
                           {.precision = "mxfp8", .recipe = "norms=scaled"}};
    Comparison *comparison = compare_called(runs, 2);
    CHECK_INT(comparison->difference_count, 1);
    CHECK_TEXT(comparison->groups[0].label, "recipe.norms=scaled");
    CHECK_TEXT(comparison->groups[1].label, "recipe.norms=own");
    compare_free(comparison);
    comparison = compare_called(runs, 3);
    CHECK_TEXT(comparison->groups[0].label, "recipe.scales=floor, recipe.norms=scaled");
    CHECK_TEXT(comparison->groups[1].label, "recipe.scales=floor, recipe.norms=own");
    CHECK_TEXT(comparison->groups[2].label, "recipe.scales=up");
    compare_free(comparison);
}

int main(void) {
    RUN_TEST(what_stays_in_fp32_is_named_beside_other_runs);
    RUN_TEST(a_policy_is_named_beside_other_runs);
    RUN_TEST(layers_of_one_number_are_told_apart_by_name);
    RUN_TEST(only_those_alike_are_told_apart_further);
    RUN_TEST(long_values_keep_where_they_differ);
    RUN_TEST(a_usual_part_of_a_recipe_is_named_beside_another);
    return test_end();
}
