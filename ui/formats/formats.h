// ui/formats/formats.h: what the parts of the format lab share: one number in every format, the
// ranges of all, and a block of numbers that share a scale.
//
// formats.c owns the state and takes the keys; number.c, ranges.c and block.c draw a panel each.
// Which formats there are is the table's alone (number/formats.def).
#pragma once

#include "number/block.h"
#include "number/describe.h"
#include "ui/cells/theme.h"
#include "ui/screen.h"

enum { LAB_TEXT_SIZE = 128 };

typedef struct LabFormats {
    Format list[FORMAT_COUNT];
    int count;
} LabFormats;

typedef struct LabBlock {
    char text[PROMPT_SIZE]; // numbers, with blanks between
    double numbers[BLOCK_MOST_NUMBERS];
    int count;
    bool floor;                        // scales in powers of two by the standard's rule
    int number, column;                // of the cursor
    BlockDescription of[FORMAT_COUNT]; // by LabFormats of those that are scaled
    PanelId focus_before;              // when its page is closed
} LabBlock;

typedef struct Lab {
    LabFormats plain, blocks, scaled; // with numbers of their own; of blocks; all that scale
    char text[LAB_TEXT_SIZE];
    ExpressionResult results[FORMAT_COUNT]; // of `text`, by `plain`
    int row, bit;                           // of the cursor; bit 0 is the sign
    int line;                               // of the ranges: those of `plain`, then of `blocks`
    LabBlock block;
} Lab;

static inline Ink lab_ink(Format format) {
    return theme_format_ink(format_name(format));
}

// From which of `count` lines on `shown` are seen, so that line `at` is among them.
static inline int lab_scrolled(int at, int shown) {
    return at >= shown ? at - shown + 1 : 0;
}

// number.c
void lab_draw_number(const Lab *lab, Area area, bool focused);
// The row of a format that lies in that row of the panel, whose height has the border; -1: none.
int lab_number_at(const Lab *lab, int height, int row);

// ranges.c
void lab_draw_ranges(const Lab *lab, Area area, bool focused);

// block.c
// Numbers with blanks between; what was looked at stays where they are none.
bool lab_block_set(Lab *lab, const char *text, Error *error);
void lab_block_turn_rule(Lab *lab); // of the scales
void lab_draw_block(const Lab *lab, Area area, bool focused);
