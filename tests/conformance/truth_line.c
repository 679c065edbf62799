// What a dimension drawn anew is by definition: nothing here looks at kernel/resample.h.
#include <math.h>
#include <stdlib.h>

#include "tests/conformance/truth.h"

typedef long double Wide;

// The share that element `from` of the dimension has in element `to` of the result.
static Wide share_of(const ResampleAttr *attr, int64_t from, int64_t to) {
    const Wide size = (Wide)attr->size, count = (Wide)attr->count;
    const int64_t place = to - attr->before, n = attr->size;
    switch (attr->rule) {
    case RESAMPLE_REPLICATE: return from == (place < 0 ? 0 : place > n - 1 ? n - 1 : place);
    case RESAMPLE_CIRCULAR: return from == (place % n + n) % n;
    case RESAMPLE_REFLECT: { // there and back again
        const int64_t period = n > 1 ? 2 * (n - 1) : 1;
        const int64_t within = (place % period + period) % period;
        return from == (within < n ? within : period - within);
    }
    case RESAMPLE_MEAN: {
        const int64_t first = (int64_t)floorl((Wide)to * size / count);
        const int64_t end = (int64_t)ceill((Wide)(to + 1) * size / count);
        return from >= first && from < end ? 1 / (Wide)(end - first) : 0;
    }
    default: break;
    }
    // A tent over each element; before the first and behind the last it stays at their height.
    Wide at = attr->rule == RESAMPLE_LINEAR ? ((Wide)to + 0.5L) * size / count - 0.5L
              : attr->count > 1             ? (Wide)to * (size - 1) / (count - 1)
                                            : 0;
    at = at < 0 ? 0 : at > size - 1 ? size - 1 : at;
    const Wide distance = fabsl(at - (Wide)from);
    return distance < 1e-12L ? 1 : distance < 1 - 1e-12L ? 1 - distance : 0;
}

bool truth_resample(const Case *test, double *value) {
    const bool back = test->op == OP_resample_backward;
    const ResampleAttr *attr = &test->attr.resample;
    const CaseInput *input = &test->input[0]; // it lies dense
    const View *output = &test->output[0];
    const int64_t taken = back ? attr->count : attr->size, made = back ? attr->size : attr->count;
    int64_t inner = 1;
    for (int i = attr->dim + 1; i < output->ndim; i++)
        inner *= output->shape[i];
    for (int64_t i = 0; i < view_count(output); i++) {
        const int64_t outer = i / inner / made, place = i / inner % made;
        Wide sum = 0;
        for (int64_t k = 0; k < taken; k++) {
            const Wide share = back ? share_of(attr, place, k) : share_of(attr, k, place);
            const int64_t at = (outer * taken + k) * inner + i % inner;
            if (share > 0)
                sum += share * (Wide)input->values[input->offset + at];
        }
        value[i] = (double)sum;
    }
    return true;
}
