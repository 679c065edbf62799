// Factors of products in scaled formats: what their elements are worth. A team finds the largest of
// the block of numbers that share a scale, and rounds them; steps are those of number/scaled.h, so
// that a card gives what the host gives.
#include "gpu/kernels/operands.h"
#include "gpu/kernels/team.h"
#include "kernel/random.h"
#include "number/scaled.h"

enum { BLOCK = 256 };

static __device__ __forceinline__ float load_number(const ScaleArguments &a, i64 line, i64 step) {
    return load_element(a.input, a.extent, scale_index(&a.lines, line, step));
}

// Turned where that is asked for.
static __device__ __forceinline__ float number_at(const ScaleArguments &a, i64 line, i64 step) {
    const i64 first = step - step % NUMBER_HADAMARD;
    if (!a.hadamard || first + NUMBER_HADAMARD > a.lines.depth)
        return load_number(a, line, step);
    float turned[NUMBER_HADAMARD];
#pragma unroll
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        turned[i] = load_number(a, line, first + i);
    number_hadamard(turned, 1);
    float own = 0;
#pragma unroll
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        own = step - first == i ? turned[i] : own;
    return own;
}

static __device__ __forceinline__ void round_number(const ScaleArguments &a, i64 line, i64 step,
                                                    NumberScale scale) {
    const i64 index = scale_index(&a.lines, line, step);
    float chance = 0;
    if (a.at_random) {
        const RandomBlock block =
            random_block(a.random.seed, random_begin(&a.random) + (u64)index / 4);
        const u32 which = (u32)index & 3;
        chance = random_uniform(which == 0   ? block.word[0]
                                : which == 1 ? block.word[1]
                                : which == 2 ? block.word[2]
                                             : block.word[3]);
    }
    const float element = number_round_to_element(number_at(a, line, step) * scale.to_elements,
                                                  a.element, a.at_random, chance);
    store_float(a.output, index, element * scale.to_numbers);
}

struct LargerMagnitude { // of which NaN is the largest
    __device__ __forceinline__ float operator()(float x, float y) const {
        return number_larger_magnitude(x, y);
    }
};

static __device__ __forceinline__ float finite_or_zero(float x) {
    return fabsf(x) <= 0x1.fffffep127f ? x : 0.0f;
}

// The largest of all into a word of bits, which are ordered as magnitudes are.
GPU_DEFINE_LARGE(scale_largest) {
    const i64 lines = a.lines.outer * a.lines.inner, count = lines * a.lines.depth;
    float largest = 0;
    for (i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x; at < count; at += (i64)gridDim.x * BLOCK) {
        float x;
        if (a.hadamard)
            x = number_at(a, at % lines, at / lines);
        else
            x = load_element(a.input, a.extent, at);
        largest = number_larger_magnitude(largest, a.lines.block > 0 ? finite_or_zero(x) : x);
    }
    largest = join_team(team_of(BLOCK), largest, LargerMagnitude());
    if (threadIdx.x == 0)
        atomicMax((u32 *)a.largest, number_bits_of_fp32(largest));
}

// One scale for all.
GPU_DEFINE(scale_all) {
    const i64 lines = a.lines.outer * a.lines.inner, count = lines * a.lines.depth;
    const NumberScale scale = a.delayed ? number_scale_of_factor(*a.delayed)
                                        : number_scale_of_largest(*a.largest, a.element);
    for (i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x; at < count; at += (i64)gridDim.x * BLOCK)
        round_number(a, at / a.lines.inner / a.lines.depth * a.lines.inner + at % a.lines.inner,
                     at / a.lines.inner % a.lines.depth, scale);
}

// What a team works on: so many steps of so many lines.
struct ScaleBlock {
    i64 first_line, lines, first_step, steps;
};

// Number i of it, as neighbours lie in memory.
static __device__ __forceinline__ i64 line_of(const ScaleArguments &a, const ScaleBlock &b, i64 i) {
    return b.first_line + (a.lines.inner == 1 ? i / b.steps : i % b.lines);
}
static __device__ __forceinline__ i64 step_of(const ScaleArguments &a, const ScaleBlock &b, i64 i) {
    return b.first_step + (a.lines.inner == 1 ? i % b.steps : i / b.lines);
}

