// What looks at one row, the last dimension, at a time. Among equals the first comes first, and
// NaN counts as larger than anything, so that it does not go unseen.
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

// The largest of a row, and the logarithm of the sum of the exponentials of the differences from
// it. They are kept apart and subtracted one after the other: what all numbers of a row have in
// common would take the logarithm's digits.
typedef struct RowSum {
    double largest, log_sum;
} RowSum;

static RowSum row_sum(const View *x, int64_t row, int64_t length) {
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < length; j++) {
        double value = ref_get(x, row * length + j);
        if (value > largest)
            largest = value;
    }
    for (int64_t j = 0; j < length; j++)
        sum += exp(ref_get(x, row * length + j) - largest);
    return (RowSum){largest, log(sum)};
}

static double log_share(double x, RowSum sum) {
    return x - sum.largest - sum.log_sum;
}

REF_KERNEL(softmax) {
    const View *x = &call->input[0], *y = &call->output[0];
    int64_t length = ref_row_length(x);
    for (int64_t row = 0; row < ref_row_count(x); row++) {
        RowSum sum = row_sum(x, row, length);
        for (int64_t j = 0; j < length; j++)
            ref_put(y, row * length + j, exp(log_share(ref_get(x, row * length + j), sum)));
    }
    return true;
}

REF_KERNEL(log_softmax) {
    const View *x = &call->input[0], *y = &call->output[0];
    int64_t length = ref_row_length(x);
    for (int64_t row = 0; row < ref_row_count(x); row++) {
        RowSum sum = row_sum(x, row, length);
        for (int64_t j = 0; j < length; j++)
            ref_put(y, row * length + j, log_share(ref_get(x, row * length + j), sum));
    }
    return true;
}

REF_KERNEL(softmax_backward) {
    const View *dy = &call->input[0], *y = &call->input[1], *dx = &call->output[0];
    int64_t length = ref_row_length(y);
    for (int64_t first = 0; first < view_count(y); first += length) {
        double sum = 0;
        for (int64_t i = first; i < first + length; i++)
            sum += ref_get(dy, i) * ref_get(y, i);
        for (int64_t i = first; i < first + length; i++)
            ref_put(dx, i, ref_get(y, i) * (ref_get(dy, i) - sum));
    }
    return true;
}

REF_KERNEL(log_softmax_backward) {
    const View *dy = &call->input[0], *y = &call->input[1], *dx = &call->output[0];
    int64_t length = ref_row_length(y);
    for (int64_t first = 0; first < view_count(y); first += length) {
        double sum = 0;
        for (int64_t i = first; i < first + length; i++)
            sum += ref_get(dy, i);
        for (int64_t i = first; i < first + length; i++)
            ref_put(dx, i, ref_get(dy, i) - exp(ref_get(y, i)) * sum);
    }
    return true;
}

// ---- classes ------------------------------------------------------------------------------------

enum { CLASS_LEFT_OUT = -1 };

// Checks every class, and counts the rows that are not left out.
static bool classes_check(const KernelCall *call, const View *logits, const View *classes,
                          int64_t *kept, Error *error) {
    const ValueCheck check = value_check(call, FAULT_CLASS, ref_row_length(logits));
    *kept = 0;
    for (int64_t row = 0; row < ref_row_count(logits); row++) {
        int64_t class = (int64_t)ref_get(classes, row);
        if (!value_passes(&check, class))
            return value_fail(&check, row, class, error);
        *kept += class != CLASS_LEFT_OUT;
    }
    return true;
}

