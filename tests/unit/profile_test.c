// What is measured on sampled steps: how far updates move weights, where the time of operations
// goes, how large what layers give becomes.
#include "kernel/random.h"
#include "tests/training.h"

enum { WIDE = 20000 }; // more than one piece of work

static void draw(float *values, uint64_t seed) {
    for (int i = 0; i < WIDE; i++)
        values[i] = random_uniform(random_block(seed, (uint64_t)i).word[0]) + 0.5f;
}

static void read_all(Tensor *tensor, float *values) {
    Tensor *wide = op_cast(engine, tensor, FORMAT_FP32, &error);
    DONE(wide && tensor_read(wide, values, &error));
    tensor_release(wide);
}

// One step; what it should have measured, from the values before and after.
static void check_move(Optimizer *optimizer, Tensor *weight, const float *slopes) {
    static float before[WIDE], after[WIDE];
    read_all(weight, before);
    gradient_set(weight, slopes);
    DONE(optimizer_measure(optimizer, &error));
    DONE(optimizer_step(optimizer, &error));
    read_all(weight, after);
    double moved = 0, was = 0;
    for (int i = 0; i < WIDE; i++) {
        moved += ((double)after[i] - (double)before[i]) * ((double)after[i] - (double)before[i]);
        was += (double)before[i] * (double)before[i];
    }
    ParameterMove move;
    read_moves(optimizer, &move);
    CHECK(moved > 0);
    CHECK_NEAR(move.change_squared, moved, moved * 1e-6);
    CHECK_NEAR(move.before_squared, was, was * 1e-6);
}

static void measured_updates_say_how_far_they_moved(void) {
    static float start[WIDE], slopes[WIDE];
    draw(start, 1);
    draw(slopes, 2);
    const Format formats[] = {FORMAT_FP32, FORMAT_BF16};
    for (size_t f = 0; f < 2; f++)
        for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
            Tensor *weight = parameter_in(formats[f], "w", WIDE, start);
            OptimizerOptions options = options_of((OptimizerKind)kind, 0.1);
            options.stochastic = formats[f] != FORMAT_FP32;
            Optimizer *optimizer = optimizer_over(&options, &weight, 1);
            check_move(optimizer, weight, slopes);
            check_move(optimizer, weight, slopes);
            optimizer_free(optimizer);
            tensor_release(weight);
        }
}

static void a_skipped_update_moves_nothing_that_is_known(void) {
    Tensor *weight = parameter("w", 2, (float[]){1, 2});
    Optimizer *optimizer = sgd(weight, 1);
    gradient_set(weight, (float[]){NAN, 1});
    DONE(optimizer_measure(optimizer, &error));
    DONE(optimizer_step(optimizer, &error));
    ParameterMove move;
    read_moves(optimizer, &move);
    CHECK(isnan(move.change_squared) && isnan(move.before_squared));
    optimizer_free(optimizer);
    tensor_release(weight);
}

static void the_time_of_operations_is_their_layers(void) {
    enum { ROOM = 4 };
    double seconds[3] = {0};
    float found[2 * ROOM] = {0};
    ProfileLook looks[ROOM];
    ProfileSpan spans[2 * ROOM];
    Tensor *place = constant(0, 2 * ROOM, found);
    EngineProfile profile = {.layers = 3,
                             .seconds = seconds,
                             .found = place,
                             .looks = looks,
                             .look_room = ROOM,
                             .spans = spans,
                             .span_room = 2 * ROOM,
                             .looks_at_outputs = true};
    uint64_t waits = device->waits;
    Tensor *x = constant(2, 2, (float[]){1, -3, 2, 0});
    engine->layer = 1;
    profile_open(engine, &profile);
    Tensor *low = op_cast(engine, x, FORMAT_FP16, &error);
    CHECK_INT(profile.look_count, 1);
    CHECK_INT(looks[0].layer, 1);
    engine->layer = 2;
    Tensor *sum = op_two(engine, OP_add, x, x, NULL, &error);
    CHECK_INT(profile.look_count, 1);                       // fp32 is not looked at
    Tensor *copy = op_cast(engine, x, FORMAT_FP32, &error); // as slices are copied: no cast
    engine->layer = 7;                                      // registered after the profile was made
    Tensor *late = op_two(engine, OP_add, x, x, NULL, &error);
    CHECK_INT(profile.depth, 0);
    profile_close(engine);
    engine->layer = 0;
    CHECK_INT(device->waits, waits); // what was found lies on the device
    DONE(tensor_read(place, found, &error));
    profile_settle(engine, &profile); // of a device with a clock
    CHECK(seconds[1] > 0 && profile.cast_seconds == seconds[1]);
    CHECK_INT(profile.casts, 1);
    CHECK(seconds[2] > 0 && seconds[0] == 0);
    CHECK_NEAR(found[0], -3, 0);
    CHECK_NEAR(found[1], 2, 0);
    tensor_release(place);
    tensor_release(x);
    tensor_release(low);
    tensor_release(copy);
    tensor_release(sum);
    tensor_release(late);
}

