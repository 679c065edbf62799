// Reductions over the dimensions that ReduceAttr names, or over all.
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

typedef double (*Fold)(double so_far, double value);

static double fold_sum(double so_far, double value) {
    return so_far + value;
}
// A NaN stays: nothing is larger or smaller than it.
static double fold_max(double so_far, double value) {
    return value > so_far || isnan(value) ? value : so_far;
}
static double fold_min(double so_far, double value) {
    return value < so_far || isnan(value) ? value : so_far;
}

// The output element that input element `index` goes into.
static int64_t target_of(const View *x, uint32_t dims, int64_t index) {
    int64_t target = 0, step = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        int64_t coordinate = index % x->shape[i];
        index /= x->shape[i];
        if (dims && !(dims >> i & 1)) {
            target += coordinate * step;
            step *= x->shape[i];
        }
    }
    return target;
}

static bool reduce(Device *device, const KernelCall *call, Fold fold, double first, bool mean,
                   Error *error) {
    const View *x = &call->input[0], *y = &call->output[0];
    int64_t count = view_count(y);
    double *folded = ref_scratch(device, count, first, error);
    if (!folded)
        return false;
    for (int64_t i = 0; i < view_count(x); i++) {
        int64_t target = target_of(x, call->attr->reduce.dims, i);
        folded[target] = fold(folded[target], ref_get(x, i));
    }
    double divisor = mean ? (double)view_count(x) / (double)count : 1;
    for (int64_t i = 0; i < count; i++)
        ref_put(y, i, folded[i] / divisor);
    return true;
}

REF_KERNEL(sum) {
    return reduce(device, call, fold_sum, 0, false, error);
}
REF_KERNEL(mean) {
    return reduce(device, call, fold_sum, 0, true, error);
}
REF_KERNEL(max) {
    return reduce(device, call, fold_max, -(double)INFINITY, false, error);
}
REF_KERNEL(min) {
    return reduce(device, call, fold_min, (double)INFINITY, false, error);
}
