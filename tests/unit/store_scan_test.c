// Scans in the history: read back as they were measured, to the bit, however far they came; owned
// by one process; gone with their run; kept in files of before too.
#include <math.h>

#include "store/scan.h"
#include "store_fixture.h"

enum { LAYERS = 3, FORMATS = 2 };

// What no two cells share, with numbers that have all their bits.
static ScanCell some_cell(int unit, int format) {
    ScanCell cell = {.is_known = true};
    double value = 1.0 / 3 + unit + 10 * format;
    for (const ScanReading *reading = scan_readings; reading->name; reading++)
        *scan_reading(&cell, reading) = value *= 1.1;
    return cell;
}

static ScanRecord *some_scan(void) {
    ScanRecord *scan = scan_record_new(&error);
    snprintf(scan->key, sizeof scan->key, "abc");
    snprintf(scan->subject, sizeof scan->subject, "simple");
    snprintf(scan->experiment, sizeof scan->experiment, "simple");
    snprintf(scan->device, sizeof scan->device, "cpu");
    snprintf(scan->ways, sizeof scan->ways, "pairs");
    snprintf(scan->formats[0], SCAN_FORMAT_SIZE, "fp16");
    snprintf(scan->formats[1], SCAN_FORMAT_SIZE, "bf16");
    scan->options = calloc(1, sizeof *scan->options);
    scan->options[scan->option_count++] = (RecordOption){"set", "lr=0.1"};
    scan->format_count = FORMATS;
    scan->seed = 5;
    scan->threads = 2;
    scan->batches = 4;
    scan->warm_up = 50;
    scan->steps = 60;
    scan->seeds = 3;
    scan->within = 0.01;
    scan->tolerance = 0.15;
    scan->by_block = true;
    return scan;
}

static void know_layers(ScanRecord *scan) {
    scan->loss = 2.0 / 3;
    scan->left_out = 1;
    for (scan->unit_count = 0; scan->unit_count < LAYERS; scan->unit_count++) {
        const int at = scan->unit_count;
        snprintf(scan->units[at], sizeof scan->units[at], "layer%d", at);
        scan->parameters[at] = 100 + at;
    }
}

static WorkerId worker_named(const char *token) {
    WorkerId worker = {.pid = 0};
    CHECK_DONE(worker_identify(&worker, &error));
    snprintf(worker.token, sizeof worker.token, "%s", token);
    return worker;
}

static ScanRecord *read_back(Store *store, int64_t id) {
    ScanRecord *scan = scan_record_new(&error);
    CHECK_DONE(store_read_scan(store, id, scan, &error));
    return scan;
}

static bool is_same_cell(ScanCell *a, ScanCell *b) {
    bool same = a->is_known == b->is_known && a->is_broken == b->is_broken;
    for (const ScanReading *reading = scan_readings; same && reading->name; reading++) {
        const double left = *scan_reading(a, reading), right = *scan_reading(b, reading);
        same = memcmp(&left, &right, sizeof left) == 0 || (isnan(left) && isnan(right));
    }
    return same;
}

