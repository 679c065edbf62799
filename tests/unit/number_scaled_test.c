// Numbers that share a scale, against the rules as they are written down and a route of its own:
// tables of the elements, searched in double.
#include "number/scaled.h"

#include <float.h>

#include "tests/test.h"

static NumberScale mx(Format element, float largest, bool up) {
    return number_scale_of_power(largest, number_element(element), up);
}

static float nearest(Format element, float value) {
    return number_round_to_element(value, number_element(element), false, 0);
}

static void golden_scales_of_powers(void) {
    CHECK(mx(FORMAT_E4M3, 448, false).to_numbers == 1);
    CHECK(mx(FORMAT_E4M3, 448, true).to_numbers == 1);
    CHECK(mx(FORMAT_E4M3, 449, false).to_numbers == 1);
    CHECK(nearest(FORMAT_E4M3, 449) == 448); // saturated
    CHECK(mx(FORMAT_E4M3, 449, true).to_numbers == 2);
    CHECK(mx(FORMAT_E4M3, 1, false).to_numbers == 0x1p-8f);
    CHECK(nearest(FORMAT_E4M3, 1 * mx(FORMAT_E4M3, 1, false).to_elements) == 256);
    CHECK(mx(FORMAT_E2M1, 6, false).to_numbers == 1);
    CHECK(mx(FORMAT_E2M1, 7, false).to_numbers == 1);
    CHECK(nearest(FORMAT_E2M1, 7) == 6);
    CHECK(mx(FORMAT_E2M1, 7, true).to_numbers == 2);
    CHECK(mx(FORMAT_E2M1, 8, false).to_numbers == 2);
    CHECK(nearest(FORMAT_E2M1, 8 * mx(FORMAT_E2M1, 8, false).to_elements) == 4);
}

static void golden_scales_in_a_tensor(void) {
    NumberElement e2m1 = number_element(FORMAT_E2M1);
    float tensor = number_scale_of_tensor(2688, e2m1);
    CHECK(tensor == 1);
    NumberScale scale = number_scale_in_tensor(3, e2m1, tensor);
    CHECK(scale.to_numbers == 0.5f);
    CHECK(nearest(FORMAT_E2M1, 3 * scale.to_elements) == 6);
    NumberScale none = number_scale_in_tensor(0, e2m1, tensor);
    CHECK(none.to_numbers == 0 && none.to_elements == 0);
    CHECK(number_scale_of_tensor(0, e2m1) == 1);
}

// 6 4.8 4.8 4.8: as 6 4 4 4 (5 is even to 4) they miss by 0.8 thrice; with 4 for the largest,
// at 1.5 a step, as 6 4.5 4.5 4.5 by 0.3; 6 5.9 5.9 5.9 do better as 6, and 0 has no other.
static float made_of(float x, NumberScale scale, NumberElement element) {
    return number_round_to_element(x * scale.to_elements, element, false, 0) * scale.to_numbers;
}

static void the_better_of_two_scales_misses_less(void) {
    const NumberElement six = number_element(FORMAT_E2M1), four = number_element_of_four(six);
    const float others[] = {4.8f, 5.9f, 0.5f, 3};
    const bool is_four[] = {true, false, false, false};
    for (int i = 0; i < 4; i++) {
        const NumberScale a = number_scale_in_tensor(6, six, 1),
                          b = number_scale_in_tensor(6, four, 1);
        CHECK(a.to_numbers == 1 && b.to_numbers == 1.5f);
        const float miss_a = made_of(others[i], a, six) - others[i];
        const float miss_b = made_of(others[i], b, six) - others[i];
        const bool better =
            number_four_is_better(1, 1.5f, 3 * number_miss(others[i] * a.to_elements, six),
                                  3 * number_miss(others[i] * b.to_elements, six));
        CHECK(better == is_four[i]);
        CHECK(better == (fabsf(miss_b) < fabsf(miss_a)));
    }
    CHECK(!number_four_is_better(0, 0.5f, 1, 0));
    CHECK(number_miss(NAN, six) == 0 && number_miss(INFINITY, six) == 0);
    CHECK(number_miss(5, six) == 256 * 256); // to the even one
}

static void golden_scales_of_a_tensor(void) {
    NumberElement e4m3 = number_element(FORMAT_E4M3), e5m2 = number_element(FORMAT_E5M2);
    CHECK(number_scale_of_largest(0.25f, e4m3).to_elements == 1792);
    CHECK(number_scale_of_largest(57344, e5m2).to_elements == 1);
    CHECK(number_scale_of_largest(0, e4m3).to_elements == 1);
    CHECK(number_scale_of_largest(INFINITY, e4m3).to_elements == 1);
    CHECK(number_scale_of_largest(NAN, e4m3).to_elements == 1);
    CHECK(number_scale_of_largest(1e-38f, e4m3).to_elements == 0x1p126f);
}

