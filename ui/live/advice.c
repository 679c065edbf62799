// What the table of layers says below itself: what is wrong with the gradients, and which loss
// scale would suit them.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/live/live.h"

static const double noticed = 0.001; // of a layer's gradients flushed: said at all

enum { SENTENCE = 400 };

static void name_of(const Live *live, int layer, char *out, size_t size) {
    live_clean(out, size, live->data.record.layers[layer].name);
}

static int64_t broken_of(const LayerSample *sample) {
    return sample->width > 0 ? sample->nans + sample->infs + sample->overflowed : 0;
}

static bool scales_no_loss(const Live *live) {
    return strcmp(live->data.record.scale_rule, "none") == 0 && live->data.used_scale == 1;
}

// " at 2^16", or that there is no scale; "" where it is not known.
static void say_scale(const Live *live, char *out, size_t size) {
    out[0] = 0;
    if (scales_no_loss(live))
        snprintf(out, size, " without a loss scale");
    else if (live->data.used_scale > 0)
        snprintf(out, size, " at %s", word_scale(live->data.used_scale).text);
}

// ---- which scales would do ----------------------------------------------------------------------

void live_say_scales(const WhatIfScales *scales, bool brief, char *out, size_t size) {
    const int any = -24, beyond = 40; // nobody scales a loss with less or more
    const char *one = brief ? "" : " suits", *more = brief ? "" : " suit";
    int least = scales->least, most = scales->most;
    if (least > most)
        snprintf(out, size, "no scale%s", one);
    else if (least <= any && most >= beyond)
        snprintf(out, size, "any scale%s", one);
    else if (most >= beyond)
        snprintf(out, size, brief ? "≥2^%d%s" : "2^%d and more%s", least, more);
    else if (least <= any)
        snprintf(out, size, brief ? "≤2^%d%s" : "up to 2^%d%s", most, one);
    else if (least == most)
        snprintf(out, size, "2^%d%s", most, one);
    else
        snprintf(out, size, brief ? "2^%d–2^%d%s" : "2^%d to 2^%d%s", least, most, more);
}

// Whether any layer's gradients are those of several steps.
static bool is_of_several(const Live *live) {
    bool several = false;
    for (int i = 0; i < live->data.layer_count; i++)
        several = several || live->data.layers[i].width > 1;
    return several;
}

static int say_scales(const Live *live, Area area, int row) {
    int count;
    WhatIfScales scales = live_scales_of_all(live, &count);
    char text[SENTENCE], which[80];
    if (!scales.is_known)
        return row;
    // Gradients of other steps may be larger, or smaller.
    const char *when = is_of_several(live) ? "these steps" : "this step";
    live_say_scales(&scales, false, which, sizeof which);
    if (scales.least > scales.most)
        snprintf(text, sizeof text,
                 "No one scale suits all layers in %s: they need 2^%d, and take 2^%d at most.",
                 when, scales.least, scales.most);
    else if (strncmp(which, "any ", 4) == 0)
        snprintf(text, sizeof text, "No layer needs a loss scale in %s.", when);
    else
        snprintf(text, sizeof text, "Loss scale, %s: %s %s.", when, which,
                 count == 1 ? "the layer with gradients" : "all layers with gradients");
    return area_wrap(area, row, style_of(INK_DIM), text);
}

// ---- what is wrong ------------------------------------------------------------------------------

// What could be done about a layer that loses gradients, from its histogram.
static int advise(const Live *live, Area area, int row, int layer) {
    const LayerSample *sample = &live->data.layers[layer];
    Format format = live_layer_format(live, layer);
    double scale = live->data.used_scale;
    char text[SENTENCE], other[120] = "";
    if (format == FORMAT_COUNT || !(scale > 0))
        return row;
    WhatIfShares bf16 = what_if_shares(sample, FORMAT_BF16, scale);
    if (format != FORMAT_BF16 && bf16.is_known && what_if_fits(sample, FORMAT_BF16, scale))
        snprintf(other, sizeof other,
                 bf16.flushed > 0 ? "bf16 would flush %s." : "bf16 keeps all%s.",
                 bf16.flushed > 0 ? word_share(bf16.flushed).text : "");
    LiveLimit seen = live_seen_limit(live);
    WhatIfScales scales = what_if_scales(sample, format);
    double better = ldexp(1, scales.least);
    if (scales.is_known && scales.least <= scales.most && better > scale) {
        double flushed = what_if_shares(sample, format, better).flushed;
        char end[96] = "and fit";
        if (better >= seen.scale) // gradients that were not finite are in no histogram
            snprintf(end, sizeof end, "but step %s overflowed at %s", word_count(seen.step).text,
                     word_scale(seen.scale).text);
        snprintf(text, sizeof text,
                 flushed > 0 ? "At %s all but %s would stay, %s%s%s"
                             : "At %s all%s would stay, %s%s%s",
                 word_scale(better).text, flushed > 0 ? word_share(flushed).text : "", end,
                 other[0] ? "; " : ".", other);
    } else {
        snprintf(text, sizeof text, "No scale keeps them and lets the largest fit%s%s",
                 other[0] ? "; " : ".", other);
    }
    return area_wrap(area, row, style_of(INK_DIM), text);
}

