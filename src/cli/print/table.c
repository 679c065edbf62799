#include "cli/print/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"

enum { GAP = 2, MOST_COLUMNS = 32, TITLE_SIZE = 64 };

typedef struct Cell {
    char *text;
    const char *style;
} Cell;

struct Table {
    const TableColumn *columns;
    char titles[MOST_COLUMNS][TITLE_SIZE]; // sanitised
    int column_count;
    Cell *cells;
    size_t count, room;
    bool lacks_memory;
};

Table *table_new(const TableColumn *columns, int count) {
    Table *table = calloc(1, sizeof *table);
    if (table)
        *table = (Table){.columns = columns, .column_count = count};
    for (int i = 0; table && i < count; i++)
        sanitize_line(table->titles[i], TITLE_SIZE, columns[i].title, strlen(columns[i].title));
    return table;
}

void table_free(Table *table) {
    for (size_t i = 0; table && i < table->count; i++)
        free(table->cells[i].text);
    if (table)
        free(table->cells);
    free(table);
}

static bool grow(Table *table) {
    if (table->count < table->room)
        return true;
    size_t room = table->room ? 2 * table->room : 64;
    Cell *cells = realloc(table->cells, room * sizeof *cells);
    if (!cells)
        return false;
    table->cells = cells;
    table->room = room;
    return true;
}

void table_put(Table *table, const char *text, const char *style) {
    if (!text)
        text = "-";
    size_t length = strlen(text), size = sanitize_line(NULL, 0, text, length) + 1;
    char *copy = grow(table) ? malloc(size) : NULL;
    if (!copy) {
        table->lacks_memory = true;
        return;
    }
    sanitize_line(copy, size, text, length);
    table->cells[table->count++] = (Cell){copy, style};
}

// ---- widths -------------------------------------------------------------------------------------

static bool is_empty(const Table *table, int column) {
    for (size_t i = (size_t)column; i < table->count; i += (size_t)table->column_count) {
        const char *text = table->cells[i].text;
        if (text[0] && strcmp(text, "-") != 0)
            return false;
    }
    return table->columns[column].rank > 0;
}

static int width_of_column(const Table *table, int column) {
    const TableColumn *of = &table->columns[column];
    int widest = text_width(table->titles[column]);
    for (size_t i = (size_t)column; i < table->count; i += (size_t)table->column_count) {
        int width = text_width(table->cells[i].text);
        if (width > widest)
            widest = width;
    }
    return of->widest > 0 && widest > of->widest ? of->widest : widest;
}

static int total_width(const int *widths, const bool *is_shown, int count) {
    int total = -GAP;
    for (int i = 0; i < count; i++)
        total += is_shown[i] ? widths[i] + GAP : 0;
    return total;
}

static void fit_columns(const Table *table, int width, int *widths, bool *is_shown) {
    int count = table->column_count;
    for (int i = 0; i < count; i++) {
        widths[i] = width_of_column(table, i);
        is_shown[i] = !is_empty(table, i);
    }
    while (width > 0 && total_width(widths, is_shown, count) > width) {
        int last = -1;
        for (int i = 0; i < count; i++)
            if (is_shown[i] && table->columns[i].rank > 0 &&
                (last < 0 || table->columns[i].rank > table->columns[last].rank))
                last = i;
        if (last < 0)
            break;
        is_shown[last] = false;
    }
    // What never gives way is cut, the widest first.
    while (width > 0 && total_width(widths, is_shown, count) > width) {
        int widest = 0;
        for (int i = 1; i < count; i++)
            if (is_shown[i] && (!is_shown[widest] || widths[i] > widths[widest]))
                widest = i;
        if (widths[widest] <= 1)
            break;
        widths[widest]--;
    }
}

bool table_shows(const Table *table, int width, int column) {
    int widths[MOST_COLUMNS];
    bool is_shown[MOST_COLUMNS];
    fit_columns(table, width, widths, is_shown);
    return is_shown[column];
}

// ---- printing -----------------------------------------------------------------------------------

static void print_cell(FILE *out, const char *text, const char *style, const char *plain,
                       const TableColumn *column, int width, bool is_last) {
    int used;
    bool is_cut = text_width(text) > width && width > 1;
    size_t length = text_fit(text, is_cut ? width - 1 : width, &used);
    int pad = width - used - is_cut;
    if (column->is_number)
        fprintf(out, "%*s", pad, "");
    fprintf(out, "%s%.*s%s%s", style, (int)length, text, is_cut ? "~" : "", style[0] ? plain : "");
    if (!column->is_number && !is_last)
        fprintf(out, "%*s", pad, "");
}

static void print_row(const Table *table, FILE *out, const Cell *cells, const char *style,
                      const char *plain, const int *widths, const bool *is_shown) {
    int last = 0;
    bool is_first = true;
    for (int i = 0; i < table->column_count; i++)
        if (is_shown[i])
            last = i;
    for (int i = 0; i <= last; i++) {
        if (!is_shown[i])
            continue;
        fprintf(out, "%*s", is_first ? 0 : GAP, "");
        print_cell(out, cells ? cells[i].text : table->titles[i], cells ? cells[i].style : style,
                   plain, &table->columns[i], widths[i], i == last);
        is_first = false;
    }
    fputc('\n', out);
}

bool table_print(const Table *table, FILE *out, int width, const char *title_style,
                 const char *plain, Error *error) {
    int widths[MOST_COLUMNS];
    bool is_shown[MOST_COLUMNS];
    if (table->lacks_memory)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    fit_columns(table, width, widths, is_shown);
    print_row(table, out, NULL, title_style, plain, widths, is_shown);
    for (size_t i = 0; i + (size_t)table->column_count <= table->count;
         i += (size_t)table->column_count)
        print_row(table, out, &table->cells[i], "", plain, widths, is_shown);
    return true;
}
