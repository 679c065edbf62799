// What the boundary between two steps asks of the device: nothing that makes the host wait; and
// what comes late is recorded as what comes at once.
#include <math.h>

#include "store/layers.h"
#include "store/runs.h"
#include "store/series.h"
#include "tests/late_device.h"
#include "tests/unit/recorder_fixture.h"

static Backend late_backend;

static void open_run(const char *name, const char *loss_scale, bool is_late) {
    const RunOptions options = {.device = "ref", .seed = 1, .name = name, .loss_scale = loss_scale};
    told[0] = 0;
    model_must(model_open(&options));
    if (is_late)
        device_make_late(model.run->device, &late_backend);
    model_must((model.recorder = model.run->recorder = recorder_new(path, &error)) != NULL);
    model.run->observer = (RunObserver){.event = on_event};
    run_set_script(model.run, "tiny.lua", "abc", "return 1", 8);
    model_must(run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build());
}

// ---- no waits -----------------------------------------------------------------------------------

static void a_steady_step_waits_for_nothing(void) {
    enum { STEPS = 40 };
    for (int is_late = 0; is_late < 2; is_late++) {
        bool stop;
        open_run(is_late ? "steady late" : "steady", "dynamic", is_late);
        for (int i = 0; i < STEPS; i++) { // some of which are sampled
            CHECK(train(1, &stop));
            CHECK(run_log_number(model.run, "number", i, &error));
            a_moment();
        }
        CHECK_INT(model.run->device->waits, 0);
        CHECK_INT(model.run->applied, is_late ? STEPS - LATE_STEPS : STEPS);
        CHECK(train(1e38, &stop)); // nor does one that is skipped
        for (int i = 0; i < STEPS; i++)
            CHECK(train(1, &stop));
        CHECK_INT(model.run->device->waits, 0);
        CHECK_INT(model.run->skipped, 1);
        run_finish(model.run, NULL);
        CHECK_INT(model.run->applied, 2 * STEPS);
        CHECK(recorder_end(model.recorder, model.run, &error));
        end();
    }
}

// ---- the same record ----------------------------------------------------------------------------

enum { DUMP_SIZE = 1 << 18 };

typedef struct Dump {
    char text[DUMP_SIZE];
    size_t used;
} Dump;

static __attribute__((format(printf, 2, 3))) void put_line(Dump *dump, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(dump->text + dump->used, DUMP_SIZE - dump->used, format, arguments);
    va_end(arguments);
    CHECK(length >= 0 && (size_t)length < DUMP_SIZE - dump->used);
    if (length >= 0)
        dump->used += (size_t)length;
}

static void dump_series(Dump *dump, Store *store, int64_t id, const char *name) {
    SeriesPoint *points = NULL;
    int count = 0;
    CHECK(store_read_series(store, id, name, 0, 1000, 0, &points, &count, &error));
    for (int i = 0; i < count; i++)
        put_line(dump, "%s %lld: %a %a nan %lld inf %lld\n", name, (long long)points[i].step,
                 points[i].first, points[i].last, (long long)points[i].nans,
                 (long long)points[i].infs);
    free(points);
}

static void dump_layer(Dump *dump, Store *store, int64_t id) {
    LayerSample *samples = NULL;
    int count = 0;
    CHECK(store_read_layer(store, id, 0, 0, 1000, 0, &samples, &count, &error));
    for (int i = 0; i < count; i++) {
        put_line(dump, "layer %lld %s: %lld elements, %lld infs, %lld flushed, sum %a, bins",
                 (long long)samples[i].step, samples[i].precision, (long long)samples[i].count,
                 (long long)samples[i].infs, (long long)samples[i].flushed, samples[i].sum);
        for (int k = 0; k < LAYER_BINS; k++)
            if (samples[i].bins[k] > 0)
                put_line(dump, " %d", k);
        put_line(dump, "\n");
    }
    free(samples);
}

static int by_step(const void *a, const void *b) {
    const Event *left = a, *right = b;
    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return strcmp(left->text, right->text);
}

static void dump_events(Dump *dump, Store *store, int64_t id) {
    Event *events = NULL;
    int count = 0;
    CHECK(store_read_events(store, id, 0, 0, 0, &events, &count, &error));
    qsort(events, (size_t)count, sizeof *events, by_step);
    for (int i = 0; i < count; i++)
        put_line(dump, "%lld kind %d of %s (%a): %s\n", (long long)events[i].step,
                 (int)events[i].kind, events[i].layer, events[i].value, events[i].text);
    free(events);
}

