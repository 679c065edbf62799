// What runs over all tensors of a model at once (kernel/multi.h) but for the update, which has
// update_test.c: the pass over the gradients, what a step decides by it, statistics and averages.
#include "tests/conformance/both.h"

// ---- the pass over the gradients ----------------------------------------------------------------

typedef struct Scanned {
    ScanItem items[MOST_ITEMS];
    GradStats *stats;
    StepFlags *flags;
    ScaleState *scale;
} Scanned;

static Scanned scanned_of(int side, int powers, bool wild, Format round_to, float scale, int shift,
                          bool adds) {
    static float values[MOST];
    GradStats before[MOST_ITEMS];
    for (int i = 0; i < MOST_ITEMS; i++) {
        before[i] = (GradStats){.count = 3, .zeros = 1, .largest = 0.75f, .sum = 2};
        before[i].exponents[5] = 7;
    }
    StepFlags flags = {.found_inf = 1, .clip = 0.5f, .norm_squared = 3, .sum = 4, .count = 5};
    ScaleState state = {.scale = scale};
    Scanned scanned = {.stats = take(side, sizeof before, before),
                       .flags = take(side, sizeof flags, &flags),
                       .scale = take(side, sizeof state, &state)};
    for (int i = 0; i < MOST_ITEMS; i++) {
        draw(values, sizes[i], (uint64_t)i + 1, powers, wild && i % 2);
        scanned.items[i] =
            (ScanItem){.gradient = numbers_at(side, FORMAT_FP32, sizes[i], values, shift),
                       .round_to = i % 5 == 4 ? FORMAT_FP32 : round_to,
                       .stats = i == 5 ? NULL : &scanned.stats[i],
                       .adds = adds && i % 2};
    }
    return scanned;
}

static void compare_stats(const Scanned *ref, const Scanned *tested) {
    GradStats expected[MOST_ITEMS], actual[MOST_ITEMS];
    device_read(devices[REF], expected, ref->stats, sizeof expected);
    device_read(devices[TESTED], actual, tested->stats, sizeof actual);
    for (int i = 0; i < MOST_ITEMS; i++) {
#define COUNT(name) CHECK_INT(actual[i].name, expected[i].name);
#define SUM(name)   CHECK_NEAR(actual[i].name, expected[i].name, 1e-5 * expected[i].name);
#include "number/statistics.def"
        for (int bin = 0; bin < EXPONENT_BINS; bin++)
            CHECK_MESSAGE(actual[i].exponents[bin] == expected[i].exponents[bin],
                          "bin %d of item %d is %d, expected %d", bin, i,
                          (int)actual[i].exponents[bin], (int)expected[i].exponents[bin]);
    }
}

static void compare_flags(const StepFlags *ref, const StepFlags *tested) {
    StepFlags expected, actual;
    device_read(devices[REF], &expected, ref, sizeof expected);
    device_read(devices[TESTED], &actual, tested, sizeof actual);
    CHECK_INT(actual.found_inf, expected.found_inf);
    CHECK_INT(actual.count, expected.count);
    CHECK_NEAR(actual.clip, expected.clip, 1e-6 * (double)expected.clip);
    CHECK_NEAR(actual.norm_squared, expected.norm_squared, 1e-5 * expected.norm_squared);
    CHECK_NEAR(actual.sum, expected.sum, 1e-5 * expected.sum);
    CHECK_NEAR(actual.largest, expected.largest, 1e-6 * (double)expected.largest);
}

static void compare_scans(Format round_to, int powers, bool wild, float scale, int shift,
                          bool adds) {
    Scanned scanned[SIDES];
    for (int side = 0; side < SIDES; side++) {
        Scanned *own = &scanned[side];
        *own = scanned_of(side, powers, wild, round_to, scale, shift, adds);
        ScanPlan plan = {.items = own->items, .count = MOST_ITEMS};
        DONE(devices[side]->backend->multi->scan(devices[side], &plan, own->scale, own->flags,
                                                 &error));
    }
    for (int i = 0; i < MOST_ITEMS; i++)
        check_numbers("gradient", &scanned[REF].items[i].gradient,
                      &scanned[TESTED].items[i].gradient, 0);
    compare_stats(&scanned[REF], &scanned[TESTED]);
    compare_flags(scanned[REF].flags, scanned[TESTED].flags);
    give_all();
}

