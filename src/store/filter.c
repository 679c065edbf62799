// The words of a filter: field:value, field<number, and words that are looked for in the texts.
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/spelling.h"
#include "number/format.h"
#include "store/runs.h"
#include "store/store_private.h"

enum { MOST_WORDS = 32 };

typedef enum Relation { IS, LESS, LESS_OR_EQUAL, MORE, MORE_OR_EQUAL } Relation;

typedef enum FilterKind {
    FILTER_ANY,    // a bare word, in any of the texts
    FILTER_EXACT,  // the whole text
    FILTER_PART,   // a part of the text
    FILTER_STATUS, // the name of one
    FILTER_DEVICE, // the beginning of its name
    FILTER_NUMBER,
    FILTER_METRIC, // the number of the first metric whose name begins so
} FilterKind;

typedef struct FilterField {
    const char *name;
    FilterKind kind;
    double (*number)(const RunRecord *record); // NaN: unknown
    size_t text;                               // where the record has it
    const char *const *choices;                // what it can be, ended by NULL; NULL: anything
} FilterField;

struct FilterWord {
    const FilterField *field; // NULL: FILTER_ANY, FILTER_METRIC
    FilterKind kind;
    Relation relation;
    double number;
    char name[RECORD_NAME_SIZE]; // of a metric
    char text[RECORD_TEXT_SIZE];
};

// ---- fields -------------------------------------------------------------------------------------

static double known(int64_t value) {
    return value == RECORD_UNKNOWN ? (double)NAN : (double)value;
}
static double get_id(const RunRecord *record) {
    return (double)record->id;
}
static double get_steps(const RunRecord *record) {
    return (double)record->step;
}
static double get_skipped(const RunRecord *record) {
    return (double)record->skipped;
}
static double get_seed(const RunRecord *record) {
    return (double)record->seed;
}
static double get_loss(const RunRecord *record) {
    return record->has_loss ? record->loss_last : (double)NAN;
}
static double get_scale(const RunRecord *record) {
    return record->scale_last;
}
static double get_wall(const RunRecord *record) {
    return record->wall_s;
}
static double get_rate(const RunRecord *record) {
    return record->steps_per_s;
}
static double get_memory(const RunRecord *record) {
    return known(record->memory.peak);
}

// A run is recorded in a preset's name.
static const char *const precisions[] = {
#define FORMAT(...)
#define TRAINED(id, name, ...)   name,
#define UNTRAINED(id, name, ...) name,
#include "number/formats.def"
#define PRESET(name, ...) name,
#include "number/presets.def"
    "amp", NULL};
static const char *const devices[] = {"cpu", "gpu", "ref", NULL};

static const FilterField filter_fields[] = {
    {"status", FILTER_STATUS, NULL, 0, run_status_names},
    {"precision", FILTER_EXACT, NULL, offsetof(RunRecord, precision), precisions},
    {"experiment", FILTER_PART, NULL, offsetof(RunRecord, experiment), NULL},
    {"device", FILTER_DEVICE, NULL, offsetof(RunRecord, device), devices},
    {"name", FILTER_PART, NULL, offsetof(RunRecord, name), NULL},
    {"tag", FILTER_PART, NULL, offsetof(RunRecord, tag), NULL},
    {"note", FILTER_PART, NULL, offsetof(RunRecord, note), NULL},
    {"id", FILTER_NUMBER, get_id, 0, NULL},
    {"steps", FILTER_NUMBER, get_steps, 0, NULL},
    {"loss", FILTER_NUMBER, get_loss, 0, NULL},
    {"skipped", FILTER_NUMBER, get_skipped, 0, NULL},
    {"scale", FILTER_NUMBER, get_scale, 0, NULL},
    {"wall", FILTER_NUMBER, get_wall, 0, NULL},
    {"rate", FILTER_NUMBER, get_rate, 0, NULL},
    {"memory", FILTER_NUMBER, get_memory, 0, NULL},
    {"seed", FILTER_NUMBER, get_seed, 0, NULL},
};

enum { FILTER_FIELDS = sizeof filter_fields / sizeof *filter_fields };

// What tables call them.
static const char *const other_names[][2] = {
    {"format", "precision"}, {"state", "status"}, {"done", "finished"}};

static const char *usual_name(const char *name) {
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(name, other_names[i][0]) == 0)
            return other_names[i][1];
    return name;
}

static const FilterField *find_field(const char *name) {
    name = usual_name(name);
    for (int i = 0; i < FILTER_FIELDS; i++)
        if (strcmp(name, filter_fields[i].name) == 0)
            return &filter_fields[i];
    return NULL;
}

static bool fail_field(const char *name, Error *error) {
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < FILTER_FIELDS; i++)
        nearest_offer(&nearest, filter_fields[i].name);
    return error_fail(
        error, ERROR_USAGE,
        "%s: no such field%s%s: there are status, precision, experiment, device, name, "
        "tag, note with a colon, and id, steps, loss, skipped, scale, wall, rate, "
        "memory, seed and metrics with < <= > >= =",
        name, nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "");
}

