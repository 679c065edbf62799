// A lookout over a device that runs on its own: notes of what it looks at, and what follows from
// them once it has told what it found.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ops/lookout_private.h"

// ---- notes --------------------------------------------------------------------------------------

void lookout_notes_clear(LookNotes *notes) {
    free(notes->looks);
    free(notes->inputs);
    free(notes->text);
    *notes = (LookNotes){.count = 0};
}

static bool grow(void **items, int count, int *room, size_t size) {
    if (count < *room)
        return true;
    const int wanted = *room ? 2 * *room : LOOKOUT_CHUNK;
    void *grown = realloc(*items, (size_t)wanted * size);
    if (!grown)
        return false;
    *items = grown;
    *room = wanted;
    return true;
}

// Where a text lies; the same one as the last time lies where it did.
static uint32_t keep_text(LookNotes *notes, const char *text, uint32_t last) {
    const size_t size = strlen(text) + 1;
    if (notes->text_size > 0 && strcmp(notes->text + last, text) == 0)
        return last;
    if (notes->text_size + size > notes->text_room) {
        const size_t room = 2 * (notes->text_room + size);
        char *grown = realloc(notes->text, room);
        if (!grown)
            return last; // a word that may be wrong, where there is no memory for any
        notes->text = grown;
        notes->text_room = room;
    }
    memcpy(notes->text + notes->text_size, text, size);
    notes->text_size += size;
    return (uint32_t)(notes->text_size - size);
}

static const char *text_of(const LookNotes *notes, uint32_t at) {
    return notes->text_size > 0 ? notes->text + at : "";
}

static LookNote *look_at(const LookNotes *notes, uint32_t number) {
    const uint32_t at = number - notes->first;
    return number != 0 && at < (uint32_t)notes->count ? &notes->looks[at] : NULL;
}

// ---- looking ------------------------------------------------------------------------------------

static LookFound *chunk_of(Engine *engine, int look) {
    Tensor **chunk = &engine->lookout.chunks[look / LOOKOUT_CHUNK];
    if (!*chunk)
        *chunk = tensor_new_bytes(engine->device, LOOKOUT_CHUNK * sizeof(LookFound),
                                  MEMORY_WORKSPACE, NULL);
    return *chunk ? (*chunk)->view.data : NULL;
}

// The device looks at it, behind what it has been given so far. A failure is the device's, which
// tells it by itself.
static bool look(Engine *engine, int at, const View *view) {
    const MultiKernels *multi = engine->device->backend->multi;
    LookFound *found = at < LOOKOUT_CHUNK * LOOKOUT_CHUNKS ? chunk_of(engine, at) : NULL;
    Error error;
    return found &&
           (at % LOOKOUT_CHUNK != 0 ||
            multi->look_begin(engine->device, found, LOOKOUT_CHUNK, &error)) &&
           multi->look(engine->device, view, found + at % LOOKOUT_CHUNK, &error);
}

// A look at a view, whose number is returned; 0: none was taken. `like` says what it is of.
static uint32_t add_look(Engine *engine, const View *view, const LookNote *like) {
    Lookout *lookout = &engine->lookout;
    LookNotes *notes = &lookout->notes;
    if (!grow((void **)&notes->looks, notes->count, &notes->room, sizeof *notes->looks) ||
        !look(engine, notes->count, view))
        return 0;
    const LookNote *last = notes->count > 0 ? &notes->looks[notes->count - 1] : NULL;
    char place[LOOKOUT_PLACE_SIZE] = "";
    LookNote added = *like;
    added.view = *view;
    added.layer = engine->layer;
    added.walked = lookout->walked;
    added.is_backward = engine->walking_back;
    added.scales = lookout->scales;
    if (lookout->place && !engine->walking_back)
        lookout->place(lookout->place_context, place);
    added.place = keep_text(notes, place, last ? last->place : 0);
    added.function =
        keep_text(notes, lookout->function ? lookout->function : "", last ? last->function : 0);
    if (notes->count == 0)
        notes->first = lookout->looked + 1;
    notes->looks[notes->count++] = added;
    return ++lookout->looked;
}

static bool is_worth_it(const View *view) {
    return format_is_floating(view->format) && format_is_plain(view->format);
}

// Of what no look was taken of in this step: weights, data, what an earlier step left. What was
// looked at under another name (a script has detached a weight) is a weight nevertheless.
static uint32_t look_at_given(Engine *engine, OpId op, Tensor *tensor, const LookNote *like) {
    const LookNote *known = look_at(&engine->lookout.notes, tensor->storage->fault);
    if (!known || (like->is_weight && !known->is_weight)) {
        LookNote given = *like;
        given.op = op;
        tensor->storage->fault = add_look(engine, &tensor->view, &given);
    }
    return tensor->storage->fault;
}

