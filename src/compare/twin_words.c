#include "compare/twin_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"

typedef struct Names { // of both: by their precision, or where that is one, by what they are
    char run[40], twin[40];
} Names;

static Names names_of(const TwinReport *report, const char *precision) {
    Names names = {"this run", "its twin"};
    if (strcmp(report->precision, precision) == 0)
        return names;
    snprintf(names.run, sizeof names.run, "%.31s", precision);
    snprintf(names.twin, sizeof names.twin, "%.31s", report->precision);
    return names;
}

static void say_skip(Phrase *text, const ApartPlace *place, const Names *names) {
    const char *one = place->is_twin ? names->twin : names->run;
    const char *other = place->is_twin ? names->run : names->twin;
    phrase_add(text, "At step %" PRId64 " %s skipped the update that %s made", place->step, one,
               other);
    if (place->layer[0])
        phrase_add(text, ": its gradients of %s were not finite", place->layer);
    phrase_add(text, ". From there on it is behind.");
}

static void say_place(Phrase *text, const ApartPlace *place, const Names *names) {
    const char *one = place->is_twin ? names->twin : names->run;
    switch (place->cause) {
    case APART_SKIPPED: say_skip(text, place, names); break;
    case APART_INFINITE:
        if (place->layer[0] && place->is_alone)
            phrase_add(text, "At step %" PRId64 " the %s of %s cease to be finite in %s alone.",
                       place->step, apart_kind_names[place->kind], place->layer, one);
        else if (place->layer[0])
            phrase_add(text,
                       "At step %" PRId64 " sampled %s of %s cease to be finite in %s that are "
                       "finite in %s.",
                       place->step, apart_kind_names[place->kind], place->layer, one,
                       place->is_twin ? names->run : names->twin);
        else
            phrase_add(text, "At step %" PRId64 " the loss ceases to be finite in %s alone.",
                       place->step, one);
        break;
    case APART_BEYOND:
        phrase_add(text, "They part at step %" PRId64 ", in ", place->step);
        if (place->layer[0])
            phrase_add(text, "the %s of %s", apart_kind_names[place->kind], place->layer);
        else
            phrase_add(text, "the loss");
        if (place->within > 0)
            phrase_add(text, ": %.2g apart, where rounding explains %.2g.", place->distance,
                       place->within);
        else
            phrase_add(text, ": %.2g apart, where both compute alike.", place->distance);
        break;
    case APART_NOT:
    case APART_CAUSES: break;
    }
}

static void say_held(Phrase *text, const TwinReport *report) {
    const ApartPlace *most = &report->most;
    phrase_add(text, "In %" PRId64 " step%s no layer is farther apart than rounding explains",
               report->steps, report->steps == 1 ? "" : "s");
    if (most->cause != APART_NOT)
        phrase_add(text, ": at most the %s of %s, %.2g apart, where it explains %s",
                   apart_kind_names[most->kind], most->layer, most->distance,
                   twin_explained(most->within).text);
    phrase_add(text, ".");
}

static void say_loss(Phrase *text, const TwinReport *report) {
    static const double much = 0.01;
    if (!report->has_loss)
        return;
    if (isnan(report->loss_last)) {
        phrase_add(text, " At the end neither loss is finite.");
        return;
    }
    if (!isfinite(report->loss_last)) {
        phrase_add(text, " At the end the loss of one is finite, and that of the other is not.");
        return;
    }
    bool grew = report->first.cause == APART_NOT && report->loss_last > much;
    phrase_add(text, " %s %.2g %% apart.",
               grew ? "Small differences have grown with the training: the losses end"
                    : "The losses end",
               100 * report->loss_last);
}

void twin_words(const TwinReport *report, const char *precision, char words[TWIN_WORDS_SIZE]) {
    Phrase text = phrase_begin(words, TWIN_WORDS_SIZE);
    const Names names = names_of(report, precision);
    bool is_same_loss = !report->has_loss || report->loss_most == 0;
    if (report->is_twin) {
        phrase_add(&text, report->is_gone ? "What was known of the two went with it."
                                          : "What is known of the two is kept with the other.");
        return;
    }
    if (report->steps == 0 && !report->has_loss) {
        phrase_add(&text, "Nothing was held against anything.");
        return;
    }
    if (report->first.cause == APART_NOT && report->steps > 0 && report->alike == report->steps &&
        is_same_loss) {
        phrase_add(&text, "In all %" PRId64 " step%s both are the same, to the last bit.",
                   report->steps, report->steps == 1 ? "" : "s");
        return;
    }
    if (report->first.cause != APART_NOT)
        say_place(&text, &report->first, &names);
    else if (report->steps > 0)
        say_held(&text, report);
    else
        phrase_add(&text, "Of layers nothing was compared.");
    say_loss(&text, report);
}

void twin_place_words(const ApartPlace *place, char text[TWIN_PLACE_SIZE]) {
    text[0] = 0;
    if (place->cause == APART_NOT || place->cause == APART_SKIPPED)
        return;
    snprintf(text, TWIN_PLACE_SIZE, "step %" PRId64 ", %s", place->step,
             apart_kind_names[place->kind]);
}
