#include "store/parameter.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "base/whole.h"

static bool refuse(const RecordParameter *parameter, const char *text, const char *why,
                   Error *error) {
    return error_fail(error, ERROR_USAGE, "%s=%.80s: %s", parameter->name, text, why);
}

static bool parse_boolean(RecordParameter *parameter, const char *text, Error *error) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return refuse(parameter, text, "true or false expected", error);
    parameter->integer = yes;
    return true;
}

static bool parse_number(RecordParameter *parameter, const char *text, Error *error) {
    char *end;
    errno = 0;
    double value = strtod(text, &end), usual = parameter->number;
    if (end == text || *end || isnan(value))
        return refuse(parameter, text, "a number expected", error);
    if (isinf(value) && !isinf(usual))
        return refuse(parameter, text, "a finite number expected", error);
    if (errno == ERANGE && value == 0)
        return refuse(parameter, text, "too small, it would be 0; write 0 if that is meant", error);
    if (usual > 0 && value < 0)
        return refuse(parameter, text, "a number from 0 up expected, as its default is", error);
    parameter->number = value;
    return true;
}

// By the names that experiments give them: what nothing is trained without.
static bool is_of_training_itself(const char *name) {
    static const char *const names[] = {"steps", "epochs", "batch", "batch_size"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

// A rate whose default was written as 3 takes no 0.1: where the remedy lies is told.
static bool refuse_fraction(const RecordParameter *parameter, const char *text, const char *why,
                            Error *error) {
    char *end, told[160];
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value == floor(value) ||
        is_of_training_itself(parameter->name))
        return refuse(parameter, text, why, error);
    snprintf(told, sizeof told,
             "%.60s, as its default is; with %" PRId64
             ".0 for a default in the script any number does",
             why, parameter->integer);
    return refuse(parameter, text, told, error);
}

static bool parse_integer(RecordParameter *parameter, const char *text, Error *error) {
    Error why;
    int64_t value;
    if (!whole_parse(text, INT64_MIN, INT64_MAX, &value, &why))
        return refuse_fraction(parameter, text, why.text, error);
    if (parameter->integer > 0 && value < 0)
        return refuse(parameter, text, "a whole number from 0 up expected, as its default is",
                      error);
    if (parameter->integer > 0 && value == 0 && is_of_training_itself(parameter->name))
        return refuse(parameter, text, "a whole number above 0 expected: 0 trains nothing", error);
    parameter->integer = value;
    return true;
}

// ---- choices ------------------------------------------------------------------------------------

enum { MOST_CHOICES = PARAMETER_CHOICES_SIZE / 2 };

typedef struct Word { // of the choices, which go on behind it
    const char *start;
    int length;
} Word;

static int split(const char *choices, Word words[MOST_CHOICES]) {
    int count = 0;
    for (const char *at = choices; *at && count < MOST_CHOICES;) {
        const int length = (int)strcspn(at, " ");
        words[count++] = (Word){at, length};
        at += length;
        at += strspn(at, " ");
    }
    return count;
}

static int place_of(const Word *words, int count, const char *text) {
    for (int i = 0; i < count; i++)
        if (strlen(text) == (size_t)words[i].length &&
            strncmp(text, words[i].start, strlen(text)) == 0)
            return i;
    return -1;
}

void parameter_list_choices(const char *choices, char *text, size_t size) {
    Word words[MOST_CHOICES];
    const int count = split(choices, words);
    Phrase list = phrase_begin(text, size);
    for (int i = 0; i < count; i++) {
        phrase_add_joint(&list, i, count, " or ");
        phrase_add(&list, "%.*s", words[i].length, words[i].start);
    }
}

void parameter_turn(const char *choices, const char *text, int by, char *turned, size_t size) {
    Word words[MOST_CHOICES];
    const int count = split(choices, words), at = place_of(words, count, text);
    const int to = at < 0 ? 0 : ((at + by) % count + count) % count;
    snprintf(turned, size, "%.*s", count > 0 ? words[to].length : 0,
             count > 0 ? words[to].start : "");
}

static bool parse_choice(RecordParameter *parameter, const char *choices, const char *text,
                         Error *error) {
    Word words[MOST_CHOICES];
    char list[2 * PARAMETER_CHOICES_SIZE], wanted[sizeof list + sizeof " expected"];
    if (place_of(words, split(choices, words), text) >= 0) {
        snprintf(parameter->text, sizeof parameter->text, "%s", text);
        return true;
    }
    parameter_list_choices(choices, list, sizeof list);
    snprintf(wanted, sizeof wanted, "%s expected", list);
    return refuse(parameter, text, wanted, error);
}

// ---- all kinds ----------------------------------------------------------------------------------

static bool parse(RecordParameter *parameter, const char *choices, const char *text, Error *error) {
    switch (parameter->kind) {
    case RECORD_BOOLEAN: return parse_boolean(parameter, text, error);
    case RECORD_INTEGER: return parse_integer(parameter, text, error);
    case RECORD_NUMBER: return parse_number(parameter, text, error);
    case RECORD_TEXT: break;
    }
    if (choices[0])
        return parse_choice(parameter, choices, text, error);
    if (strlen(text) >= sizeof parameter->text)
        return error_fail(error, ERROR_USAGE, "%s: a text of up to %zu bytes is possible",
                          parameter->name, sizeof parameter->text - 1);
    snprintf(parameter->text, sizeof parameter->text, "%s", text);
    return true;
}

// Whether commas part it into several, each of which would do.
static bool are_values(const RecordParameter *parameter, const char *choices, const char *text) {
    char part[RECORD_TEXT_SIZE];
    if (!strchr(text, ','))
        return false;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        RecordParameter one = *parameter;
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at, ","), at);
        if (!parse(&one, choices, part, NULL))
            return false;
    }
    return true;
}

bool parameter_parse(RecordParameter *parameter, const char *choices, const char *text,
                     Error *error) {
    if (parse(parameter, choices, text, error))
        return true;
    if (are_values(parameter, choices, text))
        return refuse(parameter, text,
                      parameter->kind == RECORD_NUMBER
                          ? "a number expected, with a point before decimals; several are a "
                            "matrix's: `mpbench matrix` trains a run with each"
                          : "one value expected; several are a matrix's: `mpbench matrix` trains a "
                            "run with each",
                      error);
    return false;
}
