// cli/report/html.h: text and tables as HTML. What came from outside is sanitised, then escaped, so
// that no name of a run or a layer is ever markup. Writes to the stream alone; whoever opened it
// asks at the end whether all of it went out.
#pragma once

#include <stdint.h>
#include <stdio.h>

void html_text(FILE *out, const char *text);  // one line: line ends become visible
void html_block(FILE *out, const char *text); // several lines, as they are
// As html_text, from a format; the result may be as long as a diagnosis.
void html_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

// <section> with a heading that has a name of its own, so that a page can link to it.
void html_begin_section(FILE *out, const char *title);
void html_end_section(FILE *out);

// A table that scrolls by itself where it is wider than the page. `titles` ends with NULL; a title
// that begins with '#' is that of a column of numbers.
void html_begin_table(FILE *out, const char *const *titles);
void html_end_table(FILE *out);
void html_begin_row(FILE *out);
void html_end_row(FILE *out);
// The cell of a row; NULL or "" is unknown, a dash. `format` colours it as the format that it
// names; NULL: it names none.
void html_cell(FILE *out, const char *text, const char *format);
void html_number_cell(FILE *out, const char *text);

// "c-fp16": the class of the style sheet that colours what is of the format that a preset names.
const char *html_format_class(const char *precision);
