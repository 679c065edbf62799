// What the tests of the screens share: a frame as text.
#pragma once

#include <stdlib.h>

#include "base/rune.h"
#include "ui/cells/frame.h"

// Every cell of the screen as text, a line a row.
static inline const char *frame_text(const Frame *frame) {
    static char *text;
    size_t used = 0;
    free(text);
    text = malloc((size_t)frame->rows * ((size_t)frame->columns * 4 + 1) + 1);
    for (int row = 0; row < frame->rows; row++) {
        for (int column = 0; column < frame->columns; column++) {
            uint32_t rune = frame_cell(frame, column, row)->rune;
            if (rune)
                used += (size_t)rune_encode(rune, text + used);
        }
        text[used++] = '\n';
    }
    text[used] = 0;
    return text;
}
