// Along one dimension: sums and products of what came before, and a dimension drawn anew.
#include "kernel/resample.h"
#include "ref/access.h"
#include "ref/kernels.h"

// Lines along dimension `dim` of an array: element `at` of line i is number
// (i / inner * size + at) * inner + i % inner.
typedef struct Lines {
    int64_t count, size, inner;
} Lines;

static Lines lines_of(const View *x, int dim) {
    Lines lines = {.count = 1, .size = x->shape[dim], .inner = 1};
    for (int i = 0; i < x->ndim; i++) {
        lines.inner *= i > dim ? x->shape[i] : 1;
        lines.count *= i != dim ? x->shape[i] : 1;
    }
    return lines;
}

static int64_t element_of(const Lines *lines, int64_t line, int64_t at) {
    return (line / lines->inner * lines->size + at) * lines->inner + line % lines->inner;
}

REF_KERNEL(cumsum) {
    const View *x = &call->input[0], *y = &call->output[0];
    const LineAttr *attr = &call->attr->line;
    const Lines lines = lines_of(x, attr->dim);
    for (int64_t line = 0; line < lines.count; line++) {
        double sum = 0;
        for (int64_t i = 0; i < lines.size; i++) {
            int64_t at = element_of(&lines, line, attr->backwards ? lines.size - 1 - i : i);
            sum += ref_get(x, at);
            ref_put(y, at, sum);
        }
    }
    return true;
}

REF_KERNEL(prod) {
    const View *x = &call->input[0], *y = &call->output[0];
    const Lines lines = lines_of(x, call->attr->line.dim);
    for (int64_t line = 0; line < lines.count; line++) {
        double product = 1;
        for (int64_t i = 0; i < lines.size; i++)
            product *= ref_get(x, element_of(&lines, line, i));
        ref_put(y, line, product);
    }
    return true;
}

REF_KERNEL(prod_backward) {
    const View *dy = &call->input[0], *x = &call->input[1], *dx = &call->output[0];
    const Lines lines = lines_of(x, call->attr->line.dim);
    double *before = ref_scratch(device, lines.size, 1, error);
    if (!before)
        return false;
    for (int64_t line = 0; line < lines.count; line++) {
        double product = 1;
        for (int64_t i = 0; i < lines.size; i++) {
            before[i] = product;
            product *= ref_get(x, element_of(&lines, line, i));
        }
        product = 1;
        for (int64_t i = lines.size - 1; i >= 0; i--) {
            int64_t at = element_of(&lines, line, i);
            ref_put(dx, at, ref_get(dy, line) * (before[i] * product));
            product *= ref_get(x, at);
        }
    }
    return true;
}

// ---- a dimension drawn anew ---------------------------------------------------------------------

static bool resample(const KernelCall *call) {
    const View *x = &call->input[0], *y = &call->output[0];
    const ResampleAttr *attr = &call->attr->resample;
    const Lines from = lines_of(x, attr->dim), to = lines_of(y, attr->dim);
    for (int64_t line = 0; line < to.count; line++)
        for (int64_t i = 0; i < to.size; i++) {
            const ResampleTaps taps = resample_taps(attr, i);
            double sum = 0;
            for (int64_t k = taps.first, part, whole; k < taps.first + taps.count; k++)
                if (resample_share(&taps, k, &part, &whole))
                    sum += ref_get(x, element_of(&from, line, k)) * ((double)part / (double)whole);
            ref_put(y, element_of(&to, line, i), sum);
        }
    return true;
}

REF_KERNEL(resample) {
    return resample(call);
}
REF_KERNEL(interpolate) {
    return resample(call);
}

REF_KERNEL(resample_backward) {
    const View *dy = &call->input[0], *dx = &call->output[0];
    const ResampleAttr *attr = &call->attr->resample;
    const Lines from = lines_of(dy, attr->dim), to = lines_of(dx, attr->dim);
    double *sums = ref_scratch(device, to.size, 0, error);
    if (!sums)
        return false;
    for (int64_t line = 0; line < to.count; line++) {
        for (int64_t i = 0; i < to.size; i++)
            sums[i] = 0;
        for (int64_t i = 0; i < from.size; i++) {
            const ResampleTaps taps = resample_taps(attr, i);
            for (int64_t k = taps.first, part, whole; k < taps.first + taps.count; k++)
                if (resample_share(&taps, k, &part, &whole))
                    sums[k] +=
                        ref_get(dy, element_of(&from, line, i)) * ((double)part / (double)whole);
        }
        for (int64_t i = 0; i < to.size; i++)
            ref_put(dx, element_of(&to, line, i), sums[i]);
    }
    return true;
}
