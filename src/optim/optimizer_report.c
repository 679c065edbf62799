// What a step left, as it is reported; and the same for those who wait for it.
#include <math.h>

#include "optim/optimizer_private.h"

bool optimizer_add_report(const Optimizer *optimizer, Reports *reports, OptimizerNote *note,
                          Error *error) {
    size_t moved = (size_t)optimizer->gradients->count * sizeof(ParameterMove);
    note->measured = optimizer->measured;
    note->rate = optimizer_rate(optimizer);
    note->scaler = optimizer->scaler;
    return gradients_report(optimizer->gradients, reports, &note->gradients, error) &&
           reports_add(reports, optimizer->progress, sizeof(Progress), &note->progress, error) &&
           (!note->measured || reports_add(reports, optimizer->moved, moved, &note->moved, error));
}

void optimizer_note_clear(OptimizerNote *note) {
    gradients_note_clear(&note->gradients);
}

static OptimizerReport report_of(const StepFlags *flags, const Progress *progress) {
    return (OptimizerReport){.found_inf = flags->found_inf != 0,
                             .norm = sqrt(flags->norm_squared),
                             .sum = flags->sum,
                             .largest = (double)flags->largest,
                             .count = flags->count,
                             .applied = progress->applied,
                             .skipped = progress->skipped};
}

OptimizerReport optimizer_reported(const OptimizerNote *note, const Reports *reports, int place) {
    return report_of(gradients_reported_flags(&note->gradients, reports, place),
                     reports_piece(reports, place, note->progress));
}

const ParameterMove *optimizer_reported_moves(const OptimizerNote *note, const Reports *reports,
                                              int place) {
    return note->measured ? reports_piece(reports, place, note->moved) : NULL;
}

// ---- these wait ---------------------------------------------------------------------------------

OptimizerReport optimizer_report(Optimizer *optimizer) {
    Device *device = optimizer->engine->device;
    StepFlags flags;
    Progress progress;
    device_read(device, &flags, optimizer->gradients->flags, sizeof flags);
    device_read(device, &progress, optimizer->progress, sizeof progress);
    return report_of(&flags, &progress);
}

uint64_t optimizer_applied(Optimizer *optimizer) {
    Progress progress;
    device_read(optimizer->engine->device, &progress, optimizer->progress, sizeof progress);
    return progress.applied;
}
