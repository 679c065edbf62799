// The command that mends a run: what a shell runs as it stands, whatever layers and scripts are
// called.
#include "compare/flight_words.h"

#include "tests/test.h"

static void check_command(const Flight *flight, const RunRecord *run, const char *want) {
    char text[FLIGHT_COMMAND_SIZE];
    flight_command(flight, run, text);
    CHECK_MESSAGE(strcmp(text, want) == 0, "%.400s", text);
}

static void a_fork_names_the_layer_as_one_word(void) {
    RunRecord run = {.id = 7};
    Flight flight = {.from = 299, .change = "layer.fc1=bf16"};
    check_command(&flight, &run, "mpbench fork 7 --at 299 --layer fc1=bf16");
    snprintf(flight.change, sizeof flight.change, "layer.$(it's) *=bf16");
    check_command(&flight, &run, "mpbench fork 7 --at 299 --layer '$(it'\\''s) *=bf16'");
    snprintf(flight.change, sizeof flight.change, "loss_scale=dynamic");
    check_command(&flight, &run, "mpbench fork 7 --at 299 --loss-scale dynamic");
}

static void a_run_is_begun_again_with_its_options(void) {
    RecordOption options[] = {{"set", "names=it's"}, {"trust", ""}};
    RunRecord run = {.script_path = "/tmp/a b.lua", .options = options, .option_count = 2};
    const Flight flight = {.change = "bf16"};
    check_command(&flight, &run,
                  "mpbench run '/tmp/a b.lua' --set 'names=it'\\''s' --trust --precision bf16");
}

static void what_the_change_replaces_is_not_given_twice(void) {
    RecordOption options[] = {{"precision", "fp16"},
                              {"name", "first"},
                              {"set", "lr=2"},
                              {"set", "lrs=3"},
                              {"layer", "a=fp16"}};
    RunRecord run = {.script_path = "a.lua", .options = options, .option_count = 5};
    check_command(&(Flight){.change = "bf16"}, &run,
                  "mpbench run a.lua --set lr=2 --set lrs=3 --layer a=fp16 --precision bf16");
    check_command(&(Flight){.change = "lr=0.02"}, &run,
                  "mpbench run a.lua --precision fp16 --set lrs=3 --layer a=fp16 --set lr=0.02");
    check_command(&(Flight){.change = "layer.a=bf16"}, &run,
                  "mpbench run a.lua --precision fp16 --set lr=2 --set lrs=3 --layer a=bf16");
}

static void a_part_of_a_command_is_none(void) {
    RecordOption options[16] = {{.name = "set"}};
    RunRecord run = {.script_path = "a.lua", .options = options, .option_count = 16};
    const Flight flight = {.change = "bf16"};
    for (int i = 0; i < run.option_count; i++)
        snprintf(options[i].value, sizeof options[i].value, "key=%080d", i);
    check_command(&flight, &run, "");
}

int main(void) {
    RUN_TEST(a_fork_names_the_layer_as_one_word);
    RUN_TEST(a_run_is_begun_again_with_its_options);
    RUN_TEST(what_the_change_replaces_is_not_given_twice);
    RUN_TEST(a_part_of_a_command_is_none);
    return test_end();
}