// Of the step at the cursor; NULL: it was not skipped.
static const Event *skip_here(const Live *live) {
    const LiveData *data = &live->data;
    for (int i = data->event_count - 1; i >= 0 && data->events[i].step >= data->step; i--)
        if (data->events[i].kind == EVENT_SKIP && data->events[i].step == data->step)
            return &data->events[i];
    return NULL;
}

// The one that the run blames for a skip, else the one with most that is nearest the loss.
static int blamed_layer(const Live *live) {
    const LiveData *data = &live->data;
    const Event *skip = skip_here(live);
    int blamed = -1;
    int64_t most = 0;
    for (int i = 0; i < data->layer_count; i++)
        if (broken_of(&data->layers[i]) >= most && broken_of(&data->layers[i]) > 0) {
            blamed = i;
            most = broken_of(&data->layers[i]);
        }
    for (int i = 0; i < data->layer_count && skip; i++)
        if (strcmp(skip->layer, data->record.layers[i].name) == 0 &&
            broken_of(&data->layers[i]) > 0)
            return i;
    return blamed;
}

// " (and conv1 11, fc2 4)" of the others, as many as have room.
static void say_others(const Live *live, int blamed, char *out, size_t size) {
    const LiveData *data = &live->data;
    size_t used = 0;
    int told = 0, left = 0;
    out[0] = 0;
    for (int i = data->layer_count - 1; i >= 0; i--) {
        char name[RECORD_NAME_SIZE * 2];
        if (i == blamed || broken_of(&data->layers[i]) == 0)
            continue;
        name_of(live, i, name, sizeof name);
        if (told == 3 || used + strlen(name) + 32 > size) {
            left++;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s %s", told == 0 ? "; also " : ", ",
                                 name, word_count(broken_of(&data->layers[i])).text);
        told++;
    }
    if (left > 0)
        snprintf(out + used, size - used, " and %d more", left);
}

// What a layer in a scaled format flushes, and why no loss scale is told of.
static int say_own(const Live *live, Area area, int row, int layer) {
    const FactorShares own = live_factors(live, layer);
    char name[RECORD_NAME_SIZE * 2], text[SENTENCE];
    name_of(live, layer, name, sizeof name);
    snprintf(text, sizeof text, "%s flushes %s of the %ss that it multiplies, at the scales of %s.",
             name, word_share(own.flushed).text, own.of->role, own.of->precision);
    row = area_wrap(area, row, style_of(INK_WARN), text);
    return area_wrap(area, row, style_of(INK_DIM),
                     "They are its own: no loss scale mends that, a wider format does (W).");
}

static int say_broken(const Live *live, Area area, int row, int layer) {
    const LayerSample *sample = &live->data.layers[layer];
    int64_t broken = broken_of(sample);
    char name[RECORD_NAME_SIZE * 2], among[80], others[200], at[48], text[2 * SENTENCE];
    name_of(live, layer, name, sizeof name);
    live_say_steps(among, sizeof among, sample);
    say_others(live, layer, others, sizeof others);
    say_scale(live, at, sizeof at);
    snprintf(text, sizeof text, "%s: %s of %s gradients%s%s %s not finite%s%s.", name,
             word_count(broken).text, word_count(sample->count).text, among,
             sample->width == 1 ? at : "", broken == 1 ? "is" : "are",
             sample->nans > 0 ? " (nan)" : "", others);
    row = area_wrap(area, row, style_of(INK_BAD), text);
    const Event *skip = skip_here(live);
    if (skip && live_overflowed_forward(skip))
        return area_wrap(area, row, style_of(INK_WARN),
                         "The loss was not finite either: no loss scale mends that.");
    return say_scales(live, area, row);
}

// The layer of the first number of the run that was not finite; NULL: none up to the cursor.
static const Event *fault_here(const Live *live) {
    const LiveData *data = &live->data;
    for (int i = 0; i < data->event_count; i++)
        if (data->events[i].kind == EVENT_FAULT && data->events[i].step <= data->step)
            return &data->events[i];
    return NULL;
}

