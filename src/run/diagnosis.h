// run/diagnosis.h: the kinds of what a run sees by itself that its user should know, as a
// table. Constants; any thread.
//
// What a run says of one names the layer, the numbers and what to do; here is what each is for, for
// help and the reference page. Histories keep the names.
#pragma once

typedef enum DiagnosisKind {
    DIAGNOSIS_SCALE_FLOOR,
    DIAGNOSIS_MANY_SKIPS,
    DIAGNOSIS_SCALE_STUCK,
    DIAGNOSIS_LOSS_NOT_FINITE,
    DIAGNOSIS_DIVERGED,
    DIAGNOSIS_FORWARD_OVERFLOW,
    DIAGNOSIS_DATA_NOT_FINITE,
    DIAGNOSIS_WEIGHTS_NOT_FINITE,
    DIAGNOSIS_WEIGHTS_GREW,
    DIAGNOSIS_OPERATION_NOT_FINITE,
    DIAGNOSIS_NEAR_OVERFLOW,
    DIAGNOSIS_CONSTANT_OVERFLOW,
    DIAGNOSIS_NO_SCALER,
    DIAGNOSIS_FLUSHED,
    DIAGNOSIS_SATURATED,
    DIAGNOSIS_NO_SCALER_STATE,
    DIAGNOSIS_NO_AUTOCAST,
    DIAGNOSIS_NO_MASTERS,
    DIAGNOSIS_LOST_UPDATES,
    DIAGNOSIS_NO_GRADIENT,
    DIAGNOSIS_ZERO_GRADIENTS,
    DIAGNOSIS_NO_STEP_ENDED,
    DIAGNOSIS_SCHEDULE_ON_SKIP,
    DIAGNOSIS_POISONED_STATISTICS,
    DIAGNOSIS_CASTING,
    DIAGNOSIS_SMALL_KERNELS,
    DIAGNOSIS_ODD_SIZES,
    DIAGNOSIS_KINDS
} DiagnosisKind;

typedef struct DiagnosisInfo {
    const char *name, *seen, *remedy;
} DiagnosisInfo;

extern const DiagnosisInfo diagnosis_table[DIAGNOSIS_KINDS];

// What no run needs to look for: it is refused where it is called, or cannot happen.
typedef struct PreventedFault {
    const char *fault, *instead;
} PreventedFault;

extern const PreventedFault prevented_table[]; // ended by a NULL fault
