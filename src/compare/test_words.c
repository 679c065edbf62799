// How differences between groups were tested, in words: in pairs of a seed, or by Welch's test.
#include <math.h>

#include "base/phrase.h"
#include "compare/private.h"

enum { MOST_NAMED = 4 };

typedef struct Tested { // contrasts of which chance is known
    int pairs, welch;
    Phrase named; // the first of the latter: "accuracy of fp8, loss of fp8"
} Tested;

static void count(Tested *tested, const Contrast *contrast, const char *what,
                  const CompareSide *side) {
    if (contrast->likeness == LIKENESS_UNKNOWN)
        return;
    tested->pairs += contrast->pairs > 0;
    if (contrast->pairs > 0 || tested->welch++ >= MOST_NAMED)
        return;
    phrase_add(&tested->named, "%s%.40s of %.60s", tested->welch > 1 ? ", " : "", what,
               side->label);
}

void compare_say_test(const Comparison *comparison, char text[COMPARE_TEXT_SIZE]) {
    static const char by_pairs[] = "Differences are of runs of one seed, pair by pair";
    char named[COMPARE_TEXT_SIZE];
    Tested tested = {.named = phrase_begin(named, sizeof named)};
    for (int g = 1; g < comparison->group_count; g++) {
        const CompareSide *side = &comparison->groups[g];
        if (!compare_is_one_experiment(comparison, side, &comparison->groups[0]))
            continue;
        count(&tested, &side->loss_contrast, comparison->series, side);
        for (int i = 0; i < side->metric_count; i++)
            count(&tested, &side->metrics[i].contrast, side->metrics[i].name, side);
    }
    Phrase phrase = phrase_begin(text, COMPARE_TEXT_SIZE);
    if (tested.pairs > 0 && tested.welch == 0)
        phrase_add(&phrase, "%s.", by_pairs);
    else if (tested.pairs > 0)
        phrase_add(&phrase,
                   "%s; by Welch's test where not all seeds are shared, or all pairs differ "
                   "alike: %s%s.",
                   by_pairs, named, tested.welch > MOST_NAMED ? " and others" : "");
    else if (tested.welch > 0)
        phrase_add(&phrase, "Differences are by Welch's test: not all seeds are shared, or all "
                            "pairs differ alike.");
}
