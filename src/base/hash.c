#include "base/hash.h"

#include <string.h>

// The fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static void take_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t near = w[i - 15], far = w[i - 2];
        w[i] = w[i - 16] + (rotate(near, 7) ^ rotate(near, 18) ^ near >> 3) + w[i - 7] +
               (rotate(far, 17) ^ rotate(far, 19) ^ far >> 10);
    }
    uint32_t v[8];
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t first = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + round_constant[i] + w[i];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void sha256_init(Sha256 *hash) {
    // The fractional parts of the square roots of the first eight primes.
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *hash = (Sha256){0};
    memcpy(hash->state, start, sizeof start);
}

void sha256_add(Sha256 *hash, const void *data, size_t length) {
    const uint8_t *next = data;
    size_t held = hash->length % sizeof hash->block;
    hash->length += length;
    while (length > 0) {
        if (held == 0 && length >= sizeof hash->block) {
            take_block(hash->state, next);
            next += sizeof hash->block;
            length -= sizeof hash->block;
            continue;
        }
        size_t part = sizeof hash->block - held;
        if (part > length)
            part = length;
        memcpy(hash->block + held, next, part);
        next += part;
        length -= part;
        held += part;
        if (held == sizeof hash->block) {
            take_block(hash->state, hash->block);
            held = 0;
        }
    }
}

void sha256_end(Sha256 *hash, uint8_t digest[HASH_BYTES]) {
    uint64_t bits = hash->length * 8;
    static const uint8_t padding[64] = {0x80};
    size_t held = hash->length % sizeof hash->block;
    sha256_add(hash, padding, (held < 56 ? 56 : 120) - held);
    uint8_t tail[8];
    for (int i = 0; i < 8; i++)
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, tail, sizeof tail);
    for (int i = 0; i < HASH_BYTES; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_format(char hex[HASH_HEX_SIZE], const uint8_t digest[HASH_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HASH_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * HASH_BYTES] = 0;
}

void sha256_hex(char hex[HASH_HEX_SIZE], const void *data, size_t length) {
    Sha256 hash;
    uint8_t digest[HASH_BYTES];
    sha256_init(&hash);
    sha256_add(&hash, data, length);
    sha256_end(&hash, digest);
    sha256_format(hex, digest);
}
