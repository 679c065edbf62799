// gpu/blas.h: the functions of cuBLASLt as one table, opened at run time.
//
// cublasLt.h gives types and names only: nothing is linked, and a build without the header, as a
// run without the library, multiplies by the kernels of gpu/kernels alone. Whoever needs another
// function adds its name here, and to the library that tests run over (tests/emulator/cublas.c).
#pragma once

#if __has_include(<cublasLt.h>)
#define GPU_HAS_BLAS 1
#include <cublasLt.h>

#define GPU_BLAS_FUNCTIONS(F)               \
    F(cublasLtCreate)                       \
    F(cublasLtDestroy)                      \
    F(cublasLtGetVersion)                   \
    F(cublasLtMatmulDescCreate)             \
    F(cublasLtMatmulDescDestroy)            \
    F(cublasLtMatmulDescSetAttribute)       \
    F(cublasLtMatrixLayoutCreate)           \
    F(cublasLtMatrixLayoutDestroy)          \
    F(cublasLtMatrixLayoutSetAttribute)     \
    F(cublasLtMatmulPreferenceCreate)       \
    F(cublasLtMatmulPreferenceDestroy)      \
    F(cublasLtMatmulPreferenceSetAttribute) \
    F(cublasLtMatmulAlgoGetHeuristic)       \
    F(cublasLtMatmul)

typedef struct GpuBlas {
#define MEMBER(name) __typeof__(&name) name;
    GPU_BLAS_FUNCTIONS(MEMBER)
#undef MEMBER
} GpuBlas;
#else
#define GPU_HAS_BLAS 0
typedef struct GpuBlas GpuBlas;
#endif

// The table, filled once; NULL where there is no library that serves, of which gpu/about.c tells.
// From the thread that drives the device.
const GpuBlas *gpu_blas(void);
