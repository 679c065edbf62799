#include "cli/print/apart.h"

#include "cli/print/table.h"
#include "cli/print/text.h"
#include "compare/twin_words.h"

static const TableColumn columns[] = {
    {"layer", false, 0, 32}, {"activations", true, 1, 0},
    {"at most", true, 5, 0}, {"gradients", true, 2, 0},
    {"at most", true, 6, 0}, {"weights", true, 3, 0},
    {"at most", true, 7, 0}, {"beyond rounding at", false, 4, 0},
};

static void put_distance(Table *table, double distance, bool is_known) {
    char text[TEXT_SIZE];
    table_put(table, is_known ? text_number(text, distance, 2) : NULL, "");
}

void apart_line(const TwinReport *report, const char *precision, char text[APART_LINE_SIZE]) {
    char words[TWIN_WORDS_SIZE], run[48] = "";
    twin_words(report, precision, words);
    if (report->other > 0)
        snprintf(run, sizeof run, "run %lld%s in ", (long long)report->other,
                 report->is_gone ? " (removed)" : "");
    snprintf(text, APART_LINE_SIZE, "%s%s%s%s%s. %s", report->is_twin ? "of " : "", run,
             report->precision, report->ended[0] ? ", which " : "", report->ended, words);
}

bool apart_print(const TwinReport *report, const Terminal *terminal, Error *error) {
    if (report->layer_count == 0)
        return true;
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers");
    for (int i = 0; i < report->layer_count; i++) {
        const ApartLayer *layer = &report->layers[i];
        char place[TWIN_PLACE_SIZE];
        twin_place_words(&layer->first, place);
        table_put(table, layer->name, "");
        for (int kind = 0; kind < APART_KINDS; kind++) {
            put_distance(table, layer->last[kind], layer->has[kind]);
            put_distance(table, layer->most[kind], layer->has[kind]);
        }
        table_put(table, place[0] ? place : NULL, terminal_style(terminal, STYLE_BAD));
    }
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}
