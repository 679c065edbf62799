#include "run/diagnosis.h"

#include <stddef.h>

const DiagnosisInfo diagnosis_table[DIAGNOSIS_KINDS] = {
    [DIAGNOSIS_SCALE_FLOOR] = {"scale_floor",
                               "20 steps in a row skipped, and the loss scale can fall no further",
                               "the layer that is named in bf16 or fp32, where it is in fp16; a "
                               "lower learning rate, other "
                               "data"},
    [DIAGNOSIS_MANY_SKIPS] =
        {"many_skips",
         "a quarter of the last 30 to 60 steps was skipped, again and again between others; or all "
         "steps of the run",
         "a longer interval of the scale, a fixed or smaller scale, clipping"},
    [DIAGNOSIS_SCALE_STUCK] =
        {"scale_stuck",
         "the loss scale has stood at 1 or less for 30 steps, though gradients would fit far above",
         "--loss-scale dynamic"},
    [DIAGNOSIS_LOSS_NOT_FINITE] =
        {"loss_not_finite", "the loss is inf or nan: it went wrong on the way forward, not back",
         "no scale mends it: what is said of where it began"},
    [DIAGNOSIS_DIVERGED] =
        {"diverged",
         "20 losses in a row are ten times what they usually were, or more, and a hundred times "
         "where fewer than 100 are known; or the run ends while four or more in a row have grown, "
         "to "
         "ten times what they grew from and what was usual: since when, which "
         "gradients grew first, and of a fork whether its parent had left before, its own change "
         "did it, or the change did not avert it",
         "a fork from before it, with one change: a layer in fp32, another recipe, a lower rate"},
    [DIAGNOSIS_FORWARD_OVERFLOW] =
        {"forward_overflow",
         "looked for once the loss is not finite: the first layer that gives "
         "values past 65504 in fp16",
         "--layer NAME=bf16"},
    [DIAGNOSIS_DATA_NOT_FINITE] =
        {"data_not_finite",
         "numbers of mp.data.tensors are inf or nan; or looked for likewise: what the first "
         "operation that gives such was given",
         "clean the data"},
    [DIAGNOSIS_WEIGHTS_NOT_FINITE] = {"weights_not_finite",
                                      "looked for likewise: a weight is inf or nan",
                                      "a checkpoint of before, a lower learning rate"},
    [DIAGNOSIS_WEIGHTS_GREW] =
        {"weights_grew",
         "looked for likewise: a layer gives values past 65504 in fp16, and its weights are beyond "
         "100 themselves: no format mends that",
         "a lower learning rate"},
    [DIAGNOSIS_OPERATION_NOT_FINITE] =
        {"operation_not_finite",
         "looked for likewise: an operation gives inf or nan from finite values, and fp16 is not "
         "to blame",
         "its inputs away from 0, or from the end of fp32"},
    [DIAGNOSIS_NEAR_OVERFLOW] = {"near_overflow", "a layer gives values within 10 % of 65504",
                                 "--layer NAME=bf16"},
    [DIAGNOSIS_CONSTANT_OVERFLOW] =
        {"constant_overflow",
         "a number of the script past 65504 meets a tensor in fp16, as in a "
         "mask of -1e9, and becomes infinite",
         "-3e4, or the operation in fp32"},
    [DIAGNOSIS_NO_SCALER] =
        {"no_scaler",
         "at least 5 % of the gradients become 0 in fp16 at a scale that does not "
         "move (seen after 10 steps, then every 1000)",
         "--loss-scale dynamic"},
    [DIAGNOSIS_FLUSHED] = {"flushed",
                           "at least half of a parameter's gradients become 0 in fp16 although the "
                           "scale moves (seen at the same steps)",
                           "--layer NAME=bf16, or a larger scale"},
    [DIAGNOSIS_SATURATED] =
        {"saturated",
         "where --recipe has norms=scaled and scales=floor: at least a quarter of a norm's weights "
         "lie beyond what the scales of their blocks hold (in samples, 5 a second)",
         "--recipe norms=own, --layer NAME=bf16, or scales=up, which rounds them still"},
    [DIAGNOSIS_NO_SCALER_STATE] =
        {"no_scaler_state", "the weights come from a checkpoint whose loss scale stood elsewhere",
         "resume without --weights-only, or --loss-scale"},
    [DIAGNOSIS_NO_AUTOCAST] = {"no_autocast",
                               "a lower format is asked for, and no layer multiplies in it: the "
                               "script's own loop calls its model outside of autocast, or within "
                               "mp.autocast(false, ..) (from the 10th step of every 1000, and at "
                               "the end)",
                               "mp.autocast around the model and its loss, without false"},
    [DIAGNOSIS_NO_MASTERS] = {"no_masters", "weights are kept in fp16 or bf16 alone",
                              "a precision with fp32 masters: fp16, bf16, O2"},
    [DIAGNOSIS_LOST_UPDATES] =
        {"lost_updates",
         "updates lie so far below the spacing of the weights' format that nearly "
         "all are rounded away",
         "fp32 masters, stochastic = true, or a higher learning rate"},
    [DIAGNOSIS_NO_GRADIENT] =
        {"no_gradient",
         "a parameter has had no gradient in 10 steps, or an optimizer no step by "
         "the end of the run",
         "use it in the loss without detach, or leave it out"},
    [DIAGNOSIS_ZERO_GRADIENTS] =
        {"zero_gradients",
         "at a scale that moves where the run is in fp16: all gradients of a layer are zero "
         "when they come, while others have some (in 10 steps from the 30th of every 1000 on); in "
         "fp16 also where those of all layers are, from the first step on",
         "--layer NAME=bf16 or fp32 where numbers overflow on the way forward, which is said where "
         "it is known; a start that is not 0; a lower rate where a relu has died; of all layers a "
         "larger loss, or a scale that suits it"},
    [DIAGNOSIS_NO_STEP_ENDED] = {"no_step_ended",
                                 "optimizers were applied, but the run's scaler was never updated",
                                 "scaler:update() in every step"},
    [DIAGNOSIS_SCHEDULE_ON_SKIP] =
        {"schedule_on_skip",
         "the script moves the learning rate at every step, those included "
         "that were skipped",
         "opt:steps() as the count, or a schedule of mp.optim.schedule"},
    [DIAGNOSIS_POISONED_STATISTICS] =
        {"poisoned_statistics",
         "running statistics of a batch norm are not finite after a step "
         "that was applied: so is every evaluation",
         "model:eval() for what is not trained on, and data that is finite; where fp16 keeps them, "
         "--layer NAME=bf16, or --keep-fp32 with batch_norm"},
    [DIAGNOSIS_CASTING] =
        {"casting",
         "casts between formats take over 40 % of the time of steps (from 20 samples, "
         "5 a second)",
         "layers that follow each other in one format, larger batches, or fp32"},
    [DIAGNOSIS_SMALL_KERNELS] =
        {"small_kernels",
         "on a card: most multiplications in low formats are in products of under 4 million for "
         "each multiprocessor (from the first sample); elsewhere: operations take under 5 us each "
         "in the mean (from 20): low formats cannot gain",
         "larger batches or layers, or fp32"},
    [DIAGNOSIS_ODD_SIZES] =
        {"odd_sizes",
         "a side of a matrix that has a quarter of the weights in low formats is no "
         "multiple of 8",
         "the next multiple of 8, or of 16"},
};

const PreventedFault prevented_table[] = {
    {"clipping before unscaling",
     "refused, with the threshold that it would really be; call scaler:unscale first"},
    {"unscaling once a micro-batch, or gradients added after it",
     "refused: accumulate first, unscale once"},
    {"a scale that changes inside an accumulation window", "refused, with both scales"},
    {"a step without any gradient", "refused, with the optimizer"},
    {"a step on gradients that still carry a loss scale", "refused, with the scale"},
    {"losses of two scalers added up before the way back", "refused: call backward on each"},
    {"a parameter that two optimizers unscale in one iteration",
     "refused, with the parameter and both"},
    {"an epsilon that is 0 in the format of the optimizer's state",
     "refused when the optimizer is made"},
    {"binary cross entropy on probabilities in a low format",
     "refused: bce_with_logits takes its place"},
    {"resuming without the state of scaler, optimizer or random numbers",
     "refused, with what is missing; --weights-only begins afresh"},
    {"a schedule that goes on in a skipped step",
     "those of mp.optim.schedule follow applied steps, on every device"},
    {"running statistics of a skipped step", "taken back with the rest of the step"},
    {"runs of different devices side by side",
     "compare warns of it beside its verdict, and lists what differs"},
    {NULL, NULL},
};
