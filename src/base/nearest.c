#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
    LONGEST = 64, // nobody mistypes a longer name; the table below stays on the stack
    CHEAP = 1,    // a different case, an underscore more or less
    FULL = 4,     // any other letter more, less, different, or swapped with its neighbour
    NOTHING_NEAR = 1u << 30,
};

static unsigned gap_cost(char c) {
    return c == '_' || c == '-' ? CHEAP : FULL;
}

static unsigned change_cost(char a, char b) {
    if (a == b)
        return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? CHEAP : FULL;
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

// The cheapest way from a to b by insertions, deletions, changes and swaps of neighbours.
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    above[0] = 0;
    for (size_t j = 1; j <= b_length; j++)
        above[j] = above[j - 1] + gap_cost(b[j - 1]);
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = above[0] + gap_cost(a[i - 1]);
        for (size_t j = 1; j <= b_length; j++) {
            unsigned cost = above[j - 1] + change_cost(a[i - 1], b[j - 1]);
            cost = least(cost, above[j] + gap_cost(a[i - 1]));
            cost = least(cost, row[j - 1] + gap_cost(b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost = least(cost, before[j - 2] + FULL);
            row[j] = cost;
        }
        unsigned *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_length];
}

// "fp4" for mxfp4, "fc1" for net.fc1, "layers" for num_layers: what a name ends in, where it has a
// number or is a word of it, is no accident.
static bool is_ending_of(const char *wanted, size_t length, const char *name, size_t name_length) {
    enum { ENDING = 3, WORD = 4 };
    if (length < ENDING || length >= name_length ||
        strcmp(name + name_length - length, wanted) != 0)
        return false;
    return strpbrk(wanted, "0123456789") ||
           (length >= WORD && name[name_length - length - 1] == '_');
}

// "optimizer" for optim, "learning_rate" for lr: a word of which the name is the beginning, or
// words of which it has the first letters.
static bool is_short_for(const char *name, size_t length, const char *wanted) {
    enum { BEGINNING = 4 }; // letters that are no accident
    if (length >= BEGINNING && strncmp(name, wanted, length) == 0)
        return true;
    const char *word = wanted;
    size_t initials = 0;
    for (; word && initials < length && name[initials] == *word; initials++) {
        word = strchr(word, '_');
        word += word != NULL;
    }
    return initials == length && length > 1 && !word;
}

void nearest_begin(Nearest *nearest, const char *wanted) {
    *nearest = (Nearest){.wanted = wanted, .best = NULL, .cost = NOTHING_NEAR};
}

void nearest_offer(Nearest *nearest, const char *candidate) {
    size_t length = strlen(nearest->wanted), other = strlen(candidate);
    if (length == 0 || other == 0 || length > LONGEST || other > LONGEST)
        return;
    // One mistake in three letters is a mistype; more is another word.
    size_t longer = length > other ? length : other;
    unsigned allowed = longer < 3 ? 2 * CHEAP : FULL * (unsigned)(longer / 3);
    unsigned cost = distance(nearest->wanted, length, candidate, other);
    if (is_ending_of(nearest->wanted, length, candidate, other))
        cost = FULL - CHEAP;
    bool is_mistyped = cost <= allowed;
    if ((is_mistyped || is_short_for(candidate, other, nearest->wanted)) && cost < nearest->cost) {
        nearest->best = candidate;
        nearest->cost = cost;
    }
}

void nearest_offer_unordered(Nearest *nearest, const char *candidate) {
    Nearest alone;
    nearest_begin(&alone, nearest->wanted);
    nearest_offer(&alone, candidate);
    if (alone.best && (alone.cost < nearest->cost ||
                       (alone.cost == nearest->cost && strcmp(candidate, nearest->best) > 0)))
        *nearest = alone;
}

const char *nearest_name(const char *wanted, const char *const *names, size_t count) {
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, names[i]);
    return nearest.best;
}
