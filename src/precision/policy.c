#include "precision/policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "kernel/int8.h"
#include "kernel/scale.h"

// ---- layers -------------------------------------------------------------------------------------

typedef struct Rule {
    char *pattern;
    LayerPrecision precision;
} Rule;

typedef struct RuleList {
    Rule *rules;
    int count, size;
} RuleList;

struct Policy {
    Preset preset;
    Recipe recipe;
    Keep keep;
    PolicyLayer *layers; // [0] stands for "no layer"
    int layer_count, layer_size;
    RuleList rules, queued;
    uint64_t changes;
    bool knows_autocast; // an operation of a layer was computed within
};

static bool rules_add(RuleList *list, const char *pattern, LayerPrecision precision, Error *error) {
    if (list->count == list->size) {
        int size = list->size ? list->size * 2 : 8;
        Rule *rules = realloc(list->rules, (size_t)size * sizeof *rules);
        if (!rules)
            return error_fail(error, ERROR_MEMORY, "no memory for a precision rule");
        list->rules = rules;
        list->size = size;
    }
    char *copy = strdup(pattern);
    if (!copy)
        return error_fail(error, ERROR_MEMORY, "no memory for a precision rule");
    list->rules[list->count++] = (Rule){copy, precision};
    return true;
}

static void rules_clear(RuleList *list) {
    for (int i = 0; i < list->count; i++)
        free(list->rules[i].pattern);
    free(list->rules);
    *list = (RuleList){0};
}

Policy *policy_new(const Preset *preset, Error *error) {
    Policy *policy = calloc(1, sizeof *policy);
    if (!policy) {
        error_fail(error, ERROR_MEMORY, "no memory for the precision policy");
        return NULL;
    }
    policy->preset = *preset;
    policy->recipe = recipe_usual;
    if (policy_add_layer(policy, "", 0, error) < 0) {
        policy_free(policy);
        return NULL;
    }
    return policy;
}

void policy_free(Policy *policy) {
    if (!policy)
        return;
    for (int i = 0; i < policy->layer_count; i++)
        free(policy->layers[i].name);
    free(policy->layers);
    rules_clear(&policy->rules);
    rules_clear(&policy->queued);
    free(policy);
}

const Preset *policy_preset(const Policy *policy) {
    return &policy->preset;
}

const Recipe *policy_recipe(const Policy *policy) {
    return &policy->recipe;
}

void policy_set_recipe(Policy *policy, const Recipe *recipe) {
    policy->recipe = *recipe;
}

void policy_set_keep(Policy *policy, const Keep *keep) {
    policy->keep = *keep;
}

Format preset_storage(const Preset *preset, Format own) {
    return preset->masters || preset->mode == POLICY_FULL ? own : preset->low;
}

Format policy_storage(const Policy *policy, Format own) {
    return preset_storage(&policy->preset, own);
}

uint64_t policy_changes(const Policy *policy) {
    return policy->changes;
}

int policy_layer_count(const Policy *policy) {
    return policy->layer_count;
}

const PolicyLayer *policy_layer(const Policy *policy, int layer) {
    return &policy->layers[layer];
}

int policy_layer_named(const Policy *policy, const char *name, size_t length) {
    for (int i = 1; i < policy->layer_count; i++)
        if (strncmp(policy->layers[i].name, name, length) == 0 && !policy->layers[i].name[length])
            return i;
    return 0;
}

// Parents are registered before what lies below them, so that one pass in order settles all.
static void policy_inherit(Policy *policy) {
    policy->changes++;
    for (int i = 1; i < policy->layer_count; i++) {
        PolicyLayer *layer = &policy->layers[i];
        layer->in_force =
            layer->own != LAYER_AUTO ? layer->own : policy->layers[layer->parent].in_force;
        layer->knows_computed = layer->has_products = false;
    }
}

static bool rule_matches(const Rule *rule, const char *name) {
    return name[0] && fnmatch(rule->pattern, name, 0) == 0;
}

int policy_add_layer(Policy *policy, const char *name, int parent, Error *error) {
    if (policy->layer_count == policy->layer_size) {
        int size = policy->layer_size ? policy->layer_size * 2 : 16;
        PolicyLayer *layers = realloc(policy->layers, (size_t)size * sizeof *layers);
        if (!layers) {
            error_fail(error, ERROR_MEMORY, "no memory for the layer %s", name);
            return -1;
        }
        policy->layers = layers;
        policy->layer_size = size;
    }
    char *copy = strdup(name);
    if (!copy) {
        error_fail(error, ERROR_MEMORY, "no memory for the layer %s", name);
        return -1;
    }
    int layer = policy->layer_count++;
    policy->layers[layer] = (PolicyLayer){.name = copy, .parent = parent};
    policy->layers[parent].holds = true;
    for (int i = 0; i < policy->rules.count; i++)
        if (rule_matches(&policy->rules.rules[i], name))
            policy->layers[layer].own = policy->rules.rules[i].precision;
    policy_inherit(policy);
    return layer;
}

