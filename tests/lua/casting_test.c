// A run whose time goes into casts between formats is told so, from what the device's own clock
// says of a step; one that computes is not.
#include "tests/lua/trial.h"

// The samples of four seconds before were of no time at all: one step decides.
static void skip_four_seconds(Run *run) {
    run_state(run)->sampler.count = 19;
}

static void what_takes_the_time_is_told(const char *name, int casts) {
    char script[1024];
    snprintf(script, sizeof script,
             "local mp = require 'mp'\n"
             "local F = mp.fn\n"
             "return mp.experiment { name = '%s', run = function(run)\n"
             "  local layer = run:model(mp.nn.Linear(8, 8))\n"
             "  local opt = mp.optim.SGD(layer:parameters(), { lr = 0.1 })\n"
             "  local large = mp.ones(1 << 18)\n"
             "  for _ = 1, 4 do\n"
             "    for _ = 1, %d do large:to 'fp16':to 'fp32' end\n"
             "    for _ = 1, %d do F.exp(large) end\n"
             "    mp.autocast(function() return layer(mp.ones(1, 8)) end):sum():backward()\n"
             "    opt:step()\n"
             "  end\n"
             "end }\n",
             name, casts, 12 - casts);
    Trial trial = {
        .script = write_script(name, script), .precision = "bf16", .prepare = skip_four_seconds};
    train(&trial);
    CHECK_MESSAGE(trial.done, "%s", trial.error.text);
    const bool is_told = strstr(trial.diagnosed, "casting;") != NULL;
    CHECK_MESSAGE(is_told == (casts > 0), "%s: diagnosed: %s", name, trial.diagnosed);
}

static void steps_of_casts_are_told_and_steps_of_work_are_not(void) {
    what_takes_the_time_is_told("casts", 12);
    what_takes_the_time_is_told("works", 0);
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(steps_of_casts_are_told_and_steps_of_work_are_not);
    return trials_end();
}
