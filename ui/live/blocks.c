#include "ui/live/blocks.h"

#include <string.h>

// The bytes of so many parts of a name; 0: all.
static int length_of(const char *name, int parts) {
    const char *at = name;
    for (int i = 1; (at = strchr(at, '.')); i++, at++)
        if (i == parts)
            return (int)(at - name);
    return (int)strlen(name);
}

static int parts_of(const char *name) {
    int parts = 1;
    for (; *name; name++)
        parts += *name == '.';
    return parts;
}

// "blocks.3" holds "blocks.3.attn" and itself, not "blocks.31".
static bool lies_in(const char *name, const char *block, int length) {
    return strncmp(name, block, (size_t)length) == 0 && (!name[length] || name[length] == '.');
}

static bool is_alike(const BlockLayer *a, const BlockLayer *b) {
    int length = length_of(a->name, a->parts);
    return length == length_of(b->name, b->parts) && strncmp(a->name, b->name, (size_t)length) == 0;
}

int blocks_arrange(const BlockLayer *layers, int count, BlockRow *rows, int *row_of) {
    int used = 0;
    for (int i = 0; i < count; i++) {
        int row = used - 1; // mostly that of the one before
        row_of[i] = -1;
        if (!layers[i].is_there)
            continue;
        while (row >= 0 && !is_alike(&layers[i], &layers[rows[row].layer]))
            row--;
        if (row < 0) {
            row = used++;
            rows[row] = (BlockRow){.layer = i};
        }
        rows[row].count++;
        row_of[i] = row;
    }
    for (int i = 0; i < used; i++) {
        const BlockLayer *first = &layers[rows[i].layer];
        rows[i].length = length_of(first->name, rows[i].count > 1 ? first->parts : 0);
    }
    return used;
}

int blocks_deepest(const BlockLayer *layers, int count) {
    int deepest = 1;
    for (int i = 0; i < count; i++) {
        int parts = layers[i].is_there ? parts_of(layers[i].name) : 1;
        deepest = parts > deepest ? parts : deepest;
    }
    return deepest;
}

void blocks_show(BlockLayer *layers, int count, int parts) {
    for (int i = 0; i < count; i++)
        layers[i].parts = parts;
}

// How many lie in the block that so many parts of the layer's name tell of.
static int count_within(const BlockLayer *layers, int count, int layer, int parts) {
    int length = length_of(layers[layer].name, parts), within = 0;
    for (int i = 0; i < count; i++)
        within += layers[i].is_there && lies_in(layers[i].name, layers[layer].name, length);
    return within;
}

// How many parts of the layer's name its row shows.
static int shown_of(const BlockLayer *layer) {
    int parts = parts_of(layer->name);
    return layer->parts > 0 && layer->parts < parts ? layer->parts : parts;
}

// How many it shares its row with, and itself.
static int count_alike(const BlockLayer *layers, int count, int layer) {
    int alike = 0;
    for (int i = 0; i < count; i++)
        alike += layers[i].is_there && is_alike(&layers[i], &layers[layer]);
    return alike;
}

bool blocks_fold(BlockLayer *layers, int count, int layer) {
    int have = count_alike(layers, count, layer), parts = shown_of(&layers[layer]) - 1;
    while (parts > 0 && count_within(layers, count, layer, parts) <= have)
        parts--;
    if (parts <= 0)
        return false;
    int length = length_of(layers[layer].name, parts);
    for (int i = 0; i < count; i++)
        if (lies_in(layers[i].name, layers[layer].name, length))
            layers[i].parts = parts;
    return true;
}

bool blocks_open(BlockLayer *layers, int count, int layer) {
    const BlockLayer before = layers[layer];
    int have = count_alike(layers, count, layer);
    if (have < 2)
        return false;
    int length = length_of(before.name, before.parts);
    int deepest = blocks_deepest(layers, count), parts = shown_of(&before);
    while (parts < deepest && count_alike(layers, count, layer) == have) {
        parts++;
        for (int i = 0; i < count; i++)
            if (lies_in(layers[i].name, before.name, length))
                layers[i].parts = parts;
    }
    return count_alike(layers, count, layer) < have;
}
