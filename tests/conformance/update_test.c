// The update of all parameters at once (kernel/multi.h), by every rule and in every format, beside
// the reference.
#include "tests/conformance/both.h"

typedef struct Updated {
    UpdateItem items[MOST_ITEMS];
    Progress *progress;
    StepFlags *flags;
    double *rates, *moved;
    uint64_t *steps;
} Updated;

typedef struct UpdateCase {
    UpdateRule rule;
    Format kept, low; // of parameters, and of their copies: FP64 for none
    bool flags;       // there are
    bool found_inf;
    int shift;
} UpdateCase;

static Updated updated_of(int side, const UpdateCase *test) {
    static float values[MOST];
    double rates[3] = {0.01, 1, 0.5}, moved[2 * MOST_ITEMS];
    for (int i = 0; i < 2 * MOST_ITEMS; i++)
        moved[i] = -1;
    uint64_t steps[MOST_ITEMS] = {4, 0, 9};
    StepFlags flags = {.clip = 0.75f, .norm_squared = 9, .found_inf = test->found_inf};
    Progress progress = {.applied = 3, .skipped = 1};
    Updated updated = {.progress = take(side, sizeof progress, &progress),
                       .flags = test->flags ? take(side, sizeof flags, &flags) : NULL,
                       .rates = take(side, sizeof rates, rates),
                       .moved = take(side, sizeof moved, moved),
                       .steps = take(side, sizeof steps, steps)};
    bool has_second = test->rule.kind != OPTIMIZER_SGD;
    bool has_first = has_second || test->rule.momentum > 0;
    for (int i = 0; i < MOST_ITEMS; i++) {
        UpdateItem *item = &updated.items[i];
        *item = (UpdateItem){.moved = i == 4 ? NULL : &updated.moved[2 * i],
                             .steps = i % 3 == 0 ? &updated.steps[i / 3] : NULL,
                             .group = i % 2,
                             .weight_decay = i % 4 ? 0.1f : 0};
        draw(values, sizes[i], (uint64_t)i + 50, 4, false);
        item->parameter = numbers_at(side, test->kept, sizes[i], values, test->shift);
        if (test->low != FORMAT_FP64)
            item->low = numbers_at(side, test->low, sizes[i], values, test->shift);
        draw(values, sizes[i], (uint64_t)i + 90, 8, false);
        item->gradient = numbers_at(side, FORMAT_FP32, sizes[i], values, test->shift);
        if (has_first)
            item->moment[0] = numbers_at(side, FORMAT_FP32, sizes[i], values, test->shift);
        for (int64_t k = 0; k < sizes[i]; k++)
            values[k] *= values[k];
        if (has_second)
            item->moment[1] = numbers_at(side, FORMAT_FP32, sizes[i], values, test->shift);
    }
    return updated;
}

// A step of what a format holds, relative to a number of it.
static double step_of(Format format) {
    return format == FORMAT_FP32 ? 0 : ldexp(1, -format_table[format].mantissa_bits);
}

static void compare_updated(const Updated *ref, const Updated *tested, const UpdateCase *test) {
    const double far = 1e-6;
    for (int i = 0; i < MOST_ITEMS; i++) {
        const UpdateItem *expected = &ref->items[i], *actual = &tested->items[i];
        check_numbers("parameter", &expected->parameter, &actual->parameter,
                      far + step_of(test->kept));
        for (int k = 0; k < 2; k++)
            if (expected->moment[k].data)
                check_numbers("moment", &expected->moment[k], &actual->moment[k],
                              far + step_of(test->kept));
        if (test->low != FORMAT_FP64)
            check_numbers("low", &expected->low, &actual->low, far + step_of(test->low));
    }
    Progress progress[SIDES];
    uint64_t steps[SIDES][MOST_ITEMS];
    double moved[SIDES][2 * MOST_ITEMS];
    const Updated *sides[SIDES] = {ref, tested};
    for (int side = 0; side < SIDES; side++) {
        device_read(devices[side], &progress[side], sides[side]->progress, sizeof *progress);
        device_read(devices[side], steps[side], sides[side]->steps, sizeof *steps);
        device_read(devices[side], moved[side], sides[side]->moved, sizeof *moved);
    }
    CHECK_INT(progress[TESTED].applied, progress[REF].applied);
    CHECK_INT(progress[TESTED].skipped, progress[REF].skipped);
    for (int i = 0; i < MOST_ITEMS; i++)
        CHECK_INT(steps[TESTED][i], steps[REF][i]);
    double about = test->kept == FORMAT_FP32 ? 1e-4 : 0.2; // by single steps of the format
    for (int i = 0; i < 2 * MOST_ITEMS; i++)
        CHECK_NEAR(moved[TESTED][i], moved[REF][i], about * fabs(moved[REF][i]) + 1e-12);
}

static void compare_updates(UpdateCase test) {
    Updated updated[SIDES];
    for (int side = 0; side < SIDES; side++) {
        Updated *own = &updated[side];
        *own = updated_of(side, &test);
        UpdateRule rule = test.rule;
        rule.rates = own->rates;
        if (test.rule.measured)
            rule.measured = own->flags;
        UpdatePlan plan = {.items = own->items, .count = MOST_ITEMS};
        plan_changed(&plan.table);
        for (int step = 0; step < 2; step++)
            DONE(devices[side]->backend->multi->update(devices[side], &rule, &plan, own->flags,
                                                       own->progress, &error));
        plan_drop(devices[side], &plan.table);
    }
    compare_updated(&updated[REF], &updated[TESTED], &test);
    give_all();
}

