// What a training in lock step leaves on its boards: samples of outputs, gradients and weights.
#include <math.h>
#include <string.h>

#include "base/mix.h"
#include "number/convert.h"
#include "precision/gradients.h"
#include "run/twin_private.h"

// ---- rounding units -----------------------------------------------------------------------------

// Half of the distance between 1 and the next number. Of factors that are scaled it is that of
// their elements.
double twin_unit(Format format) {
    const FormatInfo *info = &format_table[format];
    if (format_is_scaled(format) && !format_is_plain(format))
        info = &format_table[info->element];
    return info->mantissa_bits > 0 ? ldexp(1, -info->mantissa_bits - 1) : 0;
}

static float coarser(Format a, Format b) {
    return (float)fmax(twin_unit(a), twin_unit(b));
}

// ---- samples ------------------------------------------------------------------------------------

// Elements from `at` on, as fp32.
static void read_piece(const Tensor *tensor, int64_t at, int count, float *values) {
    enum { MOST_BYTES = 8 };
    char raw[TWIN_SAMPLE * MOST_BYTES];
    const Format format = tensor->view.format;
    const size_t bytes = format_table[format].bytes;
    device_read(tensor_device(tensor), format == FORMAT_FP32 ? (void *)values : raw,
                (const char *)tensor->view.data + (size_t)at * bytes, (size_t)count * bytes);
    if (format == FORMAT_FP32)
        return;
    if (format == FORMAT_FP64)
        for (int i = 0; i < count; i++)
            values[i] = (float)format_load(format, raw + (size_t)i * bytes);
    else
        convert_to_fp32(format, raw, values, (size_t)count);
}

// All of a small tensor; of a large one pieces at even distances.
static int read_sample(const Tensor *tensor, float values[TWIN_SAMPLE]) {
    enum { PIECES = TWIN_SAMPLE / TWIN_PIECE };
    int64_t count = tensor_count(tensor);
    if (count <= TWIN_SAMPLE) {
        if (count > 0)
            read_piece(tensor, 0, (int)count, values);
        return (int)count;
    }
    for (int i = 0; i < PIECES; i++) {
        int64_t at = (int64_t)((double)(count - TWIN_PIECE) / (PIECES - 1) * i);
        read_piece(tensor, at, TWIN_PIECE, values + (ptrdiff_t)i * TWIN_PIECE);
    }
    return TWIN_SAMPLE;
}

static bool can_be_read(const Tensor *tensor) {
    return view_is_dense(&tensor->view) && format_is_floating(tensor->view.format) &&
           tensor_check_readable(tensor, NULL);
}

static uint64_t name_of(const char *name, const Tensor *tensor) {
    int64_t count = tensor_count(tensor);
    uint64_t mixed = mix_bytes(MIX_BEGIN, name, strlen(name));
    mixed = mix_bytes(mixed, &count, sizeof count);
    return mixed ? mixed : 1;
}

static TwinSlot *put(TwinLink *link, int64_t step, int at, const char *name, const Tensor *tensor,
                     float unit) {
    TwinBoard *board = twin_board(link, link->side, step);
    if (!can_be_read(tensor))
        return NULL;
    TwinSlot *slot = &board->slots[at];
    *slot = (TwinSlot){.name = name_of(name, tensor),
                       .step = step,
                       .count = tensor_count(tensor),
                       .unit = unit,
                       .samples = read_sample(tensor, board->values[at])};
    return slot;
}

// All bits, in little time: four chains of eight bytes each.
static uint64_t mix_whole(const Tensor *tensor) {
    enum { CHAINS = 4, WORDS = 1024 };
    static const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t chains[CHAINS] = {1, 2, 3, 4}, words[WORDS + 1];
    const size_t bytes = (size_t)tensor_count(tensor) * format_table[tensor->view.format].bytes;
    for (size_t at = 0; at < bytes; at += WORDS * sizeof *words) {
        size_t left = bytes - at < WORDS * sizeof *words ? bytes - at : WORDS * sizeof *words;
        words[left / sizeof *words] = 0; // of a last word that is cut
        device_read(tensor_device(tensor), words, (const char *)tensor->view.data + at, left);
        for (size_t i = 0; i < (left + sizeof *words - 1) / sizeof *words; i++) {
            uint64_t *chain = &chains[i % CHAINS];
            *chain = (*chain ^ words[i]) * odd;
            *chain ^= *chain >> 29;
        }
    }
    return mix_bytes(MIX_BEGIN, chains, sizeof chains) | 1;
}

