// Tensors that others wrote into a safetensors file.
#include <unistd.h>

#include "checkpoint/weights.h"
#include "kernel/kernel.h"
#include "tests/device.h"
#include "tests/folder.h"
#include "tests/test.h"

static char path[TEST_FOLDER_SIZE + 16];
static Device *device;

// A file of one tensor of 2 numbers.
static SafeFile *file_of(SafeType type, const void *bytes) {
    Error error = {0};
    char hash[HASH_HEX_SIZE];
    uint64_t size;
    SafeWriter *writer = safe_writer_new(path, &error);
    bool done = writer && safe_declare(writer, "w", type, 1, (int64_t[]){2}, &error) &&
                safe_write(writer, bytes, 2 * safe_type_bytes(type), &error) &&
                safe_finish(writer, hash, &size, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    safe_writer_free(writer);
    return done ? safe_open(path, &error) : NULL;
}

static Tensor *read_of(SafeType type, const void *bytes, Error *error) {
    SafeFile *file = file_of(type, bytes);
    Tensor *tensor =
        file ? weights_read(device, file, &safe_header(file)->entries[0], error) : NULL;
    safe_close(file);
    return tensor;
}

static void what_a_tensor_can_be_kept_in_comes_as_it_lies(void) {
    static const SafeType types[] = {SAFE_F32, SAFE_F16, SAFE_BF16, SAFE_I32, SAFE_U8};
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        Error error = {0};
        uint8_t read[8] = {0};
        Tensor *tensor = read_of(types[i], bytes, &error);
        CHECK_MESSAGE(tensor && tensor->view.format == safe_type_format(types[i]) &&
                          tensor->view.ndim == 1 && tensor->view.shape[0] == 2,
                      "%s: %s", safe_type_name(types[i]), error.text);
        CHECK(tensor && tensor_read(tensor, read, &error));
        CHECK(memcmp(read, bytes, 2 * safe_type_bytes(types[i])) == 0);
        tensor_release(tensor);
    }
}

static void double_precision_is_rounded_to_fp32(void) {
    const double wide[2] = {0.1, 0x1.8p-130}; // the second is subnormal there
    float narrow[2] = {0};
    Tensor *tensor = read_of(SAFE_F64, wide, NULL);
    CHECK(tensor && tensor->view.format == FORMAT_FP32 && tensor_read(tensor, narrow, NULL));
    CHECK(narrow[0] == 0.1f && narrow[1] == 0x1.8p-130f);
    tensor_release(tensor);
}

static void what_no_tensor_here_can_be_is_refused_by_name(void) {
    static const SafeType types[] = {SAFE_I64,  SAFE_I16,     SAFE_I8,
                                     SAFE_BOOL, SAFE_F8_E4M3, SAFE_F8_E5M2};
    const uint8_t bytes[16] = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        Error error = {0};
        char expected[80];
        snprintf(expected, sizeof expected, "w: %s of 1 dimensions cannot be a tensor here",
                 safe_type_name(types[i]));
        CHECK(!read_of(types[i], bytes, &error));
        CHECK_TEXT(error.text, expected);
    }
}

static void each_format_that_is_kept_has_one_type(void) {
    for (int i = 0; i < FORMAT_COUNT; i++) {
        SafeType type = safe_type_of((Format)i);
        CHECK(format_table[i].stores ? type != SAFE_TYPES : true);
        CHECK(type == SAFE_TYPES || (safe_type_format(type) == (Format)i &&
                                     safe_type_bytes(type) == format_table[i].bytes));
    }
}

int main(void) {
    Error error = {0};
    char folder[TEST_FOLDER_SIZE];
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    snprintf(path, sizeof path, "%s/weights", folder);
    if (!device_open(test_device_or("cpu"), 1, &device, &error)) {
        printf("not ok begin: %s\n", error.text);
        test_folder_remove(folder);
        return 1;
    }
    RUN_TEST(what_a_tensor_can_be_kept_in_comes_as_it_lies);
    RUN_TEST(double_precision_is_rounded_to_fp32);
    RUN_TEST(what_no_tensor_here_can_be_is_refused_by_name);
    RUN_TEST(each_format_that_is_kept_has_one_type);
    device_close(device);
    test_folder_remove(folder);
    return test_end();
}
