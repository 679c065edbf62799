// The target that is asked for, how soon each group came to which.
#include <stdio.h>
#include <string.h>

#include "ui/compare/compare.h"

static CompareView *view_of(const Ui *ui) {
    return ui->state[SCREEN_COMPARE];
}

static bool has_series(const Comparison *comparison, const char *name) {
    for (int i = 0; i < comparison->all_series_count; i++)
        if (strcmp(comparison->all_series[i], name) == 0)
            return true;
    return false;
}

static bool has_result(const Comparison *comparison, const char *name) {
    for (int i = 0; i < comparison->group_count; i++)
        if (compare_metric(&comparison->groups[i], name))
            return true;
    return false;
}

static bool parse(const char *text, CompareTarget *target) {
    *target = (CompareTarget){.name = ""};
    const size_t length = compare_target_parse(text, &target->value, &target->toward);
    if (length == 0 || length >= sizeof target->name)
        return false;
    memcpy(target->name, text, length);
    return true;
}

static bool check_target(Ui *ui, const char *text, Error *error) {
    const Comparison *comparison = view_of(ui)->comparison;
    CompareTarget target;
    if (!*text)
        return true; // none any more
    if (!parse(text, &target))
        return error_fail(error, ERROR_USAGE,
                          "NAME=VALUE is wanted, as in accuracy=0.9, or with >= or <=");
    if (comparison && !has_series(comparison, target.name) && has_result(comparison, target.name))
        return error_fail(error, ERROR_USAGE,
                          "%s: a result at the end, no series over steps; tab lists those",
                          target.name);
    if (comparison && !has_series(comparison, target.name))
        return error_fail(error, ERROR_USAGE,
                          "%s: none of these runs has it; tab lists what they have", target.name);
    return true;
}

static void take_target(Ui *ui, const char *text) {
    CompareView *view = view_of(ui);
    if (!parse(text, &view->target))
        view->target.name[0] = 0;
    view->scroll = 0; // where its sentences begin
    view->wants_reading = true;
}

static int complete_target(Ui *ui, const char *text, int *from, const char **words, int most) {
    const Comparison *comparison = view_of(ui)->comparison;
    int count = 0;
    *from = 0;
    for (int i = 0; comparison && i < comparison->all_series_count && count < most; i++)
        if (strncmp(comparison->all_series[i], text, strlen(text)) == 0)
            words[count++] = comparison->all_series[i];
    return count;
}

void compare_ask_target(Ui *ui) {
    static const char *const signs[] = {
        [COMPARE_BY_NAME] = "=", [COMPARE_AT_LEAST] = ">=", [COMPARE_AT_MOST] = "<="};
    const CompareTarget *target = &view_of(ui)->target;
    char text[RECORD_NAME_SIZE + 32] = "";
    if (target->name[0])
        snprintf(text, sizeof text, "%s%s%.9g", target->name, signs[target->toward], target->value);
    prompt_ask(ui, "steps and seconds to:", text, take_target);
    ui->prompt.check = check_target;
    ui->prompt.complete = complete_target;
    ui->prompt.hint = "a series and a value, such as accuracy=0.9, or gap<=2; nothing: no target";
}
