// cli/print/table.h: a table that fits the terminal: columns give way when it is narrow.
//
// A Table owns copies of its cells, which pass the sanitiser on their way in. The main thread uses
// it. A table that ran out of memory says so once, when it is printed.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

typedef struct TableColumn {
    const char *title;
    bool is_number; // aligned to the right
    int rank;       // the highest gives way first; 0: never does
    int widest;     // columns of the terminal; longer text is cut; 0: as wide as its cells
} TableColumn;

typedef struct Table Table;

// `columns` is borrowed. NULL: no memory.
Table *table_new(const TableColumn *columns, int count);
void table_free(Table *table);
// The next cell, row by row. `style` is an escape that is borrowed, "" for none; NULL text: a dash.
void table_put(Table *table, const char *text, const char *style);
// Whether a column is printed at that width: neither empty nor given way.
bool table_shows(const Table *table, int width, int column);
// `width` 0: all columns, whole. `title_style` and `plain` are escapes or "". Columns that no row
// has anything for are left out.
bool table_print(const Table *table, FILE *out, int width, const char *title_style,
                 const char *plain, Error *error) MUST_CHECK;
