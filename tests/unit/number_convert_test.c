// The array routes of number/convert.h: every level that this processor has, against the scalar
// reference, with and without denormals flushed, on any length and alignment.
#include "number/convert.h"
#include "number/inline.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/test.h"

enum { COUNT = 1 << 19, ROUNDS = 6 };

// Turns "flush denormals" on as the training threads do; gives the state to put back.
static unsigned flush_denormals(void) {
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
#else
    return 0;
#endif
}

static void restore_denormals(unsigned state) {
#if defined(__x86_64__)
    _mm_setcsr(state);
#else
    (void)state;
#endif
}

static IsaLevel best_level;

static uint64_t random_state = 0x2545F4914F6CDD1D;
static uint32_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static uint32_t source_bits[COUNT];
static uint64_t expected[COUNT]; // the pattern of the result, whatever its width
static double result_storage[COUNT + 8];

static uint64_t stored_pattern(Format format, double value, Overflow overflow) {
    uint64_t bits64;
    switch (format) {
    case FORMAT_FP64: memcpy(&bits64, &value, sizeof bits64); return bits64;
    case FORMAT_TF32: return (uint64_t)format_encode(format, value, overflow) << 13;
    default: return format_encode(format, value, overflow);
    }
}

static uint64_t pattern_at(const void *array, size_t bytes, size_t i) {
    uint64_t pattern = 0;
    memcpy(&pattern, (const char *)array + i * bytes, bytes); // little-endian, as all we run on
    return pattern;
}

static bool is_nan_pattern(Format format, uint64_t pattern) {
    double value;
    switch (format) {
    case FORMAT_FP64: memcpy(&value, &pattern, sizeof value); return isnan(value);
    case FORMAT_TF32: return isnan(format_decode(FORMAT_FP32, (uint32_t)pattern));
    default: return isnan(format_decode(format, (uint32_t)pattern));
    }
}

static void compare(Format format, const uint64_t *wanted, const void *actual, size_t bytes,
                    size_t count, const char *what, IsaLevel level) {
    for (size_t i = 0; i < count; i++) {
        uint64_t pattern = pattern_at(actual, bytes, i);
        if (pattern == wanted[i])
            continue;
        bool both_nan = is_nan_pattern(format, pattern) && is_nan_pattern(format, wanted[i]);
        CHECK_MESSAGE(both_nan, "%s %s at %s: source %08x gives %llx, expected %llx", what,
                      format_name(format), isa_level_name(level), source_bits[i],
                      (unsigned long long)pattern, (unsigned long long)wanted[i]);
        if (!both_nan)
            return;
    }
}

// Both modes of flushing, all levels: from fp32 and rounding in place, for what is in source_bits.
static void check_from_fp32(Format format, Overflow overflow, size_t count) {
    static float rounded[COUNT];
    static uint64_t expected_rounded[COUNT];
    for (size_t i = 0; i < count; i++) {
        double value = format_decode(FORMAT_FP32, source_bits[i]);
        expected[i] = stored_pattern(format, value, overflow);
        double kept = format == FORMAT_FP64
                          ? value
                          : format_decode(format, format_encode(format, value, overflow));
        expected_rounded[i] = format_encode(FORMAT_FP32, kept, overflow);
    }
    for (int level = 0; level <= (int)best_level; level++) {
        const ConvertTable *table = convert_table_at((IsaLevel)level);
        for (int flush = 0; flush < 2; flush++) {
            memcpy(rounded, source_bits, count * sizeof rounded[0]);
            unsigned state = flush ? flush_denormals() : 0;
            table->from_fp32[format][overflow](rounded, result_storage, count);
            table->round[format][overflow](rounded, count);
            if (flush)
                restore_denormals(state);
            compare(format, expected, result_storage, format_table[format].bytes, count,
                    flush ? "flushing, from fp32 to" : "from fp32 to", (IsaLevel)level);
            compare(FORMAT_FP32, expected_rounded, rounded, 4, count,
                    flush ? "flushing, rounded to" : "rounded to", (IsaLevel)level);
        }
    }
}

static void check_all_from_fp32(size_t count) {
    for (int format = 0; format < FORMAT_COUNT; format++)
        for (int mode = 0; mode < 2; mode++) {
            bool has_modes =
                format == FORMAT_E4M3 || format == FORMAT_E5M2 || format == FORMAT_E8M0;
            if (format_is_plain((Format)format) && (mode == 0 || has_modes))
                check_from_fp32((Format)format, (Overflow)mode, count);
        }
}

