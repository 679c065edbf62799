// What the groups are called: what tells each from the others of this comparison, and no more.
#include <stdio.h>
#include <string.h>

#include "compare/private.h"

static const RecordLayer *first_set_layer(const RunRecord *run) {
    for (int i = 0; i < run->layer_count; i++) {
        const char *set = run->layers[i].set;
        if (set[0] && strcmp(set, "auto") != 0 && strcmp(set, run->precision) != 0)
            return &run->layers[i];
    }
    return NULL;
}

// As lists call the run, but that a layer which alone is set is named: "fp16 norm1=bf16".
static void write_precision(const Comparison *comparison, int g, char text[COMPARE_LABEL_SIZE]) {
    static const char one[] = " +1 layer";
    const RunRecord *run = &comparison->runs[comparison->groups[g].members[0]];
    char brief[RECORD_PRECISION_SIZE];
    record_precision_brief(run, brief);
    const char *at = strstr(brief, one);
    const RecordLayer *layer = at ? first_set_layer(run) : NULL;
    if (layer)
        snprintf(text, COMPARE_LABEL_SIZE, "%.*s %s=%s%s", (int)(at - brief), brief, layer->name,
                 layer->set, at + strlen(one));
    else
        snprintf(text, COMPARE_LABEL_SIZE, "%s", brief);
}

static bool is_label_shared(const Comparison *comparison, int g) {
    for (int other = 0; other < comparison->group_count; other++)
        if (other != g && strcmp(comparison->groups[other].label, comparison->groups[g].label) == 0)
            return true;
    return false;
}

// A common precision tells nothing apart.
static void begin_with_precisions(Comparison *comparison) {
    bool differs = false;
    for (int g = 0; g < comparison->group_count; g++) {
        write_precision(comparison, g, comparison->groups[g].label);
        differs |= strcmp(comparison->groups[g].label, comparison->groups[0].label) != 0;
    }
    for (int g = 0; g < comparison->group_count && !differs; g++)
        comparison->groups[g].label[0] = 0;
}

// How much of the value all have that share the label of g; -1: all of it, so that it tells none of
// them apart.
static int common_start(const Comparison *comparison, const CompareDifference *difference, int g) {
    const char *value = difference->values[g];
    int common = -1;
    for (int other = 0; other < comparison->group_count; other++) {
        const char *theirs = difference->values[other];
        int same = 0;
        if (strcmp(comparison->groups[other].label, comparison->groups[g].label) != 0 ||
            strcmp(theirs, value) == 0)
            continue;
        while (value[same] && value[same] == theirs[same])
            same++;
        common = common < 0 || same < common ? same : common;
    }
    return common;
}

// Of what one side lacks its precision tells enough, and nothing beside other words. Of a long
// value what all have in common gives way.
static void append_difference(const Comparison *comparison, const CompareDifference *difference,
                              int g, int common, char label[COMPARE_LABEL_SIZE]) {
    enum { MOST = 40, LONGEST = sizeof difference->name + MOST + 8 };
    const char *value = difference->values[g];
    const size_t used = strlen(label);
    if (!value[0] && used == 0)
        write_precision(comparison, g, label);
    if (!value[0] || used + LONGEST > COMPARE_LABEL_SIZE)
        return;
    const bool is_cut = strlen(value) > MOST && common > 0;
    while (is_cut && common > 0 && !strchr(" ,/", value[common - 1])) // a word stays whole
        common--;
    snprintf(label + used, COMPARE_LABEL_SIZE - used, "%s%s=%s%.40s", used ? ", " : "",
             difference->name, is_cut ? "…" : "", value + (is_cut ? common : 0));
}

// Those that share a label get the next difference that tells some of them apart.
static void append_differences(Comparison *comparison) {
    char longer[COMPARE_MOST_RUNS][COMPARE_LABEL_SIZE];
    for (int d = 0; d < comparison->difference_count; d++) {
        const CompareDifference *difference = &comparison->differences[d];
        for (int g = 0; g < comparison->group_count; g++) {
            const int common = common_start(comparison, difference, g);
            memcpy(longer[g], comparison->groups[g].label, sizeof longer[g]);
            if (common >= 0)
                append_difference(comparison, difference, g, common, longer[g]);
        }
        for (int g = 0; g < comparison->group_count; g++)
            memcpy(comparison->groups[g].label, longer[g], sizeof longer[g]);
    }
}

void compare_label_groups(Comparison *comparison) {
    const bool is_alone = comparison->group_count == 1;
    bool is_unique = !is_alone;
    begin_with_precisions(comparison);
    append_differences(comparison);
    for (int g = 0; g < comparison->group_count; g++)
        is_unique &= !is_label_shared(comparison, g);
    for (int g = 0; g < comparison->group_count && !is_unique; g++) {
        CompareSide *group = &comparison->groups[g];
        if (is_alone)
            write_precision(comparison, g, group->label);
        else
            snprintf(group->label, sizeof group->label, "%s",
                     comparison->runs[group->members[0]].name);
    }
}
