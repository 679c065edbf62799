// A page of text over the screen: help, a script, an explanation.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/screen.h"

void pager_close(Ui *ui) {
    free(ui->pager.text);
    ui->pager = (Pager){0};
    ui->help_level = 0;
    ui->dirty = true;
}

// Tabs go to the next eighth column.
static char *expand_tabs(const char *text) {
    enum { TAB = 8 };
    size_t tabs = 0, column = 0, used = 0;
    for (const char *at = text; *at; at++)
        tabs += *at == '\t';
    char *out = malloc(strlen(text) + tabs * (TAB - 1) + 1);
    for (const char *at = text, *rune = text; out && *at; rune = at) {
        uint32_t next = rune_next(&at);
        size_t blanks = next == '\t' ? TAB - column % TAB : 0;
        memset(out + used, ' ', blanks);
        if (blanks == 0)
            memcpy(out + used, rune, (size_t)(at - rune));
        used += blanks > 0 ? blanks : (size_t)(at - rune);
        column = next == '\n' ? 0 : column + (blanks > 0 ? blanks : (size_t)rune_width(next));
    }
    if (out)
        out[used] = 0;
    return out;
}

void pager_show(Ui *ui, const char *title, char *text) {
    int level = ui->help_level;
    pager_close(ui);
    ui->help_level = level;
    if (!text)
        return;
    size_t length = strlen(text), size = sanitize_text(NULL, 0, text, length) + 1;
    char *clean = malloc(size);
    if (clean)
        sanitize_text(clean, size, text, length);
    free(text);
    char *shown = clean ? expand_tabs(clean) : NULL;
    free(clean);
    if (!shown)
        return;
    ui->pager = (Pager){.open = true, .text = shown};
    sanitize_line(ui->pager.title, sizeof ui->pager.title, title, strlen(title));
}

// ---- lines and rows -----------------------------------------------------------------------------

typedef struct Reader { // goes through the rows that lines take at a width
    const char *at;     // NULL: there are no more
    bool within;        // a line that was broken,
    int column;         // and the rest of which begins here
} Reader;

typedef struct Row {
    const char *text;
    int length; // in bytes
    int column; // where it begins
} Row;

// Where the rows of a line after its first begin: below what stands behind its label, which ends
// in two blanks or more; of a line without one below its first word.
static int column_below(const char *line, size_t length, int width) {
    size_t first = strspn(line, " "), label = first;
    while (label + 1 < length && (line[label] != ' ' || line[label + 1] != ' '))
        label++;
    size_t text = label + 1 < length ? label + strspn(line + label, " ") : first;
    int column = 0, indent = (int)first;
    for (const char *at = line; at < line + text;)
        column += rune_width(rune_next(&at));
    return column <= width / 2 ? column : indent <= width / 2 ? indent : 0;
}

// Lines that are too long are broken at blanks, and words that are too long anywhere.
static Row next_row(Reader *reader, int width) {
    const char *text = reader->at, *second = text;
    const size_t line = strcspn(text, "\n");
    const size_t fits = text_fit(text, width - reader->column, NULL);
    size_t whole = line; // without blanks at its end
    while (whole > 0 && text[whole - 1] == ' ')
        whole--;
    Row row = {.text = text, .length = (int)whole, .column = reader->column};
    if (fits >= whole) {
        *reader = (Reader){.at = text[line] ? text + line + 1 : NULL};
        return row;
    }
    size_t end = fits;
    while (end > 0 && text[end] != ' ')
        end--;
    if (end <= strspn(text, " ")) {
        rune_next(&second);
        end = fits > 0 ? fits : (size_t)(second - text);
    }
    if (!reader->within)
        reader->column = column_below(text, whole, width);
    reader->within = true;
    reader->at = text + end + strspn(text + end, " ");
    row.length = (int)end;
    return row;
}

static int text_columns(int columns) {
    enum { MOST = 100, BESIDE = 8 }; // the border and what is beside it
    int left = columns - BESIDE;
    return left < 1 ? 1 : left < MOST ? left : MOST;
}

// What was written as one line, such as an explanation, has a row to spare above and below.
static int spare_of(const Pager *pager) {
    return strchr(pager->text, '\n') ? 0 : 1;
}

static int count_rows(const Pager *pager, int width) {
    int rows = 2 * spare_of(pager);
    for (Reader reader = {.at = pager->text}; reader.at; rows++)
        next_row(&reader, width);
    return rows;
}

static void keep_within(Pager *pager, int rows, int page) {
    if (pager->top > rows - page)
        pager->top = rows - page;
    if (pager->top < 0)
        pager->top = 0;
}

// ---- the page -----------------------------------------------------------------------------------

bool pager_request(Ui *ui, Request request) {
    Pager *pager = &ui->pager;
    int page = ui->frame.rows > 6 ? ui->frame.rows - 6 : 1;
    int rows = count_rows(pager, text_columns(ui->frame.columns));
    switch (request) {
    case REQUEST_UP: pager->top--; break;
    case REQUEST_DOWN: pager->top++; break;
    case REQUEST_PAGE_UP: pager->top -= page; break;
    case REQUEST_PAGE_DOWN:
    case REQUEST_SELECT:
    case REQUEST_FORMAT: pager->top += page; break;
    case REQUEST_FIRST: pager->top = 0; break;
    case REQUEST_LAST: pager->top = rows; break;
    case REQUEST_QUIT:
    case REQUEST_BACK:
    case REQUEST_ENTER: pager_close(ui); return true;
    default: return request != REQUEST_REDRAW;
    }
    keep_within(pager, rows, page);
    return true;
}

static void draw_rows(const Pager *pager, Area inside) {
    Reader reader = {.at = pager->text};
    for (int at = spare_of(pager) - pager->top; at < inside.height && reader.at; at++) {
        Row row = next_row(&reader, inside.width);
        char text[512];
        snprintf(text, sizeof text, "%.*s", row.length, row.text);
        if (at >= 0)
            area_text(inside, row.column, at, style_of(INK_TEXT), text);
    }
}

void pager_draw(Ui *ui, Area area) {
    enum { LEAST_ROWS = 6, BORDERS = 2, BESIDE = 4 };
    Pager *pager = &ui->pager;
    int width = text_columns(area.width) + BESIDE;
    int rows = count_rows(pager, width - BESIDE);
    int wanted = spare_of(pager) > 0 && rows < LEAST_ROWS ? LEAST_ROWS : rows;
    int height = wanted + BORDERS < area.height - 2 ? wanted + BORDERS : area.height - 2;
    Area box = area_part(area, (area.width - width) / 2, (area.height - height) / 2, width, height);
    area_fill(box, style_of(INK_TEXT));
    keep_within(pager, rows, height - BORDERS);
    char right[48];
    snprintf(right, sizeof right, "esc closes");
    if (rows > height - BORDERS)
        snprintf(right, sizeof right, "%d of %d · esc closes", pager->top + 1, rows);
    Area inside = area_box(box, pager->title, right, true);
    draw_rows(pager, area_part(inside, 1, 0, inside.width - 2, inside.height));
}