static void it_is_read_back_as_far_as_it_came(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    CHECK_INT(scan->id, 1);
    ScanRecord *read = read_back(store, 1);
    CHECK_TEXT(read->subject, "simple");
    CHECK_TEXT(read->key, "abc");
    CHECK_TEXT(read->ways, "pairs");
    CHECK_INT(read->option_count, 1);
    CHECK_TEXT(read->options[0].value, "lr=0.1");
    CHECK_INT(read->format_count, FORMATS);
    CHECK_TEXT(read->formats[1], "bf16");
    CHECK(read->within == 0.01 && read->tolerance == 0.15 && read->by_block);
    CHECK(read->seed == 5 && read->threads == 2 && read->steps == 60 && read->seeds == 3);
    CHECK(read->is_live && read->ended_ms == 0 && read->created_ms == scan->created_ms);
    CHECK(read->unit_count == 0 && isnan(read->loss) && isnan(read->others) && !read->has_policy);
    CHECK(read->seconds[FORMATS] == 0);
    scan_record_free(read);

    know_layers(scan);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    scan->cells[1][0] = some_cell(1, 0);
    CHECK_DONE(store_put_scan_cell(store, scan, 1, 0, &error));
    read = read_back(store, 1);
    CHECK_INT(read->unit_count, LAYERS);
    CHECK_TEXT(read->units[2], "layer2");
    CHECK_INT(read->parameters[2], 102);
    CHECK(read->loss == 2.0 / 3 && read->left_out == 1);
    CHECK_INT(scan_cells_known(read), 1);
    CHECK(is_same_cell(&read->cells[1][0], &scan->cells[1][0]));
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void what_is_not_finite_is_read_back(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    ScanCell broken = {.is_known = true, .is_broken = true};
    for (const ScanReading *reading = scan_readings; reading->name; reading++)
        *scan_reading(&broken, reading) = (double)NAN;
    broken.damage = (double)INFINITY;
    scan->cells[0][0] = broken;
    scan->cells[2][1] = some_cell(2, 1);
    scan->cells[2][1].loss_change = (double)INFINITY;
    scan->cells[2][1].least_scale = (double)NAN;
    CHECK_DONE(store_put_scan_cell(store, scan, 0, 0, &error));
    CHECK_DONE(store_put_scan_cell(store, scan, 2, 1, &error));
    ScanTraining *training = &scan->trainings[scan->training_count++];
    snprintf(training->label, sizeof training->label, "all fp16");
    training->seeds[0].is_known = true;
    training->seeds[0].loss = -(double)INFINITY;
    training->seeds[2].is_known = true;
    training->seeds[2].loss = training->loss = training->interval = (double)NAN;
    training->above = (double)INFINITY;
    training->broken = 2;
    CHECK_DONE(store_put_scan_training(store, scan, 0, &error));
    ScanRecord *read = read_back(store, 1);
    for (int unit = 0; unit < LAYERS; unit++)
        for (int format = 0; format < FORMATS; format++)
            CHECK(is_same_cell(&read->cells[unit][format], &scan->cells[unit][format]));
    const ScanTraining *back = &read->trainings[0];
    CHECK(isinf(back->seeds[0].loss) && back->seeds[0].loss < 0);
    CHECK(back->seeds[2].is_known && isnan(back->seeds[2].loss) && !back->seeds[1].is_known);
    CHECK(isnan(back->loss) && isinf(back->above) && isnan(back->interval));
    CHECK(back->broken == 2 && !back->is_known && !back->is_within);
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void its_policy_and_trainings_are_read_back(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    for (int i = 0; i <= FORMATS; i++) {
        scan->seconds[i] = 1.0 / (3 + i);
        scan->activations[i] = 1000 * i;
        scan->pass_round_count[i] = ROUNDS_MOST;
        for (int round = 0; round < ROUNDS_MOST; round++)
            scan->pass_rounds[i][round] = 1.0 / (7 + round + 20 * i);
    }
    CHECK_DONE(store_put_scan_costs(store, scan, &error));
    scan->has_policy = scan->is_final = true;
    scan->rounds = 2;
    scan->policy[0] = 1;
    scan->policy[1] = FORMATS; // fp32
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    for (int i = 0; i < 2; i++) { // of one label, as rounds are
        ScanTraining *training = &scan->trainings[scan->training_count++];
        snprintf(training->label, sizeof training->label, "policy");
        memcpy(training->format, (short[]){1, FORMATS, (short)i}, 3 * sizeof(short));
        training->is_known = training->is_within = i == 1;
        training->loss = 0.1 + i;
        training->interval = 0.3;
        training->seeds[i].is_known = true;
        training->seeds[i].seconds = 0.7;
        for (int most = 9; most >= 6 + i; most -= 3 - i) { // timed again, in fewer rounds
            memset(training->rounds, 0, sizeof training->rounds);
            for (int round = 0; round < most; round++)
                training->rounds[round] = 1.0 / (most + round);
            training->round_count = most;
            CHECK_DONE(store_put_scan_training(store, scan, i, &error));
        }
    }
    scan->ended_ms = 77;
    scan->others = 0.5;
    snprintf(scan->policy_file, sizeof scan->policy_file, "p.lua");
    CHECK_DONE(store_end_scan(store, scan, &worker, &error));
    ScanRecord *read = read_back(store, 1);
    CHECK(memcmp(read->seconds, scan->seconds, sizeof scan->seconds) == 0);
    CHECK(memcmp(read->activations, scan->activations, sizeof scan->activations) == 0);
    CHECK(memcmp(read->pass_rounds, scan->pass_rounds, sizeof scan->pass_rounds) == 0);
    CHECK(memcmp(read->pass_round_count, scan->pass_round_count, sizeof scan->pass_round_count) ==
          0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(read->trainings[i].round_count, 6 + i);
        CHECK(memcmp(read->trainings[i].rounds, scan->trainings[i].rounds,
                     sizeof scan->trainings[i].rounds) == 0);
    }
    CHECK(read->has_policy && read->is_final && read->rounds == 2);
    CHECK(memcmp(read->policy, scan->policy, sizeof scan->policy) == 0);
    CHECK_INT(read->training_count, 2);
    CHECK(memcmp(read->trainings[1].format, scan->trainings[1].format,
                 sizeof scan->trainings[1].format) == 0);
    CHECK(read->trainings[1].loss == 1.1 && read->trainings[1].is_within);
    CHECK(read->trainings[1].seeds[1].seconds == 0.7 && !read->trainings[1].seeds[0].is_known);
    CHECK(!read->is_live && read->ended_ms == 77 && read->others == 0.5);
    CHECK_TEXT(read->policy_file, "p.lua");
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void one_process_measures_it(void) {
    Store *store = fresh_store("s.db");
    const WorkerId one = worker_named("one"), other = worker_named("other");
    WorkerId gone = worker_named("gone");
    gone.started -= 1000000; // a pid that came round
    ScanRecord *scan = some_scan();
    int64_t id;
    CHECK_DONE(store_find_scan_by_key(store, "abc", &id, &error));
    CHECK_INT(id, 0);
    CHECK_DONE(store_add_scan(store, scan, &one, &error));
    CHECK_DONE(store_find_scan_by_key(store, "abc", &id, &error));
    CHECK_INT(id, 1);
    CHECK_REFUSED(store_own_scan(store, 1, &other, &error), ERROR_TAKEN, "scan 1", "--again");
    CHECK_REFUSED(store_remove_scan(store, 1, &error), ERROR_TAKEN, "scan 1");
    CHECK_DONE(store_release_scan(store, 1, &one, &error));
    CHECK_DONE(store_own_scan(store, 1, &gone, &error));
    CHECK_DONE(store_own_scan(store, 1, &other, &error));    // nobody is there
    CHECK_DONE(store_release_scan(store, 1, &gone, &error)); // not its own: nothing happens
    CHECK_REFUSED(store_own_scan(store, 1, &one, &error), ERROR_TAKEN, "scan 1");
    CHECK_DONE(store_end_scan(store, scan, &gone, &error)); // likewise
    CHECK_REFUSED(store_own_scan(store, 1, &one, &error), ERROR_TAKEN, "scan 1");
    CHECK_DONE(store_release_scan(store, 1, &other, &error));
    CHECK_DONE(store_remove_scan(store, 1, &error));
    CHECK_REFUSED(store_put_scan_layers(store, scan, &error), ERROR_FAILED, "removed");
    scan_record_free(scan);
    store_close(store);
}

static void they_are_listed_and_found(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanEntry *list;
    int count;
    int64_t id;
    CHECK_DONE(store_list_scans(store, &list, &count, &error));
    CHECK_INT(count, 0);
    CHECK_REFUSED(store_find_scan(store, "last", &id, &error), ERROR_USAGE, "scan:last",
                  "mpbench scan");
    int64_t run = add_run(store, some_run("a", "bf16"));
    for (int i = 0; i < 2; i++) {
        ScanRecord *scan = some_scan();
        scan->run = i == 1 ? run : 0;
        CHECK_DONE(store_add_scan(store, scan, &worker, &error));
        know_layers(scan);
        CHECK_DONE(store_put_scan_layers(store, scan, &error));
        scan->cells[1][1] = some_cell(1, 1);
        CHECK_DONE(store_put_scan_cell(store, scan, 1, 1, &error));
        scan_record_free(scan);
    }
    CHECK_DONE(store_list_scans(store, &list, &count, &error));
    CHECK_INT(count, 2);
    CHECK(list[0].id == 2 && list[0].run == run && list[1].id == 1 && list[1].run == 0);
    CHECK(list[0].units == LAYERS && list[0].formats == FORMATS && list[0].cells == 1);
    CHECK(list[0].is_live && list[0].ended_ms == 0);
    free(list);
    CHECK_DONE(store_find_scan(store, "last", &id, &error));
    CHECK_INT(id, 2);
    CHECK_DONE(store_find_scan(store, "1", &id, &error));
    CHECK_INT(id, 1);
    CHECK_REFUSED(store_find_scan(store, "9", &id, &error), ERROR_USAGE, "scan:9");
    CHECK_DONE(store_remove_run(store, run, &error));
    CHECK_DONE(store_list_scans(store, &list, &count, &error));
    CHECK_INT(count, 1);
    free(list);
    CHECK_INT(ask_sql(path_of("s.db"), "SELECT count(*) FROM scan_readings WHERE scan = 2"), 0);
    store_close(store);
}

static void what_its_run_said_of_itself_comes_with_it(void) {
    static const RecordDiagnosis said[] = {
        {.kind = "odd_sizes", .text = "slow"},
        {.kind = "poisoned_statistics", .layer = "norm1", .text = "stays inf"}};
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    RunRecord record = some_run("a", "bf16");
    CHECK_DONE(record_set_diagnoses(&record, said, 2, &error));
    ScanRecord *scan = some_scan();
    scan->run = add_run(store, record);
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    ScanRecord *read = read_back(store, scan->id);
    CHECK_TEXT(read->told, "stays inf");
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void norms_and_what_they_cost_are_read_back(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    snprintf(scan->kept[1], SCAN_KIND_SIZE, "layer_norm");
    snprintf(scan->rests[1], SCAN_FORMAT_SIZE, "auto");
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    CHECK_DONE(store_put_scan_layers(store, scan, &error)); // as with a policy, later
    scan->lowered[1].round_count = 7;
    scan->lowered[1].activations = 4096;
    for (int round = 0; round < 7; round++)
        scan->lowered[1].rounds[round] = 1.0 / (3 + round);
    CHECK_DONE(store_put_scan_costs(store, scan, &error));
    ScanRecord *read = read_back(store, 1);
    CHECK(!scan_is_kept(read, 0) && scan_is_kept(read, 1));
    CHECK_TEXT(read->kept[1], "layer_norm");
    CHECK_TEXT(read->rests[1], "auto");
    CHECK_INT(read->lowered[0].round_count, 0);
    CHECK_INT(read->lowered[1].round_count, 7);
    CHECK_INT(read->lowered[1].activations, 4096);
    CHECK(memcmp(read->lowered[1].rounds, scan->lowered[1].rounds, 7 * sizeof(double)) == 0);
    CHECK(read->lowered[1].seconds == 1.0 / 6);
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void what_trainings_come_to_is_read_back(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    snprintf(scan->metric, sizeof scan->metric, "accuracy");
    ScanTraining *training = &scan->trainings[scan->training_count++];
    snprintf(training->label, sizeof training->label, "policy");
    training->seeds[0] = (ScanSeed){.is_known = true, .has_result = true, .result = 1.0 / 3};
    training->seeds[1] = (ScanSeed){.is_known = true, .has_skipped = true, .skipped = 5};
    training->seeds[2] = (ScanSeed){.is_known = true, .has_result = true, .result = (double)NAN};
    CHECK_DONE(store_put_scan_training(store, scan, 0, &error)); // seeds are lacking
    ScanRecord *read = read_back(store, 1);
    CHECK_TEXT(read->metric, "accuracy");
    CHECK(read->trainings[0].seeds[0].result == 1.0 / 3 && !read->trainings[0].seeds[1].has_result);
    CHECK(read->trainings[0].seeds[1].has_skipped && read->trainings[0].seeds[1].skipped == 5);
    CHECK(!read->trainings[0].seeds[0].has_skipped);
    CHECK_INT(scan_most_skipped(&read->trainings[0]), 5);
    CHECK(read->trainings[0].seeds[2].has_result && isnan(read->trainings[0].seeds[2].result));
    scan_record_free(read);
    training->is_known = true;
    training->result = 0.7;
    training->worse = (double)INFINITY;
    training->worse_interval = (double)NAN;
    CHECK_DONE(store_put_scan_training(store, scan, 0, &error));
    read = read_back(store, 1);
    CHECK(read->trainings[0].result == 0.7 && isinf(read->trainings[0].worse) &&
          isnan(read->trainings[0].worse_interval));
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

// A scan of before claimed an interval of 0 where all seeds gave the same to the bit.
static void what_seeds_that_are_alike_claimed_is_not_read(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    static const char *const labels[] = {"fp32", "all fp16"};
    for (int i = 0; i < 2; i++) {
        ScanTraining *training = &scan->trainings[scan->training_count++];
        snprintf(training->label, sizeof training->label, "%s", labels[i]);
        training->is_known = true;
        for (int seed = 0; seed < 2; seed++)
            training->seeds[seed] = (ScanSeed){.is_known = true, .loss = 1 + i};
        CHECK_DONE(store_put_scan_training(store, scan, i, &error));
    }
    ScanRecord *read = read_back(store, 1);
    CHECK(isnan(read->trainings[1].interval));
    scan_record_free(read);
    scan->trainings[1].seeds[1].loss = 3;
    CHECK_DONE(store_put_scan_training(store, scan, 1, &error));
    read = read_back(store, 1);
    CHECK(read->trainings[1].interval == 0);
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

#define DROP_TABLES                                                                     \
    "DROP TABLE scan_skips; DROP TABLE scan_results; DROP TABLE scan_kept; DROP TABLE " \
    "scan_lowered;"                                                                     \
    "DROP TABLE scan_rounds; DROP TABLE scan_seeds;"                                    \
    "DROP TABLE scan_trainings; DROP TABLE scan_readings;"                              \
    "DROP TABLE scan_cells; DROP TABLE scan_layers; DROP TABLE scan_formats;"           \
    "DROP TABLE scan_options; DROP TABLE scans"

// What it says of speeds is what one time each says, and of trainings what their loss does.
static void scans_of_before_have_no_rounds(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    CHECK_DONE(store_add_scan(store, scan, &worker, &error));
    know_layers(scan);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    for (int i = 0; i <= FORMATS; i++)
        scan->seconds[i] = 1.0 + i;
    CHECK_DONE(store_put_scan_costs(store, scan, &error));
    store_close(store);
    run_sql(path_of("s.db"), "DROP TABLE scan_rounds; DROP TABLE scan_results; DROP TABLE "
                             "scan_kept; DROP TABLE scan_lowered; DROP TABLE scan_skips");
    store = store_open(path_of("s.db"), STORE_READ, &error);
    CHECK(store);
    ScanRecord *read = read_back(store, 1);
    const RoundsGain gain = scan_pass_gain(read, 0);
    CHECK_NEAR(gain.faster, 3, 1e-12);
    CHECK(isnan(gain.least) && rounds_tempo(&gain) == TEMPO_OPEN);
    CHECK_TEXT(read->metric, "");
    scan_record_free(read);
    scan_record_free(scan);
    store_close(store);
}

static void files_of_before_take_them_too(void) {
    Store *store = fresh_store("s.db");
    const WorkerId worker = worker_named("one");
    ScanRecord *scan = some_scan();
    ScanEntry *list;
    int count = -1;
    int64_t id = -1;
    store_close(store);
    run_sql(path_of("s.db"), DROP_TABLES);
    store = store_open(path_of("s.db"), STORE_READ, &error);
    CHECK_DONE(store && store_list_scans(store, &list, &count, &error));
    CHECK_INT(count, 0);
    CHECK_DONE(store_find_scan_by_key(store, "abc", &id, &error));
    CHECK_INT(id, 0);
    CHECK_REFUSED(store_read_scan(store, 1, scan, &error), ERROR_USAGE, "scan:1", "mpbench scan");
    store_close(store);
    scan_record_free(scan);
    scan = some_scan();
    store = store_open(path_of("s.db"), STORE_WRITE, &error);
    CHECK_DONE(store && store_add_scan(store, scan, &worker, &error));
    store_close(store);
    store = store_open(path_of("s.db"), STORE_WRITE, &error); // the tables are as ours
    ScanRecord *read = read_back(store, 1);
    CHECK_TEXT(read->subject, "simple");
    store_close(store);
    scan_record_free(read);
    scan_record_free(scan);
}

static void damage_is_told_with_a_remedy(void) {
    static const struct {
        const char *sql, *part;
    } cases[] = {
        {"UPDATE scan_layers SET layer = 9 WHERE layer = 2", "no sense"},
        {"UPDATE scan_layers SET policy = 'fp99'", "no sense"},
        {"UPDATE scan_cells SET format = 'int4'", "no sense"},
        {"UPDATE scan_readings SET layer = -1", "no sense"},
        {"INSERT INTO scan_trainings VALUES (1, 0, 'x', 'fp16', 0, 0, 'finite', 0, 'finite', 0, 0,"
         " 0, 0)",
         "no sense"},
        {"INSERT INTO scan_seeds VALUES (1, 7, 1, 0, 'finite', 0)", "no sense"},
        {"INSERT INTO scan_skips VALUES (1, 7, 1, 5)", "no sense"},
        {"INSERT INTO scan_results VALUES (1, 7, 1, 'x', 0, 'finite', 0, 'finite', 0)", "no sense"},
        {"INSERT INTO scan_kept VALUES (1, 9, 'embedding', 'auto')", "no sense"},
        {"INSERT INTO scan_lowered VALUES (1, 'fp16', 3, 0.1, 7)", "no sense"},
        {"UPDATE scan_formats SET position = position + 40", "no sense"},
        {"DROP TABLE scan_cells", "not their table scan_cells"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Store *store = fresh_store("s.db");
        const WorkerId worker = worker_named("one");
        ScanRecord *scan = some_scan();
        CHECK_DONE(store_add_scan(store, scan, &worker, &error));
        know_layers(scan);
        CHECK_DONE(store_put_scan_layers(store, scan, &error));
        scan->cells[1][0] = some_cell(1, 0);
        CHECK_DONE(store_put_scan_cell(store, scan, 1, 0, &error));
        store_close(store);
        run_sql(path_of("s.db"), cases[i].sql);
        store = store_open(path_of("s.db"), STORE_READ, &error);
        CHECK_REFUSED(store_read_scan(store, 1, scan, &error), ERROR_HISTORY, cases[i].part,
                      "s.db");
        store_close(store);
        scan_record_free(scan);
    }
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(it_is_read_back_as_far_as_it_came);
    RUN_TEST(what_is_not_finite_is_read_back);
    RUN_TEST(its_policy_and_trainings_are_read_back);
    RUN_TEST(one_process_measures_it);
    RUN_TEST(they_are_listed_and_found);
    RUN_TEST(what_its_run_said_of_itself_comes_with_it);
    RUN_TEST(norms_and_what_they_cost_are_read_back);
    RUN_TEST(what_trainings_come_to_is_read_back);
    RUN_TEST(what_seeds_that_are_alike_claimed_is_not_read);
    RUN_TEST(scans_of_before_have_no_rounds);
    RUN_TEST(files_of_before_take_them_too);
    RUN_TEST(damage_is_told_with_a_remedy);
    return test_end();
}
