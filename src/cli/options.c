// The table of options and what reads their values.
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/whole.h"
#include "cli/options_private.h"

static bool is_among(const char *value, const char *const *choices, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(choices[i], value) == 0)
            return true;
    return false;
}

bool option_choice_error(Error *error, const char *option, const char *typed, const char *value,
                         const char *const *choices, int count) {
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        int length = snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "", choices[i]);
        used += (size_t)length;
        if (used >= sizeof list)
            break;
    }
    const char *nearest = nearest_name(value, choices, (size_t)count);
    if (!nearest && strncmp(value, "cuda", 4) == 0 && is_among("gpu", choices, count))
        nearest = "gpu"; // what other tools call so
    char name[48] = "";  // where it is a part alone of what was typed
    if (typed != value)
        snprintf(name, sizeof name, "%.36s is ", value);
    if (nearest)
        return error_fail(error, ERROR_USAGE, "--%s %.60s: %snot known; did you mean %s? One of %s",
                          option, typed, name, nearest, list);
    return error_fail(error, ERROR_USAGE, "--%s %.60s: %snot known; one of %s", option, typed, name,
                      list);
}

bool option_check_choice(Error *error, const char *option, const char *value,
                         const char *const *choices, int count) {
    return is_among(value, choices, count) ||
           option_choice_error(error, option, value, value, choices, count);
}

const char *option_keep_text(Cli *cli, const char *text, size_t length, Error *error) {
    char *copy = cli->text_count < CLI_MAX_TEXTS ? strndup(text, length) : NULL;
    if (!copy) {
        error_fail(error, ERROR_USAGE, "%.60s: too many options", text);
        return NULL;
    }
    return cli->texts[cli->text_count++] = copy;
}

// ---- setters ------------------------------------------------------------------------------------

static void *field_of(Cli *cli, const Option *option) {
    return (char *)cli + option->field;
}

static bool set_flag(Cli *cli, const Option *option, const char *value, Error *error) {
    (void)value, (void)error;
    *(bool *)field_of(cli, option) = true;
    return true;
}

static bool set_text(Cli *cli, const Option *option, const char *value, Error *error) {
    (void)error;
    *(const char **)field_of(cli, option) = value;
    return true;
}

// What a run is found by.
static bool set_name(Cli *cli, const Option *option, const char *value, Error *error) {
    if (strlen(value) >= RECORD_NAME_SIZE)
        return error_fail(error, ERROR_USAGE, "--%s: longer than %d bytes: shorten it",
                          option->name, RECORD_NAME_SIZE - 1);
    return set_text(cli, option, value, error);
}

static bool parse_whole(const Option *option, const char *value, int64_t least, int64_t most,
                        int64_t *number, Error *error) {
    return whole_parse(value, least, most, number, error) ||
           error_prefix(error, "--%s %.60s", option->name, value);
}

static bool set_count(Cli *cli, const Option *option, const char *value, Error *error) {
    return parse_whole(option, value, 1, WHOLE_MOST, field_of(cli, option), error);
}

static bool set_seed(Cli *cli, const Option *option, const char *value, Error *error) {
    int64_t seed;
    if (!parse_whole(option, value, 0, WHOLE_MOST, &seed, error))
        return false;
    cli->run.seed = (uint64_t)seed;
    return true;
}

static bool set_threads(Cli *cli, const Option *option, const char *value, Error *error) {
    int64_t threads;
    if (!parse_whole(option, value, 1, 1024, &threads, error))
        return false;
    cli->run.threads = (int)threads;
    return true;
}

static bool set_device(Cli *cli, const Option *option, const char *value, Error *error) {
    const char *choices[MOST_CHOICES] = {"auto"};
    int count = 1;
    for (int i = 0; backend_list[i] && count < MOST_CHOICES; i++)
        choices[count++] = backend_list[i]->name;
    size_t length = strcspn(value, ":");
    const char *kind = option_keep_text(cli, value, length, error);
    cli->run.device = value;
    return kind && option_check_choice(error, option->name, kind, choices, count);
}

