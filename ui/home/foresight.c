// What the form would train: a child of this program trains two steps of it, keeps nothing, and
// says what it found. It is asked again a moment after the form changed.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ui/home/home.h"

// ---- rules --------------------------------------------------------------------------------------

static void tell_rules(LaunchForm *form) {
    form->rules_text[0] = 0;
    if (form->rule_count > 0)
        snprintf(form->rules_text, sizeof form->rules_text, "%d set", form->rule_count);
}

void home_drop_rules(LaunchForm *form) {
    memset(form->rules, 0, sizeof form->rules); // forms are compared byte by byte
    form->rule_count = 0;
    tell_rules(form);
}

const FormRule *home_rule_of(const LaunchForm *form, const char *layer) {
    for (int i = form->rule_count - 1; i >= 0; i--)
        if (strcmp(form->rules[i].pattern, layer) == 0)
            return &form->rules[i];
    return NULL;
}

void home_drop_rule(LaunchForm *form, const char *layer) {
    int kept = 0;
    for (int i = 0; i < form->rule_count; i++)
        if (strcmp(form->rules[i].pattern, layer) != 0)
            form->rules[kept++] = form->rules[i];
    memset(&form->rules[kept], 0, (size_t)(form->rule_count - kept) * sizeof *form->rules);
    form->rule_count = kept;
    tell_rules(form);
}

bool home_set_rule(LaunchForm *form, const char *pattern, const char *format, Error *error) {
    if (strlen(pattern) >= FORM_PATTERN_SIZE)
        return error_fail(error, ERROR_USAGE, "a pattern has up to %d characters",
                          FORM_PATTERN_SIZE - 1);
    if (strcmp(format, "auto") != 0 && format_named(format) == FORMAT_COUNT) {
        char list[FORMAT_LIST_SIZE];
        return error_fail(error, ERROR_USAGE, "%.30s: not known; one of auto %s", format,
                          format_list(list, format_is_offered, " ", " "));
    }
    home_drop_rule(form, pattern); // it goes to the end: the last match holds
    if (form->rule_count == FORM_MOST_RULES)
        return error_fail(error, ERROR_USAGE,
                          "%d rules are set: take patterns, as in blocks.*=bf16", FORM_MOST_RULES);
    FormRule *rule = &form->rules[form->rule_count++];
    snprintf(rule->pattern, sizeof rule->pattern, "%s", pattern);
    snprintf(rule->format, sizeof rule->format, "%s", format_usual_name(format));
    tell_rules(form);
    return true;
}

// ---- asking -------------------------------------------------------------------------------------

void home_drop_foreseen(Home *home) {
    ask_drop(&home->foresight.ask);
    json_tree_clear(&home->foresight.answer);
    home->foresight.experiment = NULL;
    home->foresight.trouble[0] = 0;
}

// What the cursor is on in the form is no part of what is asked.
static bool is_as_asked(const Home *home) {
    const Foresight *foresight = &home->foresight;
    const LaunchForm *form = home_form(home), *of = &foresight->form;
    return foresight->experiment == home_experiment(home) &&
           memcmp(form->choices, of->choices, sizeof of->choices) == 0 &&
           strcmp(form->scale, of->scale) == 0 && strcmp(form->seed, of->seed) == 0 &&
           strcmp(form->recipe, of->recipe) == 0 && strcmp(form->keep, of->keep) == 0 &&
           memcmp(form->rules, of->rules, sizeof of->rules) == 0 &&
           memcmp(form->values, of->values, sizeof of->values) == 0;
}

static void ask(Ui *ui) {
    Home *home = home_of(ui);
    Foresight *foresight = &home->foresight;
    HomeArguments arguments = {.count = 0};
    Error error;
    ask_drop(&foresight->ask);
    foresight->experiment = home_experiment(home);
    foresight->form = *home_form(home);
    foresight->changed_at = 0;
    home_add_argument(&arguments, "run", home_experiment(home)->name);
    home_add_argument(&arguments, "--dry-run", "--json");
    home_add_argument(&arguments, "--quiet", NULL);
    home_add_form(ui, &arguments, true);
    if (!ask_begin(ui, &foresight->ask, arguments.list, &error))
        snprintf(foresight->trouble, sizeof foresight->trouble, "%s", error.text);
}

void home_foresee(Ui *ui) {
    const double a_moment = 0.3; // seconds: who turns a choice turns it on
    Home *home = home_of(ui);
    Foresight *foresight = &home->foresight;
    if (!foresight->open || is_as_asked(home)) {
        foresight->changed_at = 0;
        return;
    }
    const bool is_first = foresight->experiment != home_experiment(home);
    if (foresight->changed_at <= 0)
        foresight->changed_at = clock_seconds();
    if (!is_first && clock_seconds() - foresight->changed_at < a_moment)
        return;
    if (is_first)
        home_drop_foreseen(home);
    ask(ui);
}

bool home_look_foreseen(Ui *ui) {
    Foresight *foresight = &home_of(ui)->foresight;
    char *answer;
    Error error;
    home_foresee(ui);
    if (!ask_look(&foresight->ask, &answer, &error))
        return false;
    foresight->trouble[0] = 0;
    JsonTree tree = {0};
    if (answer && json_read(answer, &tree, &error)) {
        json_tree_clear(&foresight->answer);
        foresight->answer = tree;
    } else {
        snprintf(foresight->trouble, sizeof foresight->trouble, "%s", error.text);
    }
    free(answer);
    return true;
}
