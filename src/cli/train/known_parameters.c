#include "cli/train/known_parameters.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/phrase.h"
#include "cli/describe.h"
#include "store/parameter.h"

bool known_parameters_read(KnownParameters *known, const char *path, bool may_be_unreadable,
                           Error *error) {
    Error unread = {0};
    known->info = malloc(sizeof *known->info);
    if (!known->info)
        return error_fail(error, ERROR_MEMORY, "no memory to read the experiment");
    if (describe_experiment(path, known->info, &unread))
        return true;
    known_parameters_clear(known);
    if (may_be_unreadable || unread.code == ERROR_BUSY)
        return true;
    *error = unread;
    return false;
}

void known_parameters_clear(KnownParameters *known) {
    free(known->info);
    known->info = NULL;
}

static bool fail_unknown(const LuaExperimentInfo *info, const char *name, Error *error) {
    char list[300];
    Phrase all = phrase_begin(list, sizeof list);
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < info->parameter_count; i++) {
        nearest_offer(&nearest, info->parameters[i].usual.name);
        phrase_add(&all, " %s", info->parameters[i].usual.name);
    }
    return error_fail(error, ERROR_USAGE, "--set %.60s: %.60s has no such parameter%s%s%s%s%s",
                      name, info->name, nearest.best ? "; did you mean " : "",
                      nearest.best ? nearest.best : "", nearest.best ? "?" : "",
                      !list[0]       ? ""
                      : nearest.best ? " It has:"
                                     : "; it has:",
                      list);
}

bool known_parameters_check(const KnownParameters *known, const char *name, const char *value,
                            Error *error) {
    const LuaExperimentInfo *info = known->info;
    if (!info)
        return true;
    for (int i = 0; i < info->parameter_count; i++) {
        RecordParameter parameter = info->parameters[i].usual;
        Error why;
        if (strcmp(parameter.name, name) == 0)
            return parameter_parse(&parameter, info->parameters[i].choices, value, &why) ||
                   error_fail(error, ERROR_USAGE, "--set %s", why.text);
    }
    // Of more than are told, the run knows the rest.
    return info->parameter_count == LUA_INFO_PARAMETERS || fail_unknown(info, name, error);
}