// Where denormals are flushed a subnormal scale is 0; elsewhere its inverse may be infinite.
static void no_scale_is_subnormal_and_no_number_becomes_infinite(void) {
    const NumberElement e2m1 = number_element(FORMAT_E2M1), e4m3 = number_element(FORMAT_E4M3);
    for (int exponent = -149; exponent <= 127; exponent++) {
        const float largest = (float)ldexp(1.75, exponent);
        if (largest == 0 || isinf(largest))
            continue;
        const NumberScale scales[] = {number_scale_of_largest(largest, e4m3),
                                      number_scale_of_factor(448 / largest),
                                      mx(FORMAT_E2M1, largest, false)};
        for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
            CHECK(scales[i].to_numbers >= 0x1p-126f && isfinite(scales[i].to_elements));
        const float tensor = number_scale_of_tensor(largest, e2m1);
        CHECK(tensor >= 0x1p-126f);
        for (int below = 0; below < 24; below++) { // a block that is so much smaller
            const float own = (float)ldexp((double)largest, -below);
            const NumberScale block = number_scale_in_tensor(own, e2m1, tensor);
            CHECK(block.to_numbers == 0 || block.to_numbers >= 0x1p-126f);
            CHECK(isfinite(own * block.to_elements) &&
                  (block.to_elements == 0) == (block.to_numbers == 0));
        }
    }
}

static const Format elements[] = {FORMAT_E4M3, FORMAT_E5M2, FORMAT_E3M2, FORMAT_E2M3, FORMAT_E2M1};
enum { ELEMENTS = sizeof elements / sizeof *elements };

static void the_rule_holds_for_every_binade_and_element(void) {
    for (int e = 0; e < ELEMENTS; e++) {
        const FormatInfo *info = &format_table[elements[e]];
        for (int exponent = -100; exponent <= 120; exponent++)
            for (double part = 1; part < 2; part += 1.0 / 64) {
                float largest = (float)ldexp(part, exponent);
                double floor_scale = (double)mx(elements[e], largest, false).to_numbers;
                NumberScale up = mx(elements[e], largest, true);
                CHECK(floor_scale == exp2(floor(log2((double)largest)) - ilogb(info->largest)));
                double up_scale = (double)up.to_numbers;
                CHECK((double)largest / up_scale <= info->largest);
                CHECK((double)largest / (up_scale / 2) > info->largest);
                CHECK((double)up.to_elements * up_scale == 1);
            }
    }
}

// All values of the elements and those between, below and beyond.
static void elements_are_those_of_the_format(void) {
    for (int e = 0; e < ELEMENTS; e++) {
        Format format = elements[e];
        const FormatInfo *info = &format_table[format];
        uint32_t last = format_encode(format, info->largest, OVERFLOW_SATURATES);
        for (uint32_t pattern = 0; pattern <= last; pattern++) {
            double low = format_decode(format, pattern), high = low;
            if (pattern < last)
                high = format_decode(format, pattern + 1);
            for (int part = 0; part < 16; part++) {
                double value = low + (high - low) * part / 16;
                double expected = format_round(format, value, OVERFLOW_SATURATES);
                CHECK((double)nearest(format, (float)value) == expected);
                CHECK((double)nearest(format, -(float)value) == -expected);
            }
        }
        CHECK((double)nearest(format, 1e30f) == info->largest);
        CHECK((double)nearest(format, -FLT_MAX) == -info->largest);
        CHECK(nearest(format, 1e-40f) == 0);
        CHECK(isinf(nearest(format, INFINITY)) && isnan(nearest(format, NAN)));
        CHECK(signbit(nearest(format, -0.0f)));
    }
}

static void chance_takes_a_neighbour_and_is_right_on_average(void) {
    enum { DRAWS = 4096 };
    for (int e = 0; e < ELEMENTS; e++) {
        NumberElement element = number_element(elements[e]);
        for (float value = -5.3f; value < 6; value += 0.37f) {
            double sum = 0, low = INFINITY, high = -INFINITY;
            for (int i = 0; i < DRAWS; i++) {
                float chance = (float)i / DRAWS;
                double got = (double)number_round_to_element(value, element, true, chance);
                sum += got;
                low = fmin(low, got);
                high = fmax(high, got);
            }
            CHECK(low <= (double)value && high >= (double)value);
            CHECK_NEAR(sum / DRAWS, (double)value, (high - low) * 2 / DRAWS);
        }
        for (int i = 0; i < 16; i++) // what is an element stays it
            CHECK(number_round_to_element(1.5f, element, true, (float)i / 16) == 1.5f);
        CHECK(number_round_to_element(1e9f, element, true, 0.5f) == element.largest);
        CHECK(isnan(number_round_to_element(NAN, element, true, 0.5f)));
    }
}

int main(void) {
    RUN_TEST(golden_scales_of_powers);
    RUN_TEST(golden_scales_in_a_tensor);
    RUN_TEST(golden_scales_of_a_tensor);
    RUN_TEST(no_scale_is_subnormal_and_no_number_becomes_infinite);
    RUN_TEST(the_better_of_two_scales_misses_less);
    RUN_TEST(the_rule_holds_for_every_binade_and_element);
    RUN_TEST(elements_are_those_of_the_format);
    RUN_TEST(chance_takes_a_neighbour_and_is_right_on_average);
    return test_end();
}