static void dump_run(Dump *dump, int64_t id) {
    static const char *const series[] = {"loss", "number", "scale", "grad_norm"};
    Store *store = store_open(path, STORE_READ, &error);
    RunRecord record;
    CHECK(store && store_read_run(store, id, &record, &error));
    put_line(dump, "status %d: %s\nsteps %lld %lld %lld, scale %a %a %a\n", (int)record.status,
             record.error, (long long)record.step, (long long)record.applied,
             (long long)record.skipped, record.scale_last, record.scale_min, record.scale_max);
    for (int i = 0; i < record.diagnosis_count; i++)
        put_line(dump, "diagnosis %s of %s at %lld: %s\n", record.diagnoses[i].kind,
                 record.diagnoses[i].layer, (long long)record.diagnoses[i].step,
                 record.diagnoses[i].text);
    record_clear(&record);
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        dump_series(dump, store, id, series[i]);
    dump_layer(dump, store, id);
    dump_events(dump, store, id);
    store_close(store);
}

// Steps with these gradients, until there are no more or one ends the run; what is recorded of it.
static void record(const char *name, const char *scale, const double *gradients, int count,
                   bool is_late, Dump *dump) {
    bool stop, goes_on = true;
    char whole[64];
    snprintf(whole, sizeof whole, "%s %s", name, is_late ? "late" : "at once");
    open_run(whole, scale, is_late);
    for (int i = 0; i < count && goes_on; i++) {
        goes_on = model_step(gradients[i], i % 3 != 0, &stop);
        if (goes_on && i % 5 == 0)
            CHECK(run_log_number(model.run, "number", i, &error));
    }
    run_finish(model.run, goes_on ? NULL : &error);
    CHECK(recorder_end(model.recorder, model.run, &error));
    int64_t id = model.run->id;
    end();
    dump->used = 0;
    dump_run(dump, id);
}

static void check_same(const char *name, const char *scale, const double *gradients, int count,
                       const char *part) {
    static Dump at_once, late;
    record(name, scale, gradients, count, false, &at_once);
    record(name, scale, gradients, count, true, &late);
    CHECK_MESSAGE(strstr(at_once.text, part), "%s: no \"%s\"", name, part);
    if (strcmp(at_once.text, late.text) == 0)
        return;
    size_t i = 0;
    while (at_once.text[i] == late.text[i])
        i++;
    while (i > 0 && at_once.text[i - 1] != '\n')
        i--;
    CHECK_MESSAGE(false, "%s: at once \"%.200s\", late \"%.200s\"", name, at_once.text + i,
                  late.text + i);
}

static void a_late_report_leaves_the_same_record(void) {
    enum { STEPS = 70 };
    double gradients[STEPS];
    for (int i = 0; i < STEPS; i++)
        gradients[i] = i == 7 || i == 30 || i == 31 || i == STEPS - 1 ? 1e38 : 0.25 * (i % 4);
    check_same("skips", "dynamic", gradients, STEPS, "step 8 skipped");
    gradients[12] = (double)INFINITY;
    check_same("losses", "dynamic", gradients, STEPS, "loss_not_finite");
    for (int i = 20; i < STEPS; i++)
        gradients[i] = i % 2 ? 1e38 : 1;
    check_same("many", "65536", gradients, STEPS, "of the last");
}

static void a_run_ends_at_the_step_that_says_so_however_late(void) {
    enum { STEPS = 60 };
    double gradients[STEPS];
    for (int i = 0; i < STEPS; i++)
        gradients[i] = i < 10 ? 1 : 1e38;
    check_same("floor", "65536", gradients, STEPS, "20 steps in a row");
    check_same("floor at the end", "65536", gradients, 31, "20 steps in a row");
    check_same("floor at the very end", "65536", gradients, 30, "20 steps in a row");
}

// ---- what kernels find --------------------------------------------------------------------------

static bool finds;

static bool find_late(Device *device, DeviceStatus *status) {
    (void)device;
    *status = (DeviceStatus){.check = {.fault = FAULT_CLASS, .op = OP_cross_entropy, .bound = 10},
                             .value = 12};
    bool found = finds;
    finds = false;
    return found;
}

static void what_a_kernel_finds_ends_the_run_and_nothing_read_since_is_believed(void) {
    enum { STEPS = 10 };
    bool stop;
    open_run("finds", "dynamic", true);
    late_backend.take_status = find_late;
    for (int i = 0; i < STEPS; i++)
        CHECK(train(1, &stop));
    finds = true;
    int64_t applied = model.run->applied;
    CHECK(!train(1, &stop));
    CHECK_CONTAINS(error.text, "12");
    run_finish(model.run, &error);
    CHECK_INT(model.run->status, RUN_FAILED);
    CHECK_INT(model.run->applied, applied);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
}

int main(void) {
    make_place();
    RUN_TEST(what_a_kernel_finds_ends_the_run_and_nothing_read_since_is_believed);
    RUN_TEST(a_steady_step_waits_for_nothing);
    RUN_TEST(a_late_report_leaves_the_same_record);
    RUN_TEST(a_run_ends_at_the_step_that_says_so_however_late);
    return end_tests();
}
