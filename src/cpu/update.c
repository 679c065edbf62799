// The optimizers' updates: fp32 inside, the low copy of the weights rewritten in the same pass.
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/multi.h"
#include "kernel/random.h"

typedef enum Pass { PASS_WHOLE, PASS_LAMB_MOMENTS, PASS_LAMB_STEP } Pass;

typedef struct ItemConstants { // what each tensor has of its own
    float rate;                // of the schedule, for its group
    float step1, step2;        // bias correction
    bool first;                // no update of it was done before
} ItemConstants;

typedef struct Update {
    const Device *device;
    const CpuMulti *table;
    const UpdateRule *rule;
    const UpdateItem *items;
    Pieces pieces;
    CpuUpdate constants; // what is the same for all tensors
    ItemConstants *own;  // one a tensor
    Pass pass;
    double *squares; // LAMB: of parameter and direction, a pair a piece
    double *moved;   // of change and parameter, a pair a piece, where they are asked for
    float *ratio;    // LAMB: one a tensor
    uint64_t *block; // stochastic rounding: where each tensor's random numbers begin
} Update;

// A stretch of one tensor as fp32: in place, or in buffers that are loaded and stored.
typedef struct Stretch {
    float *value;
    _Alignas(64) float buffer[CPU_BLOCK];
} Stretch;

static float *stretch_load(const Device *device, const View *view, int64_t at, int64_t size,
                           Stretch *stretch) {
    stretch->value = NULL;
    if (!view->data)
        return NULL;
    if (view->format == FORMAT_FP32) {
        stretch->value = cpu_at_mutable(view, at);
    } else {
        cpu_load(device, view->format, cpu_at(view, at), stretch->buffer, size);
        stretch->value = stretch->buffer;
    }
    return stretch->value;
}

static void stretch_store(const Device *device, const View *view, int64_t at, int64_t size,
                          const Stretch *stretch) {
    if (stretch->value == stretch->buffer)
        cpu_store(device, view->format, stretch->buffer, cpu_at_mutable(view, at), size);
}

static void parameter_store(const Update *work, int item, int64_t at, int64_t size,
                            const Stretch *stretch) {
    const View *parameter = &work->items[item].parameter, *low = &work->items[item].low;
    if (work->rule->stochastic && parameter->format == FORMAT_BF16) {
        uint32_t words[CPU_BLOCK];
        cpu_simd(work->device)
            ->random->words(work->rule->random.seed, work->block[item] + (uint64_t)at / 4, words,
                            size);
        work->table->stochastic_bf16(stretch->value, words, cpu_at_mutable(parameter, at), size);
    } else {
        stretch_store(work->device, parameter, at, size, stretch);
    }
    if (!low->data)
        return;
    if (parameter->format == FORMAT_FP32) {
        cpu_store(work->device, low->format, stretch->value, cpu_at_mutable(low, at), size);
    } else { // a rounding of what the parameter is now
        float values[CPU_BLOCK];
        cpu_load(work->device, parameter->format, cpu_at(parameter, at), values, size);
        cpu_store(work->device, low->format, values, cpu_at_mutable(low, at), size);
    }
}

// What a stretch of one tensor became, against what it was: in fp32 where it is kept so, else as it
// was rounded.
static void measure(const Update *work, int item, int64_t piece, int64_t at, int64_t size,
                    const float *before, const float *after) {
    const View *parameter = &work->items[item].parameter;
    float rounded[CPU_BLOCK];
    if (parameter->format != FORMAT_FP32) {
        cpu_load(work->device, parameter->format, cpu_at(parameter, at), rounded, size);
        after = rounded;
    }
    enum { LANES = 8 }; // sums side by side: one would wait for itself
    double moved[LANES] = {0}, was[LANES] = {0};
    for (int64_t i = 0; i < size; i++) {
        double change = (double)after[i] - (double)before[i];
        moved[i % LANES] += change * change;
        was[i % LANES] += (double)before[i] * (double)before[i];
    }
    for (int lane = 0; lane < LANES; lane++) {
        work->moved[2 * piece] += moved[lane];
        work->moved[2 * piece + 1] += was[lane];
    }
}

