// What a safetensors file may do to us (faults 35 to 37): each fault of its header has a name, what
// we write comes back, in Python too, and a writer that is killed or runs out of room anywhere
// leaves the old file or the new one.
#define _GNU_SOURCE // syscall
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/safetensors.h"
#include "tests/folder.h"
#include "tests/test.h"

static char folder[TEST_FOLDER_SIZE];

static const char *path_of(const char *name) {
    static char path[4][256];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

// ---- the header ---------------------------------------------------------------------------------

static void write_raw(const char *path, uint64_t length, const char *header, size_t data) {
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 8; i++)
        putc((int)(length >> 8 * i & 0xFF), file);
    fputs(header, file);
    for (size_t i = 0; i < data; i++)
        putc(0, file);
    fclose(file);
}

static void check_refused(const char *header, size_t data, const char *part) {
    const char *path = path_of("bad.safetensors");
    Error error = {0};
    write_raw(path, strlen(header), header, data);
    SafeFile *file = safe_open(path, &error);
    CHECK_MESSAGE(!file, "accepted: %s", header);
    CHECK_CONTAINS(error.text, part);
    CHECK_CONTAINS(error.text, "bad.safetensors");
    safe_close(file);
}

#define T(name, dtype, shape, begin, end)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end \
    "]}"

static void each_fault_of_a_header_is_named(void) {
    check_refused("{" T("a", "F32", "[2]", "0", "8") "}", 9, "1 bytes trail");
    check_refused("{" T("a", "F32", "[2]", "0", "8") "}", 7, "past the end of the file");
    check_refused("{" T("a", "F32", "[2]", "8", "16") "}", 16, "a hole");
    check_refused("{" T("a", "U8", "[8]", "0", "8") "," T("b", "U8", "[8]", "4", "12") "}", 12,
                  "overlaps");
    check_refused("{" T("a", "U8", "[8]", "0", "8") "," T("a", "U8", "[8]", "8", "16") "}", 16,
                  "comes twice");
    check_refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "k comes twice");
    check_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "comes twice");
    check_refused("{\"__metadata__\":{\"k\":1}}", 0, "a string expected");
    check_refused("{" T("a", "F32", "[4294967296,4294967296]", "0", "8") "}", 8,
                  "larger than any file");
    check_refused("{" T("a", "F32", "[99999999999999999999]", "0", "8") "}", 8, "past 2^63");
    check_refused("{" T("a", "F32", "[3]", "0", "8") "}", 8, "make 12 bytes, data_offsets 8");
    check_refused("{" T("a", "F32", "[2]", "8", "0") "}", 8, "ends before it begins");
    check_refused("{" T("a", "F31", "[2]", "0", "8") "}", 8, "dtype F31 is not known");
    check_refused("{" T("a\xC3", "F32", "[2]", "0", "8") "}", 8, "not UTF-8");
    check_refused("{" T("a\\ud800", "F32", "[2]", "0", "8") "}", 8, "surrogate");
    check_refused("{" T("a\\u0000", "F32", "[2]", "0", "8") "}", 8, "the character 0");
    check_refused("{" T("a", "F32", "[-2]", "0", "8") "}", 8, "whole number");
    check_refused("{" T("a", "F32", "[02]", "0", "8") "}", 8, "begins with 0");
    check_refused("{" T("a", "F32", "[2.0]", "0", "8") "}", 8, "']' expected");
    check_refused("{" T("a", "F32", "[[2]]", "0", "8") "}", 8, "whole number");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "is missing");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8, "comes twice");
    check_refused("{\"a\":{\"depth\":{\"depth\":{}}}}", 8, "a field beside");
    check_refused("{\"a\":[[[[[[[[]]]]]]]]}", 8, "'{' expected");
    check_refused("{} x", 0, "follows the header");
    check_refused("[]", 0, "'{' expected");
    check_refused("", 0, "'{' expected");
    check_refused("{\"a", 0, "ends inside a string");
}

