// Norms whose weights are rounded in blocks: how many of them the blocks' scales do not hold.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "number/block.h"
#include "run/run_private.h"

static const double look_price =
    300; // looks, which wait for a card, take 1/300 of the time at most
enum { MOST_WEIGHTS = 1 << 16 };

// What became of the weights of one norm.
typedef struct Saturated {
    int count;
    double number; // of all
    double asked;  // the largest that did,
    double worth;  // and what it was taken for
} Saturated;

static Saturated look_at(Format format, const float *weights, int64_t count) {
    const int block = format_table[format].block;
    Saturated found = {.number = (double)count};
    double numbers[BLOCK_MOST_NUMBERS];
    BlockDescription description;
    for (int64_t first = 0; first < count; first += block) {
        const int own = (int)(count - first < block ? count - first : block);
        for (int i = 0; i < own; i++)
            numbers[i] = (double)weights[first + i];
        block_describe(format, numbers, own, false, &description);
        found.count += description.saturated;
        for (int i = 0; i < own; i++) {
            const BlockNumber *number = &description.number[i];
            if (!number->is_saturated || fabs(number->asked) <= fabs(found.asked))
                continue;
            found.asked = number->asked;
            found.worth = number->worth;
        }
    }
    return found;
}

// A norm's weight that is rounded in blocks whose scales are powers of two; else FORMAT_COUNT.
static Format format_of(const Run *run, const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    if (!parameter || !parameter->in_norm || tensor->view.format != FORMAT_FP32 ||
        tensor_count(tensor) > MOST_WEIGHTS)
        return FORMAT_COUNT;
    const Format format =
        policy_low_format(run->engine->policy, parameter->layer, (AutocastRegion){.enabled = true});
    const bool is_power = format_is_scaled(format) && format_table[format].scale == FORMAT_E8M0;
    return is_power ? format : FORMAT_COUNT;
}

// Enough not to tell it as a power of two that it is below: 0.99999 as 1, which saturates nowhere.
static int digits_of(double number) {
    enum { FEWEST = 4, MOST = 9 };
    char text[32];
    int digits = FEWEST;
    do
        snprintf(text, sizeof text, "%.*g", digits, number);
    while (ilogb(strtod(text, NULL)) != ilogb(number) && ++digits < MOST);
    return digits;
}

static void check(Run *run, const Tensor *tensor, Format format) {
    const double worth_saying = 0.25;
    const int64_t count = tensor_count(tensor);
    float *weights = malloc((size_t)count * sizeof *weights);
    if (weights && tensor_read(tensor, weights, NULL)) {
        const Saturated found = look_at(format, weights, count);
        const char *layer = run_layer_of(run, tensor);
        if (found.count >= worth_saying * found.number)
            run_diagnose(run, DIAGNOSIS_SATURATED, layer,
                         "%.0f %% of %.60s saturate in %s, and %.*g is taken for %.4g: by the "
                         "standard's rule scales do not hold the largest of a block: --recipe "
                         "norms=own or --layer %.60s=bf16 leaves them as they are, scales=up "
                         "holds it and rounds them still",
                         100 * found.count / found.number, run_name_of(tensor), format_name(format),
                         digits_of(found.asked), found.asked, found.worth,
                         layer[0] ? layer : "NAME");
    }
    free(weights);
}

void run_check_norms(RunState *state) {
    Run *run = &state->run;
    const Recipe *recipe = policy_recipe(run->engine->policy);
    const double now = clock_seconds();
    if (!recipe->norms || !recipe->floor || now < state->next_norms)
        return;
    for (int i = 0; i < run->optimizer_count; i++)
        for (int k = 0; k < optimizer_parameter_count(run->optimizers[i]); k++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], k);
            const Format format = format_of(run, tensor);
            if (format != FORMAT_COUNT)
                check(run, tensor, format);
        }
    const double after = clock_seconds();
    state->next_norms = after + look_price * (after - now);
}
