// store/parameter.h: an experiment's parameter as it is typed: --set on the command line, a field
// of the launch form. Both come through here, so that they take and refuse the same. Pure.
#pragma once

#include "store/record.h"

enum { PARAMETER_CHOICE_SIZE = 64, PARAMETER_CHOICES_SIZE = 160 }; // of one, and of all

// `parameter` comes with its default and leaves with what `text` says, of the same kind. A text is
// one of `choices`, which have blanks between them, or any where that is empty. A number is read
// whole; it is finite (but for a default that is not) and no underflow to 0; where the default is
// above 0 it is not below, and steps, epochs and a batch are not 0: they train nothing.
// ERROR_USAGE: "NAME=TEXT: " and what is wanted, and of several values, each of which would do,
// that `matrix` takes those; the parameter is as it was.
bool parameter_parse(RecordParameter *parameter, const char *choices, const char *text,
                     Error *error) MUST_CHECK;
// "small, medium or large", as much as there is room for.
void parameter_list_choices(const char *choices, char *text, size_t size);
// The choice `by` places behind `text` in `choices`, round and round; the first, where `text` is
// none.
void parameter_turn(const char *choices, const char *text, int by, char *turned, size_t size);
