// The classes of a table: whole numbers as they stand, or names, which are numbered.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "data/csv_private.h"
#include "data/file.h"

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
    return csv_fail_at(csv, label->line, csv->class_column, what, label->text);
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
    return classes->by_name || csv_no_memory(csv);
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
    return done || csv_no_memory(csv);
}

bool csv_number_classes(Csv *csv, int32_t *y, char ***names, int32_t *count) {
    Classes classes = {0};
    const bool done = find_classes(csv, &classes) && number_labels(csv, &classes, y) &&
                      (!classes.are_named || copy_names(csv, &classes, names));
    *count = classes.count;
    free(classes.by_name);
    return done;
}