// ---- a device with a clock of its own ---------------------------------------------------------

static double stamped[64]; // by number: what its clock, which ticks once a stamp, said then
static int ticks;

static bool put_stamp(Device *one, int number) {
    (void)one;
    stamped[number] = ++ticks;
    return true;
}

static double seconds_between(Device *one, int from, int to) {
    (void)one;
    return stamped[to] - stamped[from];
}

static void times_of_a_device_are_by_its_own_clock(void) {
    enum { ROOM = 3 };
    static const ClockKernels clock_kernels = {put_stamp, seconds_between};
    const Backend *backend = device->backend;
    Backend clocked = *backend;
    clocked.clock = &clock_kernels;
    double seconds[3] = {0};
    ProfileSpan spans[ROOM];
    EngineProfile profile = {.layers = 3, .seconds = seconds, .spans = spans, .span_room = ROOM};
    Tensor *x = constant(2, 2, (float[]){1, -3, 2, 0});
    device->backend = &clocked;
    ticks = 0;
    profile_open(engine, &profile); // 1
    engine->layer = 1;
    Tensor *low = op_cast(engine, x, FORMAT_FP16, &error); // 2, 3
    engine->layer = 2;
    Tensor *sum = op_two(engine, OP_add, x, x, NULL, &error);  // 4, 5
    engine->layer = 7;                                         // not of the profile
    Tensor *late = op_two(engine, OP_add, x, x, NULL, &error); // 6, 7
    engine->layer = 1;
    Tensor *unseen = op_two(engine, OP_add, x, x, NULL, &error); // no room
    profile_close(engine);                                       // 8
    CHECK(seconds[1] == 0 && profile.cast_seconds == 0); // nothing is known before it is settled
    profile_settle(engine, &profile);
    CHECK_NEAR(profile.whole_seconds, 7, 0);
    CHECK_NEAR(seconds[1], 1, 0);
    CHECK_NEAR(seconds[2], 1, 0);
    CHECK_NEAR(seconds[0], 0, 0);
    CHECK_NEAR(profile.cast_seconds, 1, 0);
    CHECK_INT(profile.operations, 3);
    engine->layer = 0;
    device->backend = backend;
    tensor_release(x);
    tensor_release(low);
    tensor_release(sum);
    tensor_release(late);
    tensor_release(unseen);
}

