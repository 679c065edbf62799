// data/csv.h: tables of numbers with one column of classes, as text: a line a sample, fields
// between commas. Any thread.
#pragma once

#include "data/dataset.h"

enum { CSV_MOST_CLASSES = 65536 };

typedef enum CsvHeader {
    CSV_HEADER_FOUND, // the first line is one where a field beside the classes is no number
    CSV_HEADER_NONE,
    CSV_HEADER_THERE,
} CsvHeader;

typedef struct CsvOptions {
    CsvHeader header;
    char separator;         // 0: a comma
    const char *class_name; // of the column of classes, by the header, else its number as a text;
                            // NULL: by its number
    int64_t class_column;   // from 1, or from -1 backwards
    // In the order of their numbers, so that two files number them alike; none other is taken.
    // NULL: those that the file has.
    const char *const *classes;
    int32_t class_count; // without names: whole numbers below it; 0: any
} CsvOptions;

// x: the other columns, in fp32, in order; y: whole numbers from 0 as they stand, or else names,
// which are numbered in the order of their bytes and which the dataset knows. A column of both is
// refused: one that strays would number all others anew. An error names line and column.
Dataset *dataset_from_csv(const char *path, const CsvOptions *options, Error *error) MUST_CHECK;

// The same from memory, whose bytes are changed on the way and of which bytes[size] is there too.
Dataset *csv_parse(char *bytes, size_t size, const char *name, const CsvOptions *options,
                   Error *error) MUST_CHECK;
