// The first part of the page of `mpbench show`: what a run is, what came of it, and what it took.
#include <inttypes.h>
#include <math.h>

#include "base/shortest.h"
#include "cli/cli.h"
#include "cli/history/history.h"
#include "cli/history/show.h"
#include "compare/compare.h"

// ---- the head -----------------------------------------------------------------------------------

static void print_run(const ShowPage *page, const RunRecord *run) {
    fprintf(page->line, "%s%" PRId64 " ", page->strong, run->id);
    cli_print_outside(page->line, run->name);
    fprintf(page->line, "%s %s%s%s", page->plain, history_status_style(&page->terminal, run),
            history_status(run), page->plain);
    show_end_line(page, 2);
    show_begin_row(page, "precision");
    fprintf(page->line, "%s", history_precision_style(&page->terminal, run->precision));
    char precision[RECORD_PRECISION_SIZE];
    record_precision_brief(run, precision);
    cli_print_outside(page->line, precision);
    fprintf(page->line, "%s on ", page->plain);
    cli_print_outside(page->line, run->device);
    fputs(" (", page->line);
    cli_print_outside(page->line, run->device_name);
    fprintf(page->line, "), %d thread%s, seed %" PRId64, run->threads, run->threads == 1 ? "" : "s",
            run->seed);
    show_end_row(page);
    // Of a run that was stopped it is what stopped it: a profile ends so, when it has seen enough.
    show_row(page, run->status == RUN_STOPPED ? "ended by" : "error", run->error);
    show_row(page, "experiment", run->experiment);
    show_row(page, "script", run->script_path);
    show_row(page, "tag", run->tag);
    show_row(page, "note", run->note);
    char text[TEXT_SIZE];
    if (run->parent > 0 || run->parent_step > 0) {
        char parent[32] = "a run that was removed,";
        if (run->parent > 0)
            snprintf(parent, sizeof parent, "%" PRId64, run->parent);
        show_begin_row(page, "fork of");
        fprintf(page->line, "%s at step %s", parent, text_count(text, run->parent_step));
        show_end_row(page);
    }
}

static void print_parameters(const ShowPage *page, const RunRecord *run) {
    char text[TEXT_SIZE];
    if (run->parameter_count > 0)
        show_begin_row(page, "parameters");
    for (int i = 0; i < run->parameter_count; i++) {
        const RecordParameter *parameter = &run->parameters[i];
        fputs(i > 0 ? ", " : "", page->line);
        cli_print_outside(page->line, parameter->name);
        fputc(' ', page->line);
        switch (parameter->kind) {
        case RECORD_NUMBER: fputs(text_number(text, parameter->number, 6), page->line); break;
        case RECORD_INTEGER: fprintf(page->line, "%" PRId64, parameter->integer); break;
        case RECORD_BOOLEAN: fputs(parameter->integer ? "true" : "false", page->line); break;
        case RECORD_TEXT: cli_print_outside(page->line, parameter->text); break;
        }
    }
    if (run->parameter_count > 0)
        show_end_row(page);
    int said = 0;
    for (int i = 0; i < run->option_count; i++) {
        if (!record_option_is_typed(&run->options[i]))
            continue;
        if (said == 0)
            show_begin_row(page, "options");
        fprintf(page->line, "%s--", said++ > 0 ? " " : "");
        cli_print_outside(page->line, run->options[i].name);
        fputs(run->options[i].value[0] ? " " : "", page->line);
        cli_print_outside(page->line, run->options[i].value);
    }
    if (said > 0)
        show_end_row(page);
}

// ---- results ------------------------------------------------------------------------------------

static void print_counts(const ShowPage *page, const RunRecord *run) {
    char steps[TEXT_SIZE], applied[TEXT_SIZE], skipped[TEXT_SIZE], total[TEXT_SIZE];
    show_begin_row(page, "steps");
    fputs(text_count(steps, run->step), page->line);
    if (run->total_steps > 0)
        fprintf(page->line, " of %s", text_count(total, run->total_steps));
    fprintf(page->line, ": %s applied, %s skipped", text_count(applied, run->applied),
            text_count(skipped, run->skipped));
    if (run->epochs > 0)
        fprintf(page->line, "; epoch %" PRId64 " of %" PRId64, run->epoch, run->epochs);
    show_end_row(page);
}

