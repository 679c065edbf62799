#include "data/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "data/file.h"

enum { MOST_COLUMNS = 65536 };

static const uint64_t max_file_bytes = (uint64_t)1 << 30;

typedef struct Label {
    char *text;
    int64_t line;
} Label;

typedef struct Csv {
    const char *name;
    const CsvOptions *options;
    Error *error;
    char *at, *end; // what is still to be read
    int64_t line;   // from 1
    char **fields;  // of the line that was read, [columns]
    int64_t columns, room;
    int64_t class_column; // from 0
    bool is_named;        // and was found by its name
    char **header;        // names of the columns, NULL: none
    float *x;             // [samples, columns - 1]
    Label *labels;        // [samples]
    int64_t samples, sample_room;
} Csv;

static bool no_memory(Csv *csv) {
    return error_fail(csv->error, ERROR_MEMORY, FILE_PATH ": no memory for its numbers", csv->name);
}

// Where a field stands, for messages: " (width)" behind its number where it has a name.
static const char *column_name(const Csv *csv, int64_t column, char text[80]) {
    text[0] = 0;
    if (csv->header)
        snprintf(text, 80, " (%.70s)", csv->header[column]);
    return text;
}

static bool fail_at(Csv *csv, int64_t line, int64_t column, const char *what, const char *field) {
    char name[80];
    return error_fail(csv->error, ERROR_FAILED,
                      FILE_PATH ": line %" PRId64 ", column %" PRId64 "%s: \"%.60s\" %s", csv->name,
                      line, column + 1, column_name(csv, column, name), field, what);
}

static bool csv_fail(Csv *csv, int64_t column, const char *what, const char *field) {
    return fail_at(csv, csv->line, column, what, field);
}

// ---- lines --------------------------------------------------------------------------------------

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

// Ends the field that begins at *at with a 0, and goes to the character behind the separator, or to
// the line's end. In quotes a separator is a character like others, and "" is one quote.
static bool take_field(Csv *csv, char **at, char *line_end, char **field, bool *last) {
    const char separator = csv->options->separator ? csv->options->separator : ',';
    char *from = *at;
    while (from < line_end && is_blank(*from) && *from != separator)
        from++;
    char *to = from;
    if (from < line_end && *from == '"') {
        *field = to;
        for (from++; from < line_end && !(*from == '"' && !(from + 1 < line_end && from[1] == '"'));
             from++) {
            from += *from == '"';
            *to++ = *from;
        }
        if (from >= line_end)
            return error_fail(csv->error, ERROR_FAILED,
                              FILE_PATH ": line %" PRId64 ": a quote is opened and not closed",
                              csv->name, csv->line);
        for (from++; from < line_end && *from != separator; from++)
            if (!is_blank(*from))
                return error_fail(csv->error, ERROR_FAILED,
                                  FILE_PATH ": line %" PRId64 ": text behind a closing quote",
                                  csv->name, csv->line);
    } else {
        *field = from;
        while (from < line_end && *from != separator)
            from++;
        to = from;
        while (to > *field && is_blank(to[-1]))
            to--;
    }
    *last = from >= line_end;
    *at = *last ? line_end : from + 1;
    *to = 0;
    return true;
}

static bool add_field(Csv *csv, char *field, int64_t *count) {
    if (*count == csv->room) {
        int64_t room = csv->room ? 2 * csv->room : 64;
        char **fields =
            *count < MOST_COLUMNS ? realloc(csv->fields, (size_t)room * sizeof *fields) : NULL;
        if (!fields)
            return error_fail(csv->error, ERROR_FAILED,
                              FILE_PATH ": line %" PRId64
                                        ": has more than %d columns, or more than "
                                        "there is memory for",
                              csv->name, csv->line, MOST_COLUMNS);
        csv->fields = fields;
        csv->room = room;
    }
    csv->fields[(*count)++] = field;
    return true;
}