static void fp32_whose_upper_half_is_anything(void) {
    for (uint32_t i = 0; i < 0x10000; i++)
        source_bits[i] = i << 16;
    check_all_from_fp32(0x10000);
}

// Where formats turn: each value of fp16 and fp8 and those of bf16 of the same size, the midpoints
// between neighbours, and one unit beside each.
static void fp32_at_every_boundary(void) {
    // How many low bits fp16, bf16, e4m3 and e5m2 drop.
    static const int dropped[] = {13, 16, 20, 21};
    size_t count = 0;
    for (size_t g = 0; g < 4; g++) {
        uint32_t unit = 1u << (dropped[g] - 1);
        // Exponents from 2^-27 to 2^17 hold all that fp16 and fp8 have.
        for (uint32_t bits = 100u << 23; bits < 145u << 23; bits += unit) {
            for (int beside = -1; beside <= 1 && count < COUNT; beside++)
                source_bits[count++] = (bits + (uint32_t)beside) | (random_bits() & 0x80000000);
        }
    }
    CHECK(count > 100000 && count < COUNT);
    check_all_from_fp32(count);
}

static void fp32_subnormals(void) {
    for (size_t i = 0; i < 0x20000; i++)
        source_bits[i] = (random_bits() & 0x807FFFFF) >> (i % 3 == 0 ? i % 20 : 0);
    check_all_from_fp32(0x20000);
}

static void fp32_at_random(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            source_bits[i] = random_bits();
            if (round % 2) // half of them where fp16 and fp8 live
                source_bits[i] = (source_bits[i] & 0x807FFFFF) | (98 + (source_bits[i] >> 23) % 50)
                                                                     << 23;
        }
        // One format a round and level by turns, so that millions of patterns stay a short test.
        for (int format = round % 2; format < FORMAT_COUNT; format += 2)
            if (format_is_plain((Format)format))
                check_from_fp32((Format)format, (Overflow)(round / 2 % 2), COUNT);
    }
}

static void every_pattern_to_fp32(void) {
    static uint16_t halves[0x10000];
    static uint8_t bytes[0x10000];
    for (uint32_t i = 0; i < 0x10000; i++) {
        halves[i] = (uint16_t)i;
        bytes[i] = (uint8_t)i;
        source_bits[i] = i;
    }
    static const Format formats[] = {FORMAT_BF16, FORMAT_FP16, FORMAT_E4M3, FORMAT_E5M2,
                                     FORMAT_E3M2, FORMAT_E2M3, FORMAT_E2M1, FORMAT_E8M0,
                                     FORMAT_INT8, FORMAT_UINT8};
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        Format format = formats[f];
        const void *source = format_table[format].bytes == 2 ? (const void *)halves : bytes;
        for (size_t i = 0; i < 0x10000; i++) {
            uint32_t pattern = (uint32_t)pattern_at(source, format_table[format].bytes, i);
            expected[i] = format_encode(FORMAT_FP32, format_decode(format, pattern), 0);
        }
        for (int level = 0; level <= (int)best_level; level++)
            for (int flush = 0; flush < 2; flush++) {
                unsigned state = flush ? flush_denormals() : 0;
                convert_table_at((IsaLevel)level)
                    ->to_fp32[format](source, (float *)result_storage, 0x10000);
                if (flush)
                    restore_denormals(state);
                compare(FORMAT_FP32, expected, result_storage, 4, 0x10000, "to fp32, then",
                        (IsaLevel)level);
            }
    }
}

static void fp64_and_int32_to_fp32(void) {
    static double doubles[COUNT];
    static int32_t integers[COUNT];
    static uint64_t expected_of_integers[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        int exponent = (int)(random_bits() % 300) - 160;
        double value = ldexp(1 + random_bits() * 0x1p-32, exponent);
        if (i % 4 == 0)
            value = ldexp(rint(ldexp(value, 149)), -149) * (i % 8 ? 1.5 : 1);
        doubles[i] = i & 1 ? -value : value;
        integers[i] = (int32_t)(random_bits() >> i % 31);
        expected[i] = format_encode(FORMAT_FP32, doubles[i], 0);
        expected_of_integers[i] = format_encode(FORMAT_FP32, integers[i], 0);
    }
    for (int level = 0; level <= (int)best_level; level++)
        for (int flush = 0; flush < 2; flush++) {
            static float from_doubles[COUNT], from_integers[COUNT];
            const ConvertTable *table = convert_table_at((IsaLevel)level);
            unsigned state = flush ? flush_denormals() : 0;
            table->to_fp32[FORMAT_FP64](doubles, from_doubles, COUNT);
            table->to_fp32[FORMAT_INT32](integers, from_integers, COUNT);
            if (flush)
                restore_denormals(state);
            compare(FORMAT_FP32, expected, from_doubles, 4, COUNT, "from fp64 to", (IsaLevel)level);
            for (size_t i = 0; i < COUNT; i++)
                CHECK(pattern_at(from_integers, 4, i) == expected_of_integers[i]);
        }
}

