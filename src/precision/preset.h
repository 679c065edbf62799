// precision/preset.h: what a run, and a layer of it, can be asked to compute in, by name.
//
// A preset is what stands behind a name of --precision; a layer's precision is a format, or "as the
// layer above". Both are refused on devices that do not train in them, in words. No state.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kernel/kernel.h"

typedef enum PolicyMode {
    POLICY_FULL,    // fp32, but for layers that are set to something else
    POLICY_CLASSES, // the class table: amp, O1
    POLICY_ALL_LOW, // everything low but batch norm and the losses: O2, O3, Keras
} PolicyMode;

typedef struct Preset {
    const char *name; // what users type
    PolicyMode mode;
    Format low;
    bool masters;           // fp32 beside low weights
    const char *loss_scale; // what --loss-scale defaults to: "dynamic", "none", "keras"
    const char *text;
} Preset;

extern const Preset preset_table[]; // formats that train, then others; ended by a NULL name
// What --precision takes, with blanks between: "auto amp fp32 .."; for messages and help. And what
// of that trains.
extern const char precision_names[], precision_trained_names[];
// Finds a preset by name; "auto" and "amp" follow the device (NULL device: as if nothing gained).
// `why` gets a sentence where the name left the choice to us, else an empty one; NULL and 0: nobody
// asks.
bool preset_resolve(const char *name, const Device *device, Preset *preset, char *why,
                    size_t why_size, Error *error) MUST_CHECK;

// Formats that exist but that not every device trains in (tf32, fp8): asking a device that does not
// for one is refused by name.
bool precision_is_untrained(const char *name);
// Whether a layer can be set to it on this device; NULL: on every device.
bool precision_trains_on(const Device *device, Format format);

// The same of a model that is evaluated and not trained: int8 too.
bool precision_evaluates_on(const Device *device, Format format);
bool preset_resolve_evaluated(const char *name, const Device *device, Preset *preset,
                              Error *error) MUST_CHECK;

typedef enum LayerPrecision { // what a layer can be set to: of the formats, those that train
    LAYER_AUTO,
#define FORMAT(id, ...) LAYER_##id,
#include "number/formats.def"
} LayerPrecision;

const char *layer_precision_name(LayerPrecision precision);
// The format that it stands for; FORMAT_COUNT for LAYER_AUTO.
Format layer_precision_format(LayerPrecision precision);
// By the name of a format or an alias, or "auto". NULL: a device that is not known yet, which
// layer_precision_check asks later.
bool layer_precision_parse(const char *text, const Device *device, LayerPrecision *precision,
                           Error *error) MUST_CHECK;
bool layer_precision_check(LayerPrecision precision, const Device *device, Error *error) MUST_CHECK;
// The same of a layer that is evaluated and not trained: int8 too.
bool layer_precision_check_evaluated(LayerPrecision precision, const Device *device,
                                     Error *error) MUST_CHECK;