// ---- parsing ------------------------------------------------------------------------------------

// Reads the relation at `at`; gives what follows it.
static const char *parse_relation(const char *at, Relation *relation) {
    bool or_equal = (at[0] == '<' || at[0] == '>') && at[1] == '=';
    if (at[0] == '<')
        *relation = or_equal ? LESS_OR_EQUAL : LESS;
    else if (at[0] == '>')
        *relation = or_equal ? MORE_OR_EQUAL : MORE;
    else
        *relation = IS;
    return at + (or_equal ? 2 : 1);
}

static bool parse_number(FilterWord *word, const char *name, const char *value, Error *error) {
    char *end;
    word->number = strtod(value, &end);
    if (end == value || *end)
        return error_fail(error, ERROR_USAGE, "%s: \"%s\" is no number", name, value);
    return true;
}

static int folded(char letter) {
    return tolower((unsigned char)spelling_fold(letter));
}

// Letters that differ only in case are alike, and so are - and _; as many as `part` has.
static bool begins_alike(const char *text, const char *part) {
    for (; *part; text++, part++)
        if (folded(*text) != folded(*part))
            return false;
    return true;
}

static bool is_alike(const char *a, const char *b) {
    return strlen(a) == strlen(b) && begins_alike(a, b);
}

// "gpu:1" is one of the devices "gpu".
static bool is_choice(const FilterField *field, const char *value) {
    char name[RECORD_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(value, ":"), value);
    for (const char *const *choice = field->choices; *choice; choice++)
        if (field->kind == FILTER_DEVICE ? begins_alike(*choice, name) : is_alike(*choice, value))
            return true;
    return false;
}

static bool check_choice(const FilterField *field, const char *value, Error *error) {
    char list[ERROR_TEXT_SIZE] = "";
    size_t used = 0, count = 0;
    if (!field->choices || is_choice(field, value))
        return true;
    for (; field->choices[count]; count++)
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "",
                                     field->choices[count]);
    const char *near = nearest_name(value, field->choices, count);
    return error_fail(error, ERROR_USAGE, "%s:%.40s: no such %s%s%s: there are %s", field->name,
                      value, field->name, near ? "; did you mean " : "", near ? near : "", list);
}

static bool parse_word(FilterWord *word, const char *text, Error *error) {
    size_t length = strcspn(text, ":<>=");
    *word = (FilterWord){.kind = FILTER_ANY};
    if (!text[length]) {
        snprintf(word->text, sizeof word->text, "%s", text);
        return true;
    }
    char symbol = text[length];
    const char *value = parse_relation(text + length, &word->relation);
    if (length == 0)
        return error_fail(error, ERROR_USAGE, "%s: a field is missing before %c", text, symbol);
    if (!value[0])
        return error_fail(error, ERROR_USAGE, "%s: a value is missing after %c", text, symbol);
    if (length >= sizeof word->name)
        return error_fail(error, ERROR_USAGE, "%.40s...: no field has a name so long", text);
    snprintf(word->name, sizeof word->name, "%.*s", (int)length, text);
    snprintf(word->text, sizeof word->text, "%s", value);
    word->field = find_field(word->name);
    if (!word->field && symbol == ':')
        return fail_field(word->name, error);
    word->kind = word->field ? word->field->kind : FILTER_METRIC;
    if (word->kind == FILTER_NUMBER || word->kind == FILTER_METRIC)
        return parse_number(word, word->name, value, error);
    if (word->relation != IS)
        return error_fail(error, ERROR_USAGE, "%s: write %s:VALUE, it is no number", text,
                          word->name);
    if (word->kind == FILTER_STATUS)
        snprintf(word->text, sizeof word->text, "%s", usual_name(value));
    else if (word->field->choices == precisions)
        snprintf(word->text, sizeof word->text, "%s", format_usual_name(value));
    return check_choice(word->field, word->text, error);
}

bool filter_parse(Filter *filter, const char *words, Error *error) {
    *filter = (Filter){0};
    if (!words || !words[0])
        return true;
    filter->words = calloc(MOST_WORDS, sizeof *filter->words);
    if (!filter->words)
        return error_fail(error, ERROR_MEMORY, "no memory for a filter");
    static const char blanks[] = " \t\n";
    for (const char *at = words + strspn(words, blanks); *at; at += strspn(at, blanks)) {
        char text[RECORD_TEXT_SIZE];
        size_t length = strcspn(at, blanks);
        bool fits = length < sizeof text && filter->count < MOST_WORDS;
        if (fits)
            snprintf(text, sizeof text, "%.*s", (int)length, at);
        else
            error_fail(error, ERROR_USAGE, "the filter is too long: at most %d words of %d bytes",
                       MOST_WORDS, RECORD_TEXT_SIZE - 1);
        if (!fits || !parse_word(&filter->words[filter->count], text, error)) {
            filter_clear(filter);
            return false;
        }
        filter->count++;
        at += length;
    }
    return true;
}

