#include "number/convert.h"

#include <assert.h>

extern const ConvertTable convert_table_base;
#if defined(__x86_64__)
extern const ConvertTable convert_table_avx2, convert_table_avx512, convert_table_spr;
#endif

static const ConvertTable *const tables[ISA_COUNT] = {
    [ISA_BASE] = &convert_table_base,
#if defined(__x86_64__)
    [ISA_AVX2] = &convert_table_avx2,   [ISA_AVX512] = &convert_table_avx512,
    [ISA_BF16] = &convert_table_avx512, [ISA_SPR] = &convert_table_spr,
#endif
};

const ConvertTable *convert_table_at(IsaLevel level) {
    return level < ISA_COUNT ? tables[level] : NULL;
}

void convert_to_fp32(Format from, const void *source, float *target, size_t count) {
    assert(format_is_plain(from));
    tables[isa_level()]->to_fp32[from](source, target, count);
}

void convert_from_fp32(Format to, const float *source, void *target, size_t count,
                       Overflow overflow) {
    assert(format_is_plain(to));
    tables[isa_level()]->from_fp32[to][overflow](source, target, count);
}

void convert_round(Format format, float *values, size_t count, Overflow overflow) {
    assert(format_is_plain(format));
    tables[isa_level()]->round[format][overflow](values, count);
}
