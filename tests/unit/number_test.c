// The scalar reference of number/format.h, against the golden conversions and against a second
// route written another way: a table of all values of a format, and a search in it.
#include "number/format.h"

#include "tests/test.h"

static const Overflow saturates = OVERFLOW_SATURATES, special = OVERFLOW_TO_SPECIAL;

static void golden_fp16(void) {
    CHECK(format_round(FORMAT_FP16, 65519.99, special) == 65504);
    CHECK(isinf(format_round(FORMAT_FP16, 65520, special)));
    CHECK(isinf(format_round(FORMAT_FP16, 65520, saturates)));
    CHECK_INT(format_encode(FORMAT_FP16, 65520, special), 0x7C00);
    CHECK(format_round(FORMAT_FP16, 0x1p-25, special) == 0);
    CHECK(format_round(FORMAT_FP16, 0x1.000002p-25, special) == 0x1p-24);
    CHECK(format_round(FORMAT_FP16, 2049, special) == 2048);
    CHECK(format_round(FORMAT_FP16, 2051, special) == 2052);
    double small = format_round(FORMAT_FP16, 0.0001, special);
    CHECK(small != 0);
    CHECK(format_round(FORMAT_FP16, small * small, special) == 0);
}

static void golden_e4m3(void) {
    CHECK_INT(format_encode(FORMAT_E4M3, 464, saturates), 0x7E);
    CHECK_INT(format_encode(FORMAT_E4M3, 464, special), 0x7E);
    CHECK_INT(format_encode(FORMAT_E4M3, 464.01, saturates), 0x7E);
    CHECK_INT(format_encode(FORMAT_E4M3, 464.01, special), 0x7F);
    CHECK_INT(format_encode(FORMAT_E4M3, 0x1p-10, saturates), 0x00);
    CHECK_INT(format_encode(FORMAT_E4M3, 1.0625, saturates), 0x38);
    CHECK_INT(format_encode(FORMAT_E4M3, 1.1875, saturates), 0x3A);
    CHECK_INT(format_encode(FORMAT_E4M3, -0.0, saturates), 0x80);
    CHECK_INT(format_encode(FORMAT_E4M3, (double)INFINITY, saturates), 0x7E);
    CHECK_INT(format_encode(FORMAT_E4M3, (double)-INFINITY, saturates), 0xFE);
    CHECK_INT(format_encode(FORMAT_E4M3, (double)INFINITY, special), 0x7F);
    CHECK_INT(format_encode(FORMAT_E4M3, (double)NAN, saturates) & 0x7F, 0x7F);
}

static void golden_e5m2(void) {
    CHECK_INT(format_encode(FORMAT_E5M2, 61439, saturates), 0x7B);
    CHECK_INT(format_encode(FORMAT_E5M2, 61439, special), 0x7B);
    CHECK_INT(format_encode(FORMAT_E5M2, 61440, saturates), 0x7B);
    CHECK_INT(format_encode(FORMAT_E5M2, 61440, special), 0x7C);
    CHECK_INT(format_encode(FORMAT_E5M2, 0x1p-17, saturates), 0x00);
    CHECK(isnan(format_round(FORMAT_E5M2, (double)NAN, saturates)));
    for (uint32_t pattern = 0x7D; pattern <= 0x7F; pattern++)
        CHECK(isnan(format_decode(FORMAT_E5M2, pattern)));
}

static void golden_wide_and_integer(void) {
    CHECK(format_round(FORMAT_TF32, 1 + 0x1p-11, special) == 1);
    CHECK(format_round(FORMAT_TF32, 1 + 3 * 0x1p-11, special) == 1 + 0x1p-9);
    CHECK(format_round(FORMAT_TF32, 0x1p-126, special) == 0x1p-126);
    CHECK(format_round(FORMAT_TF32, 0x1.8p-127, special) == 0);
    CHECK(isinf(format_round(FORMAT_TF32, 0x1.fffffep127, special)));
    CHECK_INT(format_encode(FORMAT_TF32, 1, special), 0x1FC00);
    CHECK(format_round(FORMAT_FP64, 0.1, special) == 0.1);
    CHECK(format_round(FORMAT_INT8, 2.5, special) == 2);
    CHECK(format_round(FORMAT_INT8, -3.5, special) == -4);
    CHECK(format_round(FORMAT_INT8, -1e30, special) == -127);
    CHECK(format_round(FORMAT_INT8, (double)INFINITY, special) == 127);
    CHECK(format_round(FORMAT_INT8, (double)NAN, special) == 0);
    CHECK(format_round(FORMAT_UINT8, -1, special) == 0);
    CHECK(format_round(FORMAT_UINT8, 254.5, special) == 254);
    CHECK(format_round(FORMAT_INT32, -2147483648.0, special) == -2147483648.0);
    CHECK(format_round(FORMAT_INT32, 1e18, special) == 2147483647);
}

