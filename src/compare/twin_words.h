// compare/twin_words.h: what may be said of two trainings in lock step, in plain words.
//
// Pure: it goes by the report alone. `precision` is that of the run whose report it is.
#pragma once

#include "store/twin.h"

enum { TWIN_WORDS_SIZE = 640 };

// One or two sentences: whether and where the two part, and how far the losses are apart.
void twin_words(const TwinReport *report, const char *precision, char words[TWIN_WORDS_SIZE]);
// Where a layer first parted: "step 3, gradients"; "" where it did not.
enum { TWIN_PLACE_SIZE = 64 };
void twin_place_words(const ApartPlace *place, char text[TWIN_PLACE_SIZE]);
