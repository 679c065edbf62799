// A ring gives every record over, whole and in order, and says when it is full.
#include "run/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "tests/test.h"

static void records_come_whole_and_in_order(void) {
    Ring *ring = ring_new(1024, NULL);
    size_t size;
    CHECK(ring_peek(ring, &size) == NULL);
    for (int round = 0; round < 1000; round++) {
        size_t length = (size_t)(round * 37 % 500);
        unsigned char *record = ring_reserve(ring, length);
        CHECK(record != NULL);
        if (!record)
            break;
        memset(record, round & 0xFF, length);
        CHECK(ring_peek(ring, &size) == NULL); // not published yet
        ring_publish(ring);
        const unsigned char *got = ring_peek(ring, &size);
        CHECK_INT(size, length);
        CHECK((uintptr_t)got % 8 == 0);
        for (size_t i = 0; got && i < size; i++)
            CHECK_INT(got[i], round & 0xFF);
        ring_release(ring);
    }
    ring_free(ring);
}

static void a_full_ring_says_so_and_loses_nothing(void) {
    Ring *ring = ring_new(1024, NULL);
    int written = 0, read = 0;
    size_t size;
    for (int *record; (record = ring_reserve(ring, 2 * sizeof(int))); written++)
        *record = written;
    CHECK_INT(written, 1024 / 16);
    ring_publish(ring);
    for (const int *record; (record = ring_peek(ring, &size)); read++) {
        CHECK_INT(*record, read);
        ring_release(ring);
    }
    CHECK_INT(read, written);
    CHECK(ring_reserve(ring, ring_largest(ring)) != NULL);
    ring_free(ring);
}

enum { RECORDS = 300000 };

typedef struct Numbered {
    uint32_t number, sum;
} Numbered;

static uint32_t length_of(uint32_t number) {
    return number * 2654435761u % 300;
}

static void *produce(void *context) {
    Ring *ring = context;
    for (uint32_t number = 0; number < RECORDS;) {
        uint32_t length = length_of(number);
        Numbered *record = ring_reserve(ring, sizeof *record + length);
        if (!record) {
            ring_publish(ring);
            sched_yield();
            continue;
        }
        unsigned char *bytes = (unsigned char *)(record + 1);
        record->number = number;
        record->sum = 0;
        for (uint32_t i = 0; i < length; i++)
            record->sum += bytes[i] = (unsigned char)(number + i);
        if (++number % 7 == 0)
            ring_publish(ring);
    }
    ring_publish(ring);
    return NULL;
}

static void two_threads_lose_nothing(void) {
    Ring *ring = ring_new(8192, NULL);
    pthread_t producer;
    CHECK_INT(pthread_create(&producer, NULL, produce, ring), 0);
    for (uint32_t number = 0; number < RECORDS && !test_why[0];) {
        size_t size;
        const Numbered *record = ring_peek(ring, &size);
        if (!record) {
            sched_yield();
            continue;
        }
        const unsigned char *bytes = (const unsigned char *)(record + 1);
        uint32_t sum = 0;
        for (size_t i = 0; i < size - sizeof *record; i++)
            sum += bytes[i];
        CHECK_INT(record->number, number);
        CHECK_INT(size, sizeof *record + length_of(number));
        CHECK_INT(record->sum, sum);
        ring_release(ring);
        number++;
    }
    if (test_why[0])
        exit(1); // the other thread would wait for ever
    pthread_join(producer, NULL);
    ring_free(ring);
}

int main(void) {
    RUN_TEST(records_come_whole_and_in_order);
    RUN_TEST(a_full_ring_says_so_and_loses_nothing);
    RUN_TEST(two_threads_lose_nothing);
    return test_end();
}
