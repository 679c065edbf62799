// Memory that runs out: what fails leaves nothing behind, and the device goes on.
#include <string.h>

#include "tests/unit/engine_fixture.h"

// Lets the device have so many more of its smallest blocks.
static void allow_blocks(int blocks) {
    enum { SMALLEST = 256 };
    Allocator *allocator = fixture_device->allocator;
    allocator_trim(allocator);
    allocator_set_limit(allocator, allocator_use(allocator).reserved + (size_t)(blocks * SMALLEST));
}

static void an_operation_that_fails_hands_out_nothing(void) {
    engine_open("ref", "fp32");
    const float values[2] = {1, 2}, ones[1] = {1}, zeros[1] = {0};
    Tensor *column = vector(2, values), *weight = vector(1, ones), *bias = vector(1, zeros);
    Tensor *x = op_reshape(engine, column, 2, (const int64_t[]){2, 1}, NULL);
    for (int blocks = 1; blocks < 3; blocks++) { // three outputs are wanted
        Tensor *const inputs[] = {x, weight, bias};
        Tensor *outputs[OP_MAX_OUTPUTS] = {x, x, x};
        Error error = {0};
        allow_blocks(blocks);
        CHECK(!op_apply(engine, OP_batch_norm, inputs, 3, NULL, outputs, &error));
        CHECK_INT(error.code, ERROR_MEMORY);
        for (int i = 0; i < 3; i++)
            CHECK(outputs[i] == NULL);
    }
    tensor_release(x);
    tensor_release(column);
    tensor_release(weight);
    tensor_release(bias);
    engine_close();
}

// The walk back fails at each of its allocations in turn, until it has enough.
static void a_walk_back_may_run_out_of_memory_anywhere(void) {
    engine_open("ref", "fp32");
    const float values[4] = {1, 2, 3, 5}, ones[2] = {1, 1}, zeros[2] = {0, 0};
    bool done = false;
    int blocks = 0;
    for (; blocks < 40 && !done; blocks++) {
        Tensor *flat = leaf(vector(4, values));
        Tensor *weight = leaf(vector(2, ones)), *bias = leaf(vector(2, zeros));
        Tensor *x = op_reshape(engine, flat, 2, (const int64_t[]){2, 2}, NULL);
        Tensor *y = op_three(engine, OP_batch_norm, x, weight, bias, NULL, NULL);
        Tensor *loss = op_one(engine, OP_sum, y, NULL, NULL);
        Error error = {0};
        allow_blocks(blocks);
        done = engine_backward(engine, loss, NULL, NULL, &error);
        CHECK(done || error.code == ERROR_MEMORY);
        allocator_set_limit(fixture_device->allocator, 0);
        Tensor *const all[] = {flat, weight, bias, x, y, loss};
        for (int i = 0; i < 6; i++)
            tensor_release(all[i]);
    }
    CHECK(done);
    CHECK_MESSAGE(blocks > 4, "it failed only %d times", blocks - 1);
    engine_close(); // asserts that no memory of the device is in use
}

// What a rule has given back before it failed is gone: the graph is refused then, by its own words,
// and not walked on what is left of it.
static void a_walk_that_ran_out_of_memory_is_refused_or_walked_again(void) {
    enum { SIDE = 16 }; // one row, whose weight has a gradient larger than all that is given back
    static const float ones[SIDE * SIDE];
    engine_open_on("ref", "fp32"); // a card's workspace, given back first, would be room for all
    int refused = 0, walked = 0;
    bool done = false;
    for (int blocks = 0; blocks < 200 && !done; blocks++) {
        const int64_t shape[2][2] = {{1, SIDE}, {SIDE, SIDE}};
        const OpAttr relu = {.linear.activation = ACTIVATION_RELU};
        Error error = {0};
        Tensor *array[2];
        for (int i = 0; i < 2; i++)
            array[i] = leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, shape[i], ones,
                                             MEMORY_DATA, NULL));
        Tensor *y = op_three(engine, OP_linear, array[0], array[1], NULL, &relu, NULL);
        Tensor *seed =
            tensor_from_host(fixture_device, FORMAT_FP32, 2, shape[0], ones, MEMORY_DATA, NULL);
        allow_blocks(blocks);
        done = engine_backward(engine, y, seed, NULL, &error);
        allocator_set_limit(fixture_device->allocator, 0);
        if (!done && engine_backward(engine, y, seed, NULL, &error)) {
            walked++;
        } else if (!done) {
            CHECK_CONTAINS(error.text, "walked before");
            refused++;
        }
        tensor_release(y), tensor_release(seed);
        tensor_release(array[0]), tensor_release(array[1]);
    }
    CHECK(done);
    CHECK_MESSAGE(walked > 0 && refused > 0, "%d walked again, %d refused", walked, refused);
    engine_close();
}