// The next line that is not blank into csv->fields; *end where there is none.
static bool next_line(Csv *csv, bool *end) {
    for (;;) {
        if (csv->at >= csv->end) {
            *end = true;
            return true;
        }
        csv->line++;
        char *line = csv->at, *line_end = memchr(line, '\n', (size_t)(csv->end - line));
        if (!line_end)
            line_end = csv->end;
        csv->at = line_end < csv->end ? line_end + 1 : line_end;
        if (line_end > line && line_end[-1] == '\r')
            line_end--;
        if (memchr(line, 0, (size_t)(line_end - line)))
            return error_fail(csv->error, ERROR_FAILED,
                              FILE_PATH ": line %" PRId64 ": has a zero byte; it is no text",
                              csv->name, csv->line);
        char *first = line;
        while (first < line_end && is_blank(*first))
            first++;
        if (first == line_end)
            continue;
        int64_t count = 0;
        for (bool last = false; !last;) {
            char *field;
            if (!take_field(csv, &line, line_end, &field, &last) || !add_field(csv, field, &count))
                return false;
        }
        if (csv->columns == 0)
            csv->columns = count;
        if (count != csv->columns)
            return error_fail(csv->error, ERROR_FAILED,
                              FILE_PATH ": line %" PRId64 ": has %" PRId64
                                        " columns, those before have %" PRId64,
                              csv->name, csv->line, count, csv->columns);
        *end = false;
        return true;
    }
}

// ---- what lines say -----------------------------------------------------------------------------

// strtod reads what the locale has for a point; the program leaves numbers' locale as C has it.
static bool number_of(const char *field, double *value) {
    char *end;
    if (!field[0] || strpbrk(field, "xXpP")) // nothing in base 16
        return false;
    *value = strtod(field, &end);
    return *end == 0;
}

static bool find_class_column(Csv *csv) {
    const char *wanted = csv->options->class_name;
    int64_t column = csv->options->class_column;
    if (csv->columns < 2)
        return error_fail(csv->error, ERROR_FAILED,
                          FILE_PATH ": line %" PRId64 ": has one column; numbers and a class are "
                                    "expected, %s between them: set separator where it is another",
                          csv->name, csv->line,
                          csv->options->separator ? "the separator" : "commas");
    if (wanted) {
        for (int64_t i = 0; i < csv->columns; i++)
            if (strcmp(csv->fields[i], wanted) == 0) {
                csv->class_column = i;
                csv->is_named = true;
                return true;
            }
        // A column's number as a text, which is all that --set has where the default is a name.
        if (whole_parse(wanted, -csv->columns, csv->columns, &column, NULL) && column != 0) {
            csv->class_column = column > 0 ? column - 1 : csv->columns + column;
            return true;
        }
        return error_fail(csv->error, ERROR_USAGE,
                          FILE_PATH ": has no column named %.60s in its first line; name one that "
                                    "is there, or give its number, from 1",
                          csv->name, wanted);
    }
    if (column == 0 || column > csv->columns || column < -csv->columns)
        return error_fail(csv->error, ERROR_USAGE,
                          FILE_PATH ": class is column %" PRId64 " of %" PRId64
                                    " (counted from 1, or from -1 backwards)",
                          csv->name, column, csv->columns);
    csv->class_column = column > 0 ? column - 1 : csv->columns + column;
    return true;
}

static bool is_header(const Csv *csv) {
    if (csv->is_named || csv->options->header == CSV_HEADER_THERE)
        return true;
    double value;
    for (int64_t i = 0; i < csv->columns && csv->options->header == CSV_HEADER_FOUND; i++)
        if (i != csv->class_column && !number_of(csv->fields[i], &value))
            return true;
    return false;
}

static bool make_room(Csv *csv) {
    if (csv->samples < csv->sample_room)
        return true;
    int64_t room = csv->sample_room ? 2 * csv->sample_room : 256;
    float *x = realloc(csv->x, (size_t)(room * (csv->columns - 1)) * sizeof *x);
    if (x)
        csv->x = x;
    Label *labels = realloc(csv->labels, (size_t)room * sizeof *labels);
    if (labels)
        csv->labels = labels;
    csv->sample_room = room;
    return (x && labels) || no_memory(csv);
}

static bool take_sample(Csv *csv) {
    if (!make_room(csv))
        return false;
    float *x = csv->x + csv->samples * (csv->columns - 1);
    for (int64_t i = 0; i < csv->columns; i++) {
        double value;
        if (i == csv->class_column) {
            if (!csv->fields[i][0])
                return csv_fail(csv, i, "is no class; fill it in, or leave the line out", "");
            csv->labels[csv->samples] = (Label){csv->fields[i], csv->line};
            continue;
        }
        if (!number_of(csv->fields[i], &value))
            return csv_fail(csv, i, "is no number; correct it, or leave the line out",
                            csv->fields[i]);
        if (!isfinite((float)value))
            return csv_fail(csv, i,
                            "is no finite number of fp32; correct it, or leave the line out",
                            csv->fields[i]);
        *x++ = (float)value;
    }
    csv->samples++;
    return true;
}