static void the_scan_rounds_counts_and_unscales_as_the_reference(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16,
                                     FORMAT_TF32, FORMAT_E5M2, FORMAT_E4M3};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        compare_scans(formats[f], 20, false, 1024, 0, false);
        compare_scans(formats[f], 100, true, 0x1p-4f, f % 2 ? 1 : 0, true);
    }
}

static void gradients_far_from_one_lose_nothing_in_their_sums(void) {
    compare_scans(FORMAT_FP32, 4, false, 0x1p70f, 0, false);
    compare_scans(FORMAT_FP32, 4, false, 0x1p-70f, 0, false);
}

// A plan that lasts is told when something about it has changed, and only then looked at.
static void a_plan_follows_its_items(void) {
    for (int side = 0; side < SIDES; side++) {
        const MultiKernels *multi = devices[side]->backend->multi;
        float values[3] = {-3, 0.5f, 2}, got[3];
        View first = numbers_at(side, FORMAT_FP32, 3, values, 0);
        View second = numbers_at(side, FORMAT_FP32, 3, values, 0);
        ScanItem items[2] = {{.gradient = first, .round_to = FORMAT_FP32}};
        ScanPlan plan = {.items = items, .count = 1};
        plan_changed(&plan.table);
        for (int call = 0; call < 2; call++)
            DONE(multi->clip_value(devices[side], &plan, 1, &error));
        read_numbers(side, &first, got);
        CHECK(got[0] == -1 && got[1] == 0.5f && got[2] == 1);
        items[0].gradient = second;
        plan_changed(&plan.table);
        DONE(multi->clip_value(devices[side], &plan, 0.25f, &error));
        read_numbers(side, &first, got);
        CHECK(got[1] == 0.5f);
        read_numbers(side, &second, got);
        CHECK(got[0] == -0.25f && got[1] == 0.25f && got[2] == 0.25f);
        items[1].gradient = first;
        plan.count = 2;
        plan_changed(&plan.table);
        DONE(multi->clip_value(devices[side], &plan, 0.125f, &error));
        read_numbers(side, &first, got);
        CHECK(got[0] == -0.125f && got[1] == 0.125f);
        plan_drop(devices[side], &plan.table);
        CHECK(!plan.table.made);
    }
    give_all();
}

// By 1 too, by which devices leave them as they are.
static void gradients_are_multiplied_as_the_reference_does(void) {
    static const float factors[] = {1, 0.3f, 0};
    static float values[MOST];
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        ScanItem items[SIDES][MOST_ITEMS] = {0};
        for (int side = 0; side < SIDES; side++) {
            for (int i = 0; i < MOST_ITEMS; i++) {
                draw(values, sizes[i], (uint64_t)i, 30, f == 1);
                items[side][i].gradient = numbers_at(side, FORMAT_FP32, sizes[i], values, i % 3);
            }
            const float *factor = take(side, sizeof *factor, &factors[f]);
            ScanPlan plan = {.items = items[side], .count = MOST_ITEMS};
            DONE(devices[side]->backend->multi->multiply(devices[side], &plan, factor, &error));
        }
        for (int i = 0; i < MOST_ITEMS; i++)
            check_numbers("gradient", &items[REF][i].gradient, &items[TESTED][i].gradient, 0);
        give_all();
    }
}

// ---- what a step decides by ---------------------------------------------------------------------