static void lengths_past_the_cap_or_the_file_are_refused(void) {
    Error error = {0};
    const char *path = path_of("length.safetensors");
    write_raw(path, UINT64_C(1) << 60, "{}", 0);
    CHECK(!safe_open(path, &error));
    CHECK_CONTAINS(error.text, "at most 100000000");
    write_raw(path, 3, "{}", 0);
    CHECK(!safe_open(path, &error));
    CHECK_CONTAINS(error.text, "only 2 follow");
    FILE *file = fopen(path, "wb");
    fputs("short", file);
    fclose(file);
    CHECK(!safe_open(path, &error));
    CHECK_CONTAINS(error.text, "has 5 bytes");
    CHECK(!safe_open(folder, &error));
    CHECK_CONTAINS(error.text, "a directory");
}

static void the_largest_number_of_tensors_is_read_and_one_more_refused(void) {
    for (int more = 0; more < 2; more++) {
        char *text = malloc((size_t)80 * (SAFE_MAX_ENTRIES + 1));
        size_t used = (size_t)sprintf(text, "{");
        for (int i = 0; i < SAFE_MAX_ENTRIES + more; i++)
            used += (size_t)sprintf(
                text + used, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                i ? "," : "", i, i, i + 1);
        used += (size_t)sprintf(text + used, "}");
        SafeHeader header;
        Error error = {0};
        bool done = safe_header_parse(&header, text, used, (uint64_t)(SAFE_MAX_ENTRIES + more), "x",
                                      &error);
        CHECK(done == !more);
        if (done)
            CHECK_INT(safe_header_find(&header, "t77777")->begin, 77777);
        else
            CHECK_CONTAINS(error.text, "more than 100000 tensors");
        safe_header_clear(&header);
        free(text);
    }
}

// ---- there and back -----------------------------------------------------------------------------

static bool write_sample(const char *path, float first, char hex[HASH_HEX_SIZE], Error *error) {
    const int64_t shape[] = {2, 3}, none[1] = {0}, bytes[] = {5};
    const float numbers[6] = {first, -1, 0.5f, 1e-8f, 3e38f, -0.0f};
    const double scalar = 0.1;
    SafeWriter *writer = safe_writer_new(path, error);
    uint64_t size;
    bool done = writer && safe_note(writer, "format", "pt", error) &&
                safe_note(writer, "gr\xC3\xBC\xC3\x9F \"e\"\n", "\xF0\x9F\x98\x80", error) &&
                safe_declare(writer, "layer.weight", SAFE_F32, 2, shape, error) &&
                safe_declare(writer, "scalar", SAFE_F64, 0, NULL, error) &&
                safe_declare(writer, "empty", SAFE_BF16, 1, none, error) &&
                safe_declare(writer, "bytes", SAFE_U8, 1, bytes, error) &&
                safe_write(writer, numbers, 10, error) && // a tensor may come in parts
                safe_write(writer, (const char *)numbers + 10, sizeof numbers - 10, error) &&
                safe_write(writer, &scalar, sizeof scalar, error) &&
                safe_write(writer, "hello", 5, error) && safe_finish(writer, hex, &size, error);
    safe_writer_free(writer);
    return done;
}

