// What the record of a run says that was resumed or forked: the whole of what was stopped in
// between, and of a fork no more than what it did itself.
#include "tests/lua/trial.h"

// The clock decides what is drawn; the third loss is not finite.
static const char clock_script[] =
    "local now, processor, date = os.time, os.clock, os.date\n"
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'clock', params = { steps = 12 }, run = function(run)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(4, 1) })\n"
    "  local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 1e-2 }), run:scaler()\n"
    "  local began = processor()\n"
    "  while processor() - began < 0.2 do end\n"
    "  for step = 1, run.params.steps do\n"
    "    opt:zero_grad()\n"
    "    local drawn = processor() * 1e6 + now() + tonumber(date '%S')\n"
    "    for _ = 1, drawn % 17 do math.random() end\n"
    "    assert(os.time { year = 2021, month = 1, day = 2 } > os.time { year = 2021, month = 1, "
    "day = 1 })\n"
    "    assert(date('!%Y', 0) == '1970')\n"
    "    local loss = F.mse(net(mp.randn(8, 4)), mp.ones(8, 1))\n"
    "    scaler:scale(loss):backward() scaler:step(opt) scaler:update()\n"
    "    run:log { loss = step == 3 and 0 / 0 or loss }\n"
    "  end\n"
    "end }\n";

static void times_diagnoses_and_the_clock_are_those_of_the_whole_run(void) {
    Trial first = {.script = write_script("clock", clock_script),
                   .settings = "",
                   .precision = "fp32",
                   .folder = folder_of("clock"),
                   .stop_at = 6};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    CHECK_CONTAINS(first.diagnosed, "loss_not_finite;");
    CHECK(first.record.wall_s >= 0.2);
    Trial second = first;
    second.stop_at = 0;
    second.resume = checkpoint_open(file_of("clock", 6), NULL, NULL, &second.error);
    train(&second);
    checkpoint_close(second.resume);
    CHECK_MESSAGE(second.done && second.step == 12, "%s", second.error.text);
    CHECK_TEXT(second.diagnosed, first.diagnosed);
    CHECK_MESSAGE(second.record.wall_s >= 0.2, "%g s", second.record.wall_s);
}

// The parent overflows twice and takes its time; what comes after does neither.
static const char parent_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'parent', params = { steps = 30 }, run = function(run)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(4, 1) })\n"
    "  local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 1e-2 }), run:scaler()\n"
    "  for step = 1, run.params.steps do\n"
    "    opt:zero_grad()\n"
    "    local loss = F.mse(net(mp.randn(8, 4)), mp.ones(8, 1)) * (step < 3 and 1 / 0 or 1)\n"
    "    scaler:scale(loss):backward() scaler:step(opt) scaler:update()\n"
    "    run:log { loss = step == 9 and 1e-9 or loss }\n"
    "  end\n"
    "end }\n";

static void a_fork_tells_what_it_did_itself(void) {
    Trial parent = {.script = write_script("parent", parent_script),
                    .settings = "",
                    .precision = "fp16",
                    .folder = folder_of("parent"),
                    .joules = 100,
                    .seconds = 1000,
                    .stop_at = 10};
    train(&parent);
    CHECK_MESSAGE(parent.done && parent.kept == 1, "%s", parent.error.text);
    CHECK_NEAR(parent.record.scale_max, 65536, 0);
    // A card's own counter goes on, whatever else is planted.
    bool counts_itself = strncmp(test_device_or("cpu"), "gpu", 3) == 0;
    CHECK(counts_itself || parent.record.energy_j == 100);
    CHECK(parent.record.wall_s > 1000 && parent.record.steps_per_s < 0.1);
    Trial fork = parent;
    fork.stop_at = 20;
    fork.parent = 1;
    fork.joules = 7; // of the replay
    fork.folder = folder_of("fork");
    fork.resume = checkpoint_open(file_of("parent", 10), NULL, NULL, &fork.error);
    train(&fork);
    checkpoint_close(fork.resume);
    CHECK_MESSAGE(fork.done && fork.step == 20, "%s", fork.error.text);
    // Once by the fork, and once more by one that was stopped and goes on.
    Trial resumed = fork;
    resumed.stop_at = 0;
    resumed.parent = 0;
    resumed.resume = checkpoint_open(file_of("fork", 20), NULL, NULL, &resumed.error);
    train(&resumed);
    checkpoint_close(resumed.resume);
    CHECK_MESSAGE(resumed.done && resumed.step == 30, "%s", resumed.error.text);
    Trial *const trials[] = {&fork, &resumed};
    for (int i = 0; i < 2; i++) {
        RunRecord *record = &trials[i]->record;
        CHECK_NEAR(record->scale_max, 16384, 0);
        CHECK_NEAR(record->scale_min, 16384, 0);
        CHECK_MESSAGE(record->wall_s < 500, "%g s", record->wall_s);
        CHECK_MESSAGE(record->steps_per_s > 1, "%g steps/s", record->steps_per_s);
        CHECK(counts_itself || record->energy_j == i * 7);
        CHECK(record->has_loss && record->loss_best > 1e-6);
        CHECK_INT(record->applied, trials[i]->step - 2); // a place in the whole training
    }
}

static void memory_is_the_most_of_all_stretches(void) {
    Trial first = {.script = write_script("held", parent_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("held"),
                   .stop_at = 10};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    const RecordMemory held = {.peak = INT64_C(1) << 40,
                               .weights = 1,
                               .masters = RECORD_UNKNOWN,
                               .activations = INT64_C(1) << 39};
    RecordFact fact = {.name = RECORD_FACT_MEMORY};
    record_memory_text(&held, fact.value);
    Trial second = first;
    second.stop_at = 0;
    second.held = &held;
    second.fact = &fact;
    second.resume = checkpoint_open(file_of("held", 10), NULL, NULL, &second.error);
    train(&second);
    checkpoint_close(second.resume);
    CHECK_MESSAGE(second.done && second.step == 30, "%s", second.error.text);
    const RecordMemory *memory = &second.record.memory;
    CHECK(memory->peak == held.peak && memory->activations == held.activations);
    CHECK(memory->weights == first.record.memory.weights && memory->weights > 1);
    CHECK(memory->masters >= 0);
    CHECK(second.has_in_steps && second.in_steps.peak == held.peak);
    CHECK(second.in_steps.weights > 1 && second.in_steps.activations == held.activations);
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(times_diagnoses_and_the_clock_are_those_of_the_whole_run);
    RUN_TEST(a_fork_tells_what_it_did_itself);
    RUN_TEST(memory_is_the_most_of_all_stretches);
    return trials_end();
}
