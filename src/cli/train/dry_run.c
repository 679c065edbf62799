// `mpbench run --dry-run`: trains two steps, keeps nothing, and says what the run would be.
#include "cli/train/dry_run.h"

#include <inttypes.h>
#include <string.h>

#include "cli/print/table.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "cli/print/wrap.h"
#include "cli/train/training.h"
#include "run/plan.h"

// The second has copies, moments and what is kept from step to step as all later ones do.
enum { STEPS = 2 };

typedef struct DryRun {
    const Cli *cli;
    Plan plan;
    int64_t steps; // that it is read off; 0: none has ended
    Error error;   // why it could not be
} DryRun;

// While the script's optimizers are there.
static void look_at_step(void *context, Run *run) {
    DryRun *dry = context;
    if (run->step > STEPS || dry->error.code != ERROR_NONE)
        return;
    plan_clear(&dry->plan);
    if (plan_read(run, &dry->plan, &dry->error))
        dry->steps = run->step;
    if (run->step == STEPS || dry->error.code != ERROR_NONE)
        run_stop(run, "");
}

// ---- for people ---------------------------------------------------------------------------------

static void put_bytes(Table *table, int64_t bytes) {
    char text[TEXT_SIZE];
    table_put(table, text_bytes(text, (double)bytes), "");
}

static bool print_table(const Table *table, const Terminal *terminal, Error *error) {
    return table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                       terminal_style(terminal, STYLE_NONE), error);
}

static bool print_layers(const Terminal *terminal, const Plan *plan, Error *error) {
    static const TableColumn columns[] = {{"layer", false, 0, 40},
                                          {"numbers", true, 2, 0},
                                          {"set to", false, 1, 0},
                                          {"computes in", false, 0, 0}};
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < plan->layer_count; i++) {
        const PlanLayer *layer = &plan->layers[i];
        char text[TEXT_SIZE];
        table_put(table, layer->name, "");
        table_put(table, layer->parameters > 0 ? text_count(text, layer->parameters) : NULL, "");
        table_put(table, layer->own == LAYER_AUTO ? NULL : layer_precision_name(layer->own), "");
        table_put(table, format_name(layer->computed),
                  terminal_format_color(terminal, layer->computed));
    }
    bool done = print_table(table, terminal, error);
    table_free(table);
    return done;
}

static bool print_presets(const Terminal *terminal, const Plan *plan, Error *error) {
    static const TableColumn columns[] = {{"all under", false, 0, 0}, {"weights", true, 0, 0},
                                          {"gradients", true, 1, 0},  {"optimizer", true, 1, 0},
                                          {"together", true, 0, 0},   {"layers", false, 2, 0}};
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int k = 0; k < plan->preset_count; k++) {
        const PlanMemory *memory = &plan->presets[k].memory;
        const int64_t weights = memory->weights + memory->masters;
        char text[2 * TEXT_SIZE];
        int low = 0;
        for (int i = 0; i < plan->layer_count; i++)
            low += plan->layers[i].formats[k] != FORMAT_FP32;
        table_put(table, plan->presets[k].name, "");
        put_bytes(table, weights);
        put_bytes(table, memory->gradients);
        put_bytes(table, memory->optimizer);
        put_bytes(table, weights + memory->gradients + memory->optimizer);
        snprintf(text, sizeof text, "%d of %d below fp32", low, plan->layer_count);
        table_put(table, text, "");
    }
    putchar('\n');
    bool done = print_table(table, terminal, error);
    table_free(table);
    return done;
}

static void say(const Terminal *terminal, const char *text) {
    wrap_print(stdout, text, terminal_width(terminal), 0, 0);
    putchar('\n');
}

