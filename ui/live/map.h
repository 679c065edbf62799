// ui/live/map.h: layers over time: which share of its gradients each layer lost to its format, step
// by step, a row a layer or a block of them. Seen by the files of the live screen.
//
// What is read are sums of the history's ladder, a bounded number of them for each layer
// (map_data.c); of a run that goes on at most once a second, and seldom where that takes long. Rows
// are made of it by folding and sorting, which read nothing. The step cursor and the selected layer
// are those of the live screen. Main thread.
#pragma once

#include <stdint.h>

#include "ui/live/blocks.h"

typedef enum MapState { // the later ones stand for what they are mixed with
    MAP_UNKNOWN,        // nothing was counted
    MAP_COUNTED,
    MAP_GONE,   // all were zero, or became so
    MAP_BROKEN, // some were not finite before they were rounded
} MapState;

typedef struct MapCell { // of a column
    MapState state;
    float lost; // the share: flushed, overflowed, or not finite to begin with
} MapCell;

typedef struct MapRow {
    BlockRow block;
    double damage; // the mean of what is lost, where all that is gone counts as lost
    int worst;     // of its layers
} MapRow;

typedef struct LiveMap {
    BlockLayer *layers; // as many as the run has
    char (*names)[128]; // of them, fit to be shown
    MapCell *cells;     // [layers][columns]
    int layer_count, columns;
    int64_t run, left, right; // of the columns
    MapRow *rows;
    MapCell *row_cells;  // [rows][columns]: of each column the worst
    int *row_of;         // the layers' rows, -1: none
    int row_count, room; // for so many they were folded
    int parts;           // of names that are shown where nothing was folded by hand; 0: all
    bool is_chosen;      // by hand: before that as many parts as there are rows for
    bool by_damage;      // the rows' order; false: the model's
    char sought[64];     // in names, last
    int layer_before;    // it was selected when another was looked for
    bool is_of_end;      // of the run: there will be no more
    double age;          // seconds since it was read
    double cost;         // that reading took
} LiveMap;