// Whether gradients that have not gone yet are so small that others may have vanished: else the
// zeros come from the way forward, and no scale mends them.
static bool vanished_on_the_way_back(const Live *live) {
    const LiveData *data = &live->data;
    bool is_any = false;
    for (int i = 0; i < data->layer_count; i++) {
        const WhatIfShares shares = what_if_shares(&data->layers[i], FORMAT_FP16, data->used_scale);
        if (live_is_gone(&data->layers[i]) || !shares.is_known)
            continue;
        is_any = true;
        if (shares.flushed + shares.subnormal > noticed)
            return true;
    }
    return !is_any; // nothing speaks against it
}

static int say_gone(const Live *live, Area area, int row, int count, int layer) {
    const LayerSample *sample = &live->data.layers[layer];
    char name[RECORD_NAME_SIZE * 2], text[SENTENCE], more[32] = "", at[48];
    name_of(live, layer, name, sizeof name);
    say_scale(live, at, sizeof at);
    if (count > 1)
        snprintf(more, sizeof more, " and %d more", count - 1);
    snprintf(text, sizeof text, "All gradients of %s%s %s zero%s: nothing is learnt there.", name,
             more, sample->flushed > 0 ? "become" : "are", at);
    row = area_wrap(area, row, style_of(INK_BAD), text);
    Format format = live_layer_format(live, layer);
    WhatIfScales scales = what_if_scales(sample, format);
    if (scales.is_known) // it was flushed here, and its histogram says how far below it lies
        return advise(live, area, row, layer);
    const Event *fault = fault_here(live);
    if (fault && fault->layer[0]) {
        live_clean(name, sizeof name, fault->layer);
        snprintf(text, sizeof text,
                 "Numbers of %s were not finite (n tells): bf16 or fp32 there (W) mends that, no "
                 "loss scale does.",
                 name);
        return area_wrap(area, row, style_of(INK_WARN), text);
    }
    const Format own = live_own_format(live, layer);
    const char *remedy =
        format != FORMAT_FP16 && live_is_narrow(own)
            ? "Lost in what it computes itself, where fp32 mends it, or further up; or the loss "
              "does "
              "not depend on it."
        : format != FORMAT_FP16 ? "The loss does not depend on it, or all was lost further up."
        : !vanished_on_the_way_back(live)
            ? "Those that are left are far above what fp16 flushes: lost on the way forward, which "
              "no scale mends. fp32 of one of these (W); --twin fp32, or a scan, finds which."
        : scales_no_loss(live) || live->data.used_scale <= 1
            ? "They vanished on the way back: fp16 has nothing below 2^-24. Scale the loss (s: "
              "dynamic finds its own scale), or take bf16."
            : "They vanished on the way back: try a larger scale (s), or bf16.";
    return area_wrap(area, row, style_of(INK_WARN), remedy);
}

// How many layers have nothing left, and the one nearest the loss.
static int count_gone(const Live *live, int *layer) {
    int count = 0;
    for (int i = 0; i < live->data.layer_count; i++)
        if (live_is_gone(&live->data.layers[i])) {
            *layer = i;
            count++;
        }
    return count;
}

bool live_is_troubled(const Live *live) {
    int layer;
    return blamed_layer(live) >= 0 || count_gone(live, &layer) > 0;
}

int live_say_layers(const Live *live, Area area, int row) {
    const LiveData *data = &live->data;
    int layer = 0, broken = blamed_layer(live), gone = count_gone(live, &layer);
    double flushed;
    char name[RECORD_NAME_SIZE * 2], text[SENTENCE], at[48];
    if (broken >= 0)
        return say_broken(live, area, row, broken);
    if (gone > 0)
        return say_gone(live, area, row, gone, layer);
    int worst = live_worst_layer(live, &flushed);
    if (worst < 0)
        return row;
    name_of(live, worst, name, sizeof name);
    say_scale(live, at, sizeof at);
    if (flushed > noticed && live_factors(live, worst).is_known)
        return say_own(live, area, row, worst);
    if (flushed > noticed) {
        snprintf(text, sizeof text, "%s flushes %s of its gradients%s.", name,
                 word_share(flushed).text, at);
        row = area_wrap(area, row, style_of(INK_WARN), text);
        row = advise(live, area, row, worst);
    } else {
        snprintf(text, sizeof text, "No layer flushes more than %s of its gradients%s.",
                 word_share(noticed).text, at);
        row = area_wrap(area, row, style_of(INK_DIM), text);
    }
    return data->is_known ? say_scales(live, area, row) : row;
}
