// cli/options_private.h: what the files of the options share, and nobody else sees: options.c has
// the table and what reads most values, options_precision.c what reads those about formats.
#pragma once

#include "cli/cli.h"

enum { MOST_CHOICES = 32 };

// A usage error that lists the choices and names the nearest to the `value` of what was typed;
// always false.
bool option_choice_error(Error *error, const char *option, const char *typed, const char *value,
                         const char *const *choices, int count);
bool option_check_choice(Error *error, const char *option, const char *value,
                         const char *const *choices, int count);
// A copy of a piece of an argument, which lives as long as `cli`; NULL: there are too many.
const char *option_keep_text(Cli *cli, const char *text, size_t length, Error *error);

bool option_set_precision(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_twin(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_loss_scale(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_recipe(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_keep(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_layer(Cli *cli, const Option *option, const char *value, Error *error);
bool option_set_policy(Cli *cli, const Option *option, const char *value, Error *error);
