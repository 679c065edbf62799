#include "cli/train/matrix.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/load.h"
#include "base/text_stream.h"
#include "base/whole_path.h"
#include "cli/experiments.h"
#include "cli/train/known_parameters.h"
#include "cli/train/training.h"
#include "store/runs.h"

// ---- making -------------------------------------------------------------------------------------

static bool fail_memory(Error *error) {
    return error_fail(error, ERROR_MEMORY, "no memory for the matrix");
}

static bool add_value(MatrixKey *key, const char *text, size_t length, Error *error) {
    char **grown = realloc(key->values, (size_t)(key->count + 1) * sizeof *grown);
    if (!grown)
        return fail_memory(error);
    key->values = grown;
    if (!(grown[key->count] = strndup(text, length)))
        return fail_memory(error);
    key->count++;
    for (int i = 0; i < key->count - 1; i++)
        if (strcmp(grown[i], grown[key->count - 1]) == 0)
            return error_fail(error, ERROR_USAGE, "matrix: %.60s: %.60s is named twice",
                              key->name ? key->name : key->option, grown[i]);
    return true;
}

static bool split(MatrixKey *key, const char *text, Error *error) {
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (!add_value(key, text, length, error))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

// The key of that option and name, a new one if need be; NULL: there are too many.
static MatrixKey *key_of(Matrix *matrix, const char *option, const char *name, bool *is_new,
                         Error *error) {
    *is_new = false;
    for (int k = 0; k < matrix->key_count; k++) {
        MatrixKey *key = &matrix->keys[k];
        if (strcmp(key->option, option) == 0 && (!name || strcmp(key->name, name) == 0))
            return key;
    }
    if (matrix->key_count == MATRIX_MOST_KEYS) {
        error_fail(error, ERROR_USAGE, "matrix: more than %d things that vary", MATRIX_MOST_KEYS);
        return NULL;
    }
    *is_new = true;
    MatrixKey *key = &matrix->keys[matrix->key_count++];
    *key = (MatrixKey){.option = option, .name = name};
    return key;
}

static bool add_option_key(Matrix *matrix, const char *option, const char *values, Error *error) {
    bool is_new;
    MatrixKey *key = values ? key_of(matrix, option, NULL, &is_new, error) : NULL;
    return !values || (key && split(key, values, error));
}

static bool add_keys(const Cli *cli, Matrix *matrix, Error *error) {
    bool is_new;
    matrix->precisions.option = "precision";
    if (cli->run.precision && !split(&matrix->precisions, cli->run.precision, error))
        return false;
    for (int i = 0; i < cli->run.setting_count; i++) {
        const RunSetting *setting = &cli->run.settings[i];
        MatrixKey *key = key_of(matrix, "set", setting->key, &is_new, error);
        if (key && !is_new)
            return error_fail(error, ERROR_USAGE,
                              "matrix: --set %.60s is given twice; write %.60s=V1,V2", setting->key,
                              setting->key);
        if (!key || !split(key, setting->value, error))
            return false;
    }
    // The formats that a pattern is given are its values, given together or one by one.
    for (int i = 0; i < cli->run.layer_count; i++) {
        const RunLayerRule *rule = &cli->run.layers[i];
        const char *format = layer_precision_name(rule->precision);
        MatrixKey *key = key_of(matrix, "layer", rule->pattern, &is_new, error);
        if (!key || !add_value(key, format, strlen(format), error))
            return false;
    }
    return add_option_key(matrix, "loss-scale", cli->run.loss_scale, error) &&
           add_option_key(matrix, "keep-fp32", cli->run.keep_fp32, error);
}

// A key's value as its option has it: "lr=0.1", "head=fp32", "dynamic".
static void value_text(const MatrixKey *key, int value, char text[RECORD_TEXT_SIZE]) {
    if (key->name)
        snprintf(text, RECORD_TEXT_SIZE, "%s=%s", key->name, key->values[value]);
    else
        snprintf(text, RECORD_TEXT_SIZE, "%s", key->values[value]);
}

// Seeds turn fastest, then precisions: what is compared is run close together.
static bool add_cells(const Cli *cli, Matrix *matrix, Error *error) {
    int64_t seeds = cli->seeds > 0 ? cli->seeds : 1, total = seeds;
    int precisions = matrix->precisions.count > 0 ? matrix->precisions.count : 1;
    total = seeds > MATRIX_MOST_CELLS ? seeds : seeds * precisions;
    for (int k = 0; k < matrix->key_count && total <= MATRIX_MOST_CELLS; k++)
        total *= matrix->keys[k].count;
    if (total > MATRIX_MOST_CELLS)
        return error_fail(error, ERROR_USAGE, "matrix: more than %d combinations",
                          MATRIX_MOST_CELLS);
    for (int64_t i = 0; i < total; i++) {
        MatrixCell *cell = &matrix->cells[matrix->cell_count++];
        int64_t rest = i / seeds;
        cell->seed = 1 + i % seeds;
        cell->precision = (int)(rest % precisions);
        rest /= precisions;
        for (int k = matrix->key_count - 1; k >= 0; k--) {
            cell->values[k] = (int)(rest % matrix->keys[k].count);
            rest /= matrix->keys[k].count;
        }
    }
    return true;
}

static bool check_settings(const Matrix *matrix, const KnownParameters *known, Error *error) {
    for (int k = 0; k < matrix->key_count; k++) {
        const MatrixKey *key = &matrix->keys[k];
        for (int v = 0; strcmp(key->option, "set") == 0 && v < key->count; v++)
            if (!known_parameters_check(known, key->name, key->values[v], error))
                return false;
    }
    return true;
}

// What no run would take is refused before the first one trains.
static bool check_values(const Cli *cli, const Matrix *matrix, const char *path, Error *error) {
    KnownParameters known;
    bool done = known_parameters_read(&known, path, cli->trust, error);
    done = done && check_settings(matrix, &known, error);
    known_parameters_clear(&known);
    for (int i = 0; i < matrix->precisions.count && done; i++)
        done = training_check_precision(matrix->precisions.values[i], cli->run.device, error);
    return done;
}

// What may vary is left out: a matrix that grows keeps what it has. A tag is part of it: who asks
// for one looks for all of these runs by it, as claims do.
static bool specify(const Cli *cli, Matrix *matrix, Error *error) {
    char path[EXPERIMENT_PATH_SIZE];
    if (!experiment_find(matrix->experiment, path, sizeof path, error) ||
        !check_values(cli, matrix, path, error))
        return false;
    whole_path(matrix->path, sizeof matrix->path, path);
    TextStream text;
    if (!text_stream_open(&text))
        return fail_memory(error);
    FILE *out = text.stream;
    const bool done = matrix_write_code(out, path, error);
    if (cli->run.recipe)
        fprintf(out, "recipe %s\n", cli->run.recipe);
    if (cli->run.device)
        fprintf(out, "device %s\n", cli->run.device);
    if (cli->run.tag)
        fprintf(out, "tag %s\n", cli->run.tag);
    fprintf(out, "steps %" PRId64 "\nepochs %" PRId64 "\n", cli->run.steps, cli->run.epochs);
    if (!text_stream_close(&text))
        return done && fail_memory(error);
    matrix->specification = text.text;
    return done;
}

Matrix *matrix_new(const Cli *cli, Error *error) {
    Matrix *matrix = calloc(1, sizeof *matrix);
    if (!matrix) {
        fail_memory(error);
        return NULL;
    }
    int total = cli->run.threads > 0 ? cli->run.threads : load_processors();
    matrix->experiment = cli->operands[0];
    matrix->workers = cli->workers > 0 ? (int)(cli->workers < total ? cli->workers : total) : 1;
    matrix->threads = total / matrix->workers;
    if (!add_keys(cli, matrix, error) || !add_cells(cli, matrix, error) ||
        !specify(cli, matrix, error)) {
        matrix_free(matrix);
        return NULL;
    }
    return matrix;
}

static void clear_key(MatrixKey *key) {
    for (int i = 0; i < key->count; i++)
        free(key->values[i]);
    free(key->values);
}

void matrix_free(Matrix *matrix) {
    if (!matrix)
        return;
    clear_key(&matrix->precisions);
    for (int i = 0; i < matrix->key_count; i++)
        clear_key(&matrix->keys[i]);
    free(matrix->specification);
    free(matrix);
}

int matrix_count(const Matrix *matrix, CellState state) {
    int count = 0;
    for (int i = 0; i < matrix->cell_count; i++)
        count += matrix->cells[i].state == state;
    return count;
}

void matrix_cell_name(const Matrix *matrix, const MatrixCell *cell, char name[MATRIX_NAME_SIZE]) {
    size_t used = 0;
    name[0] = 0;
    if (matrix->precisions.count > 0)
        used += (size_t)snprintf(name, MATRIX_NAME_SIZE, "%.40s, ",
                                 matrix->precisions.values[cell->precision]);
    for (int k = 0; k < matrix->key_count && used + 90 < MATRIX_NAME_SIZE; k++) {
        const MatrixKey *key = &matrix->keys[k];
        used += (size_t)snprintf(name + used, MATRIX_NAME_SIZE - used, "%.30s=%.30s, ",
                                 key->name ? key->name : key->option, key->values[cell->values[k]]);
    }
    snprintf(name + used, MATRIX_NAME_SIZE - used, "seed %" PRId64, cell->seed);
}

// ---- in the history -----------------------------------------------------------------------------

static const char *option_of(const RunRecord *run, const char *name) {
    for (int i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, name) == 0)
            return run->options[i].value;
    return NULL;
}

