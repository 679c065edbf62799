// What steps hold at most, told apart from what began them: the allocator's lap, and the fact of
// the history that keeps it.
#include "kernel/allocator.h"
#include "store/record.h"
#include "tests/device.h"
#include "tests/test.h"

static Error error;

static void hold(Device *device, size_t bytes, MemoryPurpose purpose) {
    void *memory = allocator_take(device->allocator, bytes, purpose, &error);
    CHECK_MESSAGE(memory, "%s", error.text);
    allocator_give(device->allocator, memory);
}

static void a_lap_forgets_what_was_before_it_alone(void) {
    enum { LARGE = 1 << 20, SMALL = 1 << 16 };
    Device *device;
    CHECK_MESSAGE(device_open("cpu", 1, &device, &error), "%s", error.text);
    const MemoryUse before = allocator_use(device->allocator);
    hold(device, LARGE, MEMORY_WORKSPACE);
    allocator_begin_lap(device->allocator);
    hold(device, SMALL, MEMORY_WORKSPACE);
    void *kept = allocator_take(device->allocator, SMALL, MEMORY_GRADIENTS, &error);
    allocator_assign(device->allocator, kept, MEMORY_WEIGHTS);
    const MemoryUse use = allocator_use(device->allocator);
    CHECK(use.peak[MEMORY_WORKSPACE] >= before.now[MEMORY_WORKSPACE] + LARGE);
    CHECK(use.lap_peak[MEMORY_WORKSPACE] < LARGE && use.lap_peak[MEMORY_WORKSPACE] >= SMALL);
    CHECK(use.lap_total_peak < use.total_peak && use.lap_total_peak >= SMALL);
    CHECK(use.lap_peak[MEMORY_WEIGHTS] >= SMALL && use.lap_peak[MEMORY_GRADIENTS] >= SMALL);
    allocator_give(device->allocator, kept);
    device_close(device);
}

static void the_fact_is_read_as_it_was_written(void) {
    const RecordMemory memory = {.peak = 73866944,
                                 .weights = 1,
                                 .masters = 0,
                                 .activations = 1LL << 40,
                                 .gradients = 4,
                                 .optimizer = 5,
                                 .workspace = 6};
    RecordMemory read = {.peak = 0};
    RecordFact fact = {.name = RECORD_FACT_MEMORY};
    RunRecord record = {.id = 1};
    CHECK(!record_memory_in_steps(&record, &read));
    record_memory_text(&memory, fact.value);
    CHECK(record_set_facts(&record, &fact, 1, &error));
    CHECK(record_memory_in_steps(&record, &read));
    CHECK(read.peak == memory.peak && read.weights == 1 && read.masters == 0 &&
          read.activations == memory.activations && read.gradients == 4 && read.optimizer == 5 &&
          read.workspace == 6);
    record_clear(&record);
    snprintf(fact.value, sizeof fact.value, "much");
    CHECK(record_set_facts(&record, &fact, 1, &error));
    CHECK(!record_memory_in_steps(&record, &read));
    record_clear(&record);
}

int main(void) {
    RUN_TEST(a_lap_forgets_what_was_before_it_alone);
    RUN_TEST(the_fact_is_read_as_it_was_written);
    return test_end();
}