REF_KERNEL(cross_entropy) {
    const View *logits = &call->input[0], *classes = &call->input[1];
    const View *loss = &call->output[0], *sums = &call->output[1];
    int64_t length = ref_row_length(logits), kept;
    if (!classes_check(call, logits, classes, &kept, error))
        return false;
    double loss_sum = 0;
    int64_t rows = ref_row_count(logits);
    for (int64_t row = 0; row < rows; row++) {
        int64_t class = (int64_t)ref_get(classes, row);
        RowSum sum = row_sum(logits, row, length);
        if (ref_is_present(sums)) {
            ref_put(sums, row, sum.largest);
            ref_put(sums, rows + row, sum.log_sum);
        }
        if (class != CLASS_LEFT_OUT)
            loss_sum -= log_share(ref_get(logits, row * length + class), sum);
    }
    ref_put(loss, 0, kept ? loss_sum / (double)kept : (double)NAN);
    return true;
}

REF_KERNEL(cross_entropy_backward) {
    const View *logits = &call->input[1], *sums = &call->input[2], *classes = &call->input[3];
    const View *dlogits = &call->output[0];
    int64_t length = ref_row_length(logits), kept;
    if (!classes_check(call, logits, classes, &kept, error))
        return false;
    double share = kept ? ref_number(&call->input[0]) / (double)kept : 0;
    int64_t rows = ref_row_count(logits);
    for (int64_t row = 0; row < rows; row++) {
        int64_t class = (int64_t)ref_get(classes, row);
        RowSum sum = {ref_get(sums, row), ref_get(sums, rows + row)};
        for (int64_t j = 0; j < length; j++) {
            double probability = exp(log_share(ref_get(logits, row * length + j), sum));
            double gradient = share * (probability - (j == class ? 1 : 0));
            ref_put(dlogits, row * length + j, class == CLASS_LEFT_OUT ? 0 : gradient);
        }
    }
    return true;
}

// Whether a row's largest, the first of equals, is this one. A NaN in the row makes it untrue.
static bool is_largest(const View *x, int64_t row, int64_t length, int64_t wanted) {
    double value = ref_get(x, row * length + wanted);
    for (int64_t j = 0; j < length; j++) {
        double other = ref_get(x, row * length + j);
        bool loses = j < wanted ? other < value : other <= value;
        if (!loses)
            return false;
    }
    return true;
}

REF_KERNEL(accuracy) {
    const View *logits = &call->input[0], *classes = &call->input[1];
    int64_t length = ref_row_length(logits), kept, right = 0;
    if (!classes_check(call, logits, classes, &kept, error))
        return false;
    for (int64_t row = 0; row < ref_row_count(logits); row++) {
        int64_t class = (int64_t)ref_get(classes, row);
        right += class != CLASS_LEFT_OUT && is_largest(logits, row, length, class);
    }
    ref_put(&call->output[0], 0, kept ? (double)right / (double)kept : (double)NAN);
    return true;
}

// ---- order --------------------------------------------------------------------------------------

// Whether element i of a row comes before element j in falling order.
static bool comes_before(const View *x, int64_t first, int64_t i, int64_t j) {
    double a = ref_get(x, first + i), b = ref_get(x, first + j);
    if (isnan(a) || isnan(b))
        return isnan(a) && (!isnan(b) || i < j);
    return a > b || (a == b && i < j);
}

REF_KERNEL(argmax) {
    const View *x = &call->input[0];
    int64_t length = ref_row_length(x);
    for (int64_t row = 0; row < ref_row_count(x); row++) {
        int64_t best = 0;
        for (int64_t j = 1; j < length; j++)
            if (comes_before(x, row * length, j, best))
                best = j;
        ref_put(&call->output[0], row, (double)best);
    }
    return true;
}

REF_KERNEL(topk) {
    const View *x = &call->input[0], *values = &call->output[0], *indices = &call->output[1];
    int64_t length = ref_row_length(x), wanted = ref_row_length(values);
    for (int64_t row = 0; row < ref_row_count(x); row++)
        for (int64_t i = 0; i < length; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < length; j++)
                rank += comes_before(x, row * length, j, i);
            if (rank >= wanted)
                continue;
            ref_put(values, row * wanted + rank, ref_get(x, row * length + i));
            ref_put(indices, row * wanted + rank, (double)i);
        }
    return true;
}