// ---- classes ------------------------------------------------------------------------------------

typedef struct Class {
    const char *name;
    int32_t number;
} Class;

typedef struct Classes { // of a column
    int32_t count;
    bool are_named;
    Class *by_name; // [count], in the order of their bytes; NULL where they are numbers
} Classes;

static bool fail_label(Csv *csv, const Label *label, const char *what) {
    return fail_at(csv, label->line, csv->class_column, what, label->text);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const Class *)a)->name, ((const Class *)b)->name);
}

static bool is_whole(const char *label, int64_t *value) {
    return label[0] >= '0' && label[0] <= '9' &&
           whole_parse(label, 0, CSV_MOST_CLASSES - 1, value, NULL);
}

// Whether labels are numbers; both, and the first of the fewer is refused.
static bool find_kind(Csv *csv, Classes *classes) {
    const Label *first[2] = {NULL, NULL}; // a name, a number
    int64_t count[2] = {0, 0}, value;
    for (int64_t i = 0; i < csv->samples; i++) {
        const bool is_number = is_whole(csv->labels[i].text, &value);
        if (count[is_number]++ == 0)
            first[is_number] = &csv->labels[i];
    }
    classes->are_named = count[false] > 0;
    if (count[false] == 0 || count[true] == 0)
        return true;
    return count[false] <= count[true]
               ? fail_label(csv, first[false],
                            "is no whole number from 0 as other classes are; correct it, leave "
                            "the line out, or name all of them in `classes`")
               : fail_label(csv, first[true],
                            "is a number, and other classes are names; correct it, leave the "
                            "line out, or name all of them in `classes`");
}

static bool make_list(Csv *csv, Classes *classes, int64_t count) {
    classes->by_name = malloc((size_t)count * sizeof *classes->by_name);
    return classes->by_name || no_memory(csv);
}

// Those that the caller named.
static bool take_given(Csv *csv, Classes *classes) {
    const CsvOptions *options = csv->options;
    classes->are_named = true;
    classes->count = options->class_count;
    if (!make_list(csv, classes, classes->count))
        return false;
    for (int32_t i = 0; i < classes->count; i++)
        classes->by_name[i] = (Class){options->classes[i], i};
    qsort(classes->by_name, (size_t)classes->count, sizeof *classes->by_name, compare_names);
    for (int32_t i = 1; i < classes->count; i++)
        if (compare_names(&classes->by_name[i - 1], &classes->by_name[i]) == 0)
            return error_fail(csv->error, ERROR_USAGE, "classes: \"%.60s\" is there twice",
                              classes->by_name[i].name);
    return true;
}

// The names that the column has, numbered in the order of their bytes.
static bool collect_names(Csv *csv, Classes *classes) {
    int64_t count = 0;
    if (!make_list(csv, classes, csv->samples))
        return false;
    Class *list = classes->by_name;
    for (int64_t i = 0; i < csv->samples; i++)
        list[i] = (Class){.name = csv->labels[i].text};
    qsort(list, (size_t)csv->samples, sizeof *list, compare_names);
    for (int64_t i = 0; i < csv->samples; i++)
        if (i == 0 || compare_names(&list[i], &list[count - 1]) != 0)
            list[count++] = list[i];
    if (count > CSV_MOST_CLASSES)
        return error_fail(csv->error, ERROR_FAILED,
                          FILE_PATH ": column %" PRId64 " has %" PRId64
                                    " different classes; %d are the most: is it the class?",
                          csv->name, csv->class_column + 1, count, CSV_MOST_CLASSES);
    classes->count = (int32_t)count;
    for (int32_t i = 0; i < classes->count; i++)
        list[i].number = i;
    return true;
}

static bool find_classes(Csv *csv, Classes *classes) {
    if (csv->options->classes)
        return take_given(csv, classes);
    classes->count = csv->options->class_count;
    if (classes->count > 0) // numbers below it
        return true;
    return find_kind(csv, classes) && (!classes->are_named || collect_names(csv, classes));
}

