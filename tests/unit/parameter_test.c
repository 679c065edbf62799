// What a trained weight has beside its value: where its memory is counted, how it is written.
#include "tests/unit/engine_fixture.h"

static size_t in_use(MemoryPurpose purpose) {
    return allocator_use(fixture_device->allocator).now[purpose];
}

// Whichever of the two the model trains: what is low counts as weights, the fp32 beside it as
// masters.
static void the_wider_of_value_and_copy_counts_as_master(void) {
    const int64_t shape[1] = {1024};
    for (int low = 0; low < 2; low++) { // masters under O2; O3 with a layer set to fp32
        engine_open("ref", "fp32");
        Format value = low ? FORMAT_FP16 : FORMAT_FP32, copy = low ? FORMAT_FP32 : FORMAT_FP16;
        Tensor *w = tensor_new(fixture_device, value, 1, shape, MEMORY_WEIGHTS, NULL);
        CHECK(parameter_attach(w, "w", 0, false, NULL));
        CHECK(parameter_in_format(w, copy, NULL) != NULL);
        CHECK_INT(in_use(MEMORY_MASTERS), 4096);
        CHECK_INT(in_use(MEMORY_WEIGHTS), 2048);
        tensor_release(w);
        engine_close();
    }
}

int main(void) {
    RUN_TEST(the_wider_of_value_and_copy_counts_as_master);
    return test_end();
}
