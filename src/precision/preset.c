#include "precision/preset.h"

#include <stdio.h>
#include <string.h>

#include "base/phrase.h"

// ---- presets ------------------------------------------------------------------------------------

// Autocast in fp32 has nothing to cast. A format with less range than fp32 needs its losses scaled.
#define PRESET_OF_FORMAT(id, name, bytes, sign, exponent, ...)  \
    {name,                                                      \
     FORMAT_##id == FORMAT_FP32 ? POLICY_FULL : POLICY_CLASSES, \
     FORMAT_##id,                                               \
     FORMAT_##id != FORMAT_FP32,                                \
     (exponent) < 8 ? "dynamic" : "none",                       \
     FORMAT_##id == FORMAT_FP32 ? "everything in " name : "products in " name ", fp32 masters"},

#define OF_FP32     "products in it, of fp32 numbers"
#define BESIDE_BF16 "products in it, the rest in bf16"

const Preset preset_table[] = {
#define FORMAT(...)
#define TRAINED(...) PRESET_OF_FORMAT(__VA_ARGS__)
#define UNTRAINED(...)
#define COMPUTED(id, name, ...) {name, POLICY_CLASSES, FORMAT_##id, true, "none", OF_FP32},
#define SCALED(id, name, ...)   {name, POLICY_CLASSES, FORMAT_##id, true, "none", BESIDE_BF16},
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

const char precision_trained_names[] = "auto amp"
#define FORMAT(...)
#define TRAINED(id, name, ...)   " " name
#define UNTRAINED(id, name, ...) " " name
#define EVALUATED(...)
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
    if (why_size == 0)
        return format_name(most > 1 ? more : FORMAT_FP32);
    if (most <= 1) {
        snprintf(
            why, why_size,
            "neither %s nor %s is faster on this device; ask for them by name to see what they "
            "do to accuracy and memory",
            format_name(less), format_name(more));
        return format_name(FORMAT_FP32);
    }
    Phrase phrase = phrase_begin(why, why_size);
    phrase_add(&phrase, "products in %s are about %g times as fast as in fp32 on this device, ",
               format_name(more), most);
    if (least > 1)
        phrase_add(&phrase, "those in %s %g times", format_name(less), least);
    else
        phrase_add(&phrase, "those in %s are no faster", format_name(less));
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
                    .text = format_is_scaled(format) ? BESIDE_BF16 : OF_FP32};
}

static bool unevaluated_format(const Device *device, Format format, Error *error) {
    return error_fail(
        error, ERROR_UNAVAILABLE,
        "%s: device %s has no products of whole numbers; --device cpu evaluates in it",
        format_name(format), device->label);
}

bool preset_resolve_evaluated(const char *name, const Device *device, Preset *preset,
                              Error *error) {
    Format format = format_named(name);
    if (format != FORMAT_INT8)
        return preset_resolve(name, device, preset, NULL, 0, error);
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

// ---- a layer's ----------------------------------------------------------------------------------

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