static void update_stretch(const Update *work, int item, int64_t piece, int64_t at, int64_t size) {
    const UpdateItem *tensor = &work->items[item];
    const CpuMulti *table = work->table;
    CpuUpdate constants = work->constants;
    const ItemConstants *own = &work->own[item];
    constants.rate = own->rate;
    constants.step1 = own->step1;
    constants.step2 = own->step2;
    constants.first = own->first;
    constants.decay = tensor->weight_decay;
    Stretch parameter, gradient, moment[2];
    float *p = stretch_load(work->device, &tensor->parameter, at, size, &parameter);
    float *m = stretch_load(work->device, &tensor->moment[0], at, size, &moment[0]);
    float *v = stretch_load(work->device, &tensor->moment[1], at, size, &moment[1]);
    float *g = stretch_load(work->device, &tensor->gradient, at, size, &gradient);
    bool is_measured = work->rule->measures && tensor->moved && work->pass != PASS_LAMB_MOMENTS;
    float before[CPU_BLOCK];
    if (is_measured)
        memcpy(before, p, (size_t)size * sizeof *before);
    if (work->pass == PASS_LAMB_MOMENTS) {
        table->lamb_moments(p, g, m, v, size, &constants, &work->squares[2 * piece],
                            &work->squares[2 * piece + 1]);
    } else if (work->pass == PASS_LAMB_STEP) {
        constants.ratio = work->ratio[item];
        table->lamb_step(p, m, v, size, &constants);
    } else if (work->rule->kind == OPTIMIZER_SGD) {
        table->sgd(p, g, constants.momentum != 0 ? m : NULL, size, &constants);
    } else if (work->rule->kind == OPTIMIZER_ADAM) {
        table->adam(p, g, m, v, size, &constants);
    } else {
        table->adamw(p, g, m, v, size, &constants);
    }
    if (work->pass != PASS_LAMB_STEP) {
        stretch_store(work->device, &tensor->moment[0], at, size, &moment[0]);
        stretch_store(work->device, &tensor->moment[1], at, size, &moment[1]);
    }
    if (work->pass != PASS_LAMB_MOMENTS)
        parameter_store(work, item, at, size, &parameter);
    if (is_measured)
        measure(work, item, piece, at, size, before, p);
}

static void update_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Update *work = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int item = pieces_item(&work->pieces, piece);
        int64_t at = (piece - work->pieces.first[item]) * PIECE_ELEMENTS;
        int64_t last = cpu_smaller(at + PIECE_ELEMENTS, view_count(&work->items[item].parameter));
        for (int64_t size; at < last; at += size) {
            size = cpu_smaller(CPU_BLOCK, last - at);
            update_stretch(work, item, piece, at, size);
        }
    }
}

// The norm of all gradients as they are read, clipping included.
static double gradient_norm(const Device *device, const UpdateItem *items, int count,
                            const StepFlags *flags) {
    if (flags)
        return sqrt(flags->norm_squared) * (double)flags->clip;
    double sum = 0;
    for (int k = 0; k < count; k++) {
        int64_t elements = view_count(&items[k].gradient);
        Stretch stretch;
        CPU_EACH_BLOCK(at, size, 0, elements) {
            const float *g = stretch_load(device, &items[k].gradient, at, size, &stretch);
            for (int64_t i = 0; i < size; i++)
                sum += (double)g[i] * (double)g[i];
        }
    }
    return sqrt(sum);
}

static CpuUpdate constants_of(const Device *device, const UpdateRule *rule, const UpdateItem *items,
                              int count, const StepFlags *flags) {
    CpuUpdate constants = {
        .momentum = rule->momentum,
        .beta1 = rule->beta1,
        .beta2 = rule->beta2,
        .rest1 = (float)(1 - (double)rule->beta1),
        .rest2 = (float)(1 - (double)rule->beta2),
        .epsilon = rule->epsilon,
        .nesterov = rule->nesterov,
    };
    const StepFlags *measured = rule->measured ? rule->measured : flags;
    double clip = flags ? (double)flags->clip : 1;
    if (rule->max_grad_norm > 0)
        clip /=
            fmax(1, gradient_norm(device, items, count, measured) / (double)rule->max_grad_norm);
    constants.clip = (float)clip;
    return constants;
}