static uint32_t look_at_weight(Engine *engine, OpId op, Tensor *given, Tensor *used) {
    LookNotes *notes = &engine->lookout.notes;
    LookNote weight = {.is_weight = true, .master = -1};
    weight.weight = keep_text(notes, parameter_of(given)->name, 0);
    const uint32_t number = look_at_given(engine, op, given, &weight);
    if (given == used || number == 0)
        return number;
    weight.master = (int)(number - notes->first);
    return look_at_given(engine, op, used, &weight);
}

static uint32_t look_at_input(Engine *engine, OpId op, Tensor *given, Tensor *used) {
    const LookNote data = {.master = -1};
    if (!used || !is_worth_it(&used->view))
        return 0;
    if (parameter_of(given))
        return look_at_weight(engine, op, given, used);
    // One that was made dense is as finite as what it was made of.
    const bool is_known = look_at(&engine->lookout.notes, given->storage->fault) != NULL;
    return look_at_given(engine, op, is_known && used->storage->fault == 0 ? given : used, &data);
}

void lookout_note_outputs(Engine *engine, const KernelCall *call, Tensor *const *inputs,
                          Tensor *const *used, Tensor *const *outputs) {
    LookNotes *notes = &engine->lookout.notes;
    const int first_input = notes->input_count;
    for (int i = 0; i < call->input_count; i++) {
        const uint32_t number = look_at_input(engine, call->op, inputs[i], used[i]);
        if (grow((void **)&notes->inputs, notes->input_count, &notes->input_room,
                 sizeof *notes->inputs))
            notes->inputs[notes->input_count++] = number;
    }
    for (int i = 0; i < call->output_count; i++) {
        const LookNote output = {.op = call->op,
                                 .is_output = true,
                                 .master = -1,
                                 .asks_for = lookout_asks_for(call),
                                 .keeps = i == 0 && !engine->lookout.scales && !engine->makes_again,
                                 .first_input = first_input,
                                 .input_count = notes->input_count - first_input};
        outputs[i]->storage->fault =
            is_worth_it(&call->output[i]) ? add_look(engine, &call->output[i], &output) : 0;
    }
}

void lookout_note_loss(Engine *engine, Tensor *loss) {
    const LookNote data = {.master = -1};
    const uint32_t number = look_at_given(engine, OP_COUNT, loss, &data);
    LookNote *noted = look_at(&engine->lookout.notes, number);
    if (noted)
        noted->is_loss = true;
}

void lookout_note_buffer(Engine *engine, const Tensor *value, const char *name, uint32_t mark) {
    LookNote *noted = look_at(&engine->lookout.notes, value->storage->fault);
    if (!noted)
        return;
    noted->buffer = name;
    noted->made = mark;
}

// ---- the report ---------------------------------------------------------------------------------

static int chunks_of(const LookNotes *notes) {
    return (notes->count + LOOKOUT_CHUNK - 1) / LOOKOUT_CHUNK;
}

bool lookout_report(Engine *engine, Reports *reports, LookNotes *notes, Error *error) {
    Lookout *lookout = &engine->lookout;
    LookNotes *taken = &lookout->notes;
    for (int i = 0; i < chunks_of(taken); i++) {
        const int left = taken->count - i * LOOKOUT_CHUNK;
        const int looks = left < LOOKOUT_CHUNK ? left : LOOKOUT_CHUNK;
        if (!reports_add(reports, lookout->chunks[i]->view.data, (size_t)looks * sizeof(LookFound),
                         &taken->pieces[i], error))
            return false;
    }
    const LookNotes used = *notes;
    *notes = *taken;
    *taken = used;
    taken->count = taken->input_count = 0;
    taken->text_size = 0;
    if (lookout->looked > UINT32_MAX / 2)
        lookout->looked = 0;
    return true;
}

// ---- what follows from it -----------------------------------------------------------------------

typedef struct Settling {
    Lookout *lookout;
    LookNotes *notes;
    const LookFound *found[LOOKOUT_CHUNKS];
} Settling;

static const LookFound *found_of(const Settling *settling, const LookNote *look) {
    const int64_t at = look - settling->notes->looks;
    return &settling->found[at / LOOKOUT_CHUNK][at % LOOKOUT_CHUNK];
}

static bool is_finite(const Settling *settling, const LookNote *look) {
    return isfinite(found_of(settling, look)->largest);
}