// Short and odd lengths at every alignment of an element give what the long array gave, and nothing
// beside them is touched.
static void odd_lengths_and_alignments(void) {
    enum { LONG = 160 };
    static float source[LONG];
    for (int i = 0; i < LONG; i++)
        source[i] = ldexpf((float)(int32_t)random_bits(), -(int)(random_bits() % 60));
    for (int format = 0; format < FORMAT_COUNT; format++) {
        if (!format_is_plain((Format)format))
            continue;
        size_t bytes = format_table[format].bytes;
        static double whole[LONG], part[LONG];
        static float wide[LONG], wide_part[LONG];
        for (int level = 0; level <= (int)best_level; level++) {
            const ConvertTable *table = convert_table_at((IsaLevel)level);
            table->from_fp32[format][0](source, whole, LONG);
            table->to_fp32[format](whole, wide, LONG);
            for (size_t length = 0; length <= 70; length++)
                for (size_t offset = 0; offset < 5; offset++) {
                    char *from = (char *)whole + offset * bytes;
                    char *to = (char *)part + offset * bytes;
                    memset(part, 0x55, sizeof part);
                    memset(wide_part, 0x55, sizeof wide_part);
                    table->from_fp32[format][0](source + offset, to, length);
                    table->to_fp32[format](from, wide_part + offset, length);
                    bool same = memcmp(to, from, length * bytes) == 0 &&
                                memcmp(wide_part + offset, wide + offset, length * 4) == 0;
                    const unsigned char *before = (unsigned char *)to - 1,
                                        *after = (unsigned char *)to + length * bytes,
                                        *wide_after =
                                            (unsigned char *)(wide_part + offset + length);
                    bool inside = (!offset || *before == 0x55) && *after == 0x55 &&
                                  *wide_after == 0x55 &&
                                  ((unsigned char *)wide_part)[0] ==
                                      (offset ? 0x55 : ((unsigned char *)wide_part)[0]);
                    CHECK_MESSAGE(same && inside, "%s at %s: length %zu, offset %zu",
                                  format_name((Format)format), isa_level_name((IsaLevel)level),
                                  length, offset);
                }
        }
    }
}

// The entry points pick a table by themselves and agree with it.
static void entry_points_use_the_processors_level(void) {
    float source[] = {1.0625f, 464.01f, -0.0f, 0x1p-25f, 65520.0f}, back[5];
    uint8_t bytes[5];
    uint16_t halves[5];
    convert_from_fp32(FORMAT_E4M3, source, bytes, 5, OVERFLOW_TO_SPECIAL);
    CHECK_INT(bytes[0], 0x38);
    CHECK_INT(bytes[1], 0x7F);
    CHECK_INT(bytes[2], 0x80);
    convert_from_fp32(FORMAT_FP16, source, halves, 5, OVERFLOW_TO_SPECIAL);
    CHECK_INT(halves[3], 0);
    CHECK_INT(halves[4], 0x7C00);
    convert_to_fp32(FORMAT_FP16, halves, back, 5);
    CHECK(back[0] == 1.0625f && isinf(back[4]));
    convert_round(FORMAT_E4M3, source, 5, OVERFLOW_SATURATES);
    CHECK(source[0] == 1.0f && source[1] == 448.0f && source[4] == 448.0f);
}

int main(void) {
    unsetenv("MPBENCH_ISA"); // all levels are tried here, whichever the caller would have
    best_level = isa_level();
    RUN_TEST(fp32_whose_upper_half_is_anything);
    RUN_TEST(fp32_at_every_boundary);
    RUN_TEST(fp32_subnormals);
    RUN_TEST(fp32_at_random);
    RUN_TEST(every_pattern_to_fp32);
    RUN_TEST(fp64_and_int32_to_fp32);
    RUN_TEST(odd_lengths_and_alignments);
    RUN_TEST(entry_points_use_the_processors_level);
    return test_end();
}