static bool has_option(const RunRecord *run, const char *name, const char *value) {
    for (int i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, name) == 0 && strcmp(run->options[i].value, value) == 0)
            return true;
    return false;
}

static bool may_vary(const char *option) {
    static const char *const options[] = {"set", "layer", "loss-scale", "keep-fp32"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i], option) == 0)
            return true;
    return false;
}

static bool is_of_cell(const Matrix *matrix, const MatrixCell *cell, const RunRecord *run) {
    const char *precision = option_of(run, "precision");
    char text[RECORD_TEXT_SIZE];
    int varied = 0;
    if (run->seed != cell->seed)
        return false;
    if (matrix->precisions.count > 0
            ? !precision || strcmp(precision, matrix->precisions.values[cell->precision]) != 0
            : precision != NULL)
        return false;
    for (int i = 0; i < run->option_count; i++)
        varied += may_vary(run->options[i].name);
    for (int k = 0; k < matrix->key_count; k++) {
        value_text(&matrix->keys[k], cell->values[k], text);
        if (!has_option(run, matrix->keys[k].option, text))
            return false;
    }
    return varied == matrix->key_count;
}

void matrix_note_run(Matrix *matrix, const RunRecord *run, int64_t goes_on_from) {
    bool in_progress = run_status_goes_on(run->status);
    for (int i = 0; i < matrix->cell_count; i++) {
        MatrixCell *cell = &matrix->cells[i];
        if (!is_of_cell(matrix, cell, run))
            continue;
        if (run->status == RUN_FINISHED && run->id > cell->run) {
            cell->run = run->id;
            cell->state = CELL_DONE;
        } else if (in_progress && cell->state == CELL_MISSING) {
            cell->state = CELL_ELSEWHERE;
        } else if (goes_on_from > cell->stopped_step) {
            cell->stopped = run->id;
            cell->stopped_step = goes_on_from;
        }
    }
}

