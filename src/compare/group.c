// Which runs are the same but for their seed, and what tells groups apart.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"
#include "precision/recipe.h"

// Something that was chosen for a run; runs of a group have the same facets.
typedef struct Facet {
    char name[RECORD_NAME_SIZE + 8];
    char value[RECORD_TEXT_SIZE];
} Facet;

typedef struct Facets {
    Facet *list;
    int count;
} Facets;

// Options that say nothing about the training, or that other facets tell as they came out.
static bool is_told_elsewhere(const char *option) {
    static const char *const names[] = {
        "seed",    "name",   "tag",        "note",      "json",       "quiet",
        "color",   "db",     "set",        "precision", "device",     "layer",
        "threads", "matrix", "loss-scale", "help",      "no-history", "checkpoint-every",
        "trust",   "recipe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option, names[i]) == 0)
            return true;
    return false;
}

static void add_facet(Facets *facets, const char *name, const char *value) {
    Facet *facet = &facets->list[facets->count++];
    snprintf(facet->name, sizeof facet->name, "%s", name);
    snprintf(facet->value, sizeof facet->value, "%s", value);
}

static void format_parameter(const RecordParameter *parameter, char text[RECORD_TEXT_SIZE]) {
    switch (parameter->kind) {
    case RECORD_NUMBER: snprintf(text, RECORD_TEXT_SIZE, "%.9g", parameter->number); break;
    case RECORD_INTEGER: snprintf(text, RECORD_TEXT_SIZE, "%" PRId64, parameter->integer); break;
    case RECORD_BOOLEAN:
        snprintf(text, RECORD_TEXT_SIZE, "%s", parameter->integer ? "true" : "false");
        break;
    case RECORD_TEXT: snprintf(text, RECORD_TEXT_SIZE, "%s", parameter->text); break;
    }
}

// Key by key, the usual ones too: beside another run each of them may be what matters. As it is in
// force; older histories have what was typed alone.
static void add_recipe(Facets *facets, const RunRecord *run) {
    const char *fact = record_fact(run, RECORD_FACT_RECIPE);
    char text[RECIPE_TEXT_SIZE], name[RECORD_NAME_SIZE];
    Recipe recipe = recipe_usual;
    Error error;
    bool is_known = !fact || recipe_change(fact, &recipe, &error);
    for (int i = 0; i < run->option_count && !fact && is_known; i++)
        if (strcmp(run->options[i].name, "recipe") == 0)
            is_known = recipe_change(run->options[i].value, &recipe, &error);
    if (!is_known) {
        add_facet(facets, RECORD_FACT_RECIPE, fact ? fact : "not known");
        return;
    }
    recipe_whole_text(&recipe, text);
    for (char *rest = NULL, *at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(at, '=');
        *value++ = 0;
        snprintf(name, sizeof name, "recipe.%.40s", at);
        add_facet(facets, name, value);
    }
}

// A fork has its parent's options, and then its own: the last of a name holds.
static void add_options(Facets *facets, const RunRecord *run) {
    for (int i = 0; i < run->option_count; i++) {
        const RecordOption *option = &run->options[i];
        int later = i + 1;
        while (later < run->option_count && strcmp(run->options[later].name, option->name) != 0)
            later++;
        if (later == run->option_count && !is_told_elsewhere(option->name))
            add_facet(facets, option->name, option->value[0] ? option->value : "yes"); // a switch
    }
}

static bool collect_facets(const Comparison *comparison, int index, Facets *facets) {
    const RunRecord *run = &comparison->runs[index];
    const char *orders = comparison->orders[index].text, *code = comparison->codes[index].hash;
    enum { FIXED = 9, RECIPE_KEYS = 16 };
    size_t most = FIXED + RECIPE_KEYS + (size_t)run->parameter_count + (size_t)run->option_count +
                  (size_t)run->layer_count;
    char text[RECORD_TEXT_SIZE], name[RECORD_NAME_SIZE + 8];
    facets->count = 0;
    facets->list = calloc(most, sizeof *facets->list);
    if (!facets->list)
        return false;
    record_precision(run, text);
    add_facet(facets, "precision", text);
    add_facet(facets, "experiment", run->experiment);
    for (int i = 0; i < run->parameter_count; i++) {
        format_parameter(&run->parameters[i], text);
        add_facet(facets, run->parameters[i].name, text);
    }
    add_facet(facets, "loss scale", run->scale_rule);
    for (int i = 0; i < run->layer_count; i++) {
        const RecordLayer *layer = &run->layers[i];
        bool is_set = layer->set[0] && strcmp(layer->set, "auto") != 0;
        snprintf(name, sizeof name, "layer %s", layer->name);
        if (is_set)
            add_facet(facets, name, layer->set);
    }
    if (orders[0])
        add_facet(facets, "set meanwhile", orders);
    add_recipe(facets, run);
    add_options(facets, run);
    add_facet(facets, "device", run->device);
    add_facet(facets, "machine", run->device_name);
    snprintf(text, sizeof text, "%d", run->threads);
    add_facet(facets, "threads", text);
    snprintf(text, sizeof text, "%.8s", code[0] ? code : run->script_hash);
    add_facet(facets, "script", text);
    return true;
}

static const char *facet_value(const Facets *facets, const char *name) {
    for (int i = 0; i < facets->count; i++)
        if (strcmp(facets->list[i].name, name) == 0)
            return facets->list[i].value;
    return "";
}

static bool contains_all(const Facets *a, const Facets *b) {
    for (int i = 0; i < b->count; i++)
        if (strcmp(facet_value(a, b->list[i].name), b->list[i].value) != 0)
            return false;
    return true;
}

// ---- groups -------------------------------------------------------------------------------------

static bool has_seed(const Comparison *comparison, const int *group_of, int before, int group,
                     int64_t seed) {
    for (int i = 0; i < before; i++)
        if (group_of[i] == group && comparison->runs[i].seed == seed)
            return true;
    return false;
}

// Gives every run its group; first[g] is the first run of group g.
static int assign_groups(const Comparison *comparison, const Facets *facets, int *group_of,
                         int *first) {
    int count = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        int group = 0;
        while (group < count &&
               !(contains_all(&facets[i], &facets[first[group]]) &&
                 contains_all(&facets[first[group]], &facets[i]) &&
                 !has_seed(comparison, group_of, i, group, comparison->runs[i].seed)))
            group++;
        group_of[i] = group;
        if (group == count)
            first[count++] = i;
    }
    return count;
}

