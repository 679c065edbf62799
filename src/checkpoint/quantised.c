#include "checkpoint/quantised.h"

// Bits that an element takes where it is packed.
static int64_t packed_bits(Format format) {
    const FormatInfo *info = &format_table[format];
    return info->sign_bits + info->exponent_bits + info->mantissa_bits;
}

int64_t quantised_bytes(Format format, int ndim, const int64_t *shape) {
    const FormatInfo *info = &format_table[format];
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    if (ndim < 2 || count == 0 || format == FORMAT_FP32 || format == FORMAT_TF32)
        return count * (int64_t)format_table[FORMAT_FP32].bytes;
    const int64_t scale = (int64_t)format_table[FORMAT_FP32].bytes;
    switch (info->scaled) {
    case SCALED_NONE: break;
    case SCALED_ROW: return count * (int64_t)info->bytes + shape[0] * scale;
    case SCALED_TENSOR: return count * (int64_t)info->bytes + scale;
    case SCALED_BLOCK: {
        const int64_t depth = shape[ndim - 1], blocks = (depth + info->block - 1) / info->block;
        const int64_t bytes =
            info->block * packed_bits(info->element) / 8 + (int64_t)format_table[info->scale].bytes;
        // Scales that are no powers of two have one of the tensor in them.
        return count / depth * blocks * bytes + (info->scale == FORMAT_E8M0 ? 0 : scale);
    }
    }
    return count * (int64_t)info->bytes;
}
