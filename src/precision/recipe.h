// precision/recipe.h: how the factors of products in a scaled format are scaled and rounded: what
// a format leaves open. One recipe a run.
//
// A policy owns it and whoever dispatches reads it; a constant while a run lasts. Pure.
#pragma once

#include "base/error.h"
#include "kernel/attr.h"
#include "kernel/kernel.h"

// What a factor of a product is.
typedef enum FactorRole {
    FACTOR_ACTIVATION,
    FACTOR_WEIGHT,
    FACTOR_GRADIENT,
    FACTOR_ROLES
} FactorRole;

// Where the scale of an fp8 tensor comes from: from the largest numbers of the steps before, of the
// tensor itself, or of each block of 128 (of weights 128 x 128).
typedef enum Fp8Scaling { FP8_DELAYED, FP8_CURRENT, FP8_BLOCKS } Fp8Scaling;

enum { RECIPE_MOST_HISTORY = 4096 };

typedef struct Recipe {
    Fp8Scaling fp8;
    int history;    // delayed: so many steps are looked back upon,
    bool is_recent; // of which the last alone counts, not the largest of all,
    int margin;     // and so many powers of two are left free above it
    bool floor;     // scales in powers of two by the standard's rule, by which elements saturate;
                    // else large enough for the largest
    bool at_random; // gradients are rounded up or down by chance
    bool wide;      // mxfp8: elements of gradients are e5m2
    bool best;      // nvfp4: the largest of a block becomes 6 or 4, whichever misses less
    bool hadamard;  // nvfp4: factors of weights' gradients are turned first
    Summing sums;   // how matrix products, in whatever format, add up
    bool norms;     // weights and biases of layer and group norms are rounded as factors are
    // What factors of products are rounded to that are activations, and all of those that a
    // gradient is a factor of; FORMAT_COUNT: the layer's format. bf16 is none that is scaled.
    Format activations, backward;
} Recipe;

extern const Recipe recipe_usual;
enum { RECIPE_TEXT_SIZE = 192 };

// "fp8=current,rounding=random": what is not named stays usual. NULL: all is.
bool recipe_parse(const char *text, Recipe *recipe, Error *error) MUST_CHECK;
// What is not named stays as it is. A text has each key once.
bool recipe_change(const char *text, Recipe *recipe, Error *error) MUST_CHECK;
// What is not usual of it, as recipe_parse reads it; "": all is.
void recipe_text(const Recipe *recipe, char text[RECIPE_TEXT_SIZE]);
// Each key of it, usual or not.
void recipe_whole_text(const Recipe *recipe, char text[RECIPE_TEXT_SIZE]);
// Whether the device can do it.
bool recipe_check(const Recipe *recipe, const Device *device, Error *error) MUST_CHECK;
// The first key that is not usual and that no layer heeds in these formats, which are in use; NULL:
// each is heeded. `has_norms`: weights of norms were rounded. *wanted: what would heed it.
const char *recipe_unheeded(const Recipe *recipe, const Format *formats, int count, bool has_norms,
                            const char **wanted);
// What it takes, a line a key, for help: NULL behind the last.
extern const char *const recipe_help[];

// What one factor in a layer of `format`, a scaled one, is rounded to: such a format, or bf16.
// `backward`: of a product that a gradient is a factor of.
Format recipe_format(const Recipe *recipe, Format format, FactorRole role, bool backward);
// How, without its dimensions, where that is a scaled one. `of_weight`: the product's result is the
// gradient of a weight.
ScaleAttr recipe_scale(const Recipe *recipe, Format format, FactorRole role, bool of_weight);
// Whether that factor's scale is a delayed one.
bool recipe_delays(const Recipe *recipe, Format format);