// ---- the child's command line -------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static bool add(MatrixArguments *arguments,
                                                      const char *format, ...) {
    char text[STORE_PATH_SIZE + EXPERIMENT_PATH_SIZE];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (length < 0 || length >= (int)sizeof text || arguments->count + 1 >= MATRIX_MOST_ARGUMENTS)
        return false;
    return (arguments->list[arguments->count++] = strdup(text)) != NULL;
}

static bool add_option(MatrixArguments *arguments, const char *name, const char *value) {
    return !value || (add(arguments, "--%s", name) && add(arguments, "%s", value));
}

static bool add_count(MatrixArguments *arguments, const char *name, int64_t value) {
    return value == 0 || (add(arguments, "--%s", name) && add(arguments, "%" PRId64, value));
}

static bool add_resume(const Cli *cli, const MatrixCell *cell, MatrixArguments *arguments) {
    return add(arguments, "resume") && add_option(arguments, "db", cli->database) &&
           add(arguments, "%" PRId64, cell->stopped);
}

static bool add_run(const Cli *cli, const Matrix *matrix, const MatrixCell *cell,
                    MatrixArguments *arguments) {
    bool done = add(arguments, "run") &&
                add_option(arguments, "precision",
                           matrix->precisions.count > 0 ? matrix->precisions.values[cell->precision]
                                                        : NULL) &&
                add_option(arguments, "recipe", cli->run.recipe) &&
                add_option(arguments, "device", cli->run.device) &&
                add_option(arguments, "tag", cli->run.tag) &&
                add_option(arguments, "note", cli->run.note) &&
                add_option(arguments, "db", cli->database) &&
                add_count(arguments, "steps", cli->run.steps) &&
                add_count(arguments, "epochs", cli->run.epochs) &&
                add_count(arguments, "threads", matrix->threads) &&
                add_count(arguments, "matrix", matrix->id) && add(arguments, "--seed") &&
                add(arguments, "%" PRId64, cell->seed);
    for (int k = 0; k < matrix->key_count && done; k++) {
        char text[RECORD_TEXT_SIZE];
        value_text(&matrix->keys[k], cell->values[k], text);
        done = add_option(arguments, matrix->keys[k].option, text);
    }
    return done;
}

bool matrix_arguments(const Cli *cli, const Matrix *matrix, const MatrixCell *cell,
                      MatrixArguments *arguments, Error *error) {
    *arguments = (MatrixArguments){.count = 0};
    bool done = add(arguments, "%s", cli->arguments[0]) &&
                (cell->stopped > 0 ? add_resume(cli, cell, arguments)
                                   : add_run(cli, matrix, cell, arguments)) &&
                add(arguments, "--quiet");
    if (done && cli->run.no_capture)
        done = add(arguments, "--no-capture");
    if (done && cli->trust)
        done = add(arguments, "--trust");
    if (done && cell->stopped == 0)
        done = add(arguments, "--") && add(arguments, "%s", matrix->experiment);
    return done || error_fail(error, ERROR_MEMORY, "matrix: the arguments of a run are too long");
}

void matrix_clear_arguments(MatrixArguments *arguments) {
    for (int i = 0; i < arguments->count; i++)
        free(arguments->list[i]);
    arguments->count = 0;
}