// Operations that give what they are given, but keep weights of their own, whose format it is that
// counts: a layer of them alone computes in that.
static const bool keeps_weights[OP_COUNT] = {
    [OP_batch_norm] = true,
    [OP_batch_norm_infer] = true,
    [OP_embedding] = true,
};

// Of a product what it multiplies in; of what else is rounded to a scaled format that; of a batch
// norm, whose numbers alone come and go in another, that of its weights; of the rest what comes
// out.
static Format format_computed(OpId op, AutocastRegion region, const OpFormats *formats) {
    if (op_table[op].precision == CLASS_LOW || format_is_scaled(formats->compute))
        return formats->compute;
    if (op != OP_batch_norm && op != OP_batch_norm_infer)
        return formats->output;
    const bool is_lowered = formats->cast_inputs || !region.enabled;
    return is_lowered ? formats->inputs : FORMAT_FP32;
}

void policy_note_computed(Policy *policy, int layer, AutocastRegion region, OpId op,
                          const OpFormats *formats) {
    const PrecisionClass class = op_table[op].precision;
    policy->knows_autocast |= region.enabled;
    PolicyLayer *noted = &policy->layers[layer];
    bool is_product = class == CLASS_LOW;
    noted->passes |= class == CLASS_KEEP;
    if (!is_product && ((class != CLASS_FULL && !keeps_weights[op]) || noted->has_products))
        return;
    noted->computed = format_computed(op, region, formats);
    noted->knows_computed = true;
    noted->has_products = is_product;
    noted->knows_op = true;
    noted->op = op;
    noted->region = region;
}

void policy_note_view(Policy *policy, int layer) {
    policy->layers[layer].passes = true;
}

bool policy_knows_autocast(const Policy *policy) {
    return policy->knows_autocast;
}

static int policy_set_now(Policy *policy, const Rule *rule) {
    int matched = 0;
    for (int i = 1; i < policy->layer_count; i++)
        if (rule_matches(rule, policy->layers[i].name)) {
            policy->layers[i].own = rule->precision;
            matched++;
        }
    policy_inherit(policy);
    return matched;
}

bool policy_set(Policy *policy, const char *pattern, LayerPrecision precision, int *matched,
                Error *error) {
    if (!rules_add(&policy->rules, pattern, precision, error))
        return false;
    int count = policy_set_now(policy, &policy->rules.rules[policy->rules.count - 1]);
    if (matched)
        *matched = count;
    return true;
}

// As many names as one line takes.
static void list_layers(const Policy *policy, char hint[POLICY_HINT_SIZE]) {
    enum { REST = 20 }; // " and 1000 more"
    const int count = policy_layer_count(policy) - 1;
    size_t used = 0;
    snprintf(hint, POLICY_HINT_SIZE, "%s",
             count > 0 ? "" : "; the run knows no model: run:model(m) makes it known");
    for (int i = 1; i <= count; i++) {
        const char *name = policy_layer(policy, i)->name, *before = i > 1 ? ", " : "; there are ";
        if (used + strlen(before) + strlen(name) + REST >= POLICY_HINT_SIZE) {
            if (i > 1)
                snprintf(hint + used, POLICY_HINT_SIZE - used, " and %d more", count - i + 1);
            return;
        }
        used += (size_t)snprintf(hint + used, POLICY_HINT_SIZE - used, "%s%s", before, name);
    }
}

bool policy_names(const Policy *policy, const char *pattern, char hint[POLICY_HINT_SIZE]) {
    Nearest known;
    nearest_begin(&known, pattern);
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const char *name = policy_layer(policy, i)->name;
        if (fnmatch(pattern, name, 0) == 0)
            return true;
        nearest_offer(&known, name);
    }
    if (known.best)
        snprintf(hint, POLICY_HINT_SIZE, "; did you mean %.100s?", known.best);
    else
        list_layers(policy, hint);
    return false;
}

void policy_set_layer(Policy *policy, int layer, LayerPrecision precision) {
    policy->layers[layer].own = precision;
    policy_inherit(policy);
}

bool policy_queue(Policy *policy, const char *pattern, LayerPrecision precision, Error *error) {
    return rules_add(&policy->queued, pattern, precision, error);
}

int policy_apply_queued(Policy *policy) {
    int count = policy->queued.count;
    for (int i = 0; i < count; i++) {
        // A rule that cannot be kept for layers to come still holds for those that are here.
        Rule *rule = &policy->queued.rules[i];
        if (!policy_set(policy, rule->pattern, rule->precision, NULL, NULL))
            policy_set_now(policy, rule);
    }
    rules_clear(&policy->queued);
    return count;
}

// ---- the question -------------------------------------------------------------------------------

Format policy_low_format(const Policy *policy, int layer, AutocastRegion region) {
    LayerPrecision set = policy->layers[layer].in_force;
    if (set != LAYER_AUTO)
        return layer_precision_format(set);
    return region.given ? region.format : policy->preset.low;
}

// Losses and what only batch norm does stay as they are under POLICY_ALL_LOW.
static const bool keeps_class[OP_COUNT] = {
    [OP_cross_entropy] = true,
    [OP_batch_norm] = true,
    [OP_batch_norm_infer] = true,
#define LOSS(name, ...) [OP_##name] = true,
#include "kernel/pointwise.def"
};

