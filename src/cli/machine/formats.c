// `mpbench formats`: what each format is made of, or what each makes of a number.
#include <math.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/machine/formats.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "number/describe.h"

// ---- what a format is ---------------------------------------------------------------------------

static void print_number_or_dash(double value, int width) {
    if (value > 0)
        printf("  %*.8g", width, value);
    else
        printf("  %*s", width, "-");
}

static void print_format(const Terminal *terminal, Format format) {
    const FormatInfo *info = &format_table[format];
    bool is_floating = format_is_floating(format);
    printf("%s%-5s%s", terminal_format_color(terminal, format), info->name,
           terminal_style(terminal, STYLE_NONE));
    if (is_floating)
        printf("  %4d  %3d %3d %3d", format_bits(format), info->sign_bits, info->exponent_bits,
               info->mantissa_bits);
    else
        printf("  %4d  %11s", format_bits(format), "-");
    print_number_or_dash(info->largest, 13);
    print_number_or_dash(is_floating ? info->smallest_normal : 1, 13);
    print_number_or_dash(info->smallest_subnormal, 13);
    // Half the distance from 1 to the next number, relative: what rounding costs at most.
    if (is_floating)
        printf("  %11.3g", ldexp(1, -info->mantissa_bits - 1));
    else
        printf("  %11s", "-");
    printf("  %-6s%-5s%zu B\n", info->has_infinity ? "yes" : "none", info->has_nan ? "yes" : "none",
           info->bytes);
}

static void print_formats(const Terminal *terminal) {
    printf("%s%-5s  %4s  %3s %3s %3s  %13s  %13s  %13s  %11s  %-6s%-5s%s%s\n",
           terminal_style(terminal, STYLE_DIM), "", "bits", "s", "e", "m", "largest", "min normal",
           "min subnormal", "rounding", "inf", "NaN", "stored",
           terminal_style(terminal, STYLE_NONE));
    Format shown[FORMAT_COUNT];
    for (int i = 0, count = format_pick(shown, format_is_shown); i < count; i++)
        print_format(terminal, shown[i]);
    puts("\ns, e, m: bits of sign, exponent and mantissa. rounding: the largest relative error of "
         "a\n"
         "normal number. tf32 is a way to compute with fp32 numbers; int8 goes with a scale, and "
         "so do\n"
         "factors of products in 8 bits and less (e8m0 is such a scale). What lies beyond the "
         "largest\n"
         "becomes inf where there is one, in fp16 from 65520 on; but formats of 8 bits and less "
         "saturate:\n"
         "it becomes their largest, and the inf that e5m2 has is made of no number.\n"
         "A number in all of them: mpbench formats 1e-4*1e-4; several that share a scale:\n"
         "mpbench formats --block 0.1 0.2 3.5");
}

static void write_format(JsonWriter *json, Format format) {
    const FormatInfo *info = &format_table[format];
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"bits", format_bits(format)},
                  {"sign_bits", info->sign_bits},
                  {"exponent_bits", info->exponent_bits},
                  {"mantissa_bits", info->mantissa_bits},
                  {"bias", info->bias},
                  {"bytes", (int64_t)info->bytes}};
    const struct {
        const char *key;
        double value;
    } values[] = {{"largest", info->largest},
                  {"lowest", info->lowest},
                  {"min_normal", info->smallest_normal},
                  {"min_subnormal", info->smallest_subnormal}};
    json_begin_object(json);
    json_put_text(json, "format", info->name);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_put_integer(json, counts[i].key, counts[i].value);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_put_number(json, values[i].key, values[i].value);
    }
    json_put_boolean(json, "infinity", info->has_infinity);
    json_put_boolean(json, "nan", info->has_nan);
    json_end_object(json);
}

// ---- what a format makes of a number ------------------------------------------------------------

static void print_answer(const Terminal *terminal, const ExpressionResult *row, bool wide) {
    const Description *of = &row->of;
    char bits[64], between[2 * TEXT_SIZE + 8] = "";
    snprintf(bits, sizeof bits, "%s%s%s%s%s", of->sign, of->sign[0] ? " " : "", of->exponent,
             of->exponent[0] ? " " : "", of->mantissa);
    // As many digits as tell two neighbours apart.
    int digits = format_table[of->format].mantissa_bits * 3 / 10 + 3;
    char below[TEXT_SIZE] = "", above[TEXT_SIZE] = "";
    if (of->has_below)
        text_number(below, of->below, digits);
    if (of->has_above)
        text_number(above, of->above, digits);
    if (of->has_below || of->has_above)
        snprintf(between, sizeof between, "%s .. %s", below, above);
    const char *plain = terminal_style(terminal, STYLE_NONE);
    printf("%s%-5s  %-34s  %-10s  %-16.9g%s", terminal_format_color(terminal, of->format),
           format_name(of->format), bits, of->hex, describe_without_sign(of->value), plain);
    if (wide)
        printf("  %s%-34s%s", terminal_style(terminal, STYLE_DIM), between, plain);
    printf("  %s%s", row->is_bad ? terminal_style(terminal, STYLE_BAD) : "", row->event);
    if (of->is_subnormal)
        printf(", subnormal");
    if (row->error != 0)
        printf(" (%+.2g)", row->error);
    printf("%s\n", plain);
    if (!wide && between[0])
        printf("       %sneighbours %s%s\n", terminal_style(terminal, STYLE_DIM), between, plain);
}