static void the_norm_is_clipped_where_the_flags_are(void) {
    static const StepFlags cases[] = {{.norm_squared = 25, .clip = 1},
                                      {.norm_squared = 0.25, .clip = 0.5f},
                                      {.norm_squared = 25, .clip = 1, .found_inf = 1},
                                      {.norm_squared = 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        StepFlags got[SIDES];
        for (int side = 0; side < SIDES; side++) {
            StepFlags *flags = take(side, sizeof *flags, &cases[i]);
            DONE(devices[side]->backend->multi->clip_norm(devices[side], 2, flags, &error));
            device_read(devices[side], &got[side], flags, sizeof *flags);
        }
        CHECK(got[REF].clip == got[TESTED].clip && got[REF].norm == got[TESTED].norm);
    }
    give_all();
}

static void the_scale_moves_as_the_rule_has_it(void) {
    static const ScaleKind kinds[] = {SCALE_STATIC, SCALE_DYNAMIC, SCALE_LOGMAX, SCALE_ADAPTIVE};
    enum { MANY = 200 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        ScaleRule rule = {kinds[k], 4096, 2, 0.5, 1, 0x1p24, 2, 2};
        ScaleState initial = scale_state_initial(&rule), got[SIDES];
        for (int side = 0; side < SIDES; side++) {
            Device *device = devices[side];
            StepFlags values[MANY] = {{0}};
            for (int i = 0; i < MANY; i++)
                values[i] = (StepFlags){.sum = i, .count = 10, .largest = 0.5f * (float)i};
            values[1].found_inf = values[150].found_inf = 1;
            StepFlags *flags = take(side, sizeof values, values);
            ScaleState *state = take(side, sizeof initial, &initial);
            const StepFlags *places[MANY];
            for (int i = 0; i < MANY; i++)
                places[i] = &flags[i];
            for (int call = 0; call < 6; call++) // one optimizer, then more than overflowed, all
                DONE(device->backend->multi->scale_update(device, &rule, state, places,
                                                          call < 3    ? 1
                                                          : call == 3 ? 2
                                                                      : MANY,
                                                          &error));
            device_read(device, &got[side], state, sizeof *state);
        }
        CHECK_NEAR(got[TESTED].scale, got[REF].scale, 1e-6 * (double)got[REF].scale);
        CHECK_INT(got[TESTED].good, got[REF].good);
        CHECK_INT(got[TESTED].hysteresis_left, got[REF].hysteresis_left);
        CHECK_INT(got[TESTED].skips_at_floor, got[REF].skips_at_floor);
        CHECK_NEAR(got[TESTED].mean, got[REF].mean, 1e-9);
    }
    give_all();
}

// ---- pairs --------------------------------------------------------------------------------------

static void statistics_and_averages_go_by_the_flags(void) {
    static float values[MOST];
    for (int variant = 0; variant < 4; variant++) {
        StepFlags flags = {.found_inf = (uint32_t)variant % 2};
        ViewPair restored[SIDES][MOST_ITEMS], averaged[SIDES][MOST_ITEMS];
        for (int side = 0; side < SIDES; side++) {
            Device *device = devices[side];
            StepFlags *place = take(side, sizeof flags, &flags);
            for (int i = 0; i < MOST_ITEMS; i++) {
                Format low = variant > 1 && i % 2 ? FORMAT_BF16 : FORMAT_FP32;
                draw(values, sizes[i], (uint64_t)i + 7, 8, false);
                restored[side][i].target = numbers_at(side, FORMAT_FP32, sizes[i], values, i % 2);
                averaged[side][i].target = numbers_at(side, FORMAT_FP32, sizes[i], values, 0);
                draw(values, sizes[i], (uint64_t)i + 8, 8, false);
                restored[side][i].source = numbers_at(side, FORMAT_FP32, sizes[i], values, 0);
                averaged[side][i].source = numbers_at(side, low, sizes[i], values, i % 2);
            }
            PairPlan first = {.items = restored[side], .count = MOST_ITEMS};
            PairPlan second = {.items = averaged[side], .count = MOST_ITEMS};
            const MultiKernels *multi = device->backend->multi;
            DONE(multi->restore(device, &first, place, &error));
            DONE(multi->average(device, &second, 0.9, variant == 1 ? NULL : place, &error));
        }
        for (int i = 0; i < MOST_ITEMS; i++) {
            check_numbers("restored", &restored[REF][i].target, &restored[TESTED][i].target, 0);
            check_numbers("average", &averaged[REF][i].target, &averaged[TESTED][i].target, 1e-5);
        }
        give_all();
    }
}

// ---- what a device finds by itself --------------------------------------------------------------

static LookFound found_in(const View *view, const float *values) {
    LookFound found = {.largest = 0};
    const int64_t count = view_count(view), columns = view->ndim > 1 ? view->shape[1] : count;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / columns, column = i % columns;
        const float value =
            view->ndim > 1 ? values[row * view->stride[0] + column * view->stride[1]] : values[i];
        found.nans += isnan(value) ? 1 : 0;
        found.infs += isinf(value) ? 1 : 0;
        if (!isfinite(value) && found.first == 0)
            found.first = UINT64_MAX - (uint64_t)i;
        found.largest =
            isnan(value) || isnan(found.largest) ? NAN : fmaxf(found.largest, fabsf(value));
    }
    return found;
}

