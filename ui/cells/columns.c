#include "ui/cells/columns.h"

void columns_place(const ColumnSet *set, ColumnPlaces *places) {
    int at = COLUMN_MARGIN;
    for (int i = 0; i < set->count; i++) {
        const int column = set->from_left[i];
        places->at[column] = at;
        at += places->width[column];
    }
}

void columns_put(const ColumnSet *set, const ColumnPlaces *places, Area area, int column, int row,
                 Style style, const char *text) {
    const int at = places->at[column], width = places->width[column] - COLUMN_GAP;
    if (width > 0 && set->columns[column].is_right)
        area_text_right(area, at + width, row, style, text);
    else if (width > 0)
        area_text_middle(area, at, row, width, style, text);
}

void columns_put_heads(const ColumnSet *set, const ColumnPlaces *places, Area area, int row) {
    for (int i = 0; i < set->count; i++)
        columns_put(set, places, area, i, row, style_of(INK_DIM), set->columns[i].head);
}
