#include "precision/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Recipe recipe_usual = {
    .history = 1024, .activations = FORMAT_COUNT, .backward = FORMAT_COUNT};

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
    "norms=own|scaled             weights and biases of layer and group norms in fp32, or rounded\n"
    "                             as factors of products are, in blocks along them (own)",
    "activations=own|bf16         factors that are activations: in the layer's format, or bf16 "
    "(own)",
    "backward=own|bf16|mxfp8|..   factors of products with gradients: likewise, or in another "
    "format\n"
    "                             of blocks (own)",
    "sums=fp32|split|fast14|fp16  of linear and matmul in any format: in fp32; in chunks of 128, "
    "or\n"
    "                             whole, with 14 bits; in fp16 (fp32). Slow, and not on cards",
    NULL};

// A key whose words stand for 0, 1, ..
typedef struct RecipeKey {
    const char *name;
    const char *words[MOST_WORDS];
    void (*set)(Recipe *recipe, int word);
    int (*get)(const Recipe *recipe);
} RecipeKey;

#define WORD_KEY(key, field, type)                    \
    static void set_##key(Recipe *recipe, int word) { \
        recipe->field = (type)word;                   \
    }                                                 \
    static int get_##key(const Recipe *recipe) {      \
        return (int)recipe->field;                    \
    }

WORD_KEY(fp8, fp8, Fp8Scaling)
WORD_KEY(amax, is_recent, bool)
WORD_KEY(scales, floor, bool)
WORD_KEY(rounding, at_random, bool)
WORD_KEY(hadamard, hadamard, bool)
WORD_KEY(norms, norms, bool)
WORD_KEY(sums, sums, Summing)

// Key i of the table; NULL as its name: there are no more. Made anew, since formats say their
// names.
static RecipeKey key_at(int i) {
    const RecipeKey keys[] = {
        {"fp8", {"delayed", "current", "blocks"}, set_fp8, get_fp8},
        {"amax", {"max", "recent"}, set_amax, get_amax},
        {"scales", {"up", "floor"}, set_scales, get_scales},
        {"rounding", {"nearest", "random"}, set_rounding, get_rounding},
        {"hadamard", {"off", "on"}, set_hadamard, get_hadamard},
        {"norms", {"own", "scaled"}, set_norms, get_norms},
        {"sums",
         {[SUMS_FP32] = format_name(FORMAT_FP32),
          [SUMS_SPLIT] = "split",
          [SUMS_FAST14] = "fast14",
          [SUMS_FP16] = format_name(FORMAT_FP16)},
         set_sums,
         get_sums},
        {.name = NULL},
    };
    return keys[i];
}

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
    int word = 0;
    if (!find_word(key->name, key->words, value, &word, error))
        return false;
    key->set(recipe, word);
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

// own, bf16 or, where `blocks`, a format of blocks.
static bool set_format(const char *name, const char *value, bool blocks, Format *set,
                       Error *error) {
    Format format = format_named(value);
    if (strcmp(value, "own") == 0)
        *set = FORMAT_COUNT;
    else if (format == FORMAT_BF16 ||
             (blocks && format != FORMAT_COUNT && format_table[format].scaled == SCALED_BLOCK))
        *set = format;
    else
        return error_fail(error, ERROR_USAGE, "recipe: %s=%.40s: own or bf16%s is wanted", name,
                          value, blocks ? ", or a format of blocks, as mxfp8," : "");
    return true;
}

static bool set_one(const char *name, const char *value, Recipe *recipe, Error *error) {
    RecipeKey key;
    for (int i = 0; (key = key_at(i)).name; i++)
        if (strcmp(key.name, name) == 0)
            return set_word(&key, value, recipe, error);
    if (strcmp(name, "history") == 0)
        return set_number(name, value, 1, RECIPE_MOST_HISTORY, &recipe->history, error);
    if (strcmp(name, "margin") == 0)
        return set_number(name, value, 0, MOST_MARGIN, &recipe->margin, error);
    if (strcmp(name, "activations") == 0)
        return set_format(name, value, false, &recipe->activations, error);
    if (strcmp(name, "backward") == 0)
        return set_format(name, value, true, &recipe->backward, error);
    return error_fail(error, ERROR_USAGE,
                      "recipe: %.40s: not known; fp8, history, margin, amax, scales, rounding, "
                      "hadamard, norms, activations, backward and sums are",
                      name);
}

bool recipe_change(const char *text, Recipe *recipe, Error *error) {
    Recipe changed = *recipe;
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
        if (!set_one(piece, equals + 1, &changed, error))
            return false;
        at += length + (at[length] == ',');
    }
    *recipe = changed;
    return true;
}

bool recipe_parse(const char *text, Recipe *recipe, Error *error) {
    *recipe = recipe_usual;
    return recipe_change(text, recipe, error);
}

static void add_text(char text[RECIPE_TEXT_SIZE], const char *name, const char *value) {
    size_t used = strlen(text);
    snprintf(text + used, RECIPE_TEXT_SIZE - used, "%s%s=%s", used > 0 ? "," : "", name, value);
}

static void add_number(char text[RECIPE_TEXT_SIZE], const char *name, int number, int usual) {
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    if (number != usual)
        add_text(text, name, value);
}

// What lists cut off at their end is what runs that are compared have in common most often.
void recipe_text(const Recipe *recipe, char text[RECIPE_TEXT_SIZE]) {
    text[0] = 0;
    if (recipe->activations != FORMAT_COUNT)
        add_text(text, "activations", format_name(recipe->activations));
    if (recipe->backward != FORMAT_COUNT)
        add_text(text, "backward", format_name(recipe->backward));
    RecipeKey key;
    for (int i = 0; (key = key_at(i)).name; i++)
        if (key.get(recipe) != key.get(&recipe_usual))
            add_text(text, key.name, key.words[key.get(recipe)]);
    add_number(text, "history", recipe->history, recipe_usual.history);
    add_number(text, "margin", recipe->margin, recipe_usual.margin);
}

// ---- of a factor --------------------------------------------------------------------------------

bool recipe_delays(const Recipe *recipe, Format format) {
    return format == FORMAT_FP8 && recipe->fp8 == FP8_DELAYED;
}

Format recipe_format(const Recipe *recipe, Format format, FactorRole role, bool backward) {
    if (role == FACTOR_ACTIVATION && recipe->activations != FORMAT_COUNT)
        return recipe->activations;
    return backward && recipe->backward != FORMAT_COUNT ? recipe->backward : format;
}

ScaleAttr recipe_scale(const Recipe *recipe, Format format, FactorRole role, bool of_weight) {
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
