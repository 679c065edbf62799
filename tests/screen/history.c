#include "tests/screen/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/events.h"
#include "store/layers.h"
#include "store/runs.h"
#include "store/worker.h"

// A title, a colour of ours never used (blink), the clipboard, a report that would be typed back,
// an eight-bit CSI, the other direction, no width, a bell, backspaces.
#define ATTACK                                                  \
    "evil\x1b]0;T\x07\x1b[5mB\x1b]52;c;QQ==\x07\x1b[6n\xc2\x9b" \
    "31m\xe2\x80\xae\xe2\x80\x8b\x07\b\r\n"

const char *const history_attacks[] = {"\x1b]0;",      "\x1b[5m",  "\x1b]52;c;QQ",
                                       "\x1b[6n",      "\xc2\x9b", "\xe2\x80\xae",
                                       "\xe2\x80\x8b", "\x07",     NULL};

static RunRecord plain_run(const char *name, const char *experiment) {
    RunRecord record = {.status = RUN_FINISHED,
                        .seed = 1,
                        .step = 300,
                        .applied = 299,
                        .skipped = 1,
                        .total_steps = 300,
                        .has_loss = true,
                        .loss_first = 2,
                        .loss_last = 0.5,
                        .loss_best = 0.5,
                        .scale_last = 1024,
                        .scale_min = 1024,
                        .scale_max = 2048,
                        .steps_per_s = 100,
                        .samples_per_s = 3200,
                        .wall_s = 3,
                        .cast_share = NAN,
                        .energy_j = NAN,
                        .created_ms = 1795245000000,
                        .ended_ms = 1795245003000};
    record.memory = (RecordMemory){1 << 20,        RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN,
                                   RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN};
    snprintf(record.name, sizeof record.name, "%s", name);
    snprintf(record.experiment, sizeof record.experiment, "%s", experiment);
    snprintf(record.precision, sizeof record.precision, "fp16");
    snprintf(record.scale_rule, sizeof record.scale_rule, "dynamic");
    snprintf(record.device, sizeof record.device, "cpu");
    return record;
}

static LayerSample sample_at(int64_t step, int layer) {
    LayerSample sample = {.step = step,
                          .width = 1,
                          .count = 1000,
                          .largest = 0.25,
                          .sum = 10,
                          .sum_squares = 1,
                          .update_ratio = 1e-3,
                          .seconds = 1e-4};
    snprintf(sample.precision, sizeof sample.precision, "fp16");
    for (int i = 0; i < 12; i++)
        sample.bins[40 + i + layer % 8] = (uint32_t)(10 + (step + i * 7) % 90);
    return sample;
}

static bool add_series(Store *store, int64_t run, const char *const *names, int64_t steps,
                       int layers, Error *error) {
    const int64_t flush_every = 8000;
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", error);
    bool done = writer != NULL && store_begin(store, error);
    for (int64_t step = 1; done && step <= steps; step++) {
        double value = 0.2 + 2 / (1 + (double)step / 50) + 0.05 * sin((double)step);
        for (int i = 0; done && names[i]; i++)
            done = series_add(writer, names[i], step,
                              strcmp(names[i], "loss_scale") == 0 ? 1024 : value, error);
        bool is_sampled = step <= 256 || step % (steps / 256 + 1) == 0;
        for (int layer = 0; done && is_sampled && layer < layers; layer++) {
            LayerSample sample = sample_at(step, layer);
            done = layers_add(writer, layer, &sample, error);
        }
        if (done && (step % flush_every == 0 || step == steps))
            done = series_flush(writer, step == steps ? 1 : 0.5, error) &&
                   store_commit(store, error) && (step == steps || store_begin(store, error));
    }
    series_writer_free(writer);
    return done;
}

static bool set_hostile_lists(RunRecord *record, Error *error) {
    RecordLayer layers[3] = {{.parent = -1}, {.parent = 0}, {.parent = 0}};
    RecordMetric metric = {.value = 0.5};
    RecordParameter parameter = {.kind = RECORD_TEXT};
    RecordDiagnosis diagnosis = {.step = 3};
    RecordOption option;
    RecordFact fact;
    for (int i = 0; i < 3; i++) {
        snprintf(layers[i].name, sizeof layers[i].name, "%d" ATTACK, i);
        snprintf(layers[i].precision, sizeof layers[i].precision, i ? "fp16" : "evil\x1b[5m");
        snprintf(layers[i].set, sizeof layers[i].set, "auto");
    }
    snprintf(metric.name, sizeof metric.name, ATTACK "accuracy");
    snprintf(parameter.name, sizeof parameter.name, ATTACK);
    snprintf(parameter.text, sizeof parameter.text, "%s%lld", ATTACK, (long long)record->seed);
    snprintf(diagnosis.kind, sizeof diagnosis.kind, ATTACK);
    snprintf(diagnosis.layer, sizeof diagnosis.layer, ATTACK);
    snprintf(diagnosis.text, sizeof diagnosis.text, ATTACK);
    snprintf(option.name, sizeof option.name, "set");
    snprintf(option.value, sizeof option.value, ATTACK);
    snprintf(fact.name, sizeof fact.name, ATTACK);
    snprintf(fact.value, sizeof fact.value, ATTACK);
    return record_set_layers(record, layers, 3, error) &&
           record_set_metrics(record, &metric, 1, error) &&
           record_set_parameters(record, &parameter, 1, error) &&
           record_set_diagnoses(record, &diagnosis, 1, error) &&
           record_set_options(record, &option, 1, error) &&
           record_set_facts(record, &fact, 1, error);
}

