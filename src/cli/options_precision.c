// The options that say what is computed in which format, and how losses are scaled.
#include <string.h>

#include "cli/options_private.h"
#include "cli/scan/scan.h"

static bool check_precision(const Option *option, const char *value, Error *error) {
    char names[256];
    const char *choices[MOST_CHOICES];
    int count = 0;
    if (precision_is_untrained(value)) // refused with a reason where the device is known
        return true;
    const bool trains = !(option->commands & (FOR_EVAL | FOR_EXPORT));
    snprintf(names, sizeof names, "%s", trains ? precision_trained_names : precision_names);
    char *rest = names;
    for (char *name; count < MOST_CHOICES && (name = strtok_r(rest, " ", &rest));)
        choices[count++] = name;
    return option_check_choice(error, option->name, value, choices, count);
}

// One, or for a matrix several with commas between, or for an evaluation also by several options;
// kept by the names that runs have them by.
bool option_set_precision(Cli *cli, const Option *option, const char *value, Error *error) {
    const bool adds = cli->command->options & FOR_EVAL;
    if (!adds && !(cli->command->options & FOR_MATRIX)) {
        cli->run.precision = format_usual_name(value);
        return check_precision(option, cli->run.precision, error);
    }
    char list[256] = "";
    size_t used = adds && cli->run.precision
                      ? (size_t)snprintf(list, sizeof list, "%s", cli->run.precision)
                      : 0;
    for (const char *next = value;; next++) {
        size_t length = strcspn(next, ",");
        const char *piece = option_keep_text(cli, next, length, error);
        if (!piece || !check_precision(option, format_usual_name(piece), error))
            return false;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                 format_usual_name(piece));
        if (used >= sizeof list)
            return error_fail(error, ERROR_USAGE, "--%s: more than is possible", option->name);
        next += length;
        if (!*next)
            break;
    }
    cli->run.precision = option_keep_text(cli, list, used, error);
    return cli->run.precision != NULL;
}

bool option_set_twin(Cli *cli, const Option *option, const char *value, Error *error) {
    cli->twin = format_usual_name(value);
    return check_precision(option, cli->twin, error);
}

// Checks a value; of a matrix each of several, with commas between.
static bool check_each(Cli *cli, const Option *option, const char *value,
                       bool (*check)(const char *text, Error *error), Error *error) {
    if (!(cli->command->options & FOR_MATRIX))
        return check(value, error) || error_prefix(error, "--%s", option->name);
    for (const char *next = value;; next++) {
        size_t length = strcspn(next, ",");
        const char *piece = option_keep_text(cli, next, length, error);
        if (!piece)
            return false;
        if (!check(piece, error))
            return error_prefix(error, "--%s", option->name);
        next += length;
        if (!*next)
            return true;
    }
}

static bool check_loss_scale(const char *text, Error *error) {
    ScaleRule rule;
    return scale_rule_parse(text, &rule, error);
}

// 0 is dynamic, as in the scripts that came with BERT.
bool option_set_loss_scale(Cli *cli, const Option *option, const char *value, Error *error) {
    if (strcmp(value, "0") == 0)
        value = "dynamic";
    cli->run.loss_scale = value;
    return check_each(cli, option, value, check_loss_scale, error);
}

// What is given twice, or by the parent of a fork and by the fork, adds up: the last of a key
// holds.
bool option_set_recipe(Cli *cli, const Option *option, const char *value, Error *error) {
    Recipe recipe;
    char text[RECIPE_TEXT_SIZE];
    if (!recipe_parse(cli->run.recipe, &recipe, error) || !recipe_change(value, &recipe, error))
        return error_prefix(error, "--%s", option->name);
    recipe_text(&recipe, text);
    cli->run.recipe = text[0] ? option_keep_text(cli, text, strlen(text), error) : NULL;
    return !text[0] || cli->run.recipe;
}

static bool check_keep(const char *text, Error *error) {
    Keep keep;
    return keep_parse(text, &keep, error);
}

bool option_set_keep(Cli *cli, const Option *option, const char *value, Error *error) {
    cli->run.keep_fp32 = value;
    return check_each(cli, option, value, check_keep, error);
}

static bool add_layer(Cli *cli, const Option *option, const char *pattern, const char *value,
                      Error *error) {
    const char *choices[FORMAT_COUNT + 1] = {layer_precision_name(LAYER_AUTO)};
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_offered);
    for (int i = 0; i < count; i++)
        choices[i + 1] = format_name(formats[i]);
    LayerPrecision precision;
    char typed[64];
    snprintf(typed, sizeof typed, "%.30s=%.30s", pattern, value);
    if (!layer_precision_parse(value, NULL, &precision, error))
        return error->code == ERROR_USAGE
                   ? option_choice_error(error, option->name, typed, value, choices, count + 1)
                   : false;
    if (cli->run.layer_count == CLI_MAX_RULES)
        return error_fail(error, ERROR_USAGE, "--%s: more than %d", option->name, CLI_MAX_RULES);
    cli->layers[cli->run.layer_count++] =
        (RunLayerRule){.pattern = pattern, .precision = precision};
    return true;
}

bool option_set_layer(Cli *cli, const Option *option, const char *value, Error *error) {
    const char *equals = strrchr(value, '=');
    if (!equals || equals == value)
        return error_fail(error, ERROR_USAGE,
                          "--%s %.60s: PATTERN=PRECISION is wanted, as in head=fp32", option->name,
                          value);
    const char *pattern = option_keep_text(cli, value, (size_t)(equals - value), error);
    if (!pattern || !(cli->command->options & FOR_MATRIX))
        return pattern && add_layer(cli, option, pattern, equals + 1, error);
    for (const char *next = equals + 1;; next++) { // of a matrix several
        size_t length = strcspn(next, ",");
        const char *piece = option_keep_text(cli, next, length, error);
        if (!piece || !add_layer(cli, option, pattern, piece, error))
            return false;
        next += length;
        if (!*next)
            return true;
    }
}

typedef struct PolicyRows { // of a file, on their way to be options
    Cli *cli;
    const char *file;
} PolicyRows;

static bool take_policy_row(void *context, const char *pattern, const char *precision,
                            Error *error) {
    static const char as_option[] = "--layer "; // which nobody typed
    const PolicyRows *rows = context;
    Cli *cli = rows->cli;
    const int before = cli->run.layer_count;
    char rule[2 * RECORD_NAME_SIZE + 2];
    snprintf(rule, sizeof rule, "%s=%s", pattern, precision);
    if (!cli_set_option(cli, "layer", rule, error)) {
        const size_t cut = sizeof as_option - 1;
        if (strncmp(error->text, as_option, cut) == 0)
            memmove(error->text, error->text + cut, strlen(error->text + cut) + 1);
        return false;
    }
    for (int i = before; i < cli->run.layer_count; i++)
        cli->layers[i].file = rows->file;
    return true;
}

bool option_set_policy(Cli *cli, const Option *option, const char *value, Error *error) {
    PolicyRows rows = {cli, option_keep_text(cli, value, strlen(value), error)};
    if (!rows.file)
        return false;
    return policy_file_read(value, take_policy_row, &rows, error) ||
           error_prefix(error, "--%s", option->name);
}