static void fill_members(Comparison *comparison, const int *group_of) {
    int *next = comparison->members + comparison->run_count;
    for (int g = 0; g < comparison->group_count; g++) {
        CompareSide *group = &comparison->groups[g];
        group->members = next;
        for (int i = 0; i < comparison->run_count; i++)
            if (group_of[i] == g)
                *next++ = i;
        group->member_count = (int)(next - group->members);
    }
}

// ---- differences --------------------------------------------------------------------------------

static bool is_listed(const Comparison *comparison, const char *name) {
    for (int i = 0; i < comparison->difference_count; i++)
        if (strcmp(comparison->differences[i].name, name) == 0)
            return true;
    return false;
}

static bool add_difference(Comparison *comparison, const Facets *facets, const int *first,
                           const char *name) {
    int groups = comparison->group_count;
    bool differs = false;
    for (int g = 1; g < groups && !differs; g++)
        differs =
            strcmp(facet_value(&facets[first[g]], name), facet_value(&facets[first[0]], name)) != 0;
    if (!differs || is_listed(comparison, name))
        return true;
    CompareDifference *grown =
        realloc(comparison->differences,
                (size_t)(comparison->difference_count + 1) * sizeof *comparison->differences);
    if (!grown)
        return false;
    comparison->differences = grown;
    CompareDifference *difference = &grown[comparison->difference_count];
    snprintf(difference->name, sizeof difference->name, "%s", name);
    difference->values = calloc((size_t)groups, sizeof *difference->values);
    if (!difference->values)
        return false;
    comparison->difference_count++;
    for (int g = 0; g < groups; g++)
        snprintf(difference->values[g], sizeof difference->values[g], "%s",
                 facet_value(&facets[first[g]], name));
    return true;
}

static bool find_differences(Comparison *comparison, const Facets *facets, const int *first) {
    for (int g = 0; g < comparison->group_count; g++) {
        const Facets *of = &facets[first[g]];
        for (int i = 0; i < of->count; i++)
            if (!add_difference(comparison, facets, first, of->list[i].name))
                return false;
    }
    return true;
}

bool compare_group_runs(Comparison *comparison, Error *error) {
    size_t count = (size_t)comparison->run_count;
    Facets *facets = calloc(count, sizeof *facets);
    int *group_of = calloc(count, sizeof *group_of), *first = calloc(count, sizeof *first);
    bool done = facets && group_of && first;
    for (int i = 0; i < comparison->run_count && done; i++)
        done = collect_facets(comparison, i, &facets[i]);
    if (done) {
        comparison->group_count = assign_groups(comparison, facets, group_of, first);
        comparison->groups = calloc((size_t)comparison->group_count, sizeof *comparison->groups);
        done = comparison->groups != NULL;
    }
    if (done) {
        fill_members(comparison, group_of);
        done = find_differences(comparison, facets, first);
    }
    if (done)
        compare_label_groups(comparison);
    for (size_t i = 0; facets && i < count; i++)
        free(facets[i].list);
    free(facets);
    free(group_of);
    free(first);
    return done || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}