static bool set_setting(Cli *cli, const Option *option, const char *value, Error *error) {
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return error_fail(error, ERROR_USAGE, "--%s %.60s: KEY=VALUE is wanted, as in lr=3e-4",
                          option->name, value);
    if (cli->run.setting_count == CLI_MAX_RULES)
        return error_fail(error, ERROR_USAGE, "--%s: more than %d", option->name, CLI_MAX_RULES);
    const char *key = option_keep_text(cli, value, (size_t)(equals - value), error);
    if (!key)
        return false;
    cli->settings[cli->run.setting_count++] = (RunSetting){key, equals + 1};
    return true;
}

static bool set_color(Cli *cli, const Option *option, const char *value, Error *error) {
    static const char *const choices[] = {
        [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, choices[i]) == 0) {
            cli->color = (ColorChoice)i;
            return true;
        }
    return option_choice_error(error, option->name, value, value, choices, 3);
}

static bool set_axis(Cli *cli, const Option *option, const char *value, Error *error) {
    static const char *const choices[] = {"step", "epoch", "seconds", "samples"};
    cli->axis = value;
    return option_check_choice(error, option->name, value, choices, 4);
}

static bool set_profile_by(Cli *cli, const Option *option, const char *value, Error *error) {
    static const char *const choices[] = {
        [STEP_BY_PART] = "part", [STEP_BY_LAYER] = "layer", [STEP_BY_OPERATION] = "operation"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, choices[i]) == 0)
            cli->by = (StepBy)i;
    return option_check_choice(error, option->name, value, choices, 3);
}

static bool set_what_if(Cli *cli, const Option *option, const char *value, Error *error) {
    (void)option, (void)error;
    cli->what_if = true;
    cli->layer = value;
    return true;
}

static bool set_scan_by(Cli *cli, const Option *option, const char *value, Error *error) {
    static const char *const choices[] = {"layer", "block"};
    cli->by_block = strcmp(value, "block") == 0;
    return option_check_choice(error, option->name, value, choices, 2);
}

// "1%", or a share: 0.01.
static bool set_within(Cli *cli, const Option *option, const char *value, Error *error) {
    char *end;
    double share = strtod(value, &end);
    if (*end == '%') {
        share /= 100;
        end++;
    }
    if (*end || end == value || !(share > 0 && share <= 1))
        return error_fail(error, ERROR_USAGE,
                          "--%s %.60s: a share of the loss is wanted, as in 1%%", option->name,
                          value);
    cli->within = share;
    return true;
}

static bool set_export_format(Cli *cli, const Option *option, const char *value, Error *error) {
    static const char *const choices[] = {"csv", "jsonl", "safetensors", "png", "tensorboard"};
    cli->format = value;
    return option_check_choice(error, option->name, value, choices, 5);
}

// Bytes, or 64MiB, 0.5GiB.
static bool set_memory(Cli *cli, const Option *option, const char *value, Error *error) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
    char *end;
    double number = strtod(value, &end);
    for (size_t i = 0; end > value && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0 && number * units[i].bytes >= 1 &&
            number * units[i].bytes <= 0x1p53) {
            cli->memory = (int64_t)(number * units[i].bytes);
            return true;
        }
    return error_fail(error, ERROR_USAGE,
                      "--%s %.60s: bytes are wanted, as in 8388608, 64MiB or 0.5GiB", option->name,
                      value);
}

// N, or N,largest.
static bool set_calibrate(Cli *cli, const Option *option, const char *value, Error *error) {
    const size_t length = strcspn(value, ",");
    const char *count = option_keep_text(cli, value, length, error);
    if (!count || !parse_whole(option, count, 1, WHOLE_MOST, &cli->calibrate, error))
        return false;
    cli->by_largest = strcmp(value + length, ",largest") == 0;
    return cli->by_largest || !value[length] ||
           error_fail(error, ERROR_USAGE,
                      "--%s %.60s: a number of batches is wanted, or N,largest: scaled by the "
                      "largest number, not by the percentile that loses least",
                      option->name, value);
}

static bool set_watts(Cli *cli, const Option *option, const char *value, Error *error) {
    char *end;
    cli->watts = strtod(value, &end);
    if (*end || !value[0] || !(cli->watts > 0 && cli->watts <= 1e6))
        return error_fail(error, ERROR_USAGE, "--%s %.60s: watts are wanted, more than 0",
                          option->name, value);
    return true;
}

