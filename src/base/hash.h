// base/hash.h: SHA-256, the name under which texts are kept and the checksum of files.
//
// A Sha256 is the caller's, lives anywhere and needs no clearing. Nothing here allocates or fails.
// Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    HASH_BYTES = 32,
    HASH_HEX_SIZE = 2 * HASH_BYTES + 1, // with the terminating zero
};

typedef struct Sha256 {
    uint32_t state[8];
    uint64_t length; // bytes taken so far
    uint8_t block[64];
} Sha256;

void sha256_init(Sha256 *hash);
void sha256_add(Sha256 *hash, const void *data, size_t length);
void sha256_end(Sha256 *hash, uint8_t digest[HASH_BYTES]);

// The hash of one piece of data, as 64 lower-case hexadecimal digits.
void sha256_hex(char hex[HASH_HEX_SIZE], const void *data, size_t length);
// Writes a digest in hexadecimal.
void sha256_format(char hex[HASH_HEX_SIZE], const uint8_t digest[HASH_BYTES]);
