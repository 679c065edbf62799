#include "number/describe.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "number/expression.h"

const char *describe_rounding_name(Rounding rounding) {
    static const char *const names[ROUNDING_COUNT] = {
        [ROUNDING_EXACT] = "exact",
        [ROUNDING_ROUNDED] = "rounded",
        [ROUNDING_FLUSHED] = "flushed to zero",
        [ROUNDING_OVERFLOWED] = "overflowed",
        [ROUNDING_SATURATED] = "saturated",
        [ROUNDING_LOST] = "lost",
    };
    return rounding < ROUNDING_COUNT ? names[rounding] : "?";
}

static void write_bits(char *text, uint32_t bits, int count) {
    for (int i = 0; i < count; i++)
        text[i] = bits >> (count - 1 - i) & 1 ? '1' : '0';
    text[count] = 0;
}

static void write_pattern(Description *description, const FormatInfo *info) {
    uint32_t bits = description->bits;
    int width = format_bits(description->format);
    if (format_is_floating(description->format)) {
        write_bits(description->sign, bits >> (width - 1), info->sign_bits);
        write_bits(description->exponent, bits >> info->mantissa_bits, info->exponent_bits);
        write_bits(description->mantissa, bits, info->mantissa_bits);
    } else {
        write_bits(description->mantissa, bits, width);
    }
    snprintf(description->hex, sizeof description->hex, "0x%0*X", (width + 3) / 4, (unsigned)bits);
}

static Rounding rounding_of(const Description *description, const FormatInfo *info) {
    double asked = description->asked, value = description->value;
    if (isnan(asked))
        return isnan(value) ? ROUNDING_EXACT : ROUNDING_LOST;
    if (value == asked)
        return ROUNDING_EXACT;
    if (isnan(value) && asked < 0 && info->sign_bits == 0)
        return ROUNDING_LOST;
    if (isnan(value) || isinf(value))
        return ROUNDING_OVERFLOWED;
    // Just beyond the end a number is still rounded to it, as those inside are; half a step further
    // on it would have become infinity.
    double last_step = format_is_floating(description->format)
                           ? ldexp(1, ilogb(info->largest) - info->mantissa_bits)
                           : 1;
    bool is_beyond = asked > info->largest || asked < info->lowest;
    if (is_beyond && fabs(asked - value) > last_step / 2)
        return ROUNDING_SATURATED;
    return value == 0 ? ROUNDING_FLUSHED : ROUNDING_ROUNDED;
}

// The smallest magnitude above `magnitude` that the format has; infinity counts.
static bool find_larger(const FormatInfo *info, double magnitude, double *larger) {
    if (isinf(magnitude) || (magnitude >= info->largest && !info->has_infinity))
        return false;
    if (magnitude >= info->largest)
        *larger = (double)INFINITY;
    else if (magnitude < info->smallest_normal)
        *larger = info->smallest_subnormal > 0 ? magnitude + info->smallest_subnormal
                                               : info->smallest_normal;
    else
        *larger = magnitude + ldexp(1, ilogb(magnitude) - info->mantissa_bits);
    return true;
}

// The largest magnitude below one that is not 0.
static double find_smaller(const FormatInfo *info, double magnitude) {
    if (isinf(magnitude))
        return info->largest;
    if (magnitude == info->smallest_normal && info->smallest_subnormal == 0)
        return 0;
    if (magnitude <= info->smallest_normal)
        return magnitude - info->smallest_subnormal;
    int exponent = ilogb(magnitude);
    if (magnitude == ldexp(1, exponent)) // below a power of two the steps are half as long
        exponent -= 1;
    return magnitude - ldexp(1, exponent - info->mantissa_bits);
}

static void find_neighbours(Description *description, const FormatInfo *info) {
    double value = description->value, magnitude = fabs(value), larger;
    if (isnan(value))
        return;
    if (!format_is_floating(description->format)) {
        description->has_below = value > info->lowest;
        description->has_above = value < info->largest;
        description->below = description->has_below ? value - 1 : 0;
        description->above = description->has_above ? value + 1 : 0;
        description->step = 1;
        return;
    }
    bool has_larger = find_larger(info, magnitude, &larger);
    if (!has_larger)
        larger = 0;
    if (has_larger && !isinf(larger))
        description->step = larger - magnitude;
    if (value == 0) {
        description->has_below = description->has_above = true;
        description->below = -larger;
        description->above = larger;
        return;
    }
    double smaller = find_smaller(info, magnitude);
    bool negative = value < 0;
    description->has_above = negative || has_larger;
    description->has_below = negative ? has_larger : value > info->lowest; // some lack even 0
    description->above = negative ? -smaller : larger;
    description->below = !description->has_below ? 0 : negative ? -larger : smaller;
}

Description describe_number(Format format, double asked, Overflow overflow) {
    assert(format < FORMAT_COUNT && format != FORMAT_FP64);
    const FormatInfo *info = &format_table[format];
    Description description = {.format = format, .asked = asked};
    description.bits = format_encode(format, asked, overflow);
    description.value = format_decode(format, description.bits);
    if (isfinite(asked) && isfinite(description.value))
        description.error = description.value - asked;
    description.rounding = rounding_of(&description, info);
    description.is_subnormal =
        description.value != 0 && fabs(description.value) < info->smallest_normal;
    write_pattern(&description, info);
    find_neighbours(&description, info);
    return description;
}

// ---- expressions --------------------------------------------------------------------------------

static bool same_number(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

// Rows show what their format has beside the number that was made of it, not beside what was meant.
static const char *describe_beyond(double exact) {
    if (exact == 0)
        return "it is too small for a double (from 4.9e-324): the neighbours are those of the "
               "rounded value";
    if (!isfinite(exact))
        return "it exceeds a double (up to 1.8e308): the neighbours are those of the rounded value";
    return NULL;
}

bool describe_expression(const char *text, Format format, ExpressionResult *result, Error *error) {
    double value;
    bool left_double;
    if (!expression_evaluate(text, FORMAT_FP64, OVERFLOW_SATURATES, &result->exact, &left_double,
                             error) ||
        !expression_evaluate(text, format, OVERFLOW_SATURATES, &value, NULL, error))
        return error_prefix(error, "formats: %.80s", text);
    result->of = describe_number(format, value, OVERFLOW_SATURATES);
    Description once = describe_number(format, result->exact, OVERFLOW_SATURATES);
    bool same = same_number(value, once.value);
    if (same && once.rounding == ROUNDING_EXACT && left_double) {
        if (isinf(result->exact))
            once.rounding = ROUNDING_OVERFLOWED;
        else if (result->exact == 0)
            once.rounding = ROUNDING_FLUSHED;
    }
    if (same)
        result->event = describe_rounding_name(once.rounding);
    else if (value == 0)
        result->event = "flushed to zero on the way";
    else if (isnan(value) && format_table[format].lowest > 0) // it has no signs
        result->event = "lost on the way";
    else if (!isfinite(value))
        result->event = "overflowed on the way";
    else
        result->event = "rounded on the way";
    result->is_bad = same ? once.rounding > ROUNDING_ROUNDED : value == 0 || !isfinite(value);
    bool is_finite = isfinite(value) && isfinite(result->exact);
    result->error = is_finite ? value - result->exact : 0;
    result->beyond_double = left_double ? describe_beyond(result->exact) : NULL;
    return true;
}
