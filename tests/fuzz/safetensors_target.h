// tests/fuzz/safetensors_target.h: what the fuzz program promises about the header of safetensors.
//
// Whatever comes in, a good result describes every byte of the data once, under names that differ,
// and a bad one has a message and leaves nothing behind.
#pragma once

#include "base/error.h"
#include "data/safetensors.h"
#include "tests/fuzz/driver.h"

enum { FUZZ_DATA_BYTES = 24 };

static size_t fuzz_safetensors_seed(int index, uint8_t *out) {
    static const char *const seeds[] = {
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
        "{\"__metadata__\":{\"format\":\"pt\",\"k\\u00e9\\ud83d\\ude00\":\"\\n\\\"\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[16,24]},"
        "\"a\":{\"shape\":[2],\"data_offsets\":[0,16],\"dtype\":\"I64\"}}   ",
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
        "\"empty\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[1,1]},"
        "\"y\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,23],\"data_offsets\":[1,24]}}",
        "{ \"p\" : { \"dtype\" : \"BOOL\" , \"shape\" : [ 24 ] , \"data_offsets\" : [ 0 , 24 ] } }",
        // What once was hard: equal names, a hole, an overlap, a product past 2^64, deep nesting.
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[24],\"data_offsets\":[0,24]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[24,24]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[16,24]}}",
        "{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,24]}}",
        "{\"a\":[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]}",
        "{}",
    };
    if ((size_t)index >= sizeof seeds / sizeof *seeds)
        return 0;
    size_t size = strlen(seeds[index]);
    memcpy(out, seeds[index], size);
    return size;
}

static int check_header(const SafeHeader *header) {
    uint64_t covered = 0;
    for (int i = 0; i < header->count; i++) {
        const SafeEntry *entry = &header->entries[i];
        uint64_t bytes = safe_type_bytes(entry->type);
        for (int k = 0; k < entry->ndim; k++)
            bytes *= (uint64_t)entry->shape[k];
        if (entry->begin != covered || entry->end - entry->begin != bytes)
            return 1;
        if (safe_header_find(header, entry->name) != entry)
            return 1;
        covered = entry->end;
    }
    return covered != FUZZ_DATA_BYTES;
}

static int fuzz_safetensors_one(const uint8_t *bytes, size_t size) {
    char *text = malloc(size ? size : 1); // exact, so that a sanitizer sees one byte too far
    if (!text)
        return 1;
    if (size)
        memcpy(text, bytes, size);
    SafeHeader header;
    Error error = {0};
    bool done = safe_header_parse(&header, text, size, FUZZ_DATA_BYTES, "input", &error);
    int broken = done ? check_header(&header)
                      : header.entries != NULL || header.notes != NULL ||
                            error.code == ERROR_NONE || error.text[0] == 0;
    safe_header_clear(&header);
    free(text);
    return broken;
}
