// kernel/resample.h: a dimension drawn anew: which elements, in what shares, each new one is made
// of.
//
// Padding by what an array has itself, growing by lines between neighbours, and means over parts
// that may overlap are one rule with different elements, so that each backend has one kernel of it
// and one of its gradient. All is found in whole numbers: a share is exact until it is divided.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/kernel_inline.h"
#include "kernel/attr.h"

// The elements that one of the result is made of: `count` neighbours from `first` on, of which each
// has an equal share; but of two, where `whole` is not 0, the second has rest / whole.
typedef struct ResampleTaps {
    int64_t first, count;
    int64_t rest, whole;
} ResampleTaps;

KERNEL_INLINE int64_t resample_floor(int64_t of, int64_t by) {
    int64_t quotient = of / by;
    return quotient - (of % by < 0 ? 1 : 0);
}

// Between two neighbours, where the line through both is at numerator / denominator.
KERNEL_INLINE ResampleTaps resample_line(int64_t size, int64_t numerator, int64_t denominator) {
    int64_t first = resample_floor(numerator, denominator);
    ResampleTaps taps = {first, 1, 0, 0};
    int64_t rest = numerator - first * denominator;
    if (first < 0) {
        taps.first = 0;
    } else if (first >= size - 1) {
        taps.first = size - 1;
    } else if (rest > 0) {
        taps.count = 2;
        taps.rest = rest;
        taps.whole = denominator;
    }
    return taps;
}

// What lies `place` elements from the first, which may be before it or behind the last.
KERNEL_INLINE int64_t resample_beyond(ResampleRule rule, int64_t size, int64_t place) {
    if (rule == RESAMPLE_CIRCULAR)
        return place < 0 ? place + size : place >= size ? place - size : place;
    if (rule == RESAMPLE_REFLECT)
        return place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
    return place < 0 ? 0 : place >= size ? size - 1 : place;
}

// Of element `place` of the result.
KERNEL_INLINE ResampleTaps resample_taps(const ResampleAttr *attr, int64_t place) {
    int64_t size = attr->size, count = attr->count;
    if (attr->rule == RESAMPLE_LINEAR)
        return resample_line(size, (2 * place + 1) * size - count, 2 * count);
    if (attr->rule == RESAMPLE_CORNERS)
        return resample_line(size, count > 1 ? place * (size - 1) : 0, count > 1 ? count - 1 : 1);
    ResampleTaps taps = {0, 1, 0, 0};
    if (attr->rule == RESAMPLE_MEAN) {
        taps.first = place * size / count;
        taps.count = ((place + 1) * size + count - 1) / count - taps.first;
    } else {
        taps.first = resample_beyond(attr->rule, size, place - attr->before);
    }
    return taps;
}

// Elements of the result among which are all that element `place` of the input has a share of:
// some ranges, one behind the other.
enum { RESAMPLE_RANGES = 3 };
typedef struct ResampleRange {
    int64_t first, end;
} ResampleRange;

KERNEL_INLINE ResampleRange resample_between(int64_t first, int64_t end, int64_t count) {
    ResampleRange range = {first > 0 ? first : 0, end < count ? end : count};
    return range;
}

KERNEL_INLINE ResampleRange resample_reach(const ResampleAttr *attr, int64_t place, int number) {
    int64_t size = attr->size, count = attr->count;
    ResampleRange none = {0, 0};
    bool is_pad = attr->rule == RESAMPLE_REFLECT || attr->rule == RESAMPLE_REPLICATE ||
                  attr->rule == RESAMPLE_CIRCULAR;
    if (is_pad) {
        int64_t own = attr->before + place;
        return number == 0   ? resample_between(0, attr->before, count)
               : number == 1 ? resample_between(own, own + 1, count)
                             : resample_between(attr->before + size, count, count);
    }
    if (number > 0)
        return none;
    int64_t first = 0, end = count;
    if (attr->rule == RESAMPLE_MEAN) {
        first = place * count / size;
        end = ((place + 1) * count + size - 1) / size;
    } else if (attr->rule == RESAMPLE_LINEAR) {
        if (place > 0)
            first = resample_floor((2 * place - 1) * count - size, 2 * size);
        if (place < size - 1)
            end = resample_floor((2 * place + 3) * count - size, 2 * size) + 2;
    } else if (size > 1) {
        if (place > 0)
            first = (place - 1) * (count - 1) / (size - 1);
        if (place < size - 1)
            end = (place + 1) * (count - 1) / (size - 1) + 2;
    }
    return resample_between(first, end, count);
}

// Whether the taps have element `place` of the input; its share is part / whole.
KERNEL_INLINE bool resample_share(const ResampleTaps *taps, int64_t place, int64_t *part,
                                  int64_t *whole) {
    int64_t at = place - taps->first;
    if (at < 0 || at >= taps->count)
        return false;
    *whole = taps->whole ? taps->whole : taps->count;
    *part = !taps->whole ? 1 : at ? taps->rest : taps->whole - taps->rest;
    return true;
}