void filter_clear(Filter *filter) {
    free(filter->words);
    *filter = (Filter){0};
}

// Whether any run has a metric whose name begins so; one that is near to it. What has no metric yet
// is no reason to refuse a word.
static bool find_metric_name(Store *store, const char *wanted, bool *is_there, char *near,
                             size_t size, Error *error) {
    Query query;
    bool is_empty = true;
    unsigned cost = 1u << 30;
    near[0] = 0;
    *is_there = false;
    if (!query_begin(&query, store, "SELECT DISTINCT name FROM metrics", error))
        return false;
    while (query_next(&query)) {
        const char *name = query_word(&query, 0);
        Nearest nearest;
        is_empty = false;
        *is_there = *is_there || begins_alike(name, wanted);
        nearest_begin(&nearest, wanted);
        nearest_offer(&nearest, name);
        if (nearest.best && nearest.cost < cost) {
            cost = nearest.cost;
            snprintf(near, size, "%s", name);
        }
    }
    *is_there = *is_there || is_empty;
    return query_end(&query, "the metrics of runs cannot be read", error);
}

static bool check_metric(Store *store, const char *wanted, Error *error) {
    char near[RECORD_NAME_SIZE];
    bool is_there;
    if (!find_metric_name(store, wanted, &is_there, near, sizeof near, error))
        return false;
    Nearest field;
    nearest_begin(&field, wanted);
    for (int i = 0; i < FILTER_FIELDS; i++)
        if (filter_fields[i].kind == FILTER_NUMBER)
            nearest_offer(&field, filter_fields[i].name);
    const char *best = near[0] ? near : field.best;
    return is_there ||
           error_fail(
               error, ERROR_USAGE,
               "%.40s: no field, and no run has such a metric%s%s: id, steps, loss, skipped, "
               "scale, wall, rate, memory and seed are numbers of every run",
               wanted, best ? "; did you mean " : "", best ? best : "");
}

bool store_check_filter(Store *store, const char *words, Error *error) {
    Filter filter;
    bool done = filter_parse(&filter, words, error);
    for (int i = 0; done && store && i < filter.count; i++)
        done = filter.words[i].kind != FILTER_METRIC ||
               check_metric(store, filter.words[i].name, error);
    filter_clear(&filter);
    return done;
}

// ---- matching -----------------------------------------------------------------------------------

static bool contains(const char *text, const char *part) {
    for (; *text; text++)
        if (begins_alike(text, part))
            return true;
    return !part[0];
}

static bool compare(Relation relation, double value, double bound) {
    switch (relation) {
    case IS: return value == bound || (isnan(value) && isnan(bound));
    case LESS: return value < bound;
    case LESS_OR_EQUAL: return value <= bound;
    case MORE: return value > bound;
    case MORE_OR_EQUAL: return value >= bound;
    }
    return false;
}

// A name that is given whole is before one that only begins so.
static const RecordMetric *find_metric(const RunRecord *record, const char *name) {
    const RecordMetric *exact = record_metric(record, name);
    for (int i = 0; !exact && i < record->metric_count; i++)
        if (begins_alike(record->metrics[i].name, name))
            exact = &record->metrics[i];
    return exact;
}

static bool word_matches(const FilterWord *word, const RunRecord *record) {
    const char *text = word->field ? (const char *)record + word->field->text : "";
    const RecordMetric *metric;
    switch (word->kind) {
    case FILTER_ANY:
        return contains(record->name, word->text) || contains(record->experiment, word->text) ||
               contains(record->tag, word->text) || contains(record->note, word->text) ||
               contains(record->precision, word->text) ||
               is_alike(run_status_name(record->status), usual_name(word->text));
    case FILTER_EXACT: return is_alike(text, word->text);
    case FILTER_PART: return contains(text, word->text);
    case FILTER_DEVICE: return begins_alike(text, word->text);
    case FILTER_STATUS: return is_alike(run_status_name(record->status), word->text);
    case FILTER_NUMBER:
        // A loss may be NaN; where there is none, nothing is equal to it.
        if (word->field->number == get_loss && !record->has_loss)
            return false;
        return compare(word->relation, word->field->number(record), word->number);
    case FILTER_METRIC:
        metric = find_metric(record, word->name);
        return metric && compare(word->relation, metric->value, word->number);
    }
    return false;
}

bool filter_matches(const Filter *filter, const RunRecord *record) {
    for (int i = 0; i < filter->count; i++)
        if (!word_matches(&filter->words[i], record))
            return false;
    return true;
}
