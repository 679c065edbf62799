#include "precision/keep.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

#define KEEP_WORDS "batch_norm layer_norm embedding softmax losses functions"

const char keep_names[] = "none all " KEEP_WORDS;

static const char *const kinds[KEEP_KINDS] = {
    [KEEP_BATCH_NORM] = "batch_norm", [KEEP_LAYER_NORM] = "layer_norm",
    [KEEP_EMBEDDING] = "embedding",   [KEEP_SOFTMAX] = "softmax",
    [KEEP_LOSSES] = "losses",         [KEEP_FUNCTIONS] = "functions",
};

const char *keep_kind_name(KeepKind kind) {
    return kinds[kind];
}

bool keep_is_layer(KeepKind kind) {
    return kind < KEEP_SOFTMAX;
}

KeepKind keep_kind(OpId op) {
    switch (op) {
    case OP_batch_norm:
    case OP_batch_norm_infer: return KEEP_BATCH_NORM;
    case OP_layer_norm:
    case OP_group_norm: return KEEP_LAYER_NORM;
    case OP_embedding: return KEEP_EMBEDDING;
    case OP_softmax:
    case OP_log_softmax: return KEEP_SOFTMAX;
    case OP_cross_entropy:
#define LOSS(name, ...) case OP_##name:
#include "kernel/pointwise.def"
        return KEEP_LOSSES;
    default: return op_table[op].precision == CLASS_FULL ? KEEP_FUNCTIONS : KEEP_KINDS;
    }
}

static bool keep_one(const char *name, Keep *keep, Error *error) {
    for (int i = 0; i < KEEP_KINDS; i++)
        if (strcmp(kinds[i], name) == 0) {
            keep->kept[i] = true;
            return true;
        }
    const char *near = nearest_name(name, kinds, KEEP_KINDS);
    return error_fail(error, ERROR_USAGE, "%.40s: not known%s%s%s none, all, or a list of %s", name,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : ";",
                      KEEP_WORDS);
}

bool keep_parse(const char *text, Keep *keep, Error *error) {
    *keep = (Keep){.is_given = text != NULL};
    if (!text || strcmp(text, "none") == 0)
        return true;
    if (strcmp(text, "all") == 0) {
        for (int i = 0; i < KEEP_KINDS; i++)
            keep->kept[i] = true;
        return true;
    }
    for (const char *at = text;; at++) {
        char piece[41];
        const size_t length = strcspn(at, ",+");
        snprintf(piece, sizeof piece, "%.*s", (int)length, at);
        if (!keep_one(piece, keep, error))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}
