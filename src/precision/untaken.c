#include "precision/untaken.h"

#include <fnmatch.h>
#include <stdio.h>

#include "kernel/scale.h"

static bool is_set_by(const Policy *policy, int layer, const char *pattern) {
    while (layer > 0 && policy_layer(policy, layer)->own == LAYER_AUTO)
        layer = policy_layer(policy, layer)->parent;
    return layer > 0 && fnmatch(pattern, policy_layer(policy, layer)->name, 0) == 0;
}

// Whether its kind may be in 16 bits where --keep-fp32 lets it: beside scaled factors what is no
// product is in what the run is in.
static bool is_kept(const Policy *policy, const PolicyLayer *layer, Format format,
                    Format computed) {
    const bool is_full = policy_preset(policy)->mode == POLICY_FULL;
    return computed == FORMAT_FP32 && keep_kind(layer->op) != KEEP_KINDS && format != FORMAT_TF32 &&
           !(format_is_scaled(format) && is_full);
}

static void say_why(const Policy *policy, const PolicyLayer *layer, Format format,
                    Untaken *untaken) {
    if (!layer->region.enabled)
        snprintf(untaken->why, sizeof untaken->why, "it is computed outside of mp.autocast");
    else if (is_kept(policy, layer, format, untaken->computed))
        snprintf(untaken->why, sizeof untaken->why, "%s is kept in fp32 (--keep-fp32)",
                 keep_kind_name(keep_kind(layer->op)));
    else if (format_is_scaled(format) && scale_serves_norm(layer->op))
        snprintf(untaken->why, sizeof untaken->why, "%s takes %s by --recipe norms=scaled alone",
                 op_table[layer->op].name, format_name(format));
    else
        snprintf(untaken->why, sizeof untaken->why, "%s takes no %s",
                 op_table[layer->region.unscaled ? OP_attention : layer->op].name,
                 format_name(format));
}

Untaken untaken_find(const Policy *policy, const char *pattern, LayerPrecision precision) {
    Untaken untaken = {0};
    if (precision == LAYER_AUTO)
        return untaken;
    const Format format = layer_precision_format(precision);
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        if (layer->in_force != precision || !is_set_by(policy, i, pattern) || layer->holds)
            continue;
        const Format computed = policy_foresee(policy, policy_preset(policy), i);
        if (!layer->knows_op || computed == format) {
            untaken.others++;
            continue;
        }
        if (untaken.count++ > 0)
            continue;
        untaken.layer = i;
        untaken.computed = computed;
        say_why(policy, layer, format, &untaken);
    }
    return untaken;
}
