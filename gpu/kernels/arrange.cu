// Joining, padding, selecting: values move, and are rounded only where the format changes.
#include "gpu/kernels/formats.h"
#include "gpu/kernels/values.h"

enum { BLOCK = 256 }; // threads, and steps between what one of them moves

GPU_DEFINE(cat) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK) {
        i64 outer = at;
        const i64 place = part_off(&outer, a.run, a.count);
        u32 input = 0;
        i64 begin = 0;
        while (place >= a.end[input])
            begin = a.end[input++];
        Moving moving = a.moving;
        moving.from = a.format[input];
        const i64 run = a.end[input] - begin;
        move_piece(moving, a.output, at, a.input[input], outer * run + place - begin);
    }
}

GPU_DEFINE(pad) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.extent.count; i++, at += BLOCK) {
        i64 rest = at, from = 0, step = 1;
        bool inside = true;
#pragma unroll 1
        for (u32 d = a.extent.ndim; d-- > 0;) {
            const i64 place = part_off(&rest, a.extent.size[d], a.extent.count) - a.before[d];
            inside = inside && place >= 0 && place < a.size[d];
            from += place * step;
            step *= a.size[d];
        }
        if (inside)
            move_piece(a.moving, a.output, at, a.input, from);
        else
            fill_piece(a.bytes, a.output, at, a.pattern);
    }
}

GPU_DEFINE(gather) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK) {
        const i32 chosen = a.index[at];
        if (!value_holds(a.values, at, chosen))
            continue;
        i64 outer = at;
        const i64 inner = part_off(&outer, a.inner, a.count);
        (void)part_off(&outer, a.picked, a.count);
        move_piece(a.moving, a.output, at, a.input, (outer * a.size + chosen) * a.inner + inner);
    }
}

// Each element of the gradient looks for itself among what was picked along its line, in order.
GPU_DEFINE(gather_backward) {
    const i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x;
    if (at >= a.count)
        return;
    i64 outer = at;
    const i64 inner = part_off(&outer, a.inner, a.count);
    const i64 own = part_off(&outer, a.size, a.count);
    i64 from = outer * a.picked * a.inner + inner;
    float sum = 0;
    for (i64 i = 0; i < a.picked; i++, from += a.inner)
        if (a.index[from] == own)
            sum += load_any(a.moving.from, a.input, from);
    store_any(a.moving.to, a.output, at, sum);
}

// Of kernels that read an index in another order, or not at all.
GPU_DEFINE(check_index) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK)
        (void)value_holds(a.values, at, a.index[at]);
}
