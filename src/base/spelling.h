// base/spelling.h: names that two people write otherwise. A file is called keras_cnn and its runs
// keras-cnn, and who types one means both. Pure; any thread.
#pragma once

#include <stdbool.h>

static inline char spelling_fold(char letter) {
    return letter == '-' ? '_' : letter;
}

// Alike but for - and _.
static inline bool spelling_is_same(const char *a, const char *b) {
    while (*a && spelling_fold(*a) == spelling_fold(*b))
        a++, b++;
    return spelling_fold(*a) == spelling_fold(*b);
}