// The limit is on the host's memory: a device of its own has what it has.
static void memory_of_a_device_is_apart_from_the_hosts(void) {
    engine_open("ref", "fp32");
    Allocator *allocator = fixture_device->allocator;
    Error error = {0};
    fixture_device->memory = 3 << 20;
    allocator_trim(allocator);
    allocator_set_limit(allocator, allocator_use(allocator).reserved + (1 << 20));
    void *memory = allocator_take(allocator, 2 << 20, MEMORY_DATA, &error);
    CHECK_MESSAGE(memory, "%s", error.text);
    CHECK(!allocator_add_host(allocator, 2 << 20, &error));
    CHECK_CONTAINS(error.text, "the host is out of memory: 2 MiB asked, 0 MiB of 1 in use");
    CHECK(allocator_add_host(allocator, 1 << 19, &error));
    allocator_remove_host(allocator, 1 << 19);
    fixture_device->memory = 0;
    CHECK(!allocator_add_host(allocator, 1 << 19, &error));
    CHECK_CONTAINS(error.text, "is out of memory: 0 MiB asked, 2 MiB of 1 in use;");
    allocator_give(allocator, memory);
    engine_close();
}

static void memory_that_is_free_is_let_be_where_it_may_yet_be_read(void) {
    engine_open("ref", "fp32");
    Allocator *allocator = fixture_device->allocator;
    Error error = {0};
    void *free_one = allocator_take(allocator, 1 << 16, MEMORY_WORKSPACE, &error);
    allocator_give(allocator, free_one);
    allocator_take_anew(allocator, true);
    void *other = allocator_take(allocator, 1 << 16, MEMORY_WORKSPACE, &error);
    CHECK(other && other != free_one);
    const size_t reserved = allocator_use(allocator).reserved;
    if (strcmp(fixture_device->label, "ref") == 0) { // others ask for more at once than one takes
        allocator_set_limit(allocator, reserved);    // there is no more
        CHECK(!allocator_take(allocator, 1 << 16, MEMORY_WORKSPACE, &error));
    }
    CHECK_INT(allocator_use(allocator).reserved, reserved); // and nothing was given back for it
    allocator_take_anew(allocator, false);
    void *again = allocator_take(allocator, 1 << 16, MEMORY_WORKSPACE, &error);
    CHECK(again == free_one);
    allocator_set_limit(allocator, 0);
    allocator_give(allocator, again);
    allocator_give(allocator, other);
    engine_close();
}

