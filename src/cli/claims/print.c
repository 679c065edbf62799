// What is said of one claim.
#include <math.h>
#include <string.h>

#include "cli/claims/claims.h"
#include "cli/print/text.h"
#include "cli/print/wrap.h"

enum { NAME_COLUMN = 13 };

// As many digits as the seeds bear out; without an interval three.
static const char *figure_text(char text[STATISTIC_TEXT_SIZE], const ClaimFound *found) {
    const Statistic figure = {found->seeds, 0, found->value, (double)NAN, found->interval};
    return found->interval > 0 ? statistic_text(text, &figure, true)
                               : text_number(text, found->value, 3);
}

// "0.78 +- 0.02 times, a step of .. (3 seeds)"
static void say_found(const Claim *claim, const ClaimFound *found, char *text, size_t size) {
    char figure[STATISTIC_TEXT_SIZE], busy[80] = "";
    if (found->verdict == CLAIM_UNTESTED) {
        snprintf(text, size, "not tested: mpbench claims %s", claim->name);
        return;
    }
    if (found->busy > 0)
        snprintf(busy, sizeof busy,
                 "; other programs kept %.1f processors busy, which tells of them too",
                 found->busy);
    snprintf(text, size, "%s %s, %s (%d seed%s%s)", figure_text(figure, found), claim->unit,
             claim->here, found->seeds, found->seeds == 1 ? "" : "s", busy);
}

static void say_band(const Claim *claim, char *text, size_t size) {
    snprintf(text, size, "%g to %g %s would bear it out", claim->low, claim->high, claim->unit);
}

// ---- text ---------------------------------------------------------------------------------------

static void print_line(const Terminal *terminal, const char *label, const char *text) {
    printf("%s%-*s%s", terminal_style(terminal, STYLE_DIM), NAME_COLUMN, label,
           terminal_style(terminal, STYLE_NONE));
    wrap_print(stdout, text, terminal_width(terminal), NAME_COLUMN, NAME_COLUMN);
    putchar('\n');
}

void claim_print(const Terminal *terminal, const Claim *claim, const ClaimFound *found) {
    char text[512], band[128];
    const char *style =
        found->verdict == CLAIM_CONTRADICTED ? terminal_style(terminal, STYLE_BAD) : "";
    printf("%s%s%s\n", terminal_style(terminal, STYLE_STRONG), claim->sentence,
           terminal_style(terminal, STYLE_NONE));
    snprintf(text, sizeof text, "%s: %s", claim->published, claim->source);
    print_line(terminal, "  published", text);
    say_found(claim, found, text, sizeof text);
    print_line(terminal, "  here", text);
    say_band(claim, band, sizeof band);
    snprintf(text, sizeof text, "%s%s%s (%s)", style, claim_verdict_name(found->verdict),
             terminal_style(terminal, STYLE_NONE), band);
    print_line(terminal, "  so", text);
    snprintf(text, sizeof text, "mpbench claims %s: matrix %s", claim->name,
             claim_trainings[claim->trial].command);
    print_line(terminal, "  by", text);
    putchar('\n');
}

// ---- Markdown -----------------------------------------------------------------------------------

void claim_print_markdown_head(void) {
    puts("| people say | published | here | so |\n|---|---|---|---|");
}

// All of it is ours: nothing in claims.def or in a number is markup.
void claim_print_markdown(const Claim *claim, const ClaimFound *found) {
    char text[512], band[128];
    say_found(claim, found, text, sizeof text);
    for (char *sign = text; (sign = strstr(sign, "+-"));)
        memcpy(sign, "±", 2); // two bytes of UTF-8
    say_band(claim, band, sizeof band);
    printf("| %s | %s: %s | %s | %s%s%s (%s) |\n", claim->sentence, claim->published, claim->source,
           text, found->verdict == CLAIM_UNTESTED ? "" : "**", claim_verdict_name(found->verdict),
           found->verdict == CLAIM_UNTESTED ? "" : "**", band);
}

// ---- JSON ---------------------------------------------------------------------------------------

void claim_write(JsonWriter *json, const Claim *claim, const ClaimFound *found) {
    json_begin_object(json);
    json_put_text(json, "name", claim->name);
    json_put_text(json, "sentence", claim->sentence);
    json_put_text(json, "published", claim->published);
    json_put_text(json, "source", claim->source);
    json_put_text(json, "trial", claim_trainings[claim->trial].command);
    json_put_reading(json, "value", found->value);
    json_put_reading(json, "interval_95", found->interval);
    json_put_text(json, "unit", claim->unit);
    json_put_number(json, "low", claim->low);
    json_put_number(json, "high", claim->high);
    json_put_text(json, "of", claim->here);
    json_put_integer(json, "seeds", found->seeds);
    json_put_reading(json, "load_of_others", found->busy);
    json_put_text(json, "verdict", claim_verdict_name(found->verdict));
    json_end_object(json);
}