static void table_agrees_with_the_specification(void) {
    static const struct {
        const char *name;
        size_t bytes;
        int bits, bias;
        double largest, normal, subnormal;
    } rows[] = {
        {"fp32", 4, 32, 127, 3.4028235e38, 0x1p-126, 0x1p-149},
        {"tf32", 4, 19, 127, 3.4011621e38, 0x1p-126, 0},
        {"bf16", 2, 16, 127, 3.3895314e38, 0x1p-126, 0x1p-133},
        {"fp16", 2, 16, 15, 65504, 0x1p-14, 0x1p-24},
        {"e4m3", 1, 8, 7, 448, 0x1p-6, 0x1p-9},
        {"e5m2", 1, 8, 15, 57344, 0x1p-14, 0x1p-16},
        {"e3m2", 1, 6, 3, 28, 0x1p-2, 0x1p-4},
        {"e2m3", 1, 6, 1, 7.5, 1, 0x1p-3},
        {"e2m1", 1, 4, 1, 6, 1, 0.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Format format = format_named(rows[i].name);
        CHECK(format != FORMAT_COUNT && format_is_floating(format));
        if (format == FORMAT_COUNT)
            return;
        const FormatInfo *info = &format_table[format];
        CHECK_TEXT(format_name(format), rows[i].name);
        CHECK_INT(info->bytes, rows[i].bytes);
        CHECK_INT(format_bits(format), rows[i].bits);
        CHECK_INT(info->bias, rows[i].bias);
        CHECK_NEAR(info->largest / rows[i].largest, 1, 1e-7);
        CHECK(info->smallest_normal == rows[i].normal);
        CHECK(info->smallest_subnormal == rows[i].subnormal);
        CHECK(format_round(format, info->largest, special) == info->largest);
        CHECK(format_round(format, info->lowest, special) == -info->largest);
    }
    CHECK(format_named("fp61") == FORMAT_COUNT);
    CHECK(!format_is_floating(FORMAT_INT8));
}

static void formats_go_by_the_names_that_other_tools_give_them(void) {
    static const struct {
        const char *name;
        Format format;
    } names[] = {
        {"float16", FORMAT_FP16}, {"half", FORMAT_FP16},     {"float32", FORMAT_FP32},
        {"float", FORMAT_FP32},   {"bfloat16", FORMAT_BF16}, {"double", FORMAT_FP64},
        {"float64", FORMAT_FP64}, {"fp8", FORMAT_FP8},       {"int8", FORMAT_INT8},
        {"int32", FORMAT_INT32},  {"uint8", FORMAT_UINT8},   {"", FORMAT_COUNT},
        {"float1", FORMAT_COUNT}, {"float ", FORMAT_COUNT},  {"float32 float", FORMAT_COUNT},
        {"bfloat", FORMAT_COUNT}, {"16", FORMAT_COUNT},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_MESSAGE(format_named(names[i].name) == names[i].format, "\"%s\" is %s", names[i].name,
                      format_name(format_named(names[i].name)));
    CHECK_TEXT(format_usual_name("half"), "fp16");
    CHECK_TEXT(format_usual_name("fp8"), "fp8"); // nothing trains in it
    CHECK_TEXT(format_usual_name("hybrid"), "hybrid");
    for (int i = 0; i < FORMAT_COUNT; i++) { // no name means two
        const char *at = format_table[i].aliases;
        CHECK(format_named(format_table[i].name) == (Format)i);
        for (size_t length; (length = strcspn(at, " ")) > 0;
             at += length + strspn(at + length, " ")) {
            char alias[32];
            snprintf(alias, sizeof alias, "%.*s", (int)length, at);
            CHECK_MESSAGE(format_named(alias) == (Format)i, "\"%s\" means another format", alias);
        }
    }
}

static bool no_format(Format format) {
    (void)format;
    return false;
}

static bool only_bf16(Format format) {
    return format == FORMAT_BF16;
}

static bool every_format(Format format) {
    (void)format;
    return true;
}

static void lists_of_formats_read_as_sentences_do(void) {
    char text[FORMAT_LIST_SIZE];
    CHECK_TEXT(format_list(text, format_trains, ", ", " or "), "fp32, bf16 or fp16");
    CHECK_TEXT(format_list(text, only_bf16, ", ", " or "), "bf16");
    CHECK_TEXT(format_list(text, no_format, ", ", " or "), "");
    CHECK(strlen(format_list(text, every_format, ", ", " or ")) < FORMAT_LIST_SIZE - 1);
}

// ---- the other route ----------------------------------------------------------------------------

// All finite values that are not negative, in the order of their patterns; built by walking up from
// zero a step at a time, the step doubling with every binade.
typedef struct Ladder {
    Format format;
    int count;
    double values[0x8000];
    double beyond; // what would come next, were there no largest value
} Ladder;

static void build_ladder(Ladder *ladder, Format format, int mantissa_bits, double step,
                         double largest) {
    ladder->format = format;
    ladder->count = 0;
    double value = 0;
    int in_binade = -(1 << mantissa_bits); // subnormals and the first binade share a step
    for (;;) {
        ladder->values[ladder->count++] = value;
        value += step;
        if (ladder->values[ladder->count - 1] == largest)
            break;
        if (++in_binade == 1 << mantissa_bits) {
            in_binade = 0;
            step *= 2;
        }
    }
    ladder->beyond = value;
}

enum { LADDERS = 7 };
static Ladder ladders[LADDERS];

static void build_ladders(void) {
    build_ladder(&ladders[0], FORMAT_FP16, 10, 0x1p-24, 65504);
    build_ladder(&ladders[1], FORMAT_BF16, 7, 0x1p-133, 0x1.fep127);
    build_ladder(&ladders[2], FORMAT_E4M3, 3, 0x1p-9, 448);
    build_ladder(&ladders[3], FORMAT_E5M2, 2, 0x1p-16, 57344);
    build_ladder(&ladders[4], FORMAT_E3M2, 2, 0x1p-4, 28);
    build_ladder(&ladders[5], FORMAT_E2M3, 3, 0x1p-3, 7.5);
    build_ladder(&ladders[6], FORMAT_E2M1, 1, 0.5, 6);
}

static uint32_t sign_of(Format format) {
    return 1u << (format_bits(format) - 1);
}

// Whether all its patterns are numbers.
static bool is_all_finite(const Ladder *ladder) {
    return (uint32_t)ladder->count == sign_of(ladder->format);
}

// The pattern of a magnitude, looked up.
static uint32_t nearest_on(const Ladder *ladder, double magnitude, Overflow overflow) {
    int last = ladder->count - 1;
    double limit = (ladder->values[last] + ladder->beyond) / 2;
    // The largest value is odd but in e4m3, where 480 would have been the odd one.
    bool over = ladder->format == FORMAT_E4M3 ? magnitude > limit : magnitude >= limit;
    if (over && is_all_finite(ladder))
        return (uint32_t)last;
    if (over) {
        bool fp8 = ladder->format == FORMAT_E4M3 || ladder->format == FORMAT_E5M2;
        return (uint32_t)(fp8 && overflow == OVERFLOW_SATURATES ? last : ladder->count);
    }
    int low = 0, high = last; // values[low] <= magnitude
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (ladder->values[middle] <= magnitude)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == last)
        return (uint32_t)last;
    double below = magnitude - ladder->values[low], above = ladder->values[low + 1] - magnitude;
    return (uint32_t)(below < above || (below == above && low % 2 == 0) ? low : low + 1);
}

static void every_pattern_both_ways(void) {
    for (int i = 0; i < LADDERS; i++) {
        const Ladder *ladder = &ladders[i];
        Format format = ladder->format;
        uint32_t sign = sign_of(format);
        for (uint32_t pattern = 0; pattern < sign; pattern++) {
            double value = format_decode(format, pattern);
            double negative = format_decode(format, sign | pattern);
            bool infinite = format != FORMAT_E4M3 && (int)pattern == ladder->count;
            if (is_all_finite(ladder))
                infinite = false;
            if ((int)pattern < ladder->count)
                CHECK_MESSAGE(value == ladder->values[pattern], "%s %04x", format_name(format),
                              pattern);
            else
                CHECK_MESSAGE(infinite ? isinf(value) : isnan(value), "%s %04x",
                              format_name(format), pattern);
            CHECK_MESSAGE(signbit(negative) &&
                              (isnan(value) ? isnan(negative) : negative == -value),
                          "%s -%04x", format_name(format), pattern);
            if (isnan(value)) {
                CHECK(isnan(format_round(format, value, saturates)));
                continue;
            }
            uint32_t expected = infinite && format == FORMAT_E5M2 ? pattern - 1 : pattern;
            CHECK_INT(format_encode(format, value, saturates), expected);
            CHECK_INT(format_encode(format, negative, special), sign | pattern);
        }
    }
}

// All 256: a power of two each, but for the last.
static void every_pattern_of_a_scale_both_ways(void) {
    double value = 1;
    for (int i = 0; i < 127; i++)
        value /= 2;
    for (uint32_t pattern = 0; pattern < 255; pattern++, value *= 2) {
        CHECK(format_decode(FORMAT_E8M0, pattern) == value);
        CHECK_INT(format_encode(FORMAT_E8M0, value, saturates), pattern);
        CHECK_INT(format_encode(FORMAT_E8M0, value * 1.4999, special), pattern);
        CHECK_INT(format_encode(FORMAT_E8M0, value * 1.5, saturates),
                  pattern < 254 ? pattern + 1 : 254);
        CHECK_INT(format_encode(FORMAT_E8M0, value * 1.5, special), pattern + 1);
        CHECK_INT(format_encode(FORMAT_E8M0, -value, saturates), 255);
    }
    CHECK(isnan(format_decode(FORMAT_E8M0, 255)));
    CHECK_INT(format_encode(FORMAT_E8M0, (double)NAN, saturates), 255);
    CHECK_INT(format_encode(FORMAT_E8M0, (double)INFINITY, saturates), 254);
    CHECK_INT(format_encode(FORMAT_E8M0, (double)INFINITY, special), 255);
    CHECK_INT(format_encode(FORMAT_E8M0, 0, special), 0);
    CHECK_INT(format_encode(FORMAT_E8M0, 1e-300, special), 0);
}

static void golden_e2m1(void) {
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const double ties[][2] = {{0.25, 0}, {0.75, 1}, {1.25, 1}, {1.75, 2},
                                     {2.5, 2},  {3.5, 4},  {5, 4}};
    for (uint32_t i = 0; i < 8; i++) {
        CHECK(format_decode(FORMAT_E2M1, i) == values[i]);
        CHECK(format_decode(FORMAT_E2M1, i | 8) == -values[i]);
    }
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++)
        CHECK(format_round(FORMAT_E2M1, ties[i][0], saturates) == ties[i][1]);
    CHECK(format_round(FORMAT_E2M1, 1e9, special) == 6);
    CHECK(format_round(FORMAT_E2M1, -(double)INFINITY, special) == -6);
    CHECK(format_round(FORMAT_E2M1, (double)NAN, special) == 6); // it has none
}