// Who has pinned it finds it there again, and nobody else does.
static void memory_that_is_pinned_stays_where_it_is(void) {
    engine_open("ref", "fp32");
    Allocator *allocator = fixture_device->allocator;
    const size_t held = allocator_use(allocator).total_now;
    char *given = allocator_take(allocator, 1 << 12, MEMORY_ACTIVATIONS, NULL);
    char *kept = allocator_take(allocator, 1 << 12, MEMORY_GRADIENTS, NULL);
    const uint64_t takings = allocator_takings(allocator);
    MemoryPlace place;
    CHECK(allocator_locate(allocator, kept + 100, &place));
    CHECK(place.memory == kept && place.in_use && place.number == takings);
    CHECK(!allocator_locate(allocator, kept + (1 << 12), &place) || place.memory != kept);
    allocator_give(allocator, given);
    const Block *free_one = allocator_pin(allocator, given),
                *taken = allocator_pin(allocator, kept);
    CHECK(!allocator_in_use(free_one));
    CHECK(allocator_in_use(taken));
    allocator_give(allocator, kept);
    CHECK(!allocator_in_use(taken));
    CHECK_INT(allocator_use(allocator).total_now, held + (2 << 12)); // held all the same
    allocator_trim(allocator);
    void *others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = allocator_take(allocator, 1 << 12, MEMORY_ACTIVATIONS, NULL);
        CHECK(others[i] != given && others[i] != kept);
    }
    allocator_unpin(allocator, taken);
    allocator_unpin(allocator, free_one);
    void *again = allocator_take(allocator, 1 << 12, MEMORY_ACTIVATIONS, NULL);
    CHECK(again == given || again == kept);
    allocator_give(allocator, again);
    for (int i = 0; i < 2; i++)
        allocator_give(allocator, others[i]);
    CHECK_INT(allocator_use(allocator).total_now, held);
    engine_close();
}

// A device that held back work, for which it takes and gives memory when it is to give back some.
enum { WORKS = 8 };
static void *held_back[WORKS];
static const Backend *working;

static void work_and_free(Device *device, void *memory, size_t bytes) {
    for (int i = 0; i < WORKS; i++) {
        allocator_give(device->allocator, held_back[i]);
        held_back[i] = NULL;
    }
    working->memory_free(device, memory, bytes);
}

static void a_device_may_give_memory_while_it_is_to_give_some_back(void) {
    enum { SMALL = 1 << 9, LARGE = 1 << 13 };
    engine_open("ref", "fp32");
    Allocator *allocator = fixture_device->allocator;
    Backend backend = *fixture_device->backend;
    working = fixture_device->backend;
    backend.memory_free = work_and_free;
    void *kept[WORKS], *others[WORKS + 1];
    const size_t held = allocator_use(allocator).total_now;
    for (int i = 0; i < WORKS; i++) {
        kept[i] = allocator_take(allocator, LARGE, MEMORY_ACTIVATIONS, NULL);
        held_back[i] = allocator_take(allocator, SMALL, MEMORY_WORKSPACE, NULL);
    }
    allocator_give(allocator, allocator_take(allocator, LARGE, MEMORY_WORKSPACE, NULL));
    fixture_device->backend = &backend;
    allocator_trim(allocator);
    fixture_device->backend = working;
    CHECK(!held_back[0]);
    CHECK_INT(allocator_use(allocator).reserved, allocator_use(allocator).total_now);
    for (int i = 0; i <= WORKS; i++) {
        others[i] = allocator_take(allocator, SMALL, MEMORY_DATA, NULL);
        for (int k = 0; k < WORKS; k++)
            CHECK(others[i] != kept[k]);
    }
    for (int i = 0; i <= WORKS; i++)
        allocator_give(allocator, others[i]);
    for (int i = 0; i < WORKS; i++)
        allocator_give(allocator, kept[i]);
    CHECK_INT(allocator_use(allocator).total_now, held);
    engine_close();
}

int main(void) {
    RUN_TEST(an_operation_that_fails_hands_out_nothing);
    RUN_TEST(a_walk_back_may_run_out_of_memory_anywhere);
    RUN_TEST(a_walk_that_ran_out_of_memory_is_refused_or_walked_again);
    RUN_TEST(memory_of_a_device_is_apart_from_the_hosts);
    RUN_TEST(memory_that_is_free_is_let_be_where_it_may_yet_be_read);
    RUN_TEST(memory_that_is_pinned_stays_where_it_is);
    RUN_TEST(a_device_may_give_memory_while_it_is_to_give_some_back);
    return test_end();
}