// What tensors are kept in where products multiply in `compute`: of scaled factors what the rest of
// the run is in.
static Format format_kept_beside(const Policy *policy, Format compute) {
    const Preset *preset = &policy->preset;
    if (!format_is_scaled(compute))
        return format_kept(compute);
    if (preset->mode == POLICY_FULL)
        return FORMAT_FP32;
    return format_is_scaled(preset->low) ? FORMAT_BF16 : format_kept(preset->low);
}

Format policy_state_format(const Policy *policy, int layer, AutocastRegion region, OpId op) {
    OpFormats formats;
    const bool is_lowered =
        op_table[op].precision != CLASS_LOW &&
        policy_decide(policy, layer, region, op, FORMAT_FP32, FORMAT_FP32, &formats, NULL) &&
        formats.cast_inputs;
    return is_lowered ? formats.inputs : FORMAT_FP32;
}

// fp16 and bf16 are each the other's: one has the range that the other lacks.
static bool is_of_other_half(Format format, Format half) {
    return (format == FORMAT_FP16 && half == FORMAT_BF16) ||
           (format == FORMAT_BF16 && half == FORMAT_FP16);
}

bool policy_decide(const Policy *policy, int layer, AutocastRegion region, OpId op, Format first,
                   Format widest, OpFormats *formats, Error *error) {
    PrecisionClass class = op_table[op].precision;
    if (class == CLASS_INNER || !region.enabled || widest == FORMAT_FP64) {
        *formats = (OpFormats){.cast_inputs = class == CLASS_LOW,
                               .inputs = widest,
                               .compute = widest,
                               .output = class == CLASS_KEEP ? first : widest};
        return true;
    }
    Format compute = policy_low_format(policy, layer, region);
    Format low = format_kept_beside(policy, compute);
    const bool rounds_norm =
        policy->recipe.norms && scale_serves_norm(op) && format_is_scaled(compute);
    const bool is_int8 = compute == FORMAT_INT8;
    const bool serves = is_int8 ? int8_serves(op) : scale_serves(op) || rounds_norm;
    if ((is_int8 || format_is_scaled(compute)) && (region.unscaled || !serves))
        compute = low;
    const KeepKind kind = policy->keep.is_given ? keep_kind(op) : KEEP_KINDS;
    const bool is_asked = kind != KEEP_KINDS && low != FORMAT_FP32;
    const bool is_lowered = is_asked && !policy->keep.kept[kind];
    bool all_low = is_lowered || (!is_asked && policy->preset.mode == POLICY_ALL_LOW &&
                                  low != FORMAT_FP32 && !keeps_class[op]);
    *formats = (OpFormats){.cast_inputs = class == CLASS_LOW || is_lowered,
                           .inputs = low,
                           .compute = class == CLASS_LOW || rounds_norm ? compute : low};
    switch (class) {
    case CLASS_BANNED:
        if (low != FORMAT_FP32)
            return error_fail(
                error, ERROR_USAGE,
                "%s: its logarithms of probabilities are lost in %s; hand the logits to "
                "%s_with_logits instead, or run it inside autocast(false, ..)",
                op_table[op].name, format_name(low), op_table[op].name);
        formats->output = FORMAT_FP32;
        break;
    case CLASS_LOW: formats->output = low; break;
    case CLASS_FULL: formats->output = all_low ? low : FORMAT_FP32; break;
    case CLASS_WIDEST: formats->output = all_low ? low : widest; break;
    case CLASS_KEEP: formats->output = all_low ? low : first; break;
    case CLASS_INNER: break;
    }
    // A layer set to fp32, or to what is kept in it, casts what comes in low up; one set to 16 bits
    // what comes in the other 16.
    if (policy->layers[layer].in_force == LAYER_AUTO)
        return true;
    formats->cast_inputs |= is_of_other_half(formats->output, low);
    if (low == FORMAT_FP32 || is_of_other_half(formats->output, low))
        formats->output = low;
    return true;
}

// ---- were it another preset ---------------------------------------------------------------------

bool policy_decide_under(const Policy *policy, const Preset *preset, int layer,
                         AutocastRegion region, OpId op, Format first, OpFormats *formats) {
    Policy other = *policy; // its lists are read, and not changed
    other.preset = *preset;
    return policy_decide(&other, layer, region, op, first, first, formats, NULL);
}

Format policy_foresee(const Policy *policy, const Preset *preset, int layer) {
    const PolicyLayer *noted = &policy->layers[layer];
    Policy other = *policy;
    OpFormats formats;
    other.preset = *preset;
    if (noted->knows_op &&
        policy_decide_under(policy, preset, layer, noted->region, noted->op, FORMAT_FP32, &formats))
        return format_computed(noted->op, noted->region, &formats);
    const Format low = policy_low_format(&other, layer, (AutocastRegion){.enabled = true});
    return noted->passes && !noted->holds ? format_kept_beside(&other, low) : low;
}