static void check_encodes(const Ladder *ladder, double value) {
    for (int mode = 0; mode < 2; mode++) {
        uint32_t expected = nearest_on(ladder, value, (Overflow)mode);
        uint32_t actual = format_encode(ladder->format, value, (Overflow)mode);
        CHECK_MESSAGE(actual == expected, "%s of %a is %04x, expected %04x",
                      format_name(ladder->format), value, actual, expected);
    }
}

static void every_midpoint_goes_to_the_even_one(void) {
    for (int i = 0; i < LADDERS; i++) {
        const Ladder *ladder = &ladders[i];
        for (int at = 0; at < ladder->count; at++) {
            double upper = at + 1 < ladder->count ? ladder->values[at + 1] : ladder->beyond;
            double middle = ladder->values[at] + (upper - ladder->values[at]) / 2;
            check_encodes(ladder, middle);
            check_encodes(ladder, nextafter(middle, 0));
            check_encodes(ladder, nextafter(middle, (double)INFINITY));
        }
        for (double huge = ladder->beyond; isfinite(huge); huge *= 1e20)
            check_encodes(ladder, huge);
        check_encodes(ladder, 0x1p-1074);
    }
}

static uint64_t random_state = 0x9E3779B97F4A7C15;
static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void fp32_agrees_with_the_processor(void) {
    for (int i = 0; i < 500000; i++) {
        // Exponents from far below the subnormals of fp32 to beyond its largest.
        int exponent = (int)(random_bits() % 300) - 160;
        double value = ldexp(1 + (double)(random_bits() >> 12) * 0x1p-52, exponent);
        if (i % 4 == 0) // few bits: ties
            value = ldexp(rint(ldexp(value, 24 - exponent)), exponent - 24);
        float expected = (float)(i & 1 ? -value : value);
        uint32_t bits;
        memcpy(&bits, &expected, sizeof bits);
        uint32_t actual = format_encode(FORMAT_FP32, i & 1 ? -value : value, special);
        CHECK_MESSAGE(actual == bits, "fp32 of %a is %08x, expected %08x", value, actual, bits);
        CHECK(format_decode(FORMAT_FP32, bits) == (double)expected);
    }
}

