// What became of layers' factors, kept in the history: read back by step and window, superseded by
// a resume, in files of before too; and what is said of it.
#include "store/layer_factors.h"

#include "compare/factor_shares.h"
#include "store/series.h"
#include "store_fixture.h"

static LayerFactors some_factors(int64_t step, int layer, const char *role, int64_t flushed) {
    LayerFactors factors = {.step = step,
                            .layer = layer,
                            .count = 1000,
                            .flushed = flushed,
                            .saturated = 20,
                            .has_scales = true,
                            .least = -29,
                            .middle = -17,
                            .most = -16};
    snprintf(factors.role, sizeof factors.role, "%s", role);
    snprintf(factors.precision, sizeof factors.precision, "mxfp8");
    return factors;
}

static void add(Store *store, int64_t run, int segment, LayerFactors factors) {
    CHECK_DONE(store_begin(store, &error) &&
               store_add_factors(store, run, segment, &factors, &error) &&
               store_commit(store, &error));
}

// Steps 10 and 30, of the second segment 20; that begins after step 15.
static int64_t fill(Store *store) {
    int64_t run = add_run(store, some_run("a", "mxfp8"));
    series_writer_free(series_writer_new(store, run, 0, "start", &error));
    for (int layer = 0; layer < 2; layer++) {
        add(store, run, 0, some_factors(10, layer, "weight", 1));
        add(store, run, 0, some_factors(10, layer, "gradient", 50 + layer));
        add(store, run, 0, some_factors(30, layer, "gradient", 900));
    }
    return run;
}

static void they_are_read_by_step_and_by_window(void) {
    Store *store = fresh_store("f.db");
    LayerFactors *read;
    int count = -1;
    int64_t run = fill(store);
    CHECK_DONE(store_read_factors_at(store, run, 9, &read, &count, &error));
    CHECK_INT(count, 0);
    free(read);
    CHECK_DONE(store_read_factors_at(store, run, 29, &read, &count, &error));
    CHECK_INT(count, 4);
    CHECK(count == 4 && read[3].layer == 1 && read[3].flushed == 1 && read[2].flushed == 51);
    CHECK(count == 4 && read[0].has_scales && read[0].least == -29 && read[0].most == -16);
    CHECK_TEXT(read[0].role, "gradient");
    CHECK_TEXT(read[0].precision, "mxfp8");
    free(read);
    CHECK_DONE(store_read_factors(store, run, 0, 100, &read, &count, &error));
    CHECK_INT(count, 6);
    free(read);
    store_close(store);
}

static void a_resume_supersedes_those_behind_it(void) {
    Store *store = fresh_store("f.db");
    LayerFactors *read;
    int count = -1;
    int64_t run = fill(store);
    series_writer_free(series_writer_new(store, run, 15, "resume", &error));
    CHECK_DONE(store_read_factors_at(store, run, 100, &read, &count, &error));
    CHECK(count == 4 && read[0].step == 10);
    free(read);
    add(store, run, 1, some_factors(20, 0, "gradient", 7));
    CHECK_DONE(store_read_factors(store, run, 0, 100, &read, &count, &error));
    CHECK(count == 5 && read[4].step == 20 && read[4].flushed == 7);
    free(read);
    store_close(store);
}

static void files_of_before_have_none_and_take_them(void) {
    Store *store = fresh_store("f.db");
    LayerFactors *read;
    int count = -1;
    int64_t run = fill(store);
    store_close(store);
    run_sql(path_of("f.db"), "DROP TABLE layer_factors");
    store = store_open(path_of("f.db"), STORE_READ, &error);
    CHECK_DONE(store && store_read_factors_at(store, run, 100, &read, &count, &error));
    CHECK_INT(count, 0);
    store_close(store);
    store = store_open(path_of("f.db"), STORE_WRITE, &error);
    add(store, run, 0, some_factors(10, 0, "weight", 1));
    CHECK_DONE(store_read_factors_at(store, run, 100, &read, &count, &error));
    CHECK_INT(count, 1);
    free(read);
    store_close(store);
}

static void the_role_that_loses_most_stands_for_its_layer(void) {
    const LayerFactors list[] = {some_factors(1, 0, "activation", 1),
                                 some_factors(1, 0, "weight", 40),
                                 some_factors(1, 1, "weight", 500)};
    FactorShares worst = factor_shares_worst(list, 3, 0);
    CHECK(worst.is_known && worst.of == &list[1]);
    CHECK_NEAR(worst.flushed, 0.04, 1e-12);
    CHECK_NEAR(worst.lost, 0.06, 1e-12);
    CHECK(!factor_shares_worst(list, 3, 2).is_known);
    LayerFactors nearest = list[1]; // whose scales are rounded to the nearest
    snprintf(nearest.precision, sizeof nearest.precision, "nvfp4");
    CHECK_NEAR(factor_shares(&nearest).lost, 0.04, 1e-12);
    CHECK(factors_hold_until(&list[0]) > 2000 && factors_hold_until(&list[0]) < 4000);
}

static void they_are_told_in_a_sentence(void) {
    char text[FACTOR_WORDS_SIZE];
    LayerFactors factors = some_factors(1, 0, "gradient", 12);
    factor_words(&factors, text);
    CHECK_TEXT(text, "gradients: 1.20 % flushed, 2.00 % saturated, scales 2^-29 to 2^-16, most "
                     "about 2^-17");
    factors.flushed = factors.saturated = 0;
    factors.broken = 1;
    factors.least = factors.most;
    factor_words(&factors, text);
    CHECK_TEXT(text, "gradients: 0 flushed, 0 saturated, 0.10 % not finite, scale 2^-16");
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(they_are_read_by_step_and_by_window);
    RUN_TEST(a_resume_supersedes_those_behind_it);
    RUN_TEST(files_of_before_have_none_and_take_them);
    RUN_TEST(the_role_that_loses_most_stands_for_its_layer);
    RUN_TEST(they_are_told_in_a_sentence);
    return test_end();
}
