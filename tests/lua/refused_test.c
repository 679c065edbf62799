// Checkpoints that no run can go on from: they lack something, are of another script, or say what
// cannot be. Each is refused by name, with the way out, or counts nothing.
#include "tests/lua/resume_scripts.h"
#include "tests/lua/trial.h"

typedef struct Change { // of a checkpoint's copy: a tensor or note that is left out, or
    const char *name;
    const char *note; // what it says instead
    double number;    // or, where it is not 0, all that it holds
    int64_t gained;   // or, where it is not 0, so many rows of one number, which the copy gains
} Change;

static bool copy_entry(SafeFile *file, SafeWriter *writer, const SafeEntry *entry, double number,
                       Error *error) {
    size_t size = (size_t)(entry->end - entry->begin);
    void *memory = malloc(size + 1);
    bool done = safe_read(file, entry, memory, error);
    for (size_t i = 0; number != 0 && i < size / sizeof number; i++)
        memcpy((double *)memory + i, &number, sizeof number);
    done = done && safe_write(writer, memory, size, error);
    free(memory);
    return done;
}

static void copy_changed(const char *from, const char *to, Change change) {
    Error error = {0};
    char hex[HASH_HEX_SIZE];
    uint64_t bytes;
    SafeFile *file = safe_open(from, &error);
    SafeWriter *writer = safe_writer_new(to, &error);
    const SafeHeader *header = safe_header(file);
    bool done = true;
    for (int i = 0; done && i < header->note_count; i++)
        if (strcmp(header->notes[i].key, change.name) != 0)
            done = safe_note(writer, header->notes[i].key, header->notes[i].value, &error);
        else if (change.note)
            done = safe_note(writer, change.name, change.note, &error);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; done && i < header->count; i++) {
            const SafeEntry *entry = &header->entries[i];
            bool changes = strcmp(entry->name, change.name) == 0;
            if (changes && change.number == 0)
                continue;
            done = pass == 0 ? safe_declare(writer, entry->name, entry->type, entry->ndim,
                                            entry->shape, &error)
                             : copy_entry(file, writer, entry, changes ? change.number : 0, &error);
        }
        const int64_t shape[] = {change.gained, 1};
        if (pass == 0 && change.gained > 0)
            done = done && safe_declare(writer, change.name, SAFE_F32, 2, shape, &error);
    }
    if (change.gained > 0) {
        float *zeros = calloc((size_t)change.gained, sizeof *zeros);
        done = done && safe_write(writer, zeros, (size_t)change.gained * sizeof *zeros, &error);
        free(zeros);
    }
    CHECK_MESSAGE(done && safe_finish(writer, hex, &bytes, &error), "%s", error.text);
    safe_writer_free(writer);
    safe_close(file);
}

static void check_refusal(const Trial *first, const char *left_out, const char *expected) {
    Trial second = *first;
    second.stop_at = 0;
    copy_changed(file_of("broken", 5), folder_of("broken/copy"), (Change){.name = left_out});
    second.resume = checkpoint_open(folder_of("broken/copy"), NULL, NULL, &second.error);
    if (second.resume) {
        train(&second);
        CHECK_MESSAGE(!second.done, "it went on without %s", left_out);
    }
    CHECK_CONTAINS(second.error.text, expected);
    checkpoint_close(second.resume);
}

static void a_checkpoint_that_lacks_state_is_refused_with_the_way_out(void) {
    Trial first = {.script = write_script("broken", gan_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("broken"),
                   .stop_at = 5};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    if (first.kept != 1)
        return;
    check_refusal(&first, "scaler0/state", "lacks scaler0/state");
    check_refusal(&first, "optimizer1/m/D.linear1.weight", "--weights-only");
    check_refusal(&first, "random", "random state is missing");
    check_refusal(&first, "journal", "--weights-only");
    check_refusal(&first, "weight/G.linear2.bias", "missing in the file: weight/G.linear2.bias");
    check_refusal(&first, "mpbench", "no checkpoint of mpbench");
    Trial other = first;
    other.stop_at = 0;
    other.resume = checkpoint_open(file_of("broken", 5), NULL, NULL, &other.error);
    other.script = write_script("other", early_script);
    train(&other);
    checkpoint_close(other.resume);
    CHECK(!other.done);
    CHECK_CONTAINS(other.error.text, "--weights-only");
}

// A file's checksum keeps such away; a copy has none.
static void counters_that_no_run_can_have_are_refused_or_count_nothing(void) {
    static const char *const notes[] = {"step",  "applied",   "skipped",       "samples",
                                        "epoch", "forked_at", "skips_in_a_row"};
    static const char *const wrong[] = {"9223372036854775807", "-1", "1e9", "", "nan"};
    static const char *const states[] = {"scaler0/state", "optimizer0/state", "optimizer0/steps",
                                         "optimizer0/factors"};
    static const double numbers[] = {1e300, -1e300, (double)NAN, (double)INFINITY, 9.3e18};
    Trial first = {.script = write_script("counted", gan_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("counted"),
                   .stop_at = 5};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    if (first.kept != 1)
        return;
    const char *copy = folder_of("counted/copy");
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            Error error = {0};
            copy_changed(file_of("counted", 5), copy, (Change){notes[i], wrong[k], 0, 0});
            CHECK(!checkpoint_open(copy, NULL, NULL, &error));
            CHECK_CONTAINS(error.text, "is no count");
        }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            Trial second = first;
            second.stop_at = 0;
            second.steps = 8;
            copy_changed(file_of("counted", 5), copy, (Change){states[i], NULL, numbers[k], 0});
            second.resume = checkpoint_open(copy, NULL, NULL, &second.error);
            CHECK_MESSAGE(second.resume, "%s", second.error.text);
            train(&second); // it may be refused, or skip; it ends, and in order
            checkpoint_close(second.resume);
        }
    copy_changed(file_of("counted", 5), copy,
                 (Change){"scaler0.rule", "7 1 2 0.5 1 1e30 1e300 -1e300", 0, 0});
    Trial second = first;
    second.stop_at = 0;
    second.resume = checkpoint_open(copy, NULL, NULL, &second.error);
    train(&second);
    checkpoint_close(second.resume);
    CHECK_CONTAINS(second.error.text, "scaler0.rule cannot be read");
}

// Scales of many rows that are one number wide take no room for rows as wide as a recipe's.
static void forged_scales_are_refused_before_there_is_room_for_them(void) {
    enum { ROWS = 1 << 18 };
    Trial first = {.script = write_script("forged", gan_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("forged"),
                   .stop_at = 5};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    Trial second = first;
    second.stop_at = 0;
    copy_changed(file_of("forged", 5), folder_of("forged/copy"),
                 (Change){.name = "scales", .gained = ROWS});
    second.resume = checkpoint_open(folder_of("forged/copy"), NULL, NULL, &second.error);
    train(&second);
    CHECK(!second.done);
    CHECK_CONTAINS(second.error.text, "scales");
    CHECK_MESSAGE(second.record.memory.optimizer < ROWS, "%lld bytes were taken",
                  (long long)second.record.memory.optimizer);
    checkpoint_close(second.resume);
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(a_checkpoint_that_lacks_state_is_refused_with_the_way_out);
    RUN_TEST(counters_that_no_run_can_have_are_refused_or_count_nothing);
    RUN_TEST(forged_scales_are_refused_before_there_is_room_for_them);
    return trials_end();
}