static void what_is_written_comes_back_with_its_checksum(void) {
    const char *path = path_of("sample.safetensors");
    char hex[HASH_HEX_SIZE], again[HASH_HEX_SIZE];
    Error error = {0};
    CHECK_MESSAGE(write_sample(path, 7, hex, &error), "%s", error.text);
    SafeFile *file = safe_open(path, &error);
    CHECK_MESSAGE(file, "%s", error.text);
    if (!file)
        return;
    const SafeHeader *header = safe_header(file);
    CHECK_INT(header->count, 4);
    CHECK_TEXT(safe_header_note(header, "gr\xC3\xBC\xC3\x9F \"e\"\n"), "\xF0\x9F\x98\x80");
    CHECK(!safe_header_find(header, "layer"));
    const SafeEntry *weight = safe_header_find(header, "layer.weight");
    float numbers[6];
    CHECK(weight && weight->ndim == 2 && weight->shape[1] == 3);
    CHECK(safe_read(file, weight, numbers, &error));
    CHECK(numbers[0] == 7 && numbers[3] == 1e-8f && signbit(numbers[5]));
    CHECK(safe_hash(file, again, &error));
    CHECK_TEXT(again, hex);
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    // A file that is cut under us is an error, not a signal.
    CHECK(truncate(path, status.st_size - 8) == 0);
    CHECK(!safe_read(file, safe_header_find(header, "bytes"), numbers, &error));
    CHECK_CONTAINS(error.text, "it was cut");
    safe_close(file);
}

// ---- Python -------------------------------------------------------------------------------------

static const char *python(void) {
    static char found[512];
    const char *named = getenv("MPBENCH_PYTHON");
    char command[700];
    snprintf(found, sizeof found, "%s", named ? named : "python3");
    snprintf(command, sizeof command, "'%s' -c 'import numpy, safetensors.numpy' 2> /dev/null",
             found);
    return system(command) == 0 ? found : NULL;
}

static void python_reads_what_we_write_and_we_read_what_it_writes(void) {
    if (!python()) {
        const char *why = getenv("MPBENCH_PYTHON_LACKS");
        SKIP("no python3 with numpy and safetensors (%.180s)",
             why ? why : "MPBENCH_PYTHON names one");
        return;
    }
    char hex[HASH_HEX_SIZE], command[2048];
    Error error = {0};
    CHECK(write_sample(path_of("ours.safetensors"), 7, hex, &error));
    snprintf(command, sizeof command,
             "cd %s && '%s' -c \"\n"
             "import numpy as n\n"
             "from safetensors import safe_open\n"
             "from safetensors.numpy import save_file\n"
             "with safe_open('ours.safetensors', 'np') as f:\n"
             "    assert sorted(f.keys()) == ['bytes', 'empty', 'layer.weight', 'scalar']\n"
             "    w = f.get_tensor('layer.weight')\n"
             "    assert w.shape == (2, 3) and w[0, 0] == 7 and w[1, 1] == n.float32(3e38)\n"
             "    assert f.get_tensor('scalar') == 0.1\n"
             "    assert f.get_tensor('bytes').tobytes() == b'hello'\n"
             "    assert f.metadata()['format'] == 'pt'\n"
             "save_file({'b': n.arange(6, dtype=n.int64).reshape(2, 3), 'a': n.float16([1.5]),\n"
             "           'c': n.array([True, False])}, 'theirs.safetensors', {'k': 'v\\u00e9'})\n"
             "\"",
             folder, python());
    CHECK_MESSAGE(system(command) == 0, "python refused our file");
    SafeFile *file = safe_open(path_of("theirs.safetensors"), &error);
    CHECK_MESSAGE(file, "%s", error.text);
    if (!file)
        return;
    const SafeEntry *b = safe_header_find(safe_header(file), "b");
    const SafeEntry *a = safe_header_find(safe_header(file), "a");
    int64_t numbers[6];
    CHECK(a && a->type == SAFE_F16 && b && b->type == SAFE_I64 && b->shape[0] == 2);
    CHECK(b && safe_read(file, b, numbers, &error) && numbers[5] == 5);
    CHECK_TEXT(safe_header_note(safe_header(file), "k"), "v\xC3\xA9");
    safe_close(file);
}

// ---- killed and full ----------------------------------------------------------------------------

// The system calls that change the disk come through here: the one with this number is the last.
static int calls_left = -1;

static void count_call(void) {
    if (calls_left > 0 && --calls_left == 0)
        raise(SIGKILL);
}

ssize_t write(int file, const void *bytes, size_t size) {
    if (calls_left == 1 && size > 1) // half of it arrives
        syscall(SYS_write, file, bytes, size / 2);
    count_call();
    return syscall(SYS_write, file, bytes, size);
}