static bool number_labels(Csv *csv, Classes *classes, int32_t *y) {
    for (int64_t i = 0; i < csv->samples; i++) {
        const Label *label = &csv->labels[i];
        const Class key = {.name = label->text};
        const Class *found =
            classes->by_name
                ? bsearch(&key, classes->by_name, (size_t)classes->count, sizeof key, compare_names)
                : NULL;
        int64_t number;
        if (classes->are_named && !found)
            return fail_label(csv, label,
                              "is none of the `classes`; correct it, leave the line out, or add "
                              "it to them");
        if (!classes->are_named &&
            (!is_whole(label->text, &number) ||
             (csv->options->class_count > 0 && number >= csv->options->class_count)))
            return fail_label(csv, label,
                              "is no whole number below `classes`; correct it, leave the line "
                              "out, or raise them");
        y[i] = found ? found->number : (int32_t)number;
        if (!classes->are_named && y[i] >= classes->count)
            classes->count = y[i] + 1;
    }
    return true;
}

// Copies of the names, in the order of their numbers.
static bool copy_names(Csv *csv, const Classes *classes, char ***names) {
    *names = calloc((size_t)classes->count, sizeof **names);
    bool done = *names != NULL;
    for (int32_t i = 0; done && i < classes->count; i++) {
        const Class *class = &classes->by_name[i];
        (*names)[class->number] = strdup(class->name);
        done = (*names)[class->number] != NULL;
    }
    return done || no_memory(csv);
}

static Dataset *give(Csv *csv) {
    int32_t *y = malloc((size_t)csv->samples * sizeof *y);
    char **names = NULL;
    Classes classes = {0};
    Dataset *dataset = NULL;
    if (!y) {
        (void)no_memory(csv);
    } else if (find_classes(csv, &classes) && number_labels(csv, &classes, y) &&
               (!classes.are_named || copy_names(csv, &classes, &names))) {
        const int64_t shape[] = {csv->samples, csv->columns - 1};
        const DatasetTensor x = {FORMAT_FP32, 2, shape, csv->x},
                            labels = {FORMAT_INT32, 1, shape, y};
        dataset = dataset_from_tensors(&x, &labels, classes.count, csv->error);
        if (dataset) {
            dataset_take_names(dataset, names);
            names = NULL;
        }
    }
    dataset_free_names(names, classes.count);
    free(classes.by_name);
    free(y);
    return dataset;
}

Dataset *csv_parse(char *bytes, size_t size, const char *name, const CsvOptions *options,
                   Error *error) {
    Csv csv = {.name = name, .options = options, .error = error, .at = bytes, .end = bytes + size};
    static const char mark[] = "\xEF\xBB\xBF"; // of UTF-8, as some programs write it
    if (size >= 3 && memcmp(bytes, mark, 3) == 0)
        csv.at += 3;
    Dataset *dataset = NULL;
    bool end;
    if (!next_line(&csv, &end))
        goto done;
    if (!end && !find_class_column(&csv))
        goto done;
    if (!end && is_header(&csv)) {
        csv.header = malloc((size_t)csv.columns * sizeof *csv.header);
        if (!csv.header) {
            (void)no_memory(&csv);
            goto done;
        }
        memcpy(csv.header, csv.fields, (size_t)csv.columns * sizeof *csv.header);
        if (!next_line(&csv, &end))
            goto done;
    }
    for (; !end;) {
        if (!take_sample(&csv) || !next_line(&csv, &end))
            goto done;
    }
    if (csv.samples == 0)
        error_fail(error, ERROR_FAILED, FILE_PATH ": has no line of numbers", name);
    else
        dataset = give(&csv);
done:
    free(csv.fields);
    free(csv.header);
    free(csv.x);
    free(csv.labels);
    return dataset;
}

Dataset *dataset_from_csv(const char *path, const CsvOptions *options, Error *error) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (!file_read(path, max_file_bytes, &bytes, &size, error))
        return NULL;
    char *text = realloc(bytes, size + 1); // the last field ends with a 0 too
    if (!text) {
        free(bytes);
        error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory for its text", path);
        return NULL;
    }
    Dataset *dataset = csv_parse(text, size, path, options, error);
    free(text);
    return dataset;
}
