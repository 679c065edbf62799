// What each group is called in so many columns. No two are called alike: what tells them apart
// stays, and where there is no room for that it is the number of a run, as in the legend.
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/words.h"
#include "ui/compare/compare.h"

// Ways to cut what is too long, the plainest first.
typedef enum Cut { CUT_END, CUT_MIDDLE, CUT_AROUND, CUT_TO_NUMBER } Cut;

enum { LEAST_HEAD = 4 }; // of less nothing is understood

static void write_whole(const Comparison *comparison, int group, char text[COMPARE_FITTED_SIZE]) {
    char clean[COMPARE_FITTED_SIZE];
    const char *raw = comparison->groups[group].label;
    sanitize_line(clean, sizeof clean, raw, strlen(raw));
    word_rewrite(text, COMPARE_FITTED_SIZE, clean);
}

static void cut_end(char *text, size_t size, const char *whole, int room) {
    const bool fits = text_width(whole) <= room;
    snprintf(text, size, "%.*s%s", (int)text_fit(whole, fits ? room : room - 1, NULL), whole,
             fits || room < 1 ? "" : "…");
}

// How many bytes a label begins with as the one that is most like it does.
static size_t longest_common_start(const CompareLabels *whole, int count, int group) {
    const char *ours = whole->text[group];
    size_t longest = 0;
    for (int i = 0; i < count; i++) {
        size_t same = 0;
        while (i != group && ours[same] && ours[same] == whole->text[i][same])
            same++;
        longest = same > longest ? same : longest;
    }
    while (longest > 0 && ((unsigned char)ours[longest] & 0xC0) == 0x80) // a rune stays whole
        longest--;
    return longest;
}

// From a little before the place where it differs.
static void cut_around(const CompareLabels *whole, int count, int group, int room,
                       char text[COMPARE_FITTED_SIZE]) {
    const char *from = whole->text[group];
    const char *place = from + longest_common_start(whole, count, group);
    char start[COMPARE_FITTED_SIZE];
    snprintf(start, sizeof start, "%.*s", (int)(place - from), from);
    int before = text_width(start) - room / 3;
    if (before <= 0) {
        cut_end(text, COMPARE_FITTED_SIZE, from, room);
        return;
    }
    const int used = snprintf(text, COMPARE_FITTED_SIZE, "…");
    from += text_fit(from, before, NULL);
    cut_end(text + used, COMPARE_FITTED_SIZE - (size_t)used, from, room - 1);
}

// "#7 fp16, e…": as much beside the number as can be understood.
static void cut_to_number(const Comparison *comparison, const char *whole, int group, int room,
                          char text[COMPARE_FITTED_SIZE]) {
    const RunRecord *run = &comparison->runs[comparison->groups[group].members[0]];
    int used = snprintf(text, COMPARE_FITTED_SIZE, "#%lld", (long long)run->id);
    if (room - used - 1 > LEAST_HEAD) {
        text[used++] = ' ';
        cut_end(text + used, COMPARE_FITTED_SIZE - (size_t)used, whole, room - used);
    }
}

static void cut(const Comparison *comparison, const CompareLabels *whole, int group, Cut how,
                int room, char text[COMPARE_FITTED_SIZE]) {
    const char *label = whole->text[group];
    if (how == CUT_TO_NUMBER)
        cut_to_number(comparison, label, group, room, text);
    else if (how == CUT_AROUND && text_width(label) > room)
        cut_around(whole, comparison->group_count, group, room, text);
    else if (how == CUT_MIDDLE)
        word_shorten(text, COMPARE_FITTED_SIZE, label, room);
    else
        cut_end(text, COMPARE_FITTED_SIZE, label, room);
}

static Cut next_cut(Cut how, int room) {
    const bool has_room = (room - 1) / 2 >= LEAST_HEAD;
    return has_room && how < CUT_TO_NUMBER ? how + 1 : CUT_TO_NUMBER;
}

// Those that look alike are cut another way, until none do.
void compare_fit_labels(const Comparison *comparison, int room, CompareLabels *labels) {
    const int count = comparison->group_count;
    Cut how[COMPARE_MOST_CURVES] = {CUT_END};
    CompareLabels whole;
    bool is_done = false;
    for (int g = 0; g < count; g++)
        write_whole(comparison, g, whole.text[g]);
    while (!is_done) {
        bool is_alike[COMPARE_MOST_CURVES] = {false};
        is_done = true;
        for (int g = 0; g < count; g++)
            cut(comparison, &whole, g, how[g], room, labels->text[g]);
        for (int g = 0; g < count; g++)
            for (int other = 0; other < count; other++)
                is_alike[g] |= other != g && strcmp(labels->text[g], labels->text[other]) == 0;
        for (int g = 0; g < count; g++)
            if (is_alike[g] && how[g] < CUT_TO_NUMBER) {
                how[g] = next_cut(how[g], room);
                is_done = false;
            }
    }
}
