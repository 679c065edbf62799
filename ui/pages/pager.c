// A page of text over the screen: help, a script, an explanation.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/screen.h"

void pager_close(Ui *ui) {
    free(ui->pager.text);
    ui->pager = (Pager){0};
    ui->help_level = 0;
    ui->dirty = true;
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
    if (!clean)
        return;
    ui->pager = (Pager){.open = true, .text = clean};
    sanitize_line(ui->pager.title, sizeof ui->pager.title, title, strlen(title));
}

static int count_lines(const char *text) {
    int lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

bool pager_request(Ui *ui, Request request) {
    Pager *pager = &ui->pager;
    int page = ui->frame.rows > 6 ? ui->frame.rows - 6 : 1, lines = count_lines(pager->text);
    switch (request) {
    case REQUEST_UP: pager->top--; break;
    case REQUEST_DOWN: pager->top++; break;
    case REQUEST_PAGE_UP: pager->top -= page; break;
    case REQUEST_PAGE_DOWN:
    case REQUEST_SELECT:
    case REQUEST_FORMAT: pager->top += page; break;
    case REQUEST_FIRST: pager->top = 0; break;
    case REQUEST_LAST: pager->top = lines; break;
    case REQUEST_QUIT:
    case REQUEST_BACK:
    case REQUEST_ENTER: pager_close(ui); return true;
    default: return request != REQUEST_REDRAW;
    }
    if (pager->top > lines - page)
        pager->top = lines - page;
    if (pager->top < 0)
        pager->top = 0;
    return true;
}

static int box_width(int columns) {
    enum { MOST = 104 };
    return columns - 4 < MOST ? columns - 4 : MOST;
}

int pager_columns(const Ui *ui) {
    return box_width(ui->frame.columns) - 4;
}

void pager_draw(Ui *ui, Area area) {
    enum { LEAST_ROWS = 6 };
    const Pager *pager = &ui->pager;
    int lines = count_lines(pager->text);
    bool is_short = !strchr(pager->text, '\n');
    int width = box_width(area.width);
    int rows = is_short
                   ? area_wrap(area_to_measure(width - 4), 1, style_of(INK_TEXT), pager->text) + 1
                   : lines;
    rows = is_short && rows < LEAST_ROWS ? LEAST_ROWS : rows;
    int height = rows + 2 < area.height - 2 ? rows + 2 : area.height - 2;
    Area box = area_part(area, (area.width - width) / 2, (area.height - height) / 2, width, height);
    area_fill(box, style_of(INK_TEXT));
    char right[48];
    snprintf(right, sizeof right, "esc closes");
    if (lines > height - 2)
        snprintf(right, sizeof right, "%d of %d · esc closes", pager->top + 1, lines);
    Area inside = area_box(box, pager->title, right, true);
    inside = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (is_short) {
        area_wrap(inside, 1, style_of(INK_TEXT), pager->text);
        return;
    }
    const char *line = pager->text;
    for (int i = 0; i < pager->top; i++)
        line = strchr(line, '\n') + 1;
    for (int row = 0; row < inside.height && line; row++) {
        const char *end = strchr(line, '\n');
        char text[512];
        snprintf(text, sizeof text, "%.*s", end ? (int)(end - line) : (int)strlen(line), line);
        int column = 0; // tabs go to the next eighth column
        for (char *piece = text, *tab; piece; piece = tab) {
            if ((tab = strchr(piece, '\t')))
                *tab++ = 0;
            column = area_text(inside, column, row, style_of(INK_TEXT), piece);
            if (tab)
                column = (column / 8 + 1) * 8;
        }
        line = end ? end + 1 : NULL;
    }
}
