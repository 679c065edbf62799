// tests/fuzz/driver.h: throws mutations of good inputs at a reader.
//
// A target is two functions: FuzzSeed gives the good inputs, FuzzOne tries one input (0: every
// promise was kept). Before those that the code makes come the files of tests/fuzz/corpus/TARGET,
// by name: what once was hard, kept. A program ends with FUZZ_MAIN(one, seed_of, "TARGET") and runs
// from the root of the tree as
// `PROGRAM [EXECUTIONS [SEED]]`; equal arguments give equal inputs. Built with -DFUZZ_LIBFUZZER
// -fsanitize=fuzzer it gives the target to libFuzzer instead.
#pragma once

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_MAX_SIZE = 4096 };

typedef int (*FuzzOne)(const uint8_t *bytes, size_t size);
// Writes good input `index` into out[FUZZ_MAX_SIZE] and returns its size; 0: there are no more.
typedef size_t (*FuzzSeed)(int index, uint8_t *out);

// splitmix64
static inline uint64_t fuzz_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline size_t fuzz_below(uint64_t *state, size_t range) {
    return (size_t)(fuzz_random(state) % range);
}

// Changes the input in one place; returns the new size.
static inline size_t fuzz_mutate(uint8_t *bytes, size_t size, uint64_t *state) {
    static const uint32_t hostile[] = {0,          1,          0x7F,       0x80,       0xFF,
                                       0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x01000000, 0xEFBBBFED};
    // Most structure is at the start.
    size_t at = size ? fuzz_below(state, fuzz_random(state) & 1 || size < 16 ? size : 16) : 0;
    size_t length = 1 + fuzz_below(state, 8);
    switch (fuzz_random(state) % 8) {
    case 0: // a bit
        if (size)
            bytes[at] ^= (uint8_t)(1u << fuzz_below(state, 8));
        break;
    case 1: // a byte
        if (size)
            bytes[at] = (uint8_t)fuzz_random(state);
        break;
    case 2: // a hostile number of 32 bits
        if (size >= 4) {
            at = at > size - 4 ? size - 4 : at;
            memcpy(bytes + at, &hostile[fuzz_below(state, sizeof hostile / sizeof hostile[0])], 4);
        }
        break;
    case 3: // the end is cut
        size = at;
        break;
    case 4: // a piece is left out
        if (size > length && at + length <= size) {
            memmove(bytes + at, bytes + at + length, size - at - length);
            size -= length;
        }
        break;
    case 5: // a piece is put in
        if (size + length <= FUZZ_MAX_SIZE) {
            memmove(bytes + at + length, bytes + at, size - at);
            for (size_t i = 0; i < length; i++)
                bytes[at + i] = (uint8_t)fuzz_random(state);
            size += length;
        }
        break;
    case 6: // a piece comes twice
        if (at + length <= size && size + length <= FUZZ_MAX_SIZE) {
            memmove(bytes + at + length, bytes + at, size - at);
            size += length;
        }
        break;
    default: // two bytes are exchanged
        if (size) {
            size_t other = fuzz_below(state, size);
            uint8_t kept = bytes[at];
            bytes[at] = bytes[other];
            bytes[other] = kept;
        }
    }
    return size;
}

typedef struct FuzzInputs {
    const char *target;
    FuzzSeed seed_of;
    struct dirent **files; // of the corpus
    int files_count, count;
} FuzzInputs;

static inline int fuzz_is_file(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static inline size_t fuzz_input(const FuzzInputs *inputs, int index, uint8_t *out) {
    char path[512];
    if (index >= inputs->files_count)
        return inputs->seed_of(index - inputs->files_count, out);
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%.255s", inputs->target,
             inputs->files[index]->d_name);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(out, 1, FUZZ_MAX_SIZE, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static inline void fuzz_inputs_find(FuzzInputs *inputs) {
    char corpus[64];
    uint8_t bytes[FUZZ_MAX_SIZE];
    snprintf(corpus, sizeof corpus, "tests/fuzz/corpus/%s", inputs->target);
    inputs->files_count = scandir(corpus, &inputs->files, fuzz_is_file, alphasort);
    if (inputs->files_count < 0) // from another folder
        inputs->files_count = 0;
    inputs->count = inputs->files_count;
    while (inputs->seed_of(inputs->count - inputs->files_count, bytes) > 0)
        inputs->count++;
}

static inline void fuzz_inputs_clear(FuzzInputs *inputs) {
    for (int i = 0; i < inputs->files_count; i++)
        free(inputs->files[i]);
    if (inputs->files_count > 0)
        free(inputs->files);
}

// Returns the number of the first execution that broke a promise, or 0.
static inline uint64_t fuzz_run(FuzzOne one, FuzzSeed seed_of, const char *target,
                                uint64_t executions, uint64_t seed) {
    uint8_t bytes[FUZZ_MAX_SIZE];
    FuzzInputs inputs = {.target = target, .seed_of = seed_of};
    uint64_t broken = 0;
    fuzz_inputs_find(&inputs);
    for (uint64_t i = 1; i <= executions && !broken; i++) {
        uint64_t state = seed ^ i << 32;
        size_t size = fuzz_input(&inputs, (int)((i - 1) % (uint64_t)inputs.count), bytes);
        // The first round takes the inputs as they are.
        size_t changes = i <= (uint64_t)inputs.count ? 0 : 1 + fuzz_below(&state, 4);
        for (size_t k = 0; k < changes; k++)
            size = fuzz_mutate(bytes, size, &state);
        uint8_t *exact = malloc(size ? size : 1); // so that a sanitizer sees one byte too far
        if (exact)
            memcpy(exact, bytes, size);
        if (!exact || one(exact, size))
            broken = i;
        free(exact);
    }
    fuzz_inputs_clear(&inputs);
    return broken;
}

#if defined(FUZZ_LIBFUZZER)
#define FUZZ_MAIN(one, seed_of, target)                             \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);  \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) { \
        if (one(bytes, size))                                       \
            abort();                                                \
        return 0;                                                   \
    }
#else
#define FUZZ_MAIN(one, seed_of, target)                                                  \
    int main(int argc, char **argv) {                                                    \
        uint64_t executions = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;            \
        uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;                      \
        uint64_t broken = fuzz_run(one, seed_of, target, executions, seed);              \
        if (broken)                                                                      \
            printf("not ok %s: execution %llu of seed %llu\n", argv[0],                  \
                   (unsigned long long)broken, (unsigned long long)seed);                \
        else                                                                             \
            printf("ok %s: %llu executions\n", argv[0], (unsigned long long)executions); \
        return broken != 0;                                                              \
    }
#endif
