// What a report says of gradients, and what the host noted beside it: the host goes on meanwhile.
#include <stdlib.h>

#include "precision/gradients.h"

static bool note_grow(GradientsNote *note, int count, Error *error) {
    if (count <= note->room)
        return true;
    GradientNote *each = realloc(note->each, (size_t)count * sizeof *each);
    if (!each)
        return error_fail(error, ERROR_MEMORY, "no memory for the report of %d gradients", count);
    note->each = each;
    note->room = count;
    return true;
}

void gradients_note_clear(GradientsNote *note) {
    free(note->each);
    *note = (GradientsNote){.each = NULL};
}

static bool note_one(const Gradients *gradients, int i, Reports *reports, GradientNote *one,
                     Error *error) {
    const Tensor *tensor = gradients->parameters[i];
    const Parameter *record = parameter_of(tensor);
    const GradientSlot *slot = &gradients->slots[i];
    *one = (GradientNote){.has_had_gradient = slot->has_had_gradient,
                          .round_to = record ? record->round_to : tensor->view.format,
                          .arrived = tensor->arrived,
                          .fault = tensor->grad ? tensor->grad->storage->fault : 0};
    if (!slot->was_gathered || !record || !record->gathered)
        return true;
    one->parts = record->gathered_count;
    return reports_add(reports, record->gathered->view.data, sizeof(GradStats), &one->parts_piece,
                       error);
}

bool gradients_report(const Gradients *gradients, Reports *reports, GradientsNote *note,
                      Error *error) {
    const char *memory = (const char *)gradients->single;
    if (!note_grow(note, gradients->count, error))
        return false;
    note->flags_at = (size_t)((const char *)gradients->flags - memory);
    note->stats_at = (size_t)((const char *)gradients->stats - memory);
    for (int i = 0; i < gradients->count; i++)
        if (!note_one(gradients, i, reports, &note->each[i], error))
            return false;
    for (int k = 0; k < gradients->plan.count; k++)
        note->each[gradients->item_slot[k]].is_there = true;
    return reports_add(reports, memory,
                       note->stats_at + (size_t)gradients->count * sizeof(GradStats), &note->piece,
                       error);
}

static const char *memory_of(const GradientsNote *note, const Reports *reports, int place) {
    return reports_piece(reports, place, note->piece);
}

const StepFlags *gradients_reported_flags(const GradientsNote *note, const Reports *reports,
                                          int place) {
    return (const StepFlags *)(const void *)(memory_of(note, reports, place) + note->flags_at);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// A sum of parts that were rounded one by one: what the rounding did is the mean of what it did to
// them; what overflowed in any is infinite in the sum.
static void add_parts(const GradStats *parts, uint64_t count, GradStats *stats) {
    stats->flushed = smaller((parts->flushed + count / 2) / count, stats->count);
    stats->subnormal = smaller((parts->subnormal + count / 2) / count, stats->count);
    stats->zeros -= smaller(stats->zeros, stats->flushed); // those that are 0 for it
    stats->overflowed = smaller(parts->overflowed, stats->infs + stats->nans);
    uint64_t infs = smaller(stats->infs, stats->overflowed);
    stats->infs -= infs;
    stats->nans -= stats->overflowed - infs;
}

const GradStats *gradients_reported_stats(const GradientsNote *note, const Reports *reports,
                                          int place, int i, GradStats *room) {
    const GradientNote *one = &note->each[i];
    if (!one->is_there)
        return NULL;
    const void *memory = memory_of(note, reports, place) + note->stats_at;
    const GradStats *stats = (const GradStats *)memory + i;
    if (stats->count == 0)
        return NULL;
    if (one->parts == 0)
        return stats;
    *room = *stats;
    add_parts(reports_piece(reports, place, one->parts_piece), (uint64_t)one->parts, room);
    return room;
}
