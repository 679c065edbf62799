#include "precision/policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "kernel/int8.h"
#include "kernel/scale.h"

// ---- presets ------------------------------------------------------------------------------------

// Autocast in fp32 has nothing to cast. A format with less range than fp32 needs its losses scaled.
#define PRESET_OF_FORMAT(id, name, bytes, sign, exponent, ...)  \
    {name,                                                      \
     FORMAT_##id == FORMAT_FP32 ? POLICY_FULL : POLICY_CLASSES, \
     FORMAT_##id,                                               \
     FORMAT_##id != FORMAT_FP32,                                \
     (exponent) < 8 ? "dynamic" : "none",                       \
     FORMAT_##id == FORMAT_FP32 ? "everything in " name : "products in " name ", fp32 masters"},

const Preset preset_table[] = {
#define FORMAT(...)
#define TRAINED(...) PRESET_OF_FORMAT(__VA_ARGS__)
#define UNTRAINED(...)
#define SCALED(id, name, ...) \
    {name, POLICY_CLASSES, FORMAT_##id, true, "none", "products in it, the rest in bf16"},
#include "number/formats.def"
#define PRESET(name, mode, low, masters, loss_scale, text) \
    {name, POLICY_##mode, FORMAT_##low, masters, loss_scale, text},
#include "number/presets.def"
    {NULL, POLICY_FULL, FORMAT_FP32, false, NULL, NULL},
};

const char precision_names[] = "auto amp"
#define FORMAT(...)
#define TRAINED(id, name, ...)   " " name
#define UNTRAINED(id, name, ...) " " name
#include "number/formats.def"
#define PRESET(name, ...) " " name
#include "number/presets.def"
    ;

static const Preset *preset_named(const char *name) {
    for (const Preset *preset = preset_table; preset->name; preset++)
        if (strcmp(preset->name, name) == 0)
            return preset;
    return NULL;
}

static double gain_of(const Device *device, Format format) {
    return device ? device->backend->gain(device, format) : 1;
}

// `auto`: fp16 where the device gains from it, else bf16, else fp32; of two that it gains from, the
// one that it gains more from. Says why.
static const char *preset_chosen(const Device *device, char *why, size_t why_size) {
    Format more = FORMAT_FP16, less = FORMAT_BF16;
    if (gain_of(device, less) > gain_of(device, more)) {
        more = FORMAT_BF16;
        less = FORMAT_FP16;
    }
    const double most = gain_of(device, more), least = gain_of(device, less);
    if (most <= 1) {
        snprintf(why, why_size,
                 "no lower format is faster on this device; ask for %s or %s by name to see what "
                 "they do to accuracy and memory",
                 format_name(less), format_name(more));
        return format_name(FORMAT_FP32);
    }
    int used = snprintf(why, why_size,
                        "products in %s are about %g times as fast as in fp32 on this device, ",
                        format_name(more), most);
    if (used >= 0 && (size_t)used < why_size && least > 1)
        snprintf(why + used, why_size - (size_t)used, "those in %s %g times", format_name(less),
                 least);
    else if (used >= 0 && (size_t)used < why_size)
        snprintf(why + used, why_size - (size_t)used, "those in %s are no faster",
                 format_name(less));
    return format_name(more);
}

bool precision_is_untrained(const char *name) {
    Format format = format_named(name);
    return format != FORMAT_COUNT && format_table[format].untrained;
}

bool precision_trains_on(const Device *device, Format format) {
    return format_trains(format) || ((format_multiplies(format) || format_is_scaled(format)) &&
                                     device && device->backend->kernels[OP_matmul] &&
                                     device->backend->supports(device, OP_matmul, format));
}

bool precision_evaluates_on(const Device *device, Format format) {
    return precision_trains_on(device, format) ||
           (format == FORMAT_INT8 && device->backend->kernels[OP_linear] &&
            device->backend->supports(device, OP_linear, format));
}

static bool untrained_format(const char *name, Error *error) {
    return error_fail(error, ERROR_UNAVAILABLE, "%s: %s", name,
                      format_table[format_named(name)].untrained);
}

// Of a format that only multiplies: all is kept in what it multiplies. Beside products of scaled
// factors all is as in bf16, which has the range to do without a loss scale.
static Preset preset_multiplying(Format format) {
    return (Preset){.name = format_name(format),
                    .mode = POLICY_CLASSES,
                    .low = format,
                    .masters = true,
                    .loss_scale = "none",
                    .text = format_is_scaled(format) ? "products in it, the rest in bf16"
                                                     : "products in it, of fp32 numbers"};
}

static bool unevaluated_format(const Device *device, Format format, Error *error) {
    return error_fail(
        error, ERROR_UNAVAILABLE,
        "%s: device %s has no products of whole numbers; --device cpu evaluates in it",
        format_name(format), device->label);
}

bool preset_resolve_evaluated(const char *name, const Device *device, Preset *preset,
                              Error *error) {
    char why[1];
    Format format = format_named(name);
    if (format != FORMAT_INT8)
        return preset_resolve(name, device, preset, why, 0, error);
    if (!precision_evaluates_on(device, format))
        return unevaluated_format(device, format, error);
    *preset = preset_multiplying(format);
    preset->text = "linear layers and convolutions in whole numbers, the rest in fp32";
    return true;
}

bool preset_resolve(const char *name, const Device *device, Preset *preset, char *why,
                    size_t why_size, Error *error) {
    const char *chosen = format_usual_name(name);
    if (why_size)
        why[0] = 0;
    if (strcmp(name, "auto") == 0)
        chosen = preset_chosen(device, why, why_size);
    else if (strcmp(name, "amp") == 0)
        chosen = format_name(gain_of(device, FORMAT_BF16) > 1 && gain_of(device, FORMAT_FP16) <= 1
                                 ? FORMAT_BF16
                                 : FORMAT_FP16);
    if (precision_is_untrained(chosen)) {
        Format format = format_named(chosen);
        if (!precision_trains_on(device, format))
            return untrained_format(chosen, error);
        *preset = preset_multiplying(format);
        return true;
    }
    const Preset *found = preset_named(chosen);
    if (!found)
        return error_fail(error, ERROR_USAGE, "precision %s: not known; one of %s", name,
                          precision_names);
    *preset = *found;
    return true;
}

// ---- layers -------------------------------------------------------------------------------------

Format layer_precision_format(LayerPrecision precision) {
    return precision == LAYER_AUTO ? FORMAT_COUNT : (Format)(precision - 1);
}

const char *layer_precision_name(LayerPrecision precision) {
    return precision == LAYER_AUTO ? "auto" : format_name(layer_precision_format(precision));
}

bool layer_precision_check(LayerPrecision precision, const Device *device, Error *error) {
    Format format = layer_precision_format(precision);
    return precision == LAYER_AUTO || precision_trains_on(device, format) ||
           untrained_format(format_name(format), error);
}

bool layer_precision_check_evaluated(LayerPrecision precision, const Device *device, Error *error) {
    Format format = layer_precision_format(precision);
    if (format != FORMAT_INT8)
        return layer_precision_check(precision, device, error);
    return precision_evaluates_on(device, format) || unevaluated_format(device, format, error);
}

bool layer_precision_parse(const char *text, const Device *device, LayerPrecision *precision,
                           Error *error) {
    Format format = format_named(text);
    char list[FORMAT_LIST_SIZE];
    if (strcmp(text, "auto") == 0)
        *precision = LAYER_AUTO;
    else if (precision_trains_on(device, format) ||
             (!device && format != FORMAT_COUNT && format_table[format].untrained))
        *precision = (LayerPrecision)(format + 1);
    else if (precision_is_untrained(text))
        return untrained_format(text, error);
    else
        return error_fail(error, ERROR_USAGE, "layer precision %s: one of auto %s", text,
                          format_list(list, format_is_offered, " ", " "));
    return true;
}

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

Format policy_storage(const Policy *policy, Format own) {
    const Preset *preset = &policy->preset;
    return preset->masters || preset->mode == POLICY_FULL ? own : preset->low;
}

int policy_layer_count(const Policy *policy) {
    return policy->layer_count;
}

const PolicyLayer *policy_layer(const Policy *policy, int layer) {
    return &policy->layers[layer];
}

// Parents are registered before what lies below them, so that one pass in order settles all.
static void policy_inherit(Policy *policy) {
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
    for (int i = 0; i < policy->rules.count; i++)
        if (rule_matches(&policy->rules.rules[i], name))
            policy->layers[layer].own = policy->rules.rules[i].precision;
    policy_inherit(policy);
    return layer;
}

void policy_note_computed(Policy *policy, int layer, PrecisionClass class, Format format) {
    PolicyLayer *noted = &policy->layers[layer];
    bool is_product = class == CLASS_LOW;
    if (!is_product && (class != CLASS_FULL || noted->has_products))
        return;
    noted->computed = format;
    noted->knows_computed = true;
    noted->has_products = is_product;
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
    hint[0] = 0;
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
    if ((format_is_scaled(compute) && !scale_serves(op) && !rounds_norm) ||
        (compute == FORMAT_INT8 && !int8_serves(op)))
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
    // A layer set to fp32, or to what is kept in it, casts what comes in low up.
    if (policy->layers[layer].in_force != LAYER_AUTO && low == FORMAT_FP32)
        formats->output = FORMAT_FP32;
    return true;
}
