#include "cli/report/html.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/sanitize.h"
#include "number/format.h"
#include "precision/policy.h"

static void put_escaped(FILE *out, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default: fputc(*text, out);
        }
}

typedef size_t Sanitizer(char *out, size_t size, const char *text, size_t length);

// Piece by piece, so that a text of any length passes; a piece ends where a character does.
static void put_sanitized(FILE *out, const char *text, size_t left, Sanitizer *sanitize) {
    enum { PIECE = 512, GROWTH = 8 };
    char clean[PIECE * GROWTH + 1];
    while (left > 0) {
        size_t length = left;
        if (length > PIECE) {
            length = PIECE;
            while (length > 1 && ((unsigned char)text[length] & 0xC0) == 0x80)
                length--;
        }
        sanitize(clean, sizeof clean, text, length);
        put_escaped(out, clean);
        text += length;
        left -= length;
    }
}

void html_text(FILE *out, const char *text) {
    put_sanitized(out, text, strlen(text), sanitize_line);
}

void html_block(FILE *out, const char *text) {
    put_sanitized(out, text, strlen(text), sanitize_text);
}

void html_format(FILE *out, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    html_text(out, text);
}

void html_begin_section(FILE *out, const char *title) {
    fputs("<section>\n<h2>", out);
    html_text(out, title);
    fputs("</h2>\n", out);
}

void html_end_section(FILE *out) {
    fputs("</section>\n", out);
}

void html_begin_table(FILE *out, const char *const *titles) {
    fputs("<div class=\"wide\"><table>\n<thead><tr>", out);
    for (; *titles; titles++) {
        bool is_number = **titles == '#';
        fputs(is_number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">", out);
        html_text(out, *titles + is_number);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

void html_end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

void html_begin_row(FILE *out) {
    fputs("<tr>", out);
}

void html_end_row(FILE *out) {
    fputs("</tr>\n", out);
}

static void put_cell(FILE *out, const char *class, const char *text) {
    fprintf(out, "<td%s%s%s>", class[0] ? " class=\"" : "", class, class[0] ? "\"" : "");
    if (text && text[0])
        html_text(out, text);
    else
        fputs("<span class=\"dim\">–</span>", out);
    fputs("</td>", out);
}

void html_cell(FILE *out, const char *text, const char *format) {
    put_cell(out, format ? html_format_class(format) : "", text);
}

void html_number_cell(FILE *out, const char *text) {
    put_cell(out, "n", text);
}

const char *html_format_class(const char *precision) {
    static const char *const classes[FORMAT_COUNT] = {
        [FORMAT_FP32] = "c-fp32",
        [FORMAT_TF32] = "c-tf32",
        [FORMAT_BF16] = "c-bf16",
        [FORMAT_FP16] = "c-fp16",
    };
    Format format = format_named(precision);
    for (const Preset *preset = preset_table; preset->name; preset++)
        if (strcmp(preset->name, precision) == 0)
            format = preset->low;
    if (format >= FORMAT_COUNT)
        return "";
    return classes[format] ? classes[format] : "c-fp8";
}