static void check_look(const View *view) {
    static float values[MOST];
    View all = *view; // as it lies
    const int64_t stored = view->ndim > 1 ? view->shape[0] * view->shape[1] : view->shape[0];
    all.ndim = 1;
    all.shape[0] = stored;
    read_numbers(TESTED, &all, values);
    const LookFound expected = found_in(view, values);
    LookFound actual, *found = take(TESTED, 3 * sizeof *found, NULL);
    const MultiKernels *multi = devices[TESTED]->backend->multi;
    DONE(multi->look_begin(devices[TESTED], found, 3, &error));
    DONE(multi->look(devices[TESTED], view, &found[1], &error));
    device_read(devices[TESTED], &actual, &found[1], sizeof actual);
    CHECK(isnan(expected.largest) ? isnan(actual.largest) : actual.largest == expected.largest);
    CHECK_INT(actual.nans, expected.nans);
    CHECK_INT(actual.infs, expected.infs);
    CHECK_INT(UINT64_MAX - actual.first, UINT64_MAX - expected.first);
    device_read(devices[TESTED], &actual, &found[2], sizeof actual);
    CHECK(actual.largest == 0 && actual.nans == 0 && actual.infs == 0 && actual.first == 0);
}

static void a_look_tells_what_a_view_has_that_is_not_finite_and_the_largest(void) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_FP16, FORMAT_BF16};
    static float values[MOST];
    if (!devices[TESTED]->backend->multi->look) // it is asked at once
        return;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int variant = 0; variant < 4; variant++)
            for (int i = 0; i < MOST_ITEMS; i++) {
                draw(values, sizes[i], (uint64_t)i + 3, 9, false);
                if (variant > 1) { // the last, and some before it
                    values[sizes[i] - 1] = INFINITY;
                    for (int64_t k = 700; k < sizes[i]; k += 701)
                        values[k] = k % 2 ? NAN : -INFINITY;
                }
                View view = numbers_at(TESTED, formats[f], sizes[i], values, variant % 2);
                check_look(&view);
                const int64_t turned[] = {8, sizes[i] / 8};
                View of = view_dense(view.data, view.format, 2, turned);
                of.stride[0] = 1;
                of.stride[1] = turned[0];
                if (turned[1] > 0)
                    check_look(&of);
                give_all();
            }
}

int main(void) {
    if (!open_both())
        return 1;
    RUN_TEST(the_scan_rounds_counts_and_unscales_as_the_reference);
    RUN_TEST(gradients_far_from_one_lose_nothing_in_their_sums);
    RUN_TEST(a_plan_follows_its_items);
    RUN_TEST(gradients_are_multiplied_as_the_reference_does);
    RUN_TEST(the_norm_is_clipped_where_the_flags_are);
    RUN_TEST(the_scale_moves_as_the_rule_has_it);
    RUN_TEST(statistics_and_averages_go_by_the_flags);
    RUN_TEST(a_look_tells_what_a_view_has_that_is_not_finite_and_the_largest);
    return close_both();
}
