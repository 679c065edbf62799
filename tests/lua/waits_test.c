// What loops as people write them make the host wait for, and how often the system is asked for
// memory: in a steady step nothing, and never. On a device that captures steps, theirs are
// captured.
#include "kernel/allocator.h"
#include "tests/late_device.h"
#include "tests/lua/trial.h"

#define COMMON                                                                                     \
    "local mp = require \"mp\"\n"                                                                  \
    "local nn, F = mp.nn, mp.fn\n"                                                                 \
    "local function data(count)\n"                                                                 \
    "    return mp.data.tensors {x = mp.randn(count, 12), y = mp.randint(4, count),\n"             \
    "                            batch = 8, shuffle = true}\n"                                     \
    "end\n"                                                                                        \
    "local function net()\n"                                                                       \
    "    return nn.Sequential {nn.Linear(12, 16), nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.2),\n" \
    "                         nn.Linear(16, 4)}\n"                                                 \
    "end\n"

static const char declared[] =
    COMMON "return mp.experiment {name = 'declared', precision = 'fp16', params = {epochs = 4},\n"
           "    scaler = 'dynamic', clip = 1.0, schedule = mp.optim.schedule.cosine {warmup = 5},\n"
           "    data = function() return {train = data(320)} end,\n"
           "    model = function() return net() end,\n"
           "    optim = function(parameters) return mp.optim.AdamW(parameters, {lr = 1e-3}) end,\n"
           "    loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end}\n";

// Two optimizers with one scaler, batches gathered, an average of weights, a rate by hand.
static const char by_hand[] =
    COMMON "return mp.experiment {name = 'by hand', precision = 'fp16', run = function(run)\n"
           "    local m = run:model(net())\n"
           "    local parameters = m:parameters()\n"
           "    local first, others = {parameters[1]}, {}\n"
           "    for i = 2, #parameters do others[i - 1] = parameters[i] end\n"
           "    local a = mp.optim.SGD(first, {lr = 0.1, momentum = 0.9})\n"
           "    local b = mp.optim.Adam(others, {lr = 1e-3})\n"
           "    local scaler, average = run:scaler(), mp.optim.EMA(m, 0.9)\n"
           "    local at = 0\n"
           "    for batch in data(320 * 8) do\n"
           "        local loss = mp.autocast(function()\n"
           "            return F.cross_entropy(m(batch.x), batch.y) end)\n"
           "        scaler:scale(loss / 2):backward()\n"
           "        at = at + 1\n"
           "        if at % 2 == 0 then\n"
           "            scaler:unscale(a)\n"
           "            mp.optim.clip_value(first, 0.5)\n"
           "            a:lr(0.1 / at)\n"
           "            scaler:step(a) scaler:step(b) scaler:update()\n"
           "            average:update(b)\n"
           "            run:log {loss = loss, number = at}\n"
           "            a:zero_grad() b:zero_grad()\n"
           "        end\n"
           "    end\n"
           "end}\n";

static uint64_t waits[MOST_STEPS], captured[MOST_STEPS], asked[MOST_STEPS];
static Backend late_backend;
static bool is_late;

static void count(void *context, const Run *run) {
    on_step(context, run);
    if (run->step >= MOST_STEPS)
        return;
    waits[run->step] = run->device->waits;
    captured[run->step] = run->device->captured;
    asked[run->step] = allocator_use(run->device->allocator).system_calls;
}

static bool captures;

static void prepare(Run *run) {
    run->observer.step = count;
    captures = device_captures(run->device);
    if (is_late && !run->device->backend->report) // else it is late by itself
        device_make_late(run->device, &late_backend);
}

static void check(const char *name, const char *script) {
    enum { STEADY = 10, STEPS = 120 };
    Trial trial = {.script = write_script(name, script), .steps = STEPS, .prepare = prepare};
    train(&trial);
    CHECK_MESSAGE(trial.done, "%s: %s", name, trial.error.text);
    CHECK_INT(trial.step, STEPS);
    for (int i = STEADY; i < STEPS; i++)
        CHECK_MESSAGE(waits[i + 1] == waits[i], "%s: step %d waits %llu times", name, i + 1,
                      (unsigned long long)(waits[i + 1] - waits[i]));
    // Of one in five at most a sample is taken.
    uint64_t steady = captured[STEPS] - captured[STEADY];
    CHECK_MESSAGE(!captures || steady >= (STEPS - STEADY) / 2, "%s: %llu steps are captured", name,
                  (unsigned long long)steady);
}

static void a_steady_step_of_a_script_waits_for_nothing(void) {
    for (int late = 0; late < 2; late++) {
        is_late = late;
        check("declared", declared);
        check("by_hand", by_hand);
    }
}

// As they come with the program, small, and recorded: batches, samples, reports and captured steps,
// whatever of these comes when.
static void experiments_wait_for_nothing_and_ask_for_no_memory_after_the_second_step(void) {
    enum { SETTLED = 2, STEPS = 40 };
    static const struct {
        const char *script, *settings;
    } experiments[] = {
        {"experiments/simple.lua", "steps=64"},
        {"experiments/fashion_cnn.lua", "width=2 batch=8"},
        {"experiments/gpt.lua", "layers=2 width=16 heads=2 context=16 batch=2"},
    };
    is_late = false;
    for (size_t e = 0; e < sizeof experiments / sizeof *experiments; e++) {
        const char *name = experiments[e].script;
        Trial trial = {.script = name,
                       .settings = experiments[e].settings,
                       .precision = "fp16",
                       .stop_at = STEPS,
                       .is_recorded = true,
                       .prepare = prepare};
        train(&trial);
        CHECK_MESSAGE(trial.done, "%s: %s", name, trial.error.text);
        CHECK_INT(trial.step, STEPS);
        for (int i = SETTLED; i < STEPS; i++) {
            CHECK_MESSAGE(waits[i + 1] == waits[i], "%s: step %d waits %llu times", name, i + 1,
                          (unsigned long long)(waits[i + 1] - waits[i]));
            CHECK_MESSAGE(asked[i + 1] == asked[i], "%s: step %d asks for memory %llu times", name,
                          i + 1, (unsigned long long)(asked[i + 1] - asked[i]));
        }
    }
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(a_steady_step_of_a_script_waits_for_nothing);
    RUN_TEST(experiments_wait_for_nothing_and_ask_for_no_memory_after_the_second_step);
    return trials_end();
}
