// What a training in lock step leaves on its boards: samples of outputs, gradients and weights.
#include <math.h>
#include <string.h>

#include "base/mix.h"
#include "number/convert.h"
#include "precision/gradients.h"
#include "run/twin_private.h"
#include "run/twin_squares.h"

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
static void read_piece(Device *device, const View *view, int64_t at, int count, float *values) {
    enum { MOST_BYTES = 8 };
    char raw[TWIN_SAMPLE * MOST_BYTES];
    const Format format = view->format;
    const size_t bytes = format_table[format].bytes;
    device_read(device, format == FORMAT_FP32 ? (void *)values : raw,
                (const char *)view->data + (size_t)at * bytes, (size_t)count * bytes);
    if (format == FORMAT_FP32)
        return;
    if (format == FORMAT_FP64)
        for (int i = 0; i < count; i++)
            values[i] = (float)format_load(format, raw + (size_t)i * bytes);
    else
        convert_to_fp32(format, raw, values, (size_t)count);
}

// All of a small tensor; of a large one pieces at even distances.
static int read_sample(Device *device, const View *view, int64_t count, float values[TWIN_SAMPLE]) {
    if (count <= TWIN_SMALL) {
        if (count > 0)
            read_piece(device, view, 0, (int)count, values);
        return (int)count;
    }
    const int64_t share = count / TWIN_SHARE / TWIN_PIECE;
    const int64_t least = TWIN_SMALL / TWIN_PIECE, most = TWIN_SAMPLE / TWIN_PIECE;
    const int pieces = (int)(share < least ? least : share > most ? most : share);
    for (int i = 0; i < pieces; i++) {
        int64_t at = (int64_t)((double)(count - TWIN_PIECE) / (pieces - 1) * i);
        read_piece(device, view, at, TWIN_PIECE, values + (ptrdiff_t)i * TWIN_PIECE);
    }
    return pieces * TWIN_PIECE;
}

// What a slot is of, which is the same from step to step.
static uint64_t name_of(TwinLink *link, int at, const char *name, int64_t count) {
    TwinKnown *known = &link->known[at];
    if (known->name == name && known->count == count)
        return known->mixed;
    uint64_t mixed = mix_bytes(MIX_BEGIN, name, strlen(name));
    mixed = mix_bytes(mixed, &count, sizeof count);
    *known = (TwinKnown){name, count, mixed ? mixed : 1};
    return known->mixed;
}

static TwinSlot *put(TwinLink *link, int64_t step, int at, const char *name, const View *view,
                     float unit) {
    TwinBoard *board = twin_board(link, link->side, step);
    if (!view_is_dense(view) || !format_is_floating(view->format))
        return NULL;
    const int64_t count = view_count(view);
    TwinSlot *slot = &board->slots[at];
    *slot = (TwinSlot){.name = name_of(link, at, name, count),
                       .step = step,
                       .count = count,
                       .unit = unit,
                       .samples = read_sample(link->run->device, view, count, board->values[at])};
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

static void watch_output(EngineWatch *watch, const Engine *engine, const View *output) {
    TwinLink *link = (TwinLink *)(void *)((char *)watch - offsetof(TwinLink, watch));
    int layer = engine->layer;
    if (layer == 0 || layer >= TWIN_LAYERS)
        return;
    const PolicyLayer *known = policy_layer(engine->policy, layer);
    Format computed = known->knows_computed ? known->computed : output->format;
    TwinSlot *slot =
        put(link, link->step, layer, known->name, output, coarser(computed, output->format));
    if (!slot)
        return;
    slot->layer = layer;
    slot->order = ++link->order;
}

// ---- gradients and weights ----------------------------------------------------------------------

static TwinSlot *put_weight(TwinLink *link, int64_t step, const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    if (!tensor_check_readable(tensor, NULL))
        return NULL;
    TwinSlot *slot = put(link, step, twin_weight_slot(parameter->watched - 1), parameter->name,
                         &tensor->view, coarser(tensor->view.format, FORMAT_FP32));
    if (slot)
        slot->layer = parameter->layer;
    return slot;
}

static void tell_full(const TwinLink *link) {
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text, "beside its twin the first %d parameters are compared, no more",
             TWIN_PARAMETERS);
    run_record_event(link->run, EVENT_LIFE, "", (double)NAN, text);
}

static Parameter *numbered(TwinLink *link, const Tensor *tensor) {
    Parameter *parameter = parameter_of(tensor);
    if (!parameter || parameter->watched > 0)
        return parameter;
    if (link->parameter_count == TWIN_PARAMETERS) {
        if (!link->is_full && link->side == TWIN_RUN)
            tell_full(link);
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
            parameter && tensor_check_readable(tensor->grad, NULL)
                ? put(link, link->step, twin_gradient_slot(parameter->watched - 1), parameter->name,
                      &tensor->grad->view, coarser(parameter->round_to, FORMAT_FP32))
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
    double sums[3] = {0};
    if (before->name != slot->name || before->step != slot->step - 1)
        return (float)NAN;
    twin_squares(now->values[at], then->values[at], slot->samples, sums);
    return (float)sqrt(sums[0]);
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

// One whose step is judged, and is not the one that weights have moved since: the first such, so
// that no more pages are used than steps are not judged.
void twin_begin_board(TwinLink *link) {
    const int64_t judged = link->side == TWIN_RUN ? link->judged : twin_reached(link);
    int at = 1;
    while (at < TWIN_RING && (link->placed[at] > judged ||
                              (link->placed[at] > 0 && link->placed[at] == link->step - 1)))
        at++;
    link->placed[at] = link->step;
    link->shared->marks[link->side].places[link->step % TWIN_RING] = (unsigned char)at;
}

static void call_for_slot(const TwinBoard *board, int at) {
    enum { CACHE_LINE = 64 };
    const char *values = (const char *)board->values[at];
    const size_t size = (size_t)board->slots[at].samples * sizeof(float);
    for (size_t i = 0; i < size; i += CACHE_LINE)
        __builtin_prefetch(values + i, 0, 2);
}

void twin_call_for(const TwinLink *link, int64_t step) {
    const TwinBoard *board = twin_board(link, TWIN_TWIN, step);
    const int layers = policy_layer_count(link->run->engine->policy);
    if (twin_reached(link) < step)
        return;
    __builtin_prefetch(&board->end, 0, 2);
    for (int layer = 1; layer < layers && layer < TWIN_LAYERS; layer++)
        call_for_slot(board, layer);
    for (int i = 0; i < link->parameter_count; i++) {
        call_for_slot(board, twin_gradient_slot(i));
        call_for_slot(board, twin_weight_slot(i));
    }
}

void twin_watch(TwinLink *link) {
    link->watch = (EngineWatch){.output = watch_output, .gradients = watch_gradients};
    link->run->engine->watch = &link->watch;
}
