#include "precision/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

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
    "blocks=six|best              nvfp4: the largest of a block becomes 6; or 4, where its "
    "numbers\n"
    "                             then miss by less (six)",
    "hadamard=off|on              nvfp4: factors of weights' gradients are turned first, by one "
    "matrix\n"
    "                             whose signs are fixed; of linear and matmul, not of "
    "convolutions,\n"
    "                             whose two are shifted against each other (off)",
    "gradients=e4m3|e5m2          mxfp8: elements of gradients (e4m3)",
    "norms=own|scaled             weights and biases of layer and group norms in fp32, or rounded\n"
    "                             as factors of products are, in blocks along them (own)",
    "activations=own|bf16         factors that are activations, and weights that were computed "
    "(by\n"
    "                             SpectralNorm, say): in the layer's format, or bf16 (own)",
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
WORD_KEY(blocks, best, bool)
WORD_KEY(hadamard, hadamard, bool)
WORD_KEY(gradients, wide, bool)
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
        {"blocks", {"six", "best"}, set_blocks, get_blocks},
        {"hadamard", {"off", "on"}, set_hadamard, get_hadamard},
        {"gradients",
         {format_name(FORMAT_E4M3), format_name(FORMAT_E5M2)},
         set_gradients,
         get_gradients},
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
    int count = 0;
    for (; count < MOST_WORDS && words[count]; count++) {
        *word = count;
        if (strcmp(words[count], value) == 0)
            return true;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", count > 0 ? " or " : "",
                 words[count]);
    }
    const char *near = nearest_name(value, words, (size_t)count);
    return error_fail(error, ERROR_USAGE, "%s=%.40s: %s is wanted%s%s%s", key, value, list,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
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
        return error_fail(error, ERROR_USAGE, "%s=%.40s: a whole number from %d to %d is wanted",
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
        return error_fail(error, ERROR_USAGE, "%s=%.40s: own or bf16%s is wanted", name, value,
                          blocks ? ", or a format of blocks, as mxfp8," : "");
    return true;
}

// Keys that take no words of their own.
static const char *const other_keys[] = {"history", "margin", "activations", "backward"};

static bool refuse_key(const char *name, Error *error) {
    char list[128] = "";
    Nearest nearest;
    RecipeKey key;
    nearest_begin(&nearest, name);
    for (int i = 0; (key = key_at(i)).name; i++) {
        nearest_offer(&nearest, key.name);
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", key.name);
    }
    for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++) {
        nearest_offer(&nearest, other_keys[i]);
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", other_keys[i]);
    }
    const char *near = nearest.best;
    return error_fail(error, ERROR_USAGE, "%.40s: not known; %s%s%sone of%s", name,
                      near ? "did you mean " : "", near ? near : "", near ? "? It is " : "", list);
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
    return refuse_key(name, error);
}

// Whether the text up to `end` has the key already.
static bool has_key(const char *text, const char *end, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = text; at < end; at += strcspn(at, ",") + 1)
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return true;
    return false;
}