// That by which the largest becomes 6, or 4 where that misses less.
static __device__ __forceinline__ NumberScale better_scale(const ScaleArguments &a,
                                                           const ScaleBlock &b, Team team,
                                                           float largest, float tensor) {
    const NumberElement to_four = number_element_of_four(a.element);
    const NumberScale six = number_scale_in_tensor(largest, a.element, tensor);
    const NumberScale four = number_scale_in_tensor(largest, to_four, tensor);
    u32 missed_six = 0, missed_four = 0;
#pragma unroll 1
    for (i64 i = team.member; i < b.lines * b.steps; i += a.team) {
        const float x = number_at(a, line_of(a, b, i), step_of(a, b, i));
        missed_six += (u32)number_miss(x * six.to_elements, a.element);
        missed_four += (u32)number_miss(x * four.to_elements, a.element);
    }
    missed_six = join_team(team, missed_six, Sum());
    missed_four = join_team(team, missed_four, Sum());
    return number_four_is_better(number_scale_below_tensor(largest, a.element, tensor),
                                 number_scale_below_tensor(largest, to_four, tensor),
                                 (i32)missed_six, (i32)missed_four)
               ? four
               : six;
}

// Each team a block of so many steps of so many lines. Neighbours of a team are neighbours in
// memory: steps of a line, or lines.
GPU_DEFINE_LARGE(scale_blocks) {
    const Team team = team_of(a.team);
    const i64 along = (a.lines.depth + a.lines.block - 1) / a.lines.block;
    const i64 across = scale_groups(&a.lines);
    const i64 block = (i64)blockIdx.x * (BLOCK / a.team) + threadIdx.x / a.team;
    const bool is_there = block < along * across;
    // Threads side by side have lines side by side where each has a block for itself.
    ScaleBlock b = {0, 0, 0, 0};
    if (is_there) {
        b.lines =
            scale_group(&a.lines, a.team == 1 ? block % across : block / along, &b.first_line);
        b.first_step = (a.team == 1 ? block / across : block % along) * a.lines.block;
        const i64 left = a.lines.depth - b.first_step;
        b.steps = left < a.lines.block ? left : a.lines.block;
    }
    float largest = 0;
#pragma unroll 1
    for (i64 i = team.member; i < b.lines * b.steps; i += a.team)
        largest = number_larger_magnitude(
            largest, finite_or_zero(number_at(a, line_of(a, b, i), step_of(a, b, i))));
    largest = join_team(team, largest, LargerMagnitude());
    const float tensor = a.largest ? number_scale_of_tensor(*a.largest, a.element) : 1;
    const NumberScale scale =
        a.best ? better_scale(a, b, team, largest, tensor)
               : number_scale_of_block((Format)a.scale, largest, a.element, a.up, tensor);
#pragma unroll 1
    for (i64 i = team.member; i < b.lines * b.steps; i += a.team)
        round_number(a, line_of(a, b, i), step_of(a, b, i), scale);
}

struct LargerMet {
    __device__ __forceinline__ float operator()(float x, float y) const {
        return number_larger_met(x, y);
    }
};

// What number_scale_history does, a block each row: few, of as many numbers as there are steps to
// look back upon. One thread would wait for a number after the other.
GPU_DEFINE(scale_history) {
    const i64 row = blockIdx.x, steps = a.width - SCALE_HISTORY;
    const float *from = a.input + row * a.row;
    float *to = a.output + row * a.width;
    const NumberStep step = number_step(from, a.step, steps);
    float largest = step.met;
    for (i64 i = threadIdx.x; i < steps; i += BLOCK) {
        const float met = number_met_then(&step, from, a.step, i);
        to[SCALE_HISTORY + i] = met;
        largest = a.history.is_recent ? largest : number_larger_met(largest, met);
    }
    largest = join_team(team_of(BLOCK), largest, LargerMet()); // behind which all have read `step`
    if (threadIdx.x == 0)
        number_step_end(&step, largest, a.history.largest[row % a.history.roles], steps, to);
}
