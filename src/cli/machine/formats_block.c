// `mpbench formats --block NUMBER ..`: what the scaled formats make of numbers that are neighbours
// along the depth of a product.
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/machine/formats.h"
#include "cli/print/terminal.h"
#include "number/block.h"
#include "number/describe.h"
#include "number/expression.h"
#include "precision/recipe.h"

static bool read_numbers(const Cli *cli, double *numbers, Error *error) {
    if (cli->operand_count == 0 || cli->operand_count > BLOCK_MOST_NUMBERS)
        return error_fail(error, ERROR_USAGE, "formats --block: from 1 to %d numbers are wanted",
                          BLOCK_MOST_NUMBERS);
    for (int i = 0; i < cli->operand_count; i++)
        if (!expression_evaluate(cli->operands[i], FORMAT_FP64, OVERFLOW_SATURATES, &numbers[i],
                                 NULL, error))
            return error_prefix(error, "formats: %.80s", cli->operands[i]);
    return true;
}

// By which rule scales in powers of two are chosen; nothing else of a recipe is shown here.
static bool read_rule(const Cli *cli, Recipe *recipe, Error *error) {
    char rest[RECIPE_TEXT_SIZE];
    if (!recipe_parse(cli->run.recipe, recipe, error))
        return false;
    Recipe without = *recipe;
    without.floor = recipe_usual.floor;
    recipe_text(&without, rest);
    return !rest[0] || error_fail(error, ERROR_USAGE,
                                  "formats --block: --recipe %s changes nothing that is shown "
                                  "here: scales=up or scales=floor is wanted",
                                  rest);
}

static const char *name_rule(const Recipe *recipe) {
    return recipe->floor ? "floor" : "up";
}

// A scale as what it is kept in writes it: a power of two by its exponent.
static void print_scale(Format kept_in, double scale) {
    char text[24];
    if (kept_in == FORMAT_E8M0)
        snprintf(text, sizeof text, "2^%d", ilogb(scale));
    else
        snprintf(text, sizeof text, "%.5g", scale);
    printf("  %10s", text);
}

static void print_rule(const Recipe *recipe) {
    printf("mx scales are scales=%s: %s.\n", name_rule(recipe),
           recipe->floor ? "by the standard's rule, by which the largest may saturate;\n"
                           "without --recipe they are large enough for it"
                         : "large enough for the largest; --recipe scales=floor\n"
                           "takes the standard's rule, by which some saturate");
}

static void print_block(const Terminal *terminal, const double *numbers, int count,
                        const Recipe *recipe) {
    Format formats[FORMAT_COUNT];
    static BlockDescription of[FORMAT_COUNT];
    const int columns = format_pick(formats, format_is_scaled);
    printf("%s%-12s", terminal_style(terminal, STYLE_DIM), "");
    for (int f = 0; f < columns; f++) {
        block_describe(formats[f], numbers, count, !recipe->floor, &of[f]);
        printf("  %10s", format_name(formats[f]));
    }
    printf("\n%-12s", "scale");
    for (int f = 0; f < columns; f++)
        print_scale(format_table[formats[f]].scale, of[f].number[0].scale);
    printf("%s\n", terminal_style(terminal, STYLE_NONE));
    for (int i = 0; i < count; i++) {
        printf("%-12.6g", describe_without_sign(numbers[i]));
        for (int f = 0; f < columns; f++) {
            const BlockNumber *number = &of[f].number[i];
            const bool is_bad = number->is_flushed || number->is_saturated;
            printf("  %s%10.5g%s", is_bad ? terminal_style(terminal, STYLE_BAD) : "",
                   describe_without_sign(number->worth),
                   is_bad ? terminal_style(terminal, STYLE_NONE) : "");
        }
        putchar('\n');
    }
    static const char *const counts[] = {"flushed", "saturated"};
    for (int c = 0; c < 2; c++) {
        printf("%s%-12s", terminal_style(terminal, STYLE_DIM), counts[c]);
        for (int f = 0; f < columns; f++)
            printf("  %10d", c == 0 ? of[f].flushed : of[f].saturated);
        putchar('\n');
    }
    printf("%-12s", "error");
    for (int f = 0; f < columns; f++)
        printf("  %10.3g", of[f].root_mean_square);
    printf(
        "%s\n\nscale: of the first block, of 32 numbers in mx formats, of 16 in nvfp4, else of "
        "all; times it\nan element is worth what stands below. error: root of the mean square.\n",
        terminal_style(terminal, STYLE_NONE));
    print_rule(recipe);
    bool are_finite = true;
    for (int i = 0; i < of[0].count; i++)
        are_finite = are_finite && isfinite(of[0].number[i].asked);
    if (!are_finite)
        puts(
            "What is not finite goes into a product as it is: no element stands for it, and scales "
            "of\nblocks leave it out; that of a whole tensor is 1 then.");
}

static void write_block(JsonWriter *json, const double *numbers, int count, const Recipe *recipe,
                        Format format) {
    static BlockDescription of;
    block_describe(format, numbers, count, !recipe->floor, &of);
    json_begin_object(json);
    json_put_text(json, "format", format_name(format));
    json_put_text(json, "element", format_name(format_table[format].element));
    json_put_text(json, "scale_format", format_name(format_table[format].scale));
    json_put_integer(json, "block", format_table[format].block);
    if (format_table[format].scale == FORMAT_E8M0)
        json_put_text(json, "scales", name_rule(recipe));
    else
        json_put_null(json, "scales"); // there is no choice
    json_put_number(json, "tensor_scale", of.tensor);
    json_put_integer(json, "flushed", of.flushed);
    json_put_integer(json, "saturated", of.saturated);
    json_put_number(json, "root_mean_square_error", of.root_mean_square);
    json_key(json, "numbers");
    json_begin_array(json);
    for (int i = 0; i < count; i++) {
        const BlockNumber *number = &of.number[i];
        json_begin_object(json);
        json_put_number(json, "number", number->asked);
        json_put_number(json, "scale", number->scale);
        json_put_number(json, "element", number->element);
        json_put_number(json, "value", number->worth);
        json_put_number(json, "error", number->error);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

bool formats_show_block(const Cli *cli, Error *error) {
    double numbers[BLOCK_MOST_NUMBERS];
    Format formats[FORMAT_COUNT];
    const int columns = format_pick(formats, format_is_scaled);
    Recipe recipe;
    if (!read_rule(cli, &recipe, error) || !read_numbers(cli, numbers, error))
        return false;
    if (!cli->json) {
        Terminal terminal = terminal_of(stdout, cli->color);
        print_block(&terminal, numbers, cli->operand_count, &recipe);
        return true;
    }
    JsonWriter json = {.stream = stdout};
    json_begin_array(&json);
    for (int f = 0; f < columns; f++)
        write_block(&json, numbers, cli->operand_count, &recipe, formats[f]);
    json_end_array(&json);
    putchar('\n');
    return true;
}