bool recipe_change(const char *text, Recipe *recipe, Error *error) {
    Recipe changed = *recipe;
    for (const char *at = text; at && *at;) {
        char piece[64];
        size_t length = strcspn(at, ",");
        if (length >= sizeof piece)
            return error_fail(error, ERROR_USAGE, "%.40s..: KEY=VALUE is wanted", at);
        memcpy(piece, at, length);
        piece[length] = 0;
        char *equals = strchr(piece, '=');
        if (!equals)
            return error_fail(error, ERROR_USAGE, "%s: KEY=VALUE is wanted", piece);
        *equals = 0;
        if (has_key(text, at, piece))
            return error_fail(error, ERROR_USAGE, "%s is there twice: leave one of them out",
                              piece);
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

static void add_format(char text[RECIPE_TEXT_SIZE], const char *name, Format format,
                       bool wants_all) {
    if (wants_all || format != FORMAT_COUNT)
        add_text(text, name, format == FORMAT_COUNT ? "own" : format_name(format));
}

static void add_number(char text[RECIPE_TEXT_SIZE], const char *name, int number, int usual,
                       bool wants_all) {
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    if (wants_all || number != usual)
        add_text(text, name, value);
}

// What lists cut off at their end is what runs that are compared have in common most often.
static void write_text(const Recipe *recipe, bool wants_all, char text[RECIPE_TEXT_SIZE]) {
    text[0] = 0;
    add_format(text, "activations", recipe->activations, wants_all);
    add_format(text, "backward", recipe->backward, wants_all);
    RecipeKey key;
    for (int i = 0; (key = key_at(i)).name; i++)
        if (wants_all || key.get(recipe) != key.get(&recipe_usual))
            add_text(text, key.name, key.words[key.get(recipe)]);
    add_number(text, "history", recipe->history, recipe_usual.history, wants_all);
    add_number(text, "margin", recipe->margin, recipe_usual.margin, wants_all);
}

void recipe_text(const Recipe *recipe, char text[RECIPE_TEXT_SIZE]) {
    write_text(recipe, false, text);
}

void recipe_whole_text(const Recipe *recipe, char text[RECIPE_TEXT_SIZE]) {
    write_text(recipe, true, text);
}

// ---- what heeds it ------------------------------------------------------------------------------

bool recipe_check(const Recipe *recipe, const Device *device, Error *error) {
    if (recipe->sums == SUMS_FP32 || device->backend->sums)
        return true;
    char text[RECIPE_TEXT_SIZE];
    const Recipe alone = {.history = recipe_usual.history,
                          .activations = FORMAT_COUNT,
                          .backward = FORMAT_COUNT,
                          .sums = recipe->sums};
    recipe_text(&alone, text);
    return error_fail(error, ERROR_UNAVAILABLE,
                      "%s: device %s adds up in fp32 alone: leave it out, or run on --device cpu",
                      text, device->label);
}

static bool is_any(Format format) {
    return format_is_scaled(format);
}
static bool is_fp8(Format format) {
    return format == FORMAT_FP8;
}
static bool has_powers(Format format) {
    return format_table[format].scale == FORMAT_E8M0 && format_is_scaled(format);
}
static bool is_mxfp8(Format format) {
    return format == FORMAT_MXFP8;
}
static bool is_nvfp4(Format format) {
    return format == FORMAT_NVFP4;
}

static bool is_in_use(const Format *formats, int count, bool (*heeds)(Format)) {
    for (int i = 0; i < count; i++)
        if (heeds(formats[i]))
            return true;
    return false;
}

const char *recipe_unheeded(const Recipe *recipe, const Format *formats, int count, bool has_norms,
                            const char **wanted) {
    const Recipe *usual = &recipe_usual;
    const bool delays = recipe->fp8 == FP8_DELAYED;
    const bool has_steps = recipe->history != usual->history || recipe->margin != usual->margin ||
                           recipe->is_recent != usual->is_recent;
    Format used[FORMAT_COUNT + 2];
    int more = 0;
    for (; more < count && more < FORMAT_COUNT; more++)
        used[more] = formats[more];
    if (recipe->backward != FORMAT_COUNT && is_in_use(formats, count, is_any))
        used[more++] = recipe->backward;
    const struct {
        bool is_asked;
        bool (*heeds)(Format);
        const char *key, *wanted;
    } rows[] = {
        {recipe->fp8 != usual->fp8, is_fp8, "fp8", "fp8"},
        {has_steps && delays, is_fp8, "history, margin or amax", "fp8"},
        {recipe->floor, has_powers, "scales", "a format of mx"},
        {recipe->at_random, is_any, "rounding", "a scaled format, as fp8 or mxfp8"},
        {recipe->best, is_nvfp4, "blocks", "nvfp4"},
        {recipe->hadamard, is_nvfp4, "hadamard", "nvfp4"},
        {recipe->wide, is_mxfp8, "gradients", "mxfp8"},
        {recipe->activations != FORMAT_COUNT, is_any, "activations",
         "a scaled format, as fp8 or mxfp8"},
        {recipe->backward != FORMAT_COUNT, is_any, "backward", "a scaled format, as fp8 or mxfp8"},
    };
    if (has_steps && !delays) {
        *wanted = "fp8=delayed, and fp8";
        return "history, margin or amax";
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *wanted = rows[i].wanted;
        if (rows[i].is_asked && !is_in_use(used, more, rows[i].heeds))
            return rows[i].key;
    }
    *wanted = "a scaled format that are layer or group norms with weights";
    return recipe->norms && !has_norms ? "norms" : NULL;
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
                       .best = recipe->best && format == FORMAT_NVFP4,
                       .at_random = recipe->at_random && role == FACTOR_GRADIENT,
                       .hadamard = recipe->hadamard && of_weight && format == FORMAT_NVFP4};
    if (recipe->wide && format == FORMAT_MXFP8 && role == FACTOR_GRADIENT)
        scale.element = FORMAT_E5M2;
    if (format == FORMAT_FP8 && recipe->fp8 == FP8_BLOCKS) {
        scale.block = BLOCK_OF_FP8;
        scale.lines = role == FACTOR_WEIGHT ? BLOCK_OF_FP8 : 1;
    }
    return scale;
}
