// base/isa.h: which vector instructions this processor has, found once at the start.
//
// Files below a folder simd/ are compiled once per level in this list, with MPBENCH_ISA set to the
// level's name; each exports a table whose name ends in it (ISA_NAME), and the room picks the table
// of the best level the processor has. MPBENCH_ISA=base|avx2|avx512|avx512bf16|spr in the
// environment names a level at or below that one, for tests: nothing above it is used then, by
// libraries neither. Any thread.
#pragma once

#include <stdbool.h>

typedef enum IsaLevel {
    ISA_BASE,   // whatever the compiler assumes: portable C
    ISA_AVX2,   // x86-64-v3: AVX2, FMA, F16C
    ISA_AVX512, // x86-64-v4
    ISA_BF16,   // and AVX512-BF16
    ISA_SPR,    // and AVX512-FP16
    ISA_COUNT
} IsaLevel;

IsaLevel isa_level(void);
bool isa_is_named(void); // MPBENCH_ISA says the level
const char *isa_level_name(IsaLevel level);

// Products of whole numbers of 8 bits in the vectors of a level, which this processor has: AVX-VNNI
// in those of AVX2, AVX512-VNNI above.
bool isa_has_vnni(IsaLevel level);

// Tiles (AMX-BF16): true once the operating system has granted them to this process.
bool isa_has_amx(void);

#define ISA_PASTE_(name, isa) name##_##isa
#define ISA_PASTE(name, isa)  ISA_PASTE_(name, isa)
// In a file under simd/: the name of the thing at the level being compiled.
#define ISA_NAME(name) ISA_PASTE(name, MPBENCH_ISA)