static UpdateRule rule_of(OptimizerKind kind) {
    return (UpdateRule){.kind = kind,
                        .schedule = {SCHEDULE_COSINE, .warmup = 2, .total = 10, .start = 0.1},
                        .beta1 = 0.9f,
                        .beta2 = 0.99f,
                        .epsilon = 1e-3f,
                        .bias_correction = true,
                        .measures = true};
}

static void updates_agree_with_the_reference(void) {
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++)
        for (int variant = 0; variant < 4; variant++) {
            UpdateCase test = {rule_of((OptimizerKind)kind),
                               .kept = variant == 3 ? FORMAT_BF16 : FORMAT_FP32,
                               .low = variant == 0   ? FORMAT_FP64
                                      : variant == 1 ? FORMAT_FP16
                                                     : FORMAT_BF16,
                               .flags = variant != 2, .shift = variant == 1};
            test.rule.momentum = variant ? 0.9f : 0;
            test.rule.nesterov = variant > 1;
            test.rule.bias_correction = variant != 1;
            test.rule.max_grad_norm = variant ? 0.5f : 0;
            static const StepFlags somewhere;
            test.rule.measured = variant == 3 ? &somewhere : NULL;
            compare_updates(test);
        }
}

static void schedules_are_followed_on_the_device(void) {
    for (int kind = 0; kind < SCHEDULE_KINDS; kind++) {
        UpdateCase test = {rule_of(OPTIMIZER_SGD), FORMAT_FP32, FORMAT_FP64, true, false, 0};
        test.rule.schedule = (Schedule){(ScheduleKind)kind, .start = 0.1, .warmup = 4,
                                        .total = 9,         .every = 2,   .factor = 0.5};
        compare_updates(test);
    }
}

static void a_skipped_update_changes_nothing(void) {
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        UpdateCase test = {rule_of((OptimizerKind)kind), FORMAT_FP32, FORMAT_BF16, true, true, 0};
        test.rule.momentum = 0.9f;
        compare_updates(test);
    }
}

// The processor and the reference round by different rules; a device takes the processor's.
static void stochastic_rounding_gives_the_bits_of_the_processor(void) {
    Device *processor = NULL;
    DONE(device_open("cpu", 1, &processor, &error));
    if (!processor)
        return;
    Device *aside = devices[REF];
    devices[REF] = processor;
    uint64_t base = 12345;
    for (int shift = 0; shift < 2; shift++) {
        Updated updated[SIDES];
        UpdateCase test = {rule_of(OPTIMIZER_SGD), FORMAT_BF16, FORMAT_FP16, true, false, shift};
        test.rule.measures = false;
        for (int side = 0; side < SIDES; side++) {
            updated[side] = updated_of(side, &test);
            UpdateRule rule = test.rule;
            rule.stochastic = true;
            rule.rates = updated[side].rates;
            rule.random = (RandomAttr){7, 99, take(side, sizeof base, &base)};
            UpdatePlan plan = {.items = updated[side].items, .count = MOST_ITEMS};
            DONE(devices[side]->backend->multi->update(
                devices[side], &rule, &plan, updated[side].flags, updated[side].progress, &error));
        }
        for (int i = 0; i < MOST_ITEMS; i++) {
            check_numbers("parameter", &updated[REF].items[i].parameter,
                          &updated[TESTED].items[i].parameter, 0);
            check_numbers("low", &updated[REF].items[i].low, &updated[TESTED].items[i].low, 0);
        }
        give_all();
    }
    devices[REF] = aside;
    device_close(processor);
}

static void no_tensor_at_all_is_no_failure(void) {
    for (int side = 0; side < SIDES; side++) {
        const MultiKernels *multi = devices[side]->backend->multi;
        StepFlags flags = {.found_inf = 1, .norm_squared = 4};
        Progress progress = {0};
        StepFlags *place = take(side, sizeof flags, &flags);
        Progress *counts = take(side, sizeof progress, &progress);
        UpdateRule rule = rule_of(OPTIMIZER_LAMB);
        ScanItem scanned;
        UpdateItem updated;
        DONE(multi->scan(devices[side], &(ScanPlan){.items = &scanned}, NULL, place, &error));
        DONE(multi->update(devices[side], &rule, &(UpdatePlan){.items = &updated}, place, counts,
                           &error));
        device_read(devices[side], &flags, place, sizeof flags);
        device_read(devices[side], &progress, counts, sizeof progress);
        CHECK(flags.found_inf == 0 && flags.clip == 1 && flags.norm_squared == 0);
        CHECK_INT(progress.applied, 1);
    }
    give_all();
}

int main(void) {
    if (!open_both())
        return 1;
    RUN_TEST(updates_agree_with_the_reference);
    RUN_TEST(schedules_are_followed_on_the_device);
    RUN_TEST(a_skipped_update_changes_nothing);
    RUN_TEST(stochastic_rounding_gives_the_bits_of_the_processor);
    RUN_TEST(no_tensor_at_all_is_no_failure);
    return close_both();
}