int fsync(int file) {
    count_call();
    return (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to) {
    count_call();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

// The first number of the sample; NAN where there is no whole file.
static float read_first(const char *path) {
    Error error = {0};
    float numbers[6] = {NAN};
    SafeFile *file = safe_open(path, &error);
    if (file &&
        !safe_read(file, safe_header_find(safe_header(file), "layer.weight"), numbers, &error))
        numbers[0] = NAN;
    safe_close(file);
    return numbers[0];
}

static void a_writer_that_is_killed_leaves_the_old_file_or_the_new(void) {
    const char *path = path_of("killed.safetensors");
    char hex[HASH_HEX_SIZE];
    Error error = {0};
    CHECK(write_sample(path, 1, hex, &error));
    bool finished = false, was_old = false;
    for (int n = 1; n < 100 && !finished; n++) {
        pid_t child = fork();
        if (child == 0) {
            calls_left = n;
            _exit(write_sample(path, 2, hex, &error) ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        finished = WIFEXITED(status);
        float first = read_first(path);
        CHECK_MESSAGE(first == 1 || first == 2, "killed at call %d: neither", n);
        was_old = was_old || first == 1;
        CHECK(finished || WIFSIGNALED(status));
    }
    CHECK(finished && was_old && read_first(path) == 2);
}

static void a_full_disk_is_told_and_leaves_the_old_file(void) {
    const char *path = path_of("full.safetensors");
    char hex[HASH_HEX_SIZE];
    Error error = {0};
    CHECK(write_sample(path, 1, hex, &error));
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {200, 200};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        bool done = write_sample(path, 2, hex, &error);
        _exit(done                                                 ? 1
              : error.code != ERROR_FULL                           ? 2
              : access(path_of("full.safetensors.tmp"), F_OK) == 0 ? 3
                                                                   : 0);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    CHECK(read_first(path) == 1);
}

static void names_that_are_alike_are_not_written(void) {
    const int64_t shape[1] = {0};
    const char *path = path_of("alike.safetensors");
    char hex[HASH_HEX_SIZE];
    uint64_t size;
    Error error = {0};
    SafeWriter *writer = safe_writer_new(path, &error);
    CHECK(safe_note(writer, "a", "1", &error) && safe_note(writer, "b", "1", &error) &&
          safe_note(writer, "a", "2", &error));
    CHECK(!safe_finish(writer, hex, &size, &error));
    CHECK_CONTAINS(error.text, "two notes are called \"a\"");
    safe_writer_free(writer);
    writer = safe_writer_new(path, &error);
    CHECK(safe_declare(writer, "x", SAFE_F32, 1, shape, &error) &&
          safe_declare(writer, "y", SAFE_F32, 1, shape, &error) &&
          safe_declare(writer, "x", SAFE_F32, 1, shape, &error));
    CHECK(!safe_finish(writer, hex, &size, &error));
    CHECK_CONTAINS(error.text, "two tensors are called \"x\"");
    safe_writer_free(writer);
    CHECK(access(path, F_OK) != 0);
    CHECK(access(path_of("alike.safetensors.tmp"), F_OK) != 0);
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    RUN_TEST(each_fault_of_a_header_is_named);
    RUN_TEST(lengths_past_the_cap_or_the_file_are_refused);
    RUN_TEST(the_largest_number_of_tensors_is_read_and_one_more_refused);
    RUN_TEST(what_is_written_comes_back_with_its_checksum);
    RUN_TEST(python_reads_what_we_write_and_we_read_what_it_writes);
    RUN_TEST(names_that_are_alike_are_not_written);
    RUN_TEST(a_writer_that_is_killed_leaves_the_old_file_or_the_new);
    RUN_TEST(a_full_disk_is_told_and_leaves_the_old_file);
    test_folder_remove(folder);
    return test_end();
}
