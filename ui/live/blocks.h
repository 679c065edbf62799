// ui/live/blocks.h: layers folded into the blocks that their names tell of: "blocks.3.attn" lies in
// "blocks.3", which lies in "blocks". A layer that is alone in its block stands for itself. Pure.
#pragma once

#include <stdbool.h>

typedef struct BlockLayer {
    const char *name; // borrowed
    bool is_there;    // false: in no row
    int parts;        // of the name that are shown; 0: all
} BlockLayer;

typedef struct BlockRow {
    int layer, count; // the first of its layers, and how many; 1: it stands for itself
    int length;       // of what is shown of that layer's name, in bytes
} BlockRow;

// The rows in the order of their first layers; there is room for `count` of them. row_of[i] gets
// the layer's, -1 where it is in none. Returns how many there are.
int blocks_arrange(const BlockLayer *layers, int count, BlockRow *rows, int *row_of);
// The most parts that names have.
int blocks_deepest(const BlockLayer *layers, int count);
// Shows so many parts of every name; 0: all.
void blocks_show(BlockLayer *layers, int count, int parts);
// Puts the layer's row into the block around it; false: there is none.
bool blocks_fold(BlockLayer *layers, int count, int layer);
// Makes rows of what lies in the layer's; false: it stands for itself.
bool blocks_open(BlockLayer *layers, int count, int layer);