static bool set_target(Cli *cli, const Option *option, const char *value, Error *error) {
    const size_t length = compare_target_parse(value, &cli->target_value, &cli->target_toward);
    if (length == 0)
        return error_fail(error, ERROR_USAGE,
                          "--%s %.60s: NAME=VALUE is wanted, as in accuracy=0.9, or with >= or <=",
                          option->name, value);
    cli->target = option_keep_text(cli, value, length, error);
    return cli->target != NULL;
}

static bool set_grams(Cli *cli, const Option *option, const char *value, Error *error) {
    char *end;
    cli->grams_per_kwh = strtod(value, &end);
    if (*end || !value[0] || !(cli->grams_per_kwh > 0 && cli->grams_per_kwh <= 1e5))
        return error_fail(error, ERROR_USAGE,
                          "--%s %.60s: grams of CO2 a kWh are wanted, more than 0", option->name,
                          value);
    return true;
}

// ---- the table ----------------------------------------------------------------------------------

#define FIELD(member) offsetof(Cli, member)

const Option option_table[] = {
    {"precision", 'p', FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK, "P", precision_trained_names,
     option_set_precision, 0},
    {"precision", 'p', FOR_EVAL | FOR_EXPORT, "P", precision_names, option_set_precision, 0},
    {"layer", 0, FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_EVAL | FOR_EXPORT, "PATTERN=P",
     "precision of the layers so named; the last match wins; of a matrix PATTERN=P1,P2",
     option_set_layer, 0},
    {"layers", 0, FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_EVAL, "FILE",
     "a policy, as `mpbench scan -o FILE` writes it: a --layer for each of its rows",
     option_set_policy, 0},
    {"twin", 0, FOR_RUN, "P",
     "a second training beside it, in lock step, in that precision: where do the two part?",
     option_set_twin, 0},
    {"loss-scale", 0, FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK, "S",
     "dynamic (0 says so too) none logmax adaptive, a number, or a preset: torch apex keras "
     "deepspeed megatron "
     "fairseq; of a matrix S1,S2",
     option_set_loss_scale, 0},
    {"recipe", 0, FOR_FORMATS, "scales=RULE",
     "scales of mx formats in --block: up, large enough for the largest, or floor, the standard's "
     "(up)",
     option_set_recipe, 0},
    {"recipe", 0, FOR_RUN | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_EVAL,
     "KEY=VALUE,..", "how fp8, mx formats and nvfp4 scale and round: `mpbench help recipes`",
     option_set_recipe, 0},
    {"keep-fp32", 0, FOR_RUN | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_EVAL, "KINDS",
     "none all, or some of batch_norm+layer_norm+embedding+softmax+losses+functions: what alone "
     "stays in fp32, whatever the precision says; of a matrix KINDS,KINDS",
     option_set_keep, 0},
    {"device", 'd',
     FOR_RUN | FOR_CLAIMS | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_BENCH | FOR_EVAL,
     "D", "auto cpu gpu gpu:N ref", set_device, 0},
    {"set", 0, FOR_RUN | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK, "KEY=VALUE",
     "a parameter of the experiment; of a matrix KEY=V1,V2", set_setting, 0},
    {"seeds", 0, FOR_MATRIX, "N", "seeds 1 to N of every combination (1)", set_count, FIELD(seeds)},
    {"workers", 0, FOR_MATRIX, "N", "so many runs at once, which share the threads (1)", set_count,
     FIELD(workers)},
    {"matrix", 0, FOR_RUN, "ID", NULL, set_count, FIELD(run.matrix)},
    {"by", 0, FOR_COMPARE | FOR_MATRIX, "AXIS",
     "what curves stand over, and losses are compared at: step epoch seconds samples", set_axis, 0},
    {"by", 0, FOR_PROFILE, "WHAT",
     "part layer operation: what is one row (part: both, and the way)", set_profile_by, 0},
    {"by", 0, FOR_SCAN, "WHAT", "layer block: what is put into a format together (layer)",
     set_scan_by, 0},
    {"formats", 0, FOR_SCAN, "F,F,..", "what layers are tried in (both of 16 bits, and mxfp8)",
     set_text, FIELD(formats)},
    {"batches", 0, FOR_SCAN, "N", "that gradients are taken of (4)", set_count, FIELD(batches)},
    {"steps", 0, FOR_SCAN, "N", "of each training that verifies the policy (60)", set_count,
     FIELD(run.steps)},
    {"seeds", 0, FOR_SCAN, "N", "of each training that verifies it (3)", set_count, FIELD(seeds)},
    {"seeds", 0, FOR_CLAIMS, "N", "of each run (3)", set_count, FIELD(seeds)},
    {"list", 0, FOR_CLAIMS | FOR_MATRIX, NULL, "run nothing: what the history has of them",
     set_flag, FIELD(list)},
    {"within", 0, FOR_SCAN, "P%", "by how much loss and result may be worse than fp32's (1%)",
     set_within, 0},
    {"output", 'o', FOR_SCAN, "FILE.lua", "the policy, for --layers FILE", set_text, FIELD(output)},
    {"quick", 0, FOR_SCAN, NULL,
     "propose a policy, verify none: without --steps, --seeds, --within", set_flag, FIELD(quick)},
    {"again", 0, FOR_SCAN, NULL, "measure anew what a scan of the same has measured, and keep both",
     set_flag, FIELD(again)},
    {"top", 0, FOR_PROFILE, "N", "so many rows at most, those of the longest times", set_count,
     FIELD(top)},
    {"series", 0, FOR_COMPARE | FOR_MATRIX | FOR_REPORT, "NAME",
     "what is compared as the loss, where it has another name: d_loss", set_text, FIELD(series)},
    {"co2", 0, FOR_COMPARE | FOR_MATRIX | FOR_SHOW | FOR_REPORT, "G",
     "grams of CO2 that a kWh causes where you are (MPBENCH_CO2)", set_grams, 0},
    {"watts", 0, FOR_COMPARE | FOR_MATRIX | FOR_SHOW | FOR_REPORT, "N",
     "what a run takes whose energy nobody measured: stated, and said to be", set_watts, 0},
    {"target", 0, FOR_COMPARE | FOR_MATRIX, "NAME=VALUE",
     "steps and seconds until a series was that good: accuracy=0.9; its name says whether it "
     "is to rise, or you do: 'pixels>=0.9', 'gap<=2'",
     set_target, 0},
    {"what-if", 0, FOR_SHOW, "[=LAYER]",
     "what every format would do to the gradients, of all layers or one in full", set_what_if, 0},
    {"first-nan", 0, FOR_SHOW, NULL,
     "the first number that was not finite and should be: which tensor, why, the way there, and "
     "what mends it",
     set_flag, FIELD(first_nan)},
    {"script", 0, FOR_SHOW, NULL, "the text of its script as it was, and nothing else", set_flag,
     FIELD(script)},
    {"limit", 0, FOR_LS, "N", "so many runs at most, the newest", set_count, FIELD(limit)},
    {"format", 0, FOR_EXPORT, "F", "csv jsonl safetensors png tensorboard", set_export_format, 0},
    {"output", 'o', FOR_EXPORT | FOR_REPORT, "FILE", "in place of standard output", set_text,
     FIELD(output)},
    {"demo", 0, FOR_HOME, NULL, "the screen on a recording that it replays: nothing is trained",
     set_flag, FIELD(demo)},
    {"block", 0, FOR_FORMATS, NULL, "the numbers together, as fp8, mx formats and nvfp4 scale them",
     set_flag, FIELD(block)},
    {"dry-run", 0, FOR_RUN, NULL,
     "train two steps, keep nothing: which format every layer would have, and the memory of it",
     set_flag, FIELD(dry_run)},
    {"dry-run", 0, FOR_GC, NULL, "only say what would be done", set_flag, FIELD(dry_run)},
    {"seed", 0, FOR_RUN | FOR_SCAN | FOR_PROFILE, "N", "of all random numbers (1)", set_seed, 0},
    {"steps", 0, FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK, "N", "end after so many steps",
     set_count, FIELD(run.steps)},
    {"epochs", 0, FOR_RUN | FOR_MATRIX | FOR_FORK, "N", "end after so many passes over the data",
     set_count, FIELD(run.epochs)},
    {"threads", 0,
     FOR_RUN | FOR_CLAIMS | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_BENCH | FOR_EVAL,
     "N", "of the device (all processors)", set_threads, 0},
    {"no-capture", 0, FOR_RUN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_RESUME, NULL,
     "compute no step as a whole: each kernel and function by itself", set_flag,
     FIELD(run.no_capture)},
    {"name", 0, FOR_RUN | FOR_FORK, "S", "of the run", set_name, FIELD(run.name)},
    {"tag", 0, FOR_RUN | FOR_MATRIX | FOR_FORK, "S", "of the run, for finding it again", set_name,
     FIELD(run.tag)},
    {"note", 0, FOR_RUN | FOR_MATRIX | FOR_FORK, "S", "kept with the run", set_text,
     FIELD(run.note)},
    {"at", 0, FOR_FORK | FOR_RESUME | FOR_EVAL | FOR_SCAN, "STEP",
     "from there; without it, from the last checkpoint", set_count, FIELD(at)},
    {"weights-only", 0, FOR_RESUME, NULL,
     "start the script afresh, as a new run, with the weights of the checkpoint", set_flag,
     FIELD(weights_only)},
    {"weights", 0, FOR_RUN | FOR_EVAL, "FILE", "these weights (safetensors), found by their names",
     set_text, FIELD(weights)},
    {"memory", 0, FOR_EVAL, "BYTES",
     "a cap for weights, activations and work space, as in 8MiB: what batch fits, and what it "
     "gives",
     set_memory, 0},
    {"calibrate", 0, FOR_EVAL, "N[,largest]",
     "batches of training data that int8 is scaled by (8): by the percentile of what layers "
     "multiply that loses least, or by the largest",
     set_calibrate, 0},
    {"checkpoint-every", 0, FOR_RUN | FOR_FORK, "N",
     "steps between checkpoints; one is kept at the end and at a stop anyway", set_count,
     FIELD(checkpoint_every)},
    {"no-history", 0, FOR_RUN | FOR_PROFILE | FOR_SCAN, NULL, "keep nothing of it", set_flag,
     FIELD(no_history)},
    {"json", 0,
     FOR_RUN | FOR_PROFILE | FOR_FORMATS | FOR_DOCTOR | FOR_LS | FOR_SHOW | FOR_COMPARE |
         FOR_MATRIX | FOR_RESUME | FOR_FORK | FOR_CTL | FOR_RM | FOR_TAG | FOR_NOTE | FOR_GC |
         FOR_BENCH | FOR_EVAL | FOR_SCAN | FOR_CLAIMS,
     NULL, "the result as JSON on standard output", set_flag, FIELD(json)},
    {"markdown", 0, FOR_COMPARE | FOR_MATRIX | FOR_CLAIMS, NULL,
     "the result as Markdown, for a page of others", set_flag, FIELD(markdown)},
    {"quick", 0, FOR_BENCH | FOR_EVAL, NULL, "in less time, less exactly; of eval: no times",
     set_flag, FIELD(quick)},
    {"quiet", 0,
     FOR_RUN | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_RESUME | FOR_BENCH | FOR_EVAL |
         FOR_CLAIMS,
     NULL, "no progress, the result alone", set_flag, FIELD(quiet)},
    {"verbose", 0, FOR_DOCTOR, NULL,
     "also what each operation runs in (--json has that anyway); checks all of the history",
     set_flag, FIELD(verbose)},
    {"trust", 0, FOR_RUN | FOR_SCAN | FOR_PROFILE | FOR_MATRIX | FOR_FORK | FOR_EVAL | FOR_RESUME,
     NULL, "give the script Lua's whole library: files, programs, everything", set_flag,
     FIELD(trust)},
    {"db", 0, FOR_ALL, "FILE", "the run history (MPBENCH_DB)", set_text, FIELD(database)},
    {"color", 0, FOR_ALL, "WHEN", "auto always never (NO_COLOR)", set_color, 0},
    {"help", 'h', FOR_ALL, NULL, "this page", set_flag, FIELD(help)},
    {"version", 0, FOR_ALL, NULL, "the version", set_flag, FIELD(version)},
    {NULL, 0, 0, NULL, NULL, NULL, 0},
};