// ---- below a limit ------------------------------------------------------------------------------

static void check_below(Format format, double limit, double expected) {
    double below = format_below(format, limit);
    CHECK_MESSAGE(below == expected, "%s below %a is %a, expected %a", format_name(format), limit,
                  below, expected);
}

// A limit that is a number of the format has its neighbour below it; one between two has the lower.
static void the_number_below_a_limit_is_the_next_one_down(void) {
    for (int i = 0; i < LADDERS; i++) {
        const Ladder *ladder = &ladders[i];
        const double *values = ladder->values;
        for (int at = 0; at + 1 < ladder->count; at++) {
            double middle = values[at] + (values[at + 1] - values[at]) / 2;
            check_below(ladder->format, values[at + 1], values[at]);
            check_below(ladder->format, middle, values[at]);
            check_below(ladder->format, nextafter(values[at], 1e300), values[at]);
            check_below(ladder->format, -values[at], -values[at + 1]);
            check_below(ladder->format, -middle, -values[at + 1]);
        }
    }
    check_below(FORMAT_FP32, 1, 1 - 0x1p-24);
    check_below(FORMAT_FP64, 1, 1 - 0x1p-53);
    check_below(FORMAT_TF32, 0x1p-126, 0);
    check_below(FORMAT_TF32, 0, -0x1p-126);
    check_below(FORMAT_TF32, -0x1.8p-127, -0x1p-126);
}

