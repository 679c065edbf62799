// data/csv_private.h: what the reader of tables and what numbers their classes share.
#pragma once

#include "data/csv.h"

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

bool csv_no_memory(Csv *csv); // false, with the error
// False, with where the field stands, whose column counts from 0, and what is wrong with it.
bool csv_fail_at(Csv *csv, int64_t line, int64_t column, const char *what, const char *field);

// The numbers of all labels into y, [samples], and the classes' names, which the caller frees, with
// dataset_free_names, however it ends; NULL where they are numbers.
bool csv_number_classes(Csv *csv, int32_t *y, char ***names, int32_t *count) MUST_CHECK;
