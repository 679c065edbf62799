// What of a scaler a checkpoint holds.
#include "base/whole.h"
#include "precision/scaler_private.h"

void scaler_get_numbers(Scaler *scaler, double numbers[SCALER_NUMBERS]) {
    ScaleState state = scaler_state(scaler);
    numbers[0] = (double)state.scale;
    numbers[1] = (double)state.good;
    numbers[2] = (double)state.hysteresis_left;
    numbers[3] = (double)state.skips_at_floor;
    numbers[4] = state.mean;
    numbers[5] = state.variance;
    numbers[6] = state.mean_weight;
    numbers[7] = state.variance_weight;
}

void scaler_set_numbers(Scaler *scaler, const double numbers[SCALER_NUMBERS]) {
    ScaleState state = {.scale = (float)numbers[0],
                        .good = whole_of(numbers[1]),
                        .hysteresis_left = whole_of(numbers[2]),
                        .skips_at_floor = whole_of(numbers[3]),
                        .mean = numbers[4],
                        .variance = numbers[5],
                        .mean_weight = numbers[6],
                        .variance_weight = numbers[7]};
    scaler_write_state(scaler, &state);
}

bool scaler_kept_scale(const Scaler *scaler, int i, Tensor **kept) {
    int served = scaler->served_count;
    if (i > served) { // what update goes by
        i -= served + 1;
        if (i < served)
            *kept = scaler->served[i].stage != STAGE_READY && scaler->served[i].own_flags &&
                            scaler->served[i].flags == scaler->served[i].own_flags->view.data
                        ? scaler->served[i].own_flags
                        : NULL;
        return i < served;
    }
    const Window *window = i == 0 ? &scaler->window : &scaler->served[i - 1].window;
    *kept = i == 0 ? scaler->window_scale : scaler->served[i - 1].window_scale;
    if (!window->saved)
        *kept = NULL;
    return true;
}