static void print_results(const ShowPage *page, const RunRecord *run) {
    char first[TEXT_SIZE], last[TEXT_SIZE], best[TEXT_SIZE];
    if (run->has_loss) {
        show_begin_row(page, "loss");
        fprintf(page->line, "%s -> %s, lowest %s", text_number(first, run->loss_first, 4),
                text_number(last, run->loss_last, 4), history_reading(best, run->loss_best, 4));
        show_end_row(page);
    }
    for (int i = 0; i < run->metric_count; i++)
        show_row(page, run->metrics[i].name, text_number(first, run->metrics[i].value, 4));
    if (run->scale_max > 1 || run->scale_min < 1) {
        show_begin_row(page, "scale");
        fprintf(page->line, "%s, between %s and %s (", shortest_of_float(run->scale_last).text,
                shortest_of_float(run->scale_min).text, shortest_of_float(run->scale_max).text);
        cli_print_outside(page->line, run->scale_rule);
        fputc(')', page->line);
        show_end_row(page);
    }
}

static void write_memory(const ShowPage *page, const char *name, const RecordMemory *memory) {
    char text[TEXT_SIZE];
    const struct {
        const char *name;
        int64_t bytes;
    } rows[] = {{"weights", memory->weights},         {"masters", memory->masters},
                {"activations", memory->activations}, {"gradients", memory->gradients},
                {"optimizer", memory->optimizer},     {"workspace", memory->workspace}};
    show_begin_row(page, name);
    fprintf(page->line, "%s at most", history_size(text, memory->peak));
    for (size_t i = 0, shown = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].bytes > 0)
            fprintf(page->line, "%s %s %s", shown++ ? "," : ":", rows[i].name,
                    history_size(text, rows[i].bytes));
    show_end_row(page);
}

static void write_energy(const ShowPage *page, const RunRecord *run) {
    const double joules = compare_joules(run, page->watts);
    char text[TEXT_SIZE];
    show_begin_row(page, "energy");
    if (isnan(joules))
        fputs("unknown", page->line);
    else
        fprintf(page->line, "%s J", text_number(text, joules, 4));
    if (!isnan(joules) && !isnan(page->grams_per_kwh))
        fprintf(page->line, ", %s g of CO2",
                text_number(text, compare_kwh(joules) * page->grams_per_kwh, 3));
    if (!isnan(joules) && isnan(run->energy_j))
        fprintf(page->line, ": stated, not measured, %s W for as long as it took",
                text_number(text, page->watts, 4));
    show_end_row(page);
}

static void print_costs(const ShowPage *page, const RunRecord *run) {
    char text[TEXT_SIZE], wall[TEXT_SIZE];
    show_begin_row(page, "time");
    if (run->wall_s < 60)
        fprintf(page->line, "%s s", text_number(wall, run->wall_s, 3));
    else
        fputs(text_duration(wall, run->wall_s), page->line);
    if (run->parent_step > 0)
        fprintf(page->line, " since step %s", text_count(text, run->parent_step));
    fprintf(page->line, ", began %s", history_time(text, run->created_ms));
    show_end_row(page);
    if (!isnan(run->steps_per_s)) {
        show_begin_row(page, "speed");
        fprintf(page->line, "in training %s steps/s", text_number(text, run->steps_per_s, 4));
        if (!isnan(run->samples_per_s))
            fprintf(page->line, ", %s samples/s", text_number(text, run->samples_per_s, 5));
        if (!isnan(run->cast_share))
            fprintf(page->line, ", %.0f %% of the time casting", 100 * run->cast_share);
        show_end_row(page);
    }
    write_memory(page, "memory", &run->memory);
    RecordMemory in_steps;
    if (record_memory_in_steps(run, &in_steps) && in_steps.peak < run->memory.peak)
        write_memory(page, "in steps", &in_steps);
    write_energy(page, run);
}

void show_head(const ShowPage *page, const RunRecord *run) {
    print_run(page, run);
    print_parameters(page, run);
}

void show_results(const ShowPage *page, const RunRecord *run) {
    print_counts(page, run);
    print_results(page, run);
    print_costs(page, run);
}
