// What a comparison of a history says of speed and its noise, of what was set meanwhile, of other
// programs, and of losses that have other names.
#include <unistd.h>

#include "store/events.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"
#include "tests/unit/store_fixture.h"

static const char *const loss[] = {"loss"};
static const Planted fp32 = {"one", "fp32", 1, 0.9, 100, 0.1, 0.2, 0.05, 1000};

static int64_t plant_timed(Store *store, const Planted *planted, double slow) {
    int64_t id = plant(store, planted);
    CHECK_DONE(plant_series(store, id, loss, 1, planted, slow, &error));
    return id;
}

static Comparison *compare(Store *store, const int64_t *runs, int count, const char *series) {
    CompareOptions options = {.grams_per_kwh = NAN, .series = series};
    Comparison *comparison = compare_new(store, runs, count, &options, &error);
    CHECK_MESSAGE(comparison != NULL, "%s", error.text);
    return comparison;
}

// A run of each: 6 % that the steps' own times cannot tell from noise, and 6 % that they can.
static void one_run_of_each_tells_speeds_by_its_steps(void) {
    static const struct {
        double slow;
        const char *told;
    } cases[] = {{0.3, "two is about as fast as one (0."},
                 {0.01, "two is 1.06 times as fast as one (1.0"},
                 {5, "two ran too unevenly to tell its speed from that of one (0."}};
    for (int c = 0; c < 3; c++) {
        Store *store = fresh_store("history.db");
        Planted second = fp32;
        second.name = "two";
        second.steps_per_s = 106;
        int64_t runs[] = {plant_timed(store, &fp32, cases[c].slow),
                          plant_timed(store, &second, cases[c].slow)};
        Comparison *comparison = compare(store, runs, 2, NULL);
        const CompareSide *side = &comparison->groups[1];
        CHECK_NEAR(side->speedup, 1.06, 1e-9);
        CHECK(side->speedup_low < 1.06 && side->speedup_high > 1.06);
        CHECK_INT(compare_is_about_as_fast(side), c != 1);
        CHECK_INT(isnan(compare_told_speedup(comparison, side)), c == 2);
        CHECK_CONTAINS(comparison->verdicts[0], cases[c].told);
        compare_free(comparison);
        store_close(store);
    }
}

static void add_event(Store *store, int64_t run, EventKind kind, const char *text) {
    Event event = {.step = 10, .segment = 1, .kind = kind, .value = (double)NAN};
    snprintf(event.text, sizeof event.text, "%s", text);
    CHECK_DONE(store_add_event(store, run, &event, &error));
}

static void what_was_set_meanwhile_differs_and_is_in_the_verdict(void) {
    Store *store = fresh_store("history.db");
    Planted second = fp32;
    second.name = "two";
    second.precision = "bf16";
    int64_t runs[] = {plant_timed(store, &fp32, 0.01), plant_timed(store, &second, 0.01)};
    add_event(store, runs[1], EVENT_COMMAND, "head is fp32 from step 240 on");
    add_event(store, runs[1], EVENT_COMMAND, "paused after step 300; `resume` goes on");
    add_event(store, runs[1], EVENT_COMMAND, "set lr=x: refused: a number is wanted");
    add_event(store, runs[1], EVENT_MESSAGE, "unfrozen from step 300 on");
    add_event(store, runs[1], EVENT_COMMAND, "the learning rate is 0.001 from step 400 on");
    Comparison *comparison = compare(store, runs, 2, NULL);
    static const char orders[] =
        "head is fp32 from step 240; the learning rate is 0.001 from step 400";
    bool is_listed = false;
    for (int i = 0; i < comparison->difference_count; i++)
        if (strcmp(comparison->differences[i].name, "set meanwhile") == 0) {
            is_listed = true;
            CHECK_TEXT(comparison->differences[i].values[0], "");
            CHECK_TEXT(comparison->differences[i].values[1], orders);
        }
    CHECK(is_listed);
    CHECK_CONTAINS(comparison->verdicts[0], orders);
    CHECK_TEXT(comparison->groups[1].label, "bf16");
    compare_free(comparison);
    store_close(store);
}

// More than there is room for are counted, not lost without a word.
static void many_orders_are_counted(void) {
    Store *store = fresh_store("history.db");
    Planted second = fp32;
    second.name = "two";
    int64_t runs[] = {plant_timed(store, &fp32, 0.01), plant_timed(store, &second, 0.01)};
    for (int i = 0; i < 30; i++)
        add_event(store, runs[1], EVENT_COMMAND, "the learning rate is 0.001 from step 400 on");
    Comparison *comparison = compare(store, runs, 2, NULL);
    CHECK_CONTAINS(comparison->orders[1].text, " more");
    CHECK(strlen(comparison->orders[1].text) < sizeof comparison->orders[1].text - 1);
    compare_free(comparison);
    store_close(store);
}

