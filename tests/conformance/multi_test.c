// What runs over all tensors of a model at once (kernel/multi.h), on the device under test
// (tests/device.h) beside the reference: the same items, the same numbers. Nothing here looks at
// memory of a device but by reading and writing it.
#include "kernel/allocator.h"
#include "kernel/multi.h"
#include "kernel/random.h"
#include "number/convert.h"
#include "tests/device.h"
#include "tests/test.h"

enum { SIDES = 2, REF = 0, TESTED = 1, MOST_ITEMS = 12, MOST = 40000 };

static Device *devices[SIDES];
static Error error;

#define DONE(call) CHECK_MESSAGE(call, "%s: %s", #call, error.text)

// ---- memory of both devices ---------------------------------------------------------------------

enum { MOST_TAKEN = 1024 };

static void *taken[SIDES][MOST_TAKEN];
static int taken_count[SIDES];

static void *take(int side, size_t bytes, const void *host) {
    void *memory = allocator_take(devices[side]->allocator, bytes, MEMORY_DATA, &error);
    if (!memory || taken_count[side] == MOST_TAKEN) {
        printf("not ok memory: %s\n", error.text);
        exit(1);
    }
    taken[side][taken_count[side]++] = memory;
    if (host)
        device_write(devices[side], memory, host, bytes);
    return memory;
}

static void give_all(void) {
    for (int side = 0; side < SIDES; side++) {
        device_synchronize(devices[side]);
        while (taken_count[side])
            allocator_give(devices[side]->allocator, taken[side][--taken_count[side]]);
    }
}

// Numbers in memory of a device; `shift` elements behind an address that is aligned.
static View numbers_at(int side, Format format, int64_t count, const float *values, int shift) {
    static uint16_t low[MOST];
    size_t size = format_table[format].bytes;
    char *memory = take(side, ((size_t)count + (size_t)shift) * size + 64, NULL);
    memory += (size_t)shift * size;
    if (format != FORMAT_FP32)
        for (int64_t i = 0; i < count; i++)
            low[i] = (uint16_t)format_encode(format, (double)values[i], OVERFLOW_TO_SPECIAL);
    device_write(devices[side], memory, format == FORMAT_FP32 ? (const void *)values : low,
                 (size_t)count * size);
    return view_dense(memory, format, 1, &count);
}

static void read_numbers(int side, const View *view, float *values) {
    static uint16_t low[MOST];
    int64_t count = view_count(view);
    if (view->format == FORMAT_FP32) {
        device_read(devices[side], values, view->data, (size_t)count * sizeof *values);
        return;
    }
    device_read(devices[side], low, view->data, (size_t)count * sizeof *low);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)format_decode(view->format, low[i]);
}

// Numbers over many powers of two, some of them zero; `wild`: some that are not finite, or too
// large for small formats.
static void draw(float *values, int64_t count, uint64_t seed, int powers, bool wild) {
    for (int64_t i = 0; i < count; i++) {
        RandomBlock block = random_block(seed, (uint64_t)i);
        values[i] = ldexpf(2 * random_uniform(block.word[0]) - 1, -(int)(block.word[1] % powers));
        if (block.word[2] % 9 == 0)
            values[i] = 0;
        if (wild && block.word[3] % 50 == 0)
            values[i] = block.word[3] % 3 == 0 ? NAN : block.word[3] % 3 == 1 ? INFINITY : 1e30f;
    }
}

// Whether two devices hold the same numbers, but for an error of the relative size `far`.
static void check_numbers(const char *what, const View *ref, const View *tested, double far) {
    static float expected[MOST], actual[MOST];
    read_numbers(REF, ref, expected);
    read_numbers(TESTED, tested, actual);
    for (int64_t i = 0; i < view_count(ref); i++) {
        double wanted = (double)expected[i], found = (double)actual[i];
        bool same = found == wanted || (isnan(wanted) && isnan(found)) ||
                    fabs(found - wanted) <= far * (fabs(wanted) + 0.1);
        CHECK_MESSAGE(same, "%s[%d] of %d is %.9g, expected %.9g", what, (int)i,
                      (int)view_count(ref), found, wanted);
    }
}

// Sizes around those at which devices cut tensors up.
static const int64_t sizes[MOST_ITEMS] = {1,    0,    7,    4096, 33,    8192,
                                          4097, 1023, 8191, 5,    16385, 39999};

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

// ---- updates ------------------------------------------------------------------------------------

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

// ---- pairs --------------------------------------------------------------------------------------

static void statistics_and_averages_go_by_the_flags(void) {
    static float values[MOST];
    for (int variant = 0; variant < 4; variant++) {
        StepFlags flags = {.found_inf = variant % 2};
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
    if (!device_open("ref", 1, &devices[REF], &error) ||
        !device_open(test_device_name(), 2, &devices[TESTED], &error)) {
        printf("not ok devices: %s\n", error.text);
        return 1;
    }
    RUN_TEST(the_scan_rounds_counts_and_unscales_as_the_reference);
    RUN_TEST(gradients_far_from_one_lose_nothing_in_their_sums);
    RUN_TEST(a_plan_follows_its_items);
    RUN_TEST(gradients_are_multiplied_as_the_reference_does);
    RUN_TEST(the_norm_is_clipped_where_the_flags_are);
    RUN_TEST(the_scale_moves_as_the_rule_has_it);
    RUN_TEST(updates_agree_with_the_reference);
    RUN_TEST(schedules_are_followed_on_the_device);
    RUN_TEST(a_skipped_update_changes_nothing);
    RUN_TEST(stochastic_rounding_gives_the_bits_of_the_processor);
    RUN_TEST(statistics_and_averages_go_by_the_flags);
    RUN_TEST(no_tensor_at_all_is_no_failure);
    device_close(devices[TESTED]);
    device_close(devices[REF]);
    return test_end();
}