static bool print(const DryRun *dry, const Run *run, Error *error) {
    const Plan *plan = &dry->plan;
    const Terminal terminal = terminal_of(stdout, dry->cli->color);
    char text[512], count[TEXT_SIZE], peak[TEXT_SIZE], activations[TEXT_SIZE], other[TEXT_SIZE];
    if (!print_layers(&terminal, plan, error) || !print_presets(&terminal, plan, error))
        return false;
    const RecordMemory *most = &plan->measured;
    snprintf(text, sizeof text,
             "\nIn %s on %s %s numbers are trained. Measured over %" PRId64
             " step%s: %s at most, of it activations %s, gradients on their way %s. An evaluation "
             "may take more.",
             run->precision, run->device->label, text_count(count, plan->parameters), dry->steps,
             dry->steps == 1 ? "" : "s", text_bytes(peak, (double)most->peak),
             text_bytes(activations, (double)most->activations),
             text_bytes(other, (double)most->gradients));
    say(&terminal, text);
    say(&terminal, "What stands in the second table is computed, from the list of weights and the "
                   "formats; weights with their fp32 masters, and without what an optimizer of the "
                   "script's own keeps, which only the measured peak has. Nothing was kept.");
    return true;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void put_computed(JsonWriter *json, const char *key, const PlanMemory *memory) {
    json_key(json, key);
    json_begin_object(json);
    json_put_integer(json, "weights", memory->weights);
    json_put_integer(json, "masters", memory->masters);
    json_put_integer(json, "gradients", memory->gradients);
    json_put_integer(json, "optimizer", memory->optimizer);
    json_end_object(json);
}

static void put_layer(JsonWriter *json, const Plan *plan, const PlanLayer *layer) {
    json_begin_object(json);
    json_put_text(json, "name", layer->name);
    if (layer->parent >= 0)
        json_put_text(json, "parent", plan->layers[layer->parent].name);
    else
        json_put_null(json, "parent");
    json_put_integer(json, "parameters", layer->parameters);
    json_put_boolean(json, "multiplies", layer->has_products);
    json_put_text(json, "set", layer_precision_name(layer->own));
    json_put_text(json, "precision", format_name(layer->computed));
    json_key(json, "under");
    json_begin_object(json);
    for (int k = 0; k < plan->preset_count; k++)
        json_put_text(json, plan->presets[k].name, format_name(layer->formats[k]));
    json_end_object(json);
    json_end_object(json);
}

static void write_json(const DryRun *dry, const Run *run) {
    const Plan *plan = &dry->plan;
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_text(&json, "experiment", run->experiment);
    json_put_text(&json, "precision", run->precision);
    json_put_text(&json, "why", run->precision_why[0] ? run->precision_why : NULL);
    json_put_text(&json, "device", run->device->label);
    json_put_integer(&json, "parameters", plan->parameters);
    json_put_integer(&json, "steps", dry->steps);
    put_computed(&json, "computed", &plan->memory);
    record_write_memory(&json, "measured", &plan->measured);
    json_key(&json, "under");
    json_begin_object(&json);
    for (int k = 0; k < plan->preset_count; k++)
        put_computed(&json, plan->presets[k].name, &plan->presets[k].memory);
    json_end_object(&json);
    json_key(&json, "layers");
    json_begin_array(&json);
    for (int i = 0; i < plan->layer_count; i++)
        put_layer(&json, plan, &plan->layers[i]);
    json_end_array(&json);
    json_end_object(&json);
    putchar('\n');
}

// ---- the run ------------------------------------------------------------------------------------

static bool report(void *context, const Run *run, Error *error) {
    const DryRun *dry = context;
    if (dry->error.code != ERROR_NONE) {
        *error = dry->error;
        return false;
    }
    if (dry->steps == 0)
        return error_fail(error, ERROR_FAILED,
                          "%s ended before its first step: there is nothing to read off",
                          run->experiment);
    if (!dry->cli->json)
        return print(dry, run, error);
    write_json(dry, run);
    return true;
}

bool dry_run(Cli *cli, const char *path, Error *error) {
    DryRun dry = {.cli = cli};
    const TrainingWatch watch = {&dry, look_at_step, report};
    cli->no_history = true;
    cli->checkpoint_every = 0;
    bool done = training_run(cli, &(TrainingPlan){.path = path, .watch = &watch}, error);
    plan_clear(&dry.plan);
    return done;
}
