// A scan from the screen alone, on a training that really runs: asked for by a key, its policy
// given to the form, to the run that goes on or waits, and taken back.
#include "tests/screen/place.h"

// Small steps, for minutes: longer than the screen looks at it, and ending where a test fails.
static const char script[] =
    "local mp = require 'mp'\n"
    "local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment {\n"
    "    name = 'lasting', params = { lr = 0.01, epochs = 2000 },\n"
    "    data = function() return { train = mp.data.synthetic { shape = { 24 }, classes = 5,\n"
    "        count = 2048, batch = 32, shuffle = true } } end,\n"
    "    model = function() return nn.Sequential { nn.Linear(24, 32):named 'body', nn.ReLU(),\n"
    "        nn.Linear(32, 5):named 'head' } end,\n"
    "    loss = function(model, b) for _ = 1, 1e5 do end return F.cross_entropy(model(b.x), b.y)\n"
    "    end,\n"
    "    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,\n"
    "}\n";

static void open_screen(void) {
    static const char *const nothing[] = {NULL};
    static char experiments[600];
    snprintf(experiments, sizeof experiments, "MPBENCH_EXPERIMENTS=%s", folder);
    const char *environment[] = {database, experiments, NULL};
    write_text(path_of("lasting.lua"), script);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("experiments");
}

static void a_key_scans_an_experiment(void) {
    CHECK_CONTAINS(shown_text(&shown), " 4 formats  5 scan "); // as the others, before it is there
    press("5", "No scan is in this history");
    press("s", "an experiment, or the number of a run");
    press("\x15"
          "lasting\r",
          "Next: enter gives this policy");
    CHECK_CONTAINS(shown_text(&shown), "scan 1 of 1");
}

static void its_policy_is_what_the_form_trains(void) {
    press("\r", "set: body=");
    press("\r", "#1 lasting-1 fp32");
}

static void a_run_that_waits_is_given_the_policy_and_gives_it_back(void) {
    press("p", "paused");
    press("5", "Next: enter");
    press("\r", "give run 1 the policy of 2 layers?");
    press("y", "head is ");
    press("p", "goes on after");
    press("u", "all layers are auto");
    press("S", "stop #1");
    press("y", "stopped after");
    press("1", "experiments"); // from there it is not seen which run an order would be to
    press("5", "Next: enter");
    press(":stop\r", "stop: no run is open");
    leave();
}

int main(void) {
    if (!make_place())
        return 1;
    open_screen();
    RUN_TEST(a_key_scans_an_experiment);
    RUN_TEST(its_policy_is_what_the_form_trains);
    RUN_TEST(a_run_that_waits_is_given_the_policy_and_gives_it_back);
    return end_tests();
}
