#include "precision/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Recipe recipe_usual = {.history = 1024, .backward = FORMAT_COUNT};

enum { BLOCK_OF_FP8 = 128, MOST_MARGIN = 16, MOST_WORDS = 4 };

// ---- as text ------------------------------------------------------------------------------------

const char *const recipe_help[] = {
    "fp8=delayed|current|blocks   of fp8 a scale a tensor, from the steps before or from the "
    "tensor\n"
    "                             itself; or a block of 128, of weights 128 x 128 (delayed)",
    "history=N, margin=N          delayed: steps looked back upon (1024); powers of two left free "
    "(0)",
    "amax=max|recent              delayed: the largest of those steps, or that of the last (max)",
    "scales=up|floor              of mx formats: large enough for the largest element, or by the\n"
    "                             standard's rule, by which some saturate (up)",
    "rounding=nearest|random      of gradients: to the nearest, or up or down by chance (nearest)",
    "hadamard=off|on              nvfp4: factors of weights' gradients are turned first (off)",
    "backward=own|mxfp8|..        nvfp4: the format of products with gradients (own)",
    "sums=fp32|split|fast14|fp16  of linear and matmul in any format: in fp32; in chunks of 128, "
    "or\n"
    "                             whole, with 14 bits; in fp16 (fp32). Slow, and not on cards",
    NULL};

// A key whose words stand for 0, 1, ..
typedef struct RecipeKey {
    const char *name;
    const char *words[MOST_WORDS];
    void (*set)(Recipe *recipe, int word);
} RecipeKey;

static void set_fp8(Recipe *recipe, int word) {
    recipe->fp8 = (Fp8Scaling)word;
}
static void set_amax(Recipe *recipe, int word) {
    recipe->is_recent = word != 0;
}
static void set_scales(Recipe *recipe, int word) {
    recipe->floor = word != 0;
}
static void set_rounding(Recipe *recipe, int word) {
    recipe->at_random = word != 0;
}
static void set_hadamard(Recipe *recipe, int word) {
    recipe->hadamard = word != 0;
}

static const RecipeKey keys[] = {
    {"fp8", {"delayed", "current", "blocks"}, set_fp8},
    {"amax", {"max", "recent"}, set_amax},
    {"scales", {"up", "floor"}, set_scales},
    {"rounding", {"nearest", "random"}, set_rounding},
    {"hadamard", {"off", "on"}, set_hadamard},
};

static bool find_word(const char *key, const char *const words[MOST_WORDS], const char *value,
                      int *word, Error *error) {
    char list[64] = "";
    for (int i = 0; i < MOST_WORDS && words[i]; i++) {
        *word = i;
        if (strcmp(words[i], value) == 0)
            return true;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? " or " : "",
                 words[i]);
    }
    return error_fail(error, ERROR_USAGE, "recipe: %s=%.40s: %s is wanted", key, value, list);
}

static bool set_word(const RecipeKey *key, const char *value, Recipe *recipe, Error *error) {
    int word;
    if (!find_word(key->name, key->words, value, &word, error))
        return false;
    key->set(recipe, word);
    return true;
}

static bool set_sums(const char *value, Recipe *recipe, Error *error) {
    const char *const words[MOST_WORDS] = {[SUMS_FP32] = format_name(FORMAT_FP32),
                                           [SUMS_SPLIT] = "split",
                                           [SUMS_FAST14] = "fast14",
                                           [SUMS_FP16] = format_name(FORMAT_FP16)};
    int word;
    if (!find_word("sums", words, value, &word, error))
        return false;
    recipe->sums = (Summing)word;
    return true;
}

static bool set_number(const char *name, const char *value, int lowest, int highest, int *number,
                       Error *error) {
    char *end;
    long parsed = strtol(value, &end, 10);
    if (!value[0] || *end || parsed < lowest || parsed > highest)
        return error_fail(error, ERROR_USAGE,
                          "recipe: %s=%.40s: a whole number from %d to %d is "
                          "wanted",
                          name, value, lowest, highest);
    *number = (int)parsed;
    return true;
}

static bool set_backward(const char *value, Recipe *recipe, Error *error) {
    Format format = format_named(value);
    if (strcmp(value, "own") == 0)
        recipe->backward = FORMAT_COUNT;
    else if (format != FORMAT_COUNT && format_table[format].scaled == SCALED_BLOCK)
        recipe->backward = format;
    else
        return error_fail(error, ERROR_USAGE,
                          "recipe: backward=%.40s: own, or a format of blocks, as mxfp8, is wanted",
                          value);
    return true;
}

static bool set_one(const char *name, const char *value, Recipe *recipe, Error *error) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return set_word(&keys[i], value, recipe, error);
    if (strcmp(name, "history") == 0)
        return set_number(name, value, 1, RECIPE_MOST_HISTORY, &recipe->history, error);
    if (strcmp(name, "margin") == 0)
        return set_number(name, value, 0, MOST_MARGIN, &recipe->margin, error);
    if (strcmp(name, "sums") == 0)
        return set_sums(value, recipe, error);
    if (strcmp(name, "backward") == 0)
        return set_backward(value, recipe, error);
    return error_fail(error, ERROR_USAGE,
                      "recipe: %.40s: not known; fp8, history, margin, amax, scales, rounding, "
                      "hadamard, backward and sums are",
                      name);
}

bool recipe_parse(const char *text, Recipe *recipe, Error *error) {
    *recipe = recipe_usual;
    for (const char *at = text; at && *at;) {
        char piece[64];
        size_t length = strcspn(at, ",");
        if (length >= sizeof piece)
            return error_fail(error, ERROR_USAGE, "recipe: %.40s..: KEY=VALUE is wanted", at);
        memcpy(piece, at, length);
        piece[length] = 0;
        char *equals = strchr(piece, '=');
        if (!equals)
            return error_fail(error, ERROR_USAGE, "recipe: %s: KEY=VALUE is wanted", piece);
        *equals = 0;
        if (!set_one(piece, equals + 1, recipe, error))
            return false;
        at += length + (at[length] == ',');
    }
    return true;
}

// ---- of a factor --------------------------------------------------------------------------------

bool recipe_delays(const Recipe *recipe, Format format) {
    return format == FORMAT_FP8 && recipe->fp8 == FP8_DELAYED;
}

ScaleAttr recipe_scale(const Recipe *recipe, Format format, FactorRole role, bool backward,
                       bool of_weight) {
    if (backward && format == FORMAT_NVFP4 && recipe->backward != FORMAT_COUNT)
        format = recipe->backward;
    const FormatInfo *info = &format_table[format];
    ScaleAttr scale = {.element = role == FACTOR_GRADIENT ? info->gradients : info->element,
                       .scale = info->scale,
                       .block = info->block,
                       .lines = 1,
                       .up = !recipe->floor,
                       .at_random = recipe->at_random && role == FACTOR_GRADIENT,
                       .hadamard = recipe->hadamard && of_weight && format == FORMAT_NVFP4};
    if (format == FORMAT_FP8 && recipe->fp8 == FP8_BLOCKS) {
        scale.block = BLOCK_OF_FP8;
        scale.lines = role == FACTOR_WEIGHT ? BLOCK_OF_FP8 : 1;
    }
    return scale;
}