static bool print_answers(const Terminal *terminal, const char *text, Error *error) {
    enum { WIDE = 142 };
    int width = terminal_width(terminal);
    bool wide = width == 0 || width >= WIDE;
    Format shown[FORMAT_COUNT];
    for (int i = 0, count = format_pick(shown, format_is_shown); i < count; i++) {
        ExpressionResult row;
        if (!describe_expression(text, shown[i], &row, error))
            return false;
        if (i == 0) {
            printf("%s", terminal_style(terminal, STYLE_STRONG));
            cli_print_outside(stdout, text);
            printf("%s = %.17g\n", terminal_style(terminal, STYLE_NONE),
                   describe_without_sign(row.exact));
            if (row.beyond_double)
                cli_print_wrapped(row.beyond_double, 0);
            printf("%s%-5s  %-34s  %-10s  %-16s", terminal_style(terminal, STYLE_DIM), "", "bits",
                   "hex", "value");
            if (wide)
                printf("  %-34s", "neighbours");
            printf("  what happened%s\n", terminal_style(terminal, STYLE_NONE));
        }
        print_answer(terminal, &row, wide);
    }
    return true;
}

static void write_answer(JsonWriter *json, const ExpressionResult *row) {
    const Description *of = &row->of;
    json_begin_object(json);
    json_put_text(json, "format", format_name(of->format));
    json_put_text(json, "hex", of->hex);
    json_put_text(json, "sign", of->sign);
    json_put_text(json, "exponent", of->exponent);
    json_put_text(json, "mantissa", of->mantissa);
    json_put_known(json, "value", of->value, true);
    json_put_known(json, "error", row->error, isfinite(of->value) && isfinite(row->exact));
    json_put_known(json, "below", of->below, of->has_below);
    json_put_known(json, "above", of->above, of->has_above);
    json_put_boolean(json, "subnormal", of->is_subnormal);
    json_put_text(json, "what", row->event);
    json_end_object(json);
}

static bool write_answers(JsonWriter *json, const char *text, Error *error) {
    Format shown[FORMAT_COUNT];
    ExpressionResult rows[FORMAT_COUNT];
    const int count = format_pick(shown, format_is_shown);
    for (int i = 0; i < count; i++)
        if (!describe_expression(text, shown[i], &rows[i], error))
            return false;
    json_begin_object(json);
    json_put_text(json, "expression", text);
    json_put_known(json, "value", rows[0].exact, true);
    json_put_boolean(json, "beyond_double", rows[0].beyond_double != NULL);
    json_key(json, "formats");
    json_begin_array(json);
    for (int i = 0; i < count; i++)
        write_answer(json, &rows[i]);
    json_end_array(json);
    json_end_object(json);
    return true;
}

// ---- the command --------------------------------------------------------------------------------

static bool check_expressions(const Cli *cli, Error *error) {
    ExpressionResult unused;
    for (int i = 0; i < cli->operand_count; i++)
        if (!describe_expression(cli->operands[i], FORMAT_FP32, &unused, error))
            return false;
    return true;
}

static bool write_all(const Cli *cli, Error *error) {
    JsonWriter json = {.stream = stdout};
    bool done = true;
    Format shown[FORMAT_COUNT];
    const int count = format_pick(shown, format_is_shown);
    json_begin_array(&json);
    for (int i = 0; i < count && cli->operand_count == 0; i++)
        write_format(&json, shown[i]);
    for (int i = 0; i < cli->operand_count && done; i++)
        done = write_answers(&json, cli->operands[i], error);
    json_end_array(&json);
    putchar('\n');
    return done;
}

bool command_formats(Cli *cli, Error *error) {
    if (cli->block)
        return formats_show_block(cli, error);
    if (cli->run.recipe)
        return error_fail(error, ERROR_USAGE, "formats: --recipe is for --block alone");
    if (!check_expressions(cli, error)) // before anything is printed
        return false;
    if (cli->json)
        return write_all(cli, error);
    Terminal terminal = terminal_of(stdout, cli->color);
    if (cli->operand_count == 0)
        print_formats(&terminal);
    for (int i = 0; i < cli->operand_count; i++) {
        if (i > 0)
            putchar('\n');
        if (!print_answers(&terminal, cli->operands[i], error))
            return false;
    }
    return true;
}