// ---- on the way forward -------------------------------------------------------------------------

static void watch_output(EngineWatch *watch, const Engine *engine, const Tensor *output) {
    TwinLink *link = (TwinLink *)(void *)((char *)watch - offsetof(TwinLink, watch));
    int layer = engine->layer;
    if (layer == 0 || layer >= TWIN_LAYERS)
        return;
    const PolicyLayer *known = policy_layer(engine->policy, layer);
    Format computed = known->knows_computed ? known->computed : output->view.format;
    TwinSlot *slot =
        put(link, link->step, layer, known->name, output, coarser(computed, output->view.format));
    if (!slot)
        return;
    slot->layer = layer;
    slot->order = ++link->order;
}

// ---- gradients and weights ----------------------------------------------------------------------

static TwinSlot *put_weight(TwinLink *link, int64_t step, const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    TwinSlot *slot = put(link, step, twin_weight_slot(parameter->watched - 1), parameter->name,
                         tensor, coarser(tensor->view.format, FORMAT_FP32));
    if (slot)
        slot->layer = parameter->layer;
    return slot;
}

static Parameter *numbered(TwinLink *link, const Tensor *tensor) {
    Parameter *parameter = parameter_of(tensor);
    if (!parameter || parameter->watched > 0)
        return parameter;
    if (link->parameter_count == TWIN_PARAMETERS) {
        link->is_full = true;
        return NULL;
    }
    parameter->watched = ++link->parameter_count;
    put_weight(link, 0, tensor); // as it was before its first update
    return parameter;
}

static void watch_gradients(EngineWatch *watch, const Gradients *gradients) {
    TwinLink *link = (TwinLink *)(void *)((char *)watch - offsetof(TwinLink, watch));
    for (int k = 0; k < gradients->plan.count; k++) {
        const Tensor *tensor = gradients->parameters[gradients->item_slot[k]];
        Parameter *parameter = numbered(link, tensor);
        TwinSlot *slot =
            parameter
                ? put(link, link->step, twin_gradient_slot(parameter->watched - 1), parameter->name,
                      tensor->grad, coarser(parameter->round_to, FORMAT_FP32))
                : NULL;
        if (!slot)
            continue;
        slot->layer = parameter->layer;
        slot->order = ++link->order;
    }
}

// How far the sample has moved since the step before, whose board is this side's own still.
static float moved_since(const TwinLink *link, int at, const TwinSlot *slot) {
    const TwinBoard *now = twin_board(link, link->side, link->step);
    const TwinBoard *then = twin_board(link, link->side, link->step - 1);
    const TwinSlot *before = &then->slots[at];
    double squares = 0;
    if (before->name != slot->name || before->step != slot->step - 1)
        return (float)NAN;
    for (int i = 0; i < slot->samples; i++) {
        double move = (double)now->values[at][i] - (double)then->values[at][i];
        squares += move * move;
    }
    return (float)sqrt(squares);
}

bool twin_looks_whole(const Run *run, int64_t step) {
    enum { FIRST = 4, OFTEN = 100 };
    bool is_last = step == run->step_limit || (run->total_steps > 0 && step == run->total_steps);
    return step <= FIRST || step % OFTEN == 0 || is_last;
}

void twin_take_weights(TwinLink *link) {
    Run *run = link->run;
    bool is_whole = twin_looks_whole(run, run->step);
    for (int i = 0; i < run->optimizer_count; i++)
        for (int k = 0; k < optimizer_parameter_count(run->optimizers[i]); k++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], k);
            const Parameter *parameter = parameter_of(tensor);
            if (!parameter || parameter->watched == 0)
                continue; // it never had a gradient
            TwinSlot *slot = put_weight(link, link->step, tensor);
            if (!slot)
                continue;
            slot->moved = moved_since(link, twin_weight_slot(parameter->watched - 1), slot);
            if (is_whole)
                slot->bits = mix_whole(tensor);
        }
}

void twin_watch(TwinLink *link) {
    link->watch = (EngineWatch){.output = watch_output, .gradients = watch_gradients};
    link->run->engine->watch = &link->watch;
}
