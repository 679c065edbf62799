// rules.cu: calls from a kernel every rule that the host and kernels share (base/kernel_inline.h),
// so that nvcc compiles each for the device. Nothing runs it: `make lint` compiles it, with nvcc
// where that is installed, and as plain C++ with both compilers of the house.
#include "kernel/kernel.h"
#include "kernel/multi.h"
#include "kernel/random.h"
#include "kernel/resample.h"
#include "number/inline.h"
#include "number/int8.h"

#ifndef __CUDACC__
#define __global__
#endif

extern "C" {

__global__ void call_rules_of_numbers(float *value, double *wide, uint32_t *bits) {
    float x = number_fp32_of_bits(number_bits_of_fp32(*value));
    x += number_fp32_through_bf16(x) + number_fp32_through_tf32(x);
    x += number_bf16_to_fp32(number_fp32_to_bf16(x));
    x += number_fp16_to_fp32(number_fp32_to_fp16(x));
    x += number_e4m3_to_fp32(number_fp32_to_e4m3_saturating(x));
    x += number_e5m2_to_fp32(number_fp32_to_e5m2_saturating(x));
    *bits = number_fp32_to_e4m3_special(x) + number_fp32_to_e5m2_special(x);
    *bits += (uint32_t)number_fp32_to_int8(x) + number_fp32_to_uint8(x);
    *bits += (uint32_t)number_fp32_to_int32(x);
    *wide = number_fp32_to_fp64(x);
    *value = number_fp64_to_fp32(*wide);
    *value += int8_worth(int8_of(*value, 1.0f / int8_step(x)), x);
}

__global__ void call_rules_of_a_step(const ScaleRule *rule, ScaleState *state,
                                     const StepFlags *const *flags, const Schedule *schedule,
                                     const UpdateRule *update, double *rate) {
    *state = scale_state_initial(rule);
    step_flags_move_scale(flags, 1, rule, state);
    *rate = schedule_rate(schedule, *rate, 1);
    *rate += update_rate(update, 0, 1);
}

__global__ void call_rules_of_random_numbers(const RandomAttr *random, float *target,
                                             int64_t count) {
    RandomBlock block = random_block(random->seed, random_begin(random) + random_blocks(count));
    *target = random_uniform(block.word[0]) + random_uniform_in(block.word[1], -1, 2, 1);
    *target += (float)random_whole(block.word[2], -1, 2) + random_drops(block.word[3], *target);
    random_normal(block.word, 0, 1, target); // of number/elementary.h, all
}

__global__ void call_rules_of_views(const View *view, int64_t *count, bool *dense) {
    *count = view_count(view);
    *dense = view_is_dense(view);
}

__global__ void call_rules_along_a_dimension(const ResampleAttr *attr, int64_t *place,
                                             float *value) {
    ResampleTaps taps = resample_taps(attr, *place);
    ResampleRange range = resample_reach(attr, *place, 1);
    int64_t part, whole;
    *place += range.end + resample_share(&taps, range.first, &part, &whole);
    *value = math_sin(*value) + math_cos(*value);
}
}
