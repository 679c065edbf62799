#include "checkpoint/journal.h"

#include <stdlib.h>
#include <string.h>

void journal_clear(Journal *journal) {
    free(journal->bytes);
    *journal = (Journal){.size = 0};
}

static bool grow(Journal *journal, size_t size) {
    if (size > JOURNAL_LARGEST)
        return false;
    if (size <= journal->room)
        return true;
    size_t room = journal->room ? journal->room : 4096;
    while (room < size)
        room *= 2;
    uint8_t *bytes = realloc(journal->bytes, room);
    if (!bytes)
        return false;
    journal->bytes = bytes;
    journal->room = room;
    return true;
}

static uint64_t head_of(JournalKind kind, size_t size) {
    return (uint64_t)kind << 56 | size;
}

void journal_add(Journal *journal, JournalKind kind, const void *values, size_t size) {
    uint64_t head = head_of(kind, size);
    if (journal->is_given_up)
        return;
    if (size > JOURNAL_LARGEST || !grow(journal, journal->size + sizeof head + size)) {
        journal_clear(journal);
        journal->is_given_up = true;
        return;
    }
    memcpy(journal->bytes + journal->size, &head, sizeof head);
    memcpy(journal->bytes + journal->size + sizeof head, values, size);
    journal->size += sizeof head + size;
}

bool journal_take(Journal *journal, JournalKind kind, void *values, size_t size, Error *error) {
    uint64_t head = 0;
    size_t left = journal->size - journal->at;
    if (left >= sizeof head)
        memcpy(&head, journal->bytes + journal->at, sizeof head);
    if (left < sizeof head || head != head_of(kind, size) || left - sizeof head < size)
        return error_fail(
            error, ERROR_FAILED,
            "resume: the script reads something else here than before the checkpoint: "
            "it, its data or its options have changed; put them back, or resume with "
            "--weights-only");
    memcpy(values, journal->bytes + journal->at + sizeof head, size);
    journal->at += sizeof head + size;
    return true;
}

bool journal_has(const Journal *journal, JournalKind kind) {
    uint64_t head = 0;
    if (journal->size - journal->at < sizeof head)
        return false;
    memcpy(&head, journal->bytes + journal->at, sizeof head);
    return head >> 56 == (uint64_t)kind;
}

bool journal_set(Journal *journal, const void *bytes, size_t size, Error *error) {
    if (!grow(journal, size))
        return error_fail(error, ERROR_MEMORY, "resume: no memory for the journal of %zu bytes",
                          size);
    if (size)
        memcpy(journal->bytes, bytes, size);
    journal->size = size;
    return true;
}