// Neighbours mostly have the same count and group: what is the same is computed once.
static void own_constants(const UpdateRule *rule, const UpdateItem *items, int count,
                          uint64_t applied, ItemConstants *own) {
    uint64_t steps = 0;
    for (int i = 0; i < count; i++) {
        uint64_t before = steps;
        steps = items[i].steps ? *items[i].steps : applied;
        own[i] = i > 0 ? own[i - 1] : (ItemConstants){.step1 = 1, .step2 = 1};
        own[i].first = steps == 0;
        if (i == 0 || items[i].group != items[i - 1].group)
            own[i].rate = (float)update_rate(rule, items[i].group, applied);
        if (rule->bias_correction && (i == 0 || steps != before)) {
            double t = (double)(steps + 1);
            own[i].step1 = (float)(1 / (1 - pow((double)rule->beta1, t)));
            own[i].step2 = (float)(1 / (1 - pow((double)rule->beta2, t)));
        }
    }
}

static void lamb_ratios(const Update *work) {
    for (int item = 0; item < work->pieces.items; item++) {
        double parameter = 0, direction = 0;
        for (int64_t i = work->pieces.first[item]; i < work->pieces.first[item + 1]; i++) {
            parameter += work->squares[2 * i];
            direction += work->squares[2 * i + 1];
        }
        work->ratio[item] =
            parameter > 0 && direction > 0 ? (float)(sqrt(parameter) / sqrt(direction)) : 1;
    }
}

static void sum_moved(const Update *work) {
    for (int item = 0; item < work->pieces.items; item++) {
        double *sum = work->items[item].moved;
        if (!sum)
            continue;
        sum[0] = sum[1] = 0;
        for (int64_t i = work->pieces.first[item]; i < work->pieces.first[item + 1]; i++)
            for (int k = 0; k < 2; k++)
                sum[k] += work->moved[2 * i + k];
    }
}

bool cpu_update(Device *device, const UpdateRule *rule, UpdatePlan *plan, const StepFlags *flags,
                Progress *progress, Error *error) {
    const UpdateItem *items = plan->items;
    int count = plan->count;
    if (flags && flags->found_inf) {
        progress->skipped++;
        return true;
    }
    int64_t most_pieces = 0;
    for (int i = 0; i < count; i++)
        most_pieces += (view_count(&items[i].parameter) + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS;
    size_t numbers = cpu_line(pieces_bytes_of(count));
    size_t squares = cpu_line(2 * (size_t)most_pieces * sizeof(double));
    size_t own = cpu_line((size_t)count * sizeof(ItemConstants));
    char *memory = device_workspace(device, 3 * numbers + 2 * squares + own, error);
    if (!memory)
        return false;
    Update work = {.device = device,
                   .table = cpu_simd(device)->multi,
                   .rule = rule,
                   .items = items,
                   .pieces = pieces_of(memory, count),
                   .ratio = (float *)(void *)(memory + numbers),
                   .block = (uint64_t *)(void *)(memory + 2 * numbers),
                   .squares = (double *)(void *)(memory + 3 * numbers),
                   .moved = (double *)(void *)(memory + 3 * numbers + squares),
                   .own = (ItemConstants *)(void *)(memory + 3 * numbers + 2 * squares)};
    work.constants = constants_of(device, rule, items, count, flags);
    own_constants(rule, items, count, progress->applied, work.own);
    uint64_t block = random_begin(&rule->random); // each tensor begins a new block
    for (int i = 0; i < count; i++) {
        pieces_add(&work.pieces, i, view_count(&items[i].parameter));
        work.block[i] = block;
        block += random_blocks(view_count(&items[i].parameter));
    }
    bool is_measured = rule->measures;
    if (is_measured)
        memset(work.moved, 0, squares);
    double cost = (double)work.pieces.elements * CPU_STREAM * 2;
    if (rule->kind == OPTIMIZER_LAMB) {
        memset(work.squares, 0, squares);
        work.pass = PASS_LAMB_MOMENTS;
        cpu_parallel(device, work.pieces.count, 1, cost, update_task, &work);
        lamb_ratios(&work);
        work.pass = PASS_LAMB_STEP;
    }
    cpu_parallel(device, work.pieces.count, 1, cost, update_task, &work);
    if (is_measured)
        sum_moved(&work);
    for (int i = 0; i < count; i++)
        if (items[i].steps)
            ++*items[i].steps;
    progress->applied++;
    return true;
}
