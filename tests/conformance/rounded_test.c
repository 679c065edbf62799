// What holds products whose factors are rounded must bite: a device that rounds them by another
// rule is the reference device with its scale_factor told something else, and every such fault must
// be found.
#include "tests/conformance/cases.h"
#include "tests/conformance/rounded.h"
#include "tests/test.h"

typedef enum Plant {
    PLANT_NONE,
    PLANT_BLOCK,   // twice as many numbers share a scale
    PLANT_DEPTH,   // they lie along another dimension
    PLANT_ELEMENT, // elements are those of another format
    PLANT_FLOOR,   // the largest saturates
    PLANT_STEP,    // of whole numbers: a step is worth more
} Plant;

static Plant fault;

static const Format other[FORMAT_COUNT] = {[FORMAT_E4M3] = FORMAT_E5M2,
                                           [FORMAT_E5M2] = FORMAT_E3M2,
                                           [FORMAT_E3M2] = FORMAT_E2M1,
                                           [FORMAT_E2M3] = FORMAT_E2M1,
                                           [FORMAT_E2M1] = FORMAT_E3M2};

static bool faulty_kernel(Device *device, const KernelCall *call, Error *error) {
    extern const Backend ref_backend;
    OpAttr attr = *call->attr;
    KernelCall changed = *call;
    changed.attr = &attr;
    ScaleAttr *by = &attr.factor.by;
    if (call->op == OP_scale_factor) {
        by->block *= fault == PLANT_BLOCK ? 2 : 1;
        by->first = fault == PLANT_DEPTH ? by->first == 0 : by->first;
        by->element = fault == PLANT_ELEMENT ? other[by->element] : by->element;
        by->up = by->up && fault != PLANT_FLOOR;
    }
    attr.int8.step *= fault == PLANT_STEP ? 1.01f : 1;
    return ref_backend.kernels[call->op](device, &changed, error);
}

static const FamilyCases families[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = cases_##family,
#include "kernel/ops.def"
};

static Report report_of(Plant planted, OpId op, const Rounding *rounding) {
    static Kernel kernels[OP_COUNT];
    Report of_ref = {0}, of_device = {0};
    Device *ref, *faulty;
    if (!device_open("ref", 1, &ref, NULL) || !device_open("ref", 1, &faulty, NULL))
        abort();
    for (int i = 0; i < OP_COUNT; i++)
        kernels[i] = faulty_kernel;
    Backend backend = *faulty->backend;
    backend.kernels = kernels;
    faulty->backend = &backend;
    Cases cases = {.op = op,
                   .compute = FORMAT_COUNT,
                   .rounding = rounding,
                   .format = FORMAT_BF16,
                   .ref = ref,
                   .ref_report = &of_ref,
                   .devices = &faulty,
                   .reports = &of_device,
                   .device_count = 1,
                   .random = 1,
                   .until_failure = planted != PLANT_NONE,
                   .one_in = planted == PLANT_NONE ? 16 : 0};
    fault = planted;
    families[op](&cases);
    device_close(faulty);
    device_close(ref);
    CHECK_MESSAGE(of_ref.failures == 0, "%s", of_ref.first);
    CHECK(of_device.cases > 0);
    return of_device;
}

// In every format whose scales are of that kind.
static void check_found(Plant planted, OpId op, FormatScaling scaled) {
    Rounding roundings[ROUNDINGS_MOST];
    const int count = rounding_list(roundings);
    int met = 0;
    for (int i = 0; i < count; i++) {
        const FormatInfo *info = &format_table[roundings[i].format];
        const bool has_powers = info->scaled == SCALED_BLOCK && info->scale == FORMAT_E8M0;
        // Elements with so many powers of two hold whatever is drawn by the scale of others too.
        const bool is_wide = format_table[info->element].exponent_bits >= 4;
        if (info->scaled != scaled || (planted == PLANT_FLOOR && !has_powers) ||
            ((planted == PLANT_BLOCK || planted == PLANT_DEPTH) && is_wide))
            continue;
        Report report = report_of(planted, op, &roundings[i]);
        CHECK_MESSAGE(report.failures > 0, "%s in %s: the fault is not found in %d cases",
                      op_table[op].name, roundings[i].name, report.cases);
        met++;
    }
    CHECK(met > 0);
}

static void no_fault_is_found_where_there_is_none(void) {
    Rounding roundings[ROUNDINGS_MOST];
    const int count = rounding_list(roundings);
    for (int i = 0; i < count; i++) {
        Report report = report_of(PLANT_NONE, OP_linear, &roundings[i]);
        CHECK_MESSAGE(report.failures == 0, "%s: %s", roundings[i].name, report.first);
    }
}

static void blocks_of_another_size_are_found(void) {
    check_found(PLANT_BLOCK, OP_linear, SCALED_BLOCK);
    check_found(PLANT_BLOCK, OP_conv2d_backward_weight, SCALED_BLOCK);
}

static void blocks_along_another_dimension_are_found(void) {
    check_found(PLANT_DEPTH, OP_matmul, SCALED_BLOCK);
    check_found(PLANT_DEPTH, OP_conv_transpose2d, SCALED_BLOCK);
}

static void another_element_is_found(void) {
    check_found(PLANT_ELEMENT, OP_linear, SCALED_BLOCK);
    check_found(PLANT_ELEMENT, OP_conv2d, SCALED_TENSOR);
}

static void scales_that_let_the_largest_saturate_are_found(void) {
    check_found(PLANT_FLOOR, OP_conv2d, SCALED_BLOCK);
}

static void another_step_of_whole_numbers_is_found(void) {
    check_found(PLANT_STEP, OP_linear, SCALED_ROW);
    check_found(PLANT_STEP, OP_conv2d, SCALED_ROW);
}

int main(void) {
    RUN_TEST(no_fault_is_found_where_there_is_none);
    RUN_TEST(blocks_of_another_size_are_found);
    RUN_TEST(blocks_along_another_dimension_are_found);
    RUN_TEST(another_element_is_found);
    RUN_TEST(scales_that_let_the_largest_saturate_are_found);
    RUN_TEST(another_step_of_whole_numbers_is_found);
    return test_end();
}