// An origin within the kernel that `by` was looked at for, in the numbers of `in`.
static uint32_t origin_in(const Settling *settling, const LookNote *by, const LookNote *in,
                          FaultCause cause, bool has_asked) {
    const LookNotes *notes = settling->notes;
    const LookFound *found = found_of(settling, in);
    FaultOrigin origin = {.cause = cause,
                          .op = by->op,
                          .layer = by->layer,
                          .is_backward = by->is_backward,
                          .walked = by->walked,
                          .scales = by->scales,
                          .view = in->view,
                          .nans = (int64_t)found->nans,
                          .infs = (int64_t)found->infs,
                          .first = (int64_t)(UINT64_MAX - found->first),
                          .has_asked = has_asked};
    if (in->is_weight)
        utf8_copy(origin.weight, sizeof origin.weight, text_of(notes, in->weight));
    utf8_copy(origin.function, sizeof origin.function, text_of(notes, by->function));
    utf8_copy(origin.place, sizeof origin.place, text_of(notes, by->place));
    return lookout_add_origin(settling->lookout, &origin);
}

// Of an input that is not finite, and that no operation of the step has made.
static uint32_t origin_of_given(const Settling *settling, const LookNote *by, LookNote *given) {
    const LookNote *master = given->master < 0 ? given : &settling->notes->looks[given->master];
    if (!given->is_weight)
        given->origin =
            origin_in(settling, by, given, by->is_backward ? FAULT_SUMMED : FAULT_GIVEN, false);
    else if (is_finite(settling, master))
        return origin_in(settling, by, given, FAULT_OVERFLOWED, false);
    else
        return origin_in(settling, by, master, FAULT_WEIGHT, false);
    return given->origin;
}

// Whether it would be finite in fp32: its inputs are gone, so it is told by what it did to them.
static bool would_fit(const LookNote *look) {
    return look->view.format == FORMAT_FP16 && !lookout_divides(look->op);
}

static uint32_t origin_of_output(const Settling *settling, const LookNote *look, double value) {
    const LookNotes *notes = settling->notes;
    const uint32_t *numbers = notes->inputs + look->first_input;
    BrokenInputs broken = {.at = -1};
    for (int i = 0; i < look->input_count; i++) {
        const LookNote *input = look_at(notes, numbers[i]);
        if (input && !is_finite(settling, input))
            lookout_add_input(settling->lookout, &broken, i,
                              (double)found_of(settling, input)->largest, input->origin);
    }
    if (broken.number)
        return broken.number;
    if (broken.at >= 0)
        return origin_of_given(settling, look, look_at(notes, numbers[broken.at]));
    if (lookout_is_asked_for(&broken, look->asks_for, value))
        return LOOKOUT_ASKED_FOR;
    const bool fits = !broken.any && would_fit(look);
    return origin_in(settling, look, look, fits ? FAULT_OVERFLOWED : FAULT_MADE, broken.any);
}

static void settle_look(const Settling *settling, LookNote *look) {
    Lookout *lookout = settling->lookout;
    const double value = (double)found_of(settling, look)->largest;
    if (!isfinite(value)) {
        if (look->is_output)
            look->origin = origin_of_output(settling, look, value);
        return;
    }
    if (look->is_weight && look->master < 0)
        lookout_keep(lookout, LOOKOUT_WEIGHTS, look->layer, value);
    else if (look->keeps)
        lookout_keep(lookout, look->is_backward ? LOOKOUT_BACKWARD : LOOKOUT_FORWARD, look->layer,
                     value);
}

static void settle_loss(const Settling *settling, LookNote *look) {
    Lookout *lookout = settling->lookout;
    if (lookout->step.of_loss != 0 || is_finite(settling, look))
        return;
    if (!lookout_origin(lookout, look->origin)) {
        LookNote loss = *look;
        loss.op = OP_COUNT;
        look->origin = origin_in(settling, &loss, look, FAULT_GIVEN, false);
    }
    lookout->step.of_loss = look->origin;
}

static void settle_buffer(const Settling *settling, const LookNote *look) {
    const LookNotes *notes = settling->notes;
    int at = 0; // of the look that the origin was found by
    while (at < notes->count - 1 && notes->looks[at].origin != look->origin)
        at++;
    lookout_keep_buffer(settling->lookout, look->origin, look->buffer,
                        notes->first + (uint32_t)at > look->made);
}

void lookout_settle(Engine *engine, const Reports *reports, int place, LookNotes *notes) {
    Settling settling = {.lookout = &engine->lookout, .notes = notes};
    lookout_end_step(settling.lookout);
    for (int i = 0; i < chunks_of(notes); i++)
        settling.found[i] = reports_piece(reports, place, notes->pieces[i]);
    for (int i = 0; i < notes->count; i++) {
        LookNote *look = &notes->looks[i];
        settle_look(&settling, look);
        if (look->is_loss)
            settle_loss(&settling, look);
        if (look->buffer && !is_finite(&settling, look))
            settle_buffer(&settling, look);
    }
}

uint32_t lookout_number(const Engine *engine, const LookNotes *notes, uint32_t fault) {
    const LookNote *look = look_at(notes, fault);
    return !lookout_is_late(engine) ? fault : look ? look->origin : 0;
}
