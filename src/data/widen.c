#include "data/widen.h"

#include "base/isa.h"

extern const WidenTable widen_table_base;
#if defined(__x86_64__)
extern const WidenTable widen_table_avx2, widen_table_avx512;
#endif

const WidenTable *widen_table(void) {
#if defined(__x86_64__)
    IsaLevel level = isa_level();
    if (level >= ISA_AVX512)
        return &widen_table_avx512;
    if (level >= ISA_AVX2)
        return &widen_table_avx2;
#endif
    return &widen_table_base;
}
