// Where the time of steps went, kept with a run: read back as it was, bounded, gone with its run,
// and kept in files of before too.
#include <math.h>

#include "store/step_profile.h"
#include "store_fixture.h"

static StepPart parts[STEP_PROFILE_MOST_PARTS + 10];

static StepProfile some_profile(int count) {
    for (int i = 0; i < count; i++) {
        parts[i] = (StepPart){.calls = 2, .seconds = 1, .bytes = 64, .columns = i};
        snprintf(parts[i].layer, sizeof parts[i].layer, "layer%d", i);
        snprintf(parts[i].operation, sizeof parts[i].operation, "linear");
        snprintf(parts[i].way, sizeof parts[i].way, "forward");
        snprintf(parts[i].from, sizeof parts[i].from, "bf16");
    }
    return (StepProfile){.steps = 7,
                         .others_busy = (double)NAN,
                         .step_seconds = count + 1,
                         .between = 1,
                         .memory_limit = 1e9,
                         .parts = parts,
                         .part_count = count};
}

static void it_is_read_back_and_goes_with_its_run(void) {
    Store *store = fresh_store("p.db");
    int64_t run = add_run(store, some_run("a", "bf16"));
    StepProfile profile = some_profile(3), read = {.steps = 0};
    CHECK_DONE(store_read_step_profile(store, run, &read, &error));
    CHECK_INT(read.steps, 0);
    for (int i = 0; i < 2; i++) // the second stands for the first
        CHECK_DONE(store_put_step_profile(store, run, &profile, &error));
    CHECK_DONE(store_read_step_profile(store, run, &read, &error));
    CHECK_INT(read.steps, 7);
    CHECK_INT(read.part_count, 3);
    CHECK(isnan(read.others_busy) && read.step_seconds == 4 && read.between == 1);
    CHECK_TEXT(read.parts[2].layer, "layer2");
    CHECK_TEXT(read.parts[2].from, "bf16");
    CHECK_INT(read.parts[2].columns, 2);
    step_profile_clear(&read);
    store_close(store);
}

static void the_newest_are_listed_first(void) {
    Store *store = fresh_store("p.db");
    int64_t runs[3], of[2];
    int count;
    CHECK_DONE(store_list_step_profiles(store, of, 2, &count, &error));
    CHECK_INT(count, 0);
    for (int i = 0; i < 3; i++) {
        StepProfile profile = some_profile(1);
        runs[i] = add_run(store, some_run("a", "bf16"));
        CHECK_DONE(store_put_step_profile(store, runs[i], &profile, &error));
    }
    CHECK_DONE(store_list_step_profiles(store, of, 2, &count, &error));
    CHECK_INT(count, 2);
    CHECK(of[0] == runs[2] && of[1] == runs[1]);
    store_close(store);
}

// Nobody who asks for the last run in bf16 means one that was only profiled.
static void trainings_are_the_last_before_profiles(void) {
    Store *store = fresh_store("p.db");
    const StepProfile profile = some_profile(1);
    const int64_t training = add_run(store, some_run("a", "bf16"));
    const int64_t profiled = add_run(store, some_run("a", "bf16"));
    const int64_t alone = add_run(store, some_run("a", "fp16"));
    CHECK_DONE(store_put_step_profile(store, profiled, &profile, &error) &&
               store_put_step_profile(store, alone, &profile, &error));
    const struct {
        const char *text;
        int64_t id;
    } asked[] = {{"@last:bf16", training}, {"@last:fp16", alone}, {"@last", alone}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int64_t id = 0;
        CHECK_DONE(store_find_run(store, asked[i].text, &id, &error));
        CHECK_INT(id, asked[i].id);
    }
    store_close(store);
}

static void more_parts_than_are_kept_are_one_sum(void) {
    Store *store = fresh_store("p.db");
    int64_t run = add_run(store, some_run("a", "bf16"));
    StepProfile profile = some_profile(STEP_PROFILE_MOST_PARTS + 10), read = {.steps = 0};
    CHECK_DONE(store_put_step_profile(store, run, &profile, &error));
    CHECK_DONE(store_read_step_profile(store, run, &read, &error));
    CHECK_INT(read.part_count, STEP_PROFILE_MOST_PARTS);
    const StepPart *last = &read.parts[read.part_count - 1];
    CHECK_TEXT(last->operation, "others");
    CHECK(last->seconds == 11); // nothing is lost of the step
    step_profile_clear(&read);
    store_close(store);
}

static void files_of_before_take_it_too(void) {
    Store *store = fresh_store("p.db");
    int64_t run = add_run(store, some_run("a", "bf16"));
    store_close(store);
    run_sql(path_of("p.db"), "DROP TABLE profiles; DROP TABLE profile_parts");
    StepProfile profile = some_profile(1), read = {.steps = 0};
    store = store_open(path_of("p.db"), STORE_READ, &error);
    CHECK_DONE(store && store_read_step_profile(store, run, &read, &error));
    CHECK_INT(read.steps, 0);
    store_close(store);
    store = store_open(path_of("p.db"), STORE_WRITE, &error);
    CHECK_DONE(store && store_put_step_profile(store, run, &profile, &error));
    store_close(store);
    store = store_open(path_of("p.db"), STORE_WRITE, &error); // the table is as ours
    CHECK_DONE(store && store_read_step_profile(store, run, &read, &error));
    CHECK_INT(read.part_count, 1);
    step_profile_clear(&read);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(it_is_read_back_and_goes_with_its_run);
    RUN_TEST(the_newest_are_listed_first);
    RUN_TEST(trainings_are_the_last_before_profiles);
    RUN_TEST(more_parts_than_are_kept_are_one_sum);
    RUN_TEST(files_of_before_take_it_too);
    return test_end();
}
