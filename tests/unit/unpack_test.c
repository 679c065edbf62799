// Packed files: whole or not at all.
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/unpack.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { BYTES = 200000 };

static char folder[TEST_FOLDER_SIZE], packed[96], plain[96];
static char text[BYTES];

static void pack(void) {
    gzFile out = gzopen(packed, "wb");
    for (int i = 0; i < BYTES; i++)
        text[i] = (char)(i * 2654435761u >> 24);
    CHECK(out && gzwrite(out, text, BYTES) == BYTES);
    gzclose(out);
    unlink(plain);
}

static bool is_there(void) {
    return access(plain, F_OK) == 0;
}

static void what_was_packed_comes_out(void) {
    static char read_back[BYTES + 1];
    Error error = {.code = ERROR_NONE};
    struct stat status;
    pack();
    CHECK_MESSAGE(unpack_file(packed, plain, BYTES, &error), "%s", error.text);
    FILE *file = fopen(plain, "rb");
    CHECK(file && fread(read_back, 1, sizeof read_back, file) == BYTES);
    CHECK(memcmp(text, read_back, BYTES) == 0);
    if (file)
        fclose(file);
    CHECK(stat(plain, &status) == 0 && (status.st_mode & 0777) == 0600);
}

static void a_file_that_is_there_is_left_alone(void) {
    Error error;
    pack();
    FILE *file = fopen(plain, "wb");
    fputs("mine", file);
    fclose(file);
    CHECK(!unpack_file(packed, plain, BYTES, &error));
    CHECK_CONTAINS(error.text, plain);
    CHECK(is_there());
}

static void too_much_is_refused(void) {
    Error error;
    pack();
    CHECK(!unpack_file(packed, plain, BYTES - 1, &error));
    CHECK_CONTAINS(error.text, "199999 bytes");
    CHECK(!is_there());
}

static void damage_is_told_and_leaves_nothing(void) {
    struct stat status;
    pack();
    CHECK(stat(packed, &status) == 0);
    for (int cut = 0; cut < 2; cut++) {
        Error error;
        pack();
        if (cut) {
            CHECK(truncate(packed, status.st_size / 2) == 0);
        } else {
            FILE *file = fopen(packed, "r+b");
            fseek(file, (long)status.st_size - 6, SEEK_SET); // in the checksum
            int byte = fgetc(file);
            fseek(file, (long)status.st_size - 6, SEEK_SET);
            fputc(byte ^ 1, file);
            fclose(file);
        }
        CHECK_MESSAGE(!unpack_file(packed, plain, BYTES, &error), "cut %d", cut);
        CHECK_CONTAINS(error.text, "damaged");
        CHECK(!is_there());
    }
}

static void what_is_missing_is_named(void) {
    Error error;
    CHECK(!unpack_file("/nonexistent/file.gz", plain, BYTES, &error));
    CHECK_CONTAINS(error.text, "/nonexistent/file.gz");
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    snprintf(packed, sizeof packed, "%s/packed.gz", folder);
    snprintf(plain, sizeof plain, "%s/plain", folder);
    RUN_TEST(what_was_packed_comes_out);
    RUN_TEST(a_file_that_is_there_is_left_alone);
    RUN_TEST(too_much_is_refused);
    RUN_TEST(damage_is_told_and_leaves_nothing);
    RUN_TEST(what_is_missing_is_named);
    test_folder_remove(folder);
    return test_end();
}
