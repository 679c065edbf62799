// ui/cells/columns.h: tables whose columns are given room in one order and stand in another. Who
// draws one says how wide each is (0: there is no room for it, or nothing in it); where they lie
// and how words stand in them is the same everywhere. Pure geometry but for the drawing.
#pragma once

#include "ui/cells/frame.h"

// Before the first column; and at the right of each, in its width.
enum { COLUMNS_MOST = 12, COLUMN_MARGIN = 1, COLUMN_GAP = 2 };

typedef struct Column {
    const char *head;
    int width, more; // at most so many columns more, where there is room
    bool is_right;
} Column;

typedef struct ColumnSet {
    const Column *columns; // in the order in which they are given room
    const int *from_left;  // in the order in which they stand
    int count;
} ColumnSet;

typedef struct ColumnPlaces {
    int at[COLUMNS_MOST], width[COLUMNS_MOST];
} ColumnPlaces;

// Where columns of these widths lie.
void columns_place(const ColumnSet *set, ColumnPlaces *places);
void columns_put(const ColumnSet *set, const ColumnPlaces *places, Area area, int column, int row,
                 Style style, const char *text);
void columns_put_heads(const ColumnSet *set, const ColumnPlaces *places, Area area, int row);
