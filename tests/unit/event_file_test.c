// What TensorBoard's files are made of, against bytes that its own writer gives.
#include "cli/history/event_file.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

// The check value of CRC-32C, and zeros, which a checksum without its inversions would not see.
static void the_checksum_is_castagnolis(void) {
    CHECK(event_file_crc("123456789", 9) == 0xE3069283);
    static const char zeros[32];
    CHECK(event_file_crc(zeros, sizeof zeros) == 0x8A9136AA);
    CHECK(event_file_crc("", 0) == 0);
}

static size_t read_back(FILE *file, unsigned char *bytes, size_t size) {
    rewind(file);
    return fread(bytes, 1, size, file);
}

static void the_first_record_names_the_version(void) {
    // An event at 1.5 s as tensorboard's own EventFileWriter frames it.
    static const unsigned char expected[] = {
        24,   0,    0,    0,    0,    0,    0,    0,                         // length
        0xA3, 0x7F, 0x4B, 0x22,                                              // its checksum
        9,    0,    0,    0,    0,    0,    0,    0xF8, 0x3F,                // field 1: 1.5
        26,   13,   'b',  'r',  'a',  'i',  'n',  '.',  'E',  'v', 'e', 'n', // field 3
        't',  ':',  '2',  0x2A, 0x28, 0x64, 0x6C,
    };
    FILE *file = tmpfile();
    unsigned char bytes[64];
    event_file_begin(file, 1.5);
    size_t length = read_back(file, bytes, sizeof bytes);
    CHECK_MESSAGE(length == sizeof expected, "%zu bytes", length);
    CHECK(memcmp(bytes, expected, sizeof expected) == 0);
    fclose(file);
}

static void a_name_of_any_length_fits(void) {
    char tag[1000];
    EventHistogram values = {.count = 1, .buckets = EVENT_FILE_BUCKETS};
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = 0;
    FILE *file = tmpfile();
    const EventMoment moment = {file, 0, INT64_MAX};
    event_file_histogram(&moment, tag, &values);
    event_file_scalar(&moment, tag, NAN);
    static unsigned char bytes[1 << 14];
    size_t length = read_back(file, bytes, sizeof bytes), at = 0;
    int records = 0;
    for (; at + 12 <= length; records++) {
        uint64_t size = 0;
        memcpy(&size, bytes + at, 8);
        at += 12 + (size_t)size + 4;
    }
    CHECK(at == length && records == 2);
    fclose(file);
}

int main(void) {
    RUN_TEST(the_checksum_is_castagnolis);
    RUN_TEST(the_first_record_names_the_version);
    RUN_TEST(a_name_of_any_length_fits);
    return test_end();
}