static bool add_hostile_run(Store *store, int seed, Error *error) {
    static const char *const series[] = {"loss", "loss_scale", ATTACK, NULL};
    enum { STEPS = 300 };
    char name[RECORD_NAME_SIZE], experiment[RECORD_NAME_SIZE];
    snprintf(name, sizeof name, "%d" ATTACK, seed);
    snprintf(experiment, sizeof experiment, ATTACK);
    RunRecord record = plain_run(name, experiment);
    record.seed = seed;
    record.status = seed == 1 ? RUN_FAILED : RUN_FINISHED;
    snprintf(record.tag, sizeof record.tag, ATTACK);
    snprintf(record.note, sizeof record.note, ATTACK);
    snprintf(record.error, sizeof record.error, ATTACK);
    snprintf(record.precision, sizeof record.precision, seed == 1 ? "evil\x1b[5m" : "fp16");
    snprintf(record.scale_rule, sizeof record.scale_rule, "evil\x1b[5m");
    snprintf(record.device, sizeof record.device, "evil\x1b[5m");
    snprintf(record.device_name, sizeof record.device_name, ATTACK);
    snprintf(record.script_path, sizeof record.script_path, ATTACK);
    bool done = set_hostile_lists(&record, error) &&
                store_add_run(store, &record, ATTACK, sizeof ATTACK - 1, error) &&
                add_series(store, record.id, series, STEPS, 3, error);
    for (int kind = 0; done && kind < EVENT_KINDS; kind++) {
        Event event = {.step = 10 * kind + 1, .kind = (EventKind)kind, .value = 1024};
        snprintf(event.layer, sizeof event.layer, ATTACK);
        snprintf(event.text, sizeof event.text, ATTACK);
        done = store_add_event(store, record.id, &event, error);
    }
    record_clear(&record);
    return done;
}

bool history_make_hostile(const char *path, Error *error) {
    Store *store = store_open(path, STORE_WRITE, error);
    bool done = store && add_hostile_run(store, 1, error) && add_hostile_run(store, 2, error);
    store_close(store);
    return done;
}

bool history_make_long(const char *path, int64_t steps, int layer_count, Error *error) {
    enum { MOST = 256 };
    static const char *const series[] = {"loss", "loss_scale", "accuracy", NULL};
    static RecordLayer layers[MOST];
    Store *store = store_open(path, STORE_WRITE, error);
    RunRecord record = plain_run("long", "long");
    record.step = record.total_steps = record.applied = steps;
    for (int i = 0; i < layer_count && i < MOST; i++) {
        layers[i].parent = -1;
        snprintf(layers[i].name, sizeof layers[i].name, "layer%d", i);
        snprintf(layers[i].precision, sizeof layers[i].precision, "fp16");
        snprintf(layers[i].set, sizeof layers[i].set, "auto");
    }
    bool done = store && record_set_layers(&record, layers, layer_count, error) &&
                store_add_run(store, &record, NULL, 0, error) &&
                add_series(store, record.id, series, steps, layer_count, error);
    record_clear(&record);
    store_close(store);
    return done;
}

static bool feed_batch(Store *store, SeriesWriter *writer, RunRecord *record, int layers, int steps,
                       Error *error) {
    bool done = true;
    for (int i = 0; done && i < steps; i++) {
        int64_t step = ++record->step;
        record->applied++;
        record->loss_last = 0.2 + 2 / (1 + (double)step / 50);
        done = series_add(writer, "loss", step, record->loss_last, error) &&
               series_add(writer, "loss_scale", step, 1024, error);
        for (int layer = 0; done && i == 0 && layer < layers; layer++) {
            LayerSample sample = sample_at(step, layer);
            done = layers_add(writer, layer, &sample, error);
        }
    }
    if (!done || !store_begin(store, error))
        return false;
    if (series_flush(writer, 0.1, error) && store_update_run(store, record, error) &&
        store_commit(store, error))
        return true;
    store_rollback(store);
    return false;
}

bool history_feed(const char *path, int layer_count, double seconds, Error *error) {
    enum { PER_BATCH = 5, BATCHES_A_SECOND = 10, MOST = 256 };
    static RecordLayer layers[MOST];
    Store *store = store_open(path, STORE_WRITE, error);
    WorkerId worker;
    RunRecord record = plain_run("fed", "fed");
    record.status = RUN_RUNNING;
    record.step = record.applied = record.ended_ms = 0;
    record.total_steps = 100000;
    for (int i = 0; i < layer_count && i < MOST; i++) {
        layers[i].parent = -1;
        snprintf(layers[i].name, sizeof layers[i].name, "layer%d", i);
        snprintf(layers[i].precision, sizeof layers[i].precision, "fp16");
        snprintf(layers[i].set, sizeof layers[i].set, "auto");
    }
    bool done = store && record_set_layers(&record, layers, layer_count, error) &&
                store_add_run(store, &record, NULL, 0, error) && worker_identify(&worker, error) &&
                store_own_run(store, record.id, &worker, error);
    SeriesWriter *writer = done ? series_writer_new(store, record.id, 0, "start", error) : NULL;
    done = writer != NULL;
    for (int i = 0; done && i < seconds * BATCHES_A_SECOND; i++) {
        done = feed_batch(store, writer, &record, layer_count, PER_BATCH, error) &&
               (i % BATCHES_A_SECOND != 0 || store_beat(store, record.id, &worker, error));
        struct timespec pause = {.tv_nsec = 1000000000 / BATCHES_A_SECOND};
        nanosleep(&pause, NULL);
    }
    series_writer_free(writer);
    record_clear(&record);
    store_close(store);
    return done;
}
