#define _GNU_SOURCE // syscall
#include "base/isa.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const level_names[ISA_COUNT] = {"base", "avx2", "avx512", "avx512bf16", "spr"};

static IsaLevel level_of_processor(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    unsigned a, b, c, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    if (!avx2 || !f16c)
        return ISA_BASE;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512cd");
    if (!avx512)
        return ISA_AVX2;
    enum { LEAF7_EDX_AVX512_FP16 = 1 << 23, LEAF71_EAX_AVX512_BF16 = 1 << 5 };
    bool fp16 = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & LEAF7_EDX_AVX512_FP16);
    bool bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & LEAF71_EAX_AVX512_BF16);
    return !bf16 ? ISA_AVX512 : fp16 ? ISA_SPR : ISA_BF16;
#else
    return ISA_BASE;
#endif
}

// That MPBENCH_ISA names, -1 where it names none that is there.
static int level_named(IsaLevel best) {
    const char *wanted = getenv("MPBENCH_ISA");
    for (int i = 0; wanted && i <= (int)best; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            return i;
    return -1;
}

IsaLevel isa_level(void) {
    static int found = -1; // the same value whoever writes it
    if (found < 0) {
        IsaLevel best = level_of_processor();
        int named = level_named(best);
        found = named < 0 ? (int)best : named;
    }
    return (IsaLevel)found;
}

bool isa_is_named(void) {
    return level_named(isa_level()) >= 0;
}

const char *isa_level_name(IsaLevel level) {
    return level < ISA_COUNT ? level_names[level] : "?";
}

#if defined(__x86_64__)
static bool has_avx_vnni(void) {
    enum { LEAF71_EAX_AVX_VNNI = 1 << 4 };
    static int found = -1; // asking takes microseconds where a machine is virtual
    unsigned a, b, c, d;
    if (found < 0)
        found = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & LEAF71_EAX_AVX_VNNI);
    return found;
}
#endif

bool isa_has_vnni(IsaLevel level) {
#if defined(__x86_64__)
    return level >= ISA_AVX512 ? __builtin_cpu_supports("avx512vnni")
                               : level == ISA_AVX2 && has_avx_vnni();
#else
    (void)level;
    return false;
#endif
}

bool isa_has_amx(void) {
#if defined(__x86_64__)
    static int granted = -1;
    if (granted < 0) {
        enum { LEAF7_EDX_AMX_BF16 = 1 << 22, LEAF7_EDX_AMX_TILE = 1 << 24 };
        enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
        unsigned a, b, c, d;
        bool has = isa_level() >= ISA_SPR && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                   (d & LEAF7_EDX_AMX_BF16) && (d & LEAF7_EDX_AMX_TILE);
        granted = has && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    }
    return granted == 1;
#else
    return false;
#endif
}