static void other_programs_are_told_of(void) {
    for (int c = 0; c < 2; c++) {
        Store *store = fresh_store("history.db");
        RunRecord record;
        RecordFact fact = {.name = RECORD_FACT_OTHERS};
        snprintf(fact.value, sizeof fact.value, c ? "0.03 of 2" : "1.26 of 2");
        Planted second = fp32;
        second.name = "two";
        int64_t runs[] = {plant_timed(store, &fp32, 0.01), plant_timed(store, &second, 0.01)};
        CHECK_DONE(store_read_run(store, runs[1], &record, &error));
        CHECK_DONE(record_set_facts(&record, &fact, 1, &error));
        CHECK_DONE(store_update_run(store, &record, &error));
        record_clear(&record);
        Comparison *comparison = compare(store, runs, 2, NULL);
        bool is_told = false;
        for (int i = 0; i < comparison->caveat_count; i++)
            is_told |= strstr(comparison->caveats[i],
                              "up to 1.3 of 2 processors busy meanwhile (two 1.3)") != NULL;
        CHECK_INT(is_told, c == 0);
        CHECK_CONTAINS(comparison->verdicts[0],
                       c ? "two is about as fast as one" : "two seemed about as fast as one");
        CHECK_INT(strstr(comparison->verdicts[0], " while other programs ran, ") != NULL, c == 0);
        int processors;
        CHECK_NEAR(compare_load_of_others(&comparison->runs[1], &processors), c ? 0.03 : 1.26, 0);
        CHECK_INT(processors, 2);
        CHECK(isnan(compare_load_of_others(&comparison->runs[0], &processors)));
        compare_free(comparison);
        store_close(store);
    }
}

// Two networks with a loss each, and no series that is called so.
static void losses_of_other_names_are_compared(void) {
    static const char *const gan[] = {"g_loss", "d_loss", "fakes"};
    Store *store = fresh_store("history.db");
    Planted second = fp32;
    second.name = "two";
    second.precision = "bf16";
    second.end = 0.5;
    int64_t runs[] = {plant(store, &fp32), plant(store, &second)};
    // These supersede the series that plant wrote.
    CHECK_DONE(plant_series(store, runs[0], gan, 3, &fp32, 0.01, &error));
    CHECK_DONE(plant_series(store, runs[1], gan, 2, &second, 0.01, &error));
    Comparison *comparison = compare(store, runs, 2, NULL);
    CHECK_TEXT(comparison->series, "d_loss");
    CHECK_INT(comparison->losses[0].count, 1000);
    CHECK(comparison->groups[1].divergence.is_known);
    CHECK_INT(comparison->all_series_count, 3); // fakes is in one alone
    CHECK_TEXT(comparison->all_series[1], "g_loss");
    CHECK_TEXT(comparison->all_series[2], "step_seconds");
    CHECK_NEAR(comparison->groups[0].loss.mean, 0.2 + 1, 0.01);
    compare_free(comparison);
    comparison = compare(store, runs, 2, "g_loss");
    CHECK_NEAR(comparison->groups[1].loss.mean, 0.5, 0.01);
    compare_free(comparison);
    CompareOptions unknown = {.grams_per_kwh = NAN, .series = "fakes"};
    CHECK(!compare_new(store, runs, 2, &unknown, &error) && error.code == ERROR_USAGE);
    CHECK_CONTAINS(error.text, "d_loss g_loss");
    store_close(store);
}

// To be looked at; nothing is said of the run that lacks it.
static void a_series_of_some_of_the_runs_can_be_taken(void) {
    static const char *const names[] = {"loss", "fakes"};
    Store *store = fresh_store("history.db");
    Planted second = fp32;
    second.name = "two";
    second.precision = "bf16";
    int64_t runs[] = {plant(store, &fp32), plant(store, &second)};
    CHECK_DONE(plant_series(store, runs[1], names, 2, &second, 0.01, &error));
    CompareOptions options = {.grams_per_kwh = NAN, .series = "fakes", .takes_any_series = true};
    Comparison *comparison = compare_new(store, runs, 2, &options, &error);
    CHECK_INT(comparison->all_series_count, 3);
    CHECK_TEXT(comparison->all_series[0], "loss"); // of both
    CHECK_TEXT(comparison->all_series[1], "fakes");
    CHECK_INT(comparison->groups[0].loss.count, 0);
    CHECK_NEAR(comparison->groups[1].loss.mean, 0.2 + 1, 0.01);
    CHECK_CONTAINS(comparison->caveats[comparison->caveat_count - 1], "have fakes: one lacks it.");
    compare_free(comparison);
    store_close(store);
}

// The loss is what is compared, however many series come before it.
static void no_number_of_series_hides_the_loss(void) {
    enum { SERIES = 40 };
    static char names[SERIES][16];
    const char *list[SERIES + 1];
    Store *store = fresh_store("history.db");
    Planted second = fp32;
    second.name = "two";
    for (int i = 0; i < SERIES; i++) {
        snprintf(names[i], sizeof names[i], "gate_%d", i);
        list[i] = names[i];
    }
    list[SERIES] = "loss";
    int64_t runs[2];
    for (int i = 0; i < 2; i++) {
        RunRecord record = planted_record(i ? &second : &fp32);
        CHECK_DONE(store_add_run(store, &record, "return 1", 8, &error));
        runs[i] = record.id;
        record_clear(&record);
        CHECK_DONE(plant_series(store, runs[i], list, SERIES + 1, &fp32, 0.01, &error));
    }
    for (int i = 0; i < 2; i++) {
        Comparison *comparison = compare(store, runs, 2, i ? "gate_39" : NULL);
        CHECK(comparison && strcmp(comparison->series, i ? "gate_39" : "loss") == 0);
        if (comparison)
            compare_free(comparison);
    }
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(one_run_of_each_tells_speeds_by_its_steps);
    RUN_TEST(what_was_set_meanwhile_differs_and_is_in_the_verdict);
    RUN_TEST(many_orders_are_counted);
    RUN_TEST(other_programs_are_told_of);
    RUN_TEST(losses_of_other_names_are_compared);
    RUN_TEST(a_series_of_some_of_the_runs_can_be_taken);
    RUN_TEST(no_number_of_series_hides_the_loss);
    remove_folder();
    return test_end();
}
