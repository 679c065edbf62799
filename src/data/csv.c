#include "data/csv_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/phrase.h"
#include "base/whole.h"
#include "data/file.h"

enum { MOST_COLUMNS = 65536 };

static const uint64_t max_file_bytes = (uint64_t)1 << 30;

bool csv_no_memory(Csv *csv) {
    return error_fail(csv->error, ERROR_MEMORY, FILE_PATH ": no memory for its numbers", csv->name);
}

// Where a field stands, for messages: " (width)" behind its number where it has a name.
static const char *column_name(const Csv *csv, int64_t column, char text[80]) {
    text[0] = 0;
    if (csv->header)
        snprintf(text, 80, " (%.70s)", csv->header[column]);
    return text;
}

bool csv_fail_at(Csv *csv, int64_t line, int64_t column, const char *what, const char *field) {
    char name[80];
    return error_fail(csv->error, ERROR_FAILED,
                      FILE_PATH ": line %" PRId64 ", column %" PRId64 "%s: \"%.60s\" %s", csv->name,
                      line, column + 1, column_name(csv, column, name), field, what);
}

static bool csv_fail(Csv *csv, int64_t column, const char *what, const char *field) {
    return csv_fail_at(csv, csv->line, column, what, field);
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

// Tells the nearest name, and what names there are.
static bool fail_name(const Csv *csv, const char *wanted) {
    enum { TOLD = 8, NAME = 30 };
    char list[(NAME + 2) * TOLD + 32];
    Phrase names = phrase_begin(list, sizeof list);
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (int64_t i = 0; i < csv->columns; i++) {
        nearest_offer(&nearest, csv->fields[i]);
        if (i < TOLD)
            phrase_add(&names, "%s%.*s", i > 0 ? ", " : "", NAME, csv->fields[i]);
    }
    if (csv->columns > TOLD)
        phrase_add(&names, " and %" PRId64 " more", csv->columns - TOLD);
    return error_fail(csv->error, ERROR_USAGE,
                      FILE_PATH ": has no column named %.60s%s%.60s%s first line has %s: name "
                                "one of them, or give its number, from 1",
                      csv->name, wanted, nearest.best ? "; did you mean " : "",
                      nearest.best ? nearest.best : "", nearest.best ? "? Its" : "; its", list);
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
        return fail_name(csv, wanted);
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
    return (x && labels) || csv_no_memory(csv);
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

// ---- the whole ----------------------------------------------------------------------------------

static Dataset *give(Csv *csv) {
    int32_t *y = malloc((size_t)csv->samples * sizeof *y), classes = 0;
    char **names = NULL;
    Dataset *dataset = NULL;
    if (!y) {
        (void)csv_no_memory(csv);
    } else if (csv_number_classes(csv, y, &names, &classes)) {
        const int64_t shape[] = {csv->samples, csv->columns - 1};
        const DatasetTensor x = {FORMAT_FP32, 2, shape, csv->x},
                            labels = {FORMAT_INT32, 1, shape, y};
        dataset = dataset_from_tensors(&x, &labels, classes, csv->error);
        if (dataset) {
            dataset_take_names(dataset, names);
            names = NULL;
        }
    }
    dataset_free_names(names, classes);
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
            (void)csv_no_memory(&csv);
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