// Ticks of the clock: of the product 2 .. 7, within it of the casts of its factors 3 .. 4, 5 .. 6.
static void parts_have_their_own_time(void) {
    enum { ROOM = 8 };
    static const ClockKernels clock_kernels = {put_stamp, seconds_between};
    const Backend *backend = device->backend;
    Backend clocked = *backend;
    clocked.clock = &clock_kernels;
    double seconds[2] = {0};
    ProfileSpan spans[ROOM];
    ProfileParts step = {.layers = 0}, sum = {.layers = 0};
    CHECK(parts_make_room(&step, 2) && parts_make_room(&sum, 2));
    EngineProfile profile = {
        .layers = 2, .seconds = seconds, .spans = spans, .span_room = ROOM, .parts = &step};
    Tensor *x = constant(2, 4, (float[]){1, -3, 2, 0, 1, 1, 1, 1});
    device->backend = &clocked;
    ticks = 0;
    profile_open(engine, &profile);
    engine->layer = 1;
    engine->autocast = (AutocastRegion){.enabled = true, .given = true, .format = FORMAT_BF16};
    Tensor *product = op_three(engine, OP_linear, x, x, NULL, NULL, &error);
    engine->autocast = (AutocastRegion){.enabled = false};
    ProfileStart began = profile_begin_work(engine); // 8
    profile_end_work(engine, WORK_UPDATE, began);    // 9
    profile_close(engine);                           // 10
    profile_settle(engine, &profile);
    parts_add(&sum, &step);
    CHECK_INT(step.touched_count, 0);
    double all = 0;
    for (int i = 0; i < sum.touched_count; i++) {
        const ProfilePart *part = &sum.each[sum.touched[i]];
        const ProfilePlace place = parts_place(sum.touched[i]);
        const bool is_cast = place.work == OP_cast, is_product = place.work == OP_linear;
        CHECK_INT(place.layer, place.work == WORK_UPDATE ? 0 : 1);
        CHECK_INT(part->calls, is_cast ? 2 : 1);
        CHECK_NEAR(part->seconds, is_cast ? 2 : is_product ? 3 : 1, 0);
        CHECK_NEAR(part->multiplications, is_product ? 16 : 0, 0);
        CHECK_INT(part->from, is_cast ? FORMAT_FP32 : is_product ? FORMAT_BF16 : FORMAT_FP64);
        all += part->seconds;
    }
    CHECK_INT(sum.touched_count, 3);
    CHECK_NEAR(profile.whole_seconds - all, 3, 0); // before, between and behind them
    engine->layer = 0;
    device->backend = backend;
    parts_clear(&step);
    parts_clear(&sum);
    tensor_release(x);
    tensor_release(product);
}

// Of grey images: not the one channel that comes in.
static void the_gradient_of_a_convolutions_weight_has_a_column_a_tap(void) {
    static const OpAttr conv = {.conv = {.stride = {1, 1},
                                         .padding = {1, 1},
                                         .dilation = {1, 1},
                                         .groups = 1,
                                         .input = {4, 4},
                                         .kernel = {3, 3}}};
    const int64_t grey[4] = {1, 4, 4, 1}, three[4] = {1, 4, 4, 3};
    static const float values[48];
    double seconds[1] = {0};
    ProfileParts step = {.layers = 0};
    CHECK(parts_make_room(&step, 1));
    EngineProfile profile = {.layers = 1, .seconds = seconds, .parts = &step};
    Tensor *x = tensor_from_host(device, FORMAT_FP32, 4, grey, values, MEMORY_DATA, &error);
    Tensor *dy = tensor_from_host(device, FORMAT_FP32, 4, three, values, MEMORY_DATA, &error);
    profile_open(engine, &profile);
    Tensor *of_weight = op_two(engine, OP_conv2d_backward_weight, x, dy, &conv, &error);
    profile_close(engine);
    CHECK_INT(step.touched_count, 1);
    CHECK_INT(step.each[step.touched[0]].columns, 3 * 3);
    parts_clear(&step);
    tensor_release(x);
    tensor_release(dy);
    tensor_release(of_weight);
}

// The second step has it with no product that somebody counted.
static void the_narrowest_product_is_known_whatever_came_after(void) {
    ProfileParts step = {.layers = 0}, sum = {.layers = 0};
    CHECK(parts_make_room(&step, 1) && parts_make_room(&sum, 1));
    const int64_t columns[] = {64, 0, 96};
    for (int i = 0; i < 3; i++) {
        parts_touch(&step, 0, PROFILE_FORWARD, OP_linear)->columns = columns[i];
        parts_add(&sum, &step);
    }
    CHECK_INT(sum.touched_count, 1);
    CHECK_INT(sum.each[sum.touched[0]].calls, 3);
    CHECK_INT(sum.each[sum.touched[0]].columns, 64);
    parts_clear(&step);
    parts_clear(&sum);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(measured_updates_say_how_far_they_moved),
        TEST(a_skipped_update_moves_nothing_that_is_known),
        TEST(the_time_of_operations_is_their_layers),
        TEST(times_of_a_device_are_by_its_own_clock),
        TEST(parts_have_their_own_time),
        TEST(the_gradient_of_a_convolutions_weight_has_a_column_a_tap),
        TEST(the_narrowest_product_is_known_whatever_came_after),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