static void below_a_limit_out_of_range_is_the_largest_or_nothing(void) {
    for (int format = 0; format < FORMAT_COUNT; format++) {
        const FormatInfo *info = &format_table[format];
        if (!format_is_floating((Format)format) || !format_is_plain((Format)format))
            continue;
        check_below((Format)format, (double)INFINITY, info->largest);
        check_below((Format)format, info->lowest, -(double)INFINITY);
        check_below((Format)format, -(double)INFINITY, -(double)INFINITY);
        check_below((Format)format, nextafter(info->lowest, info->largest), info->lowest);
        if (format == FORMAT_FP64)
            continue;
        check_below((Format)format, info->largest * (1 + 0x1p-30), info->largest);
        check_below((Format)format, info->largest * 3, info->largest);
        check_below((Format)format, info->lowest > 0 ? -1 : info->lowest * 3, -(double)INFINITY);
    }
}

int main(void) {
    build_ladders();
    RUN_TEST(golden_fp16);
    RUN_TEST(golden_e4m3);
    RUN_TEST(golden_e5m2);
    RUN_TEST(golden_wide_and_integer);
    RUN_TEST(table_agrees_with_the_specification);
    RUN_TEST(formats_go_by_the_names_that_other_tools_give_them);
    RUN_TEST(lists_of_formats_read_as_sentences_do);
    RUN_TEST(every_pattern_both_ways);
    RUN_TEST(every_pattern_of_a_scale_both_ways);
    RUN_TEST(golden_e2m1);
    RUN_TEST(every_midpoint_goes_to_the_even_one);
    RUN_TEST(fp32_agrees_with_the_processor);
    RUN_TEST(the_number_below_a_limit_is_the_next_one_down);
    RUN_TEST(below_a_limit_out_of_range_is_the_largest_or_nothing);
    return test_end();
}
