#include "gpu/blas_products.h"

#include "gpu/blas.h"

#if GPU_HAS_BLAS
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "gpu/gpu.h"
#include "gpu/products.h"
#include "gpu/proof.h"

enum {
    WORKSPACE = 32 << 20, // bytes that the library may use: as its makers say for large cards
    SAMPLE = 1 << 20,     // results that are held against our own
    MOST_CALLS = 32,      // of one product, where matrices lie in no one order
    PLANS = 1024,         // a power of two; three quarters of them are used
    ALIGNED = 256         // beyond this alignment pays no more
};

// ---- what is asked ------------------------------------------------------------------------------

// A factor as the library sees it: columns one behind the other, each of elements side by side.
typedef struct Lie {
    int64_t leading, step; // between columns, and between matrices
    bool along_depth;      // what lies side by side: terms of a sum, or different rows or columns
    bool fits;
} Lie;

// All that an algorithm hangs on, and nothing else: compared as bytes.
typedef struct PlanKey {
    int64_t rows, columns, depth, matrices;
    int64_t leading[3], step[3]; // of a, b, c
    uint32_t along_depth[2];
    uint32_t aligned[3];
    uint32_t factors, result; // Format
    uint32_t epilogue;
} PlanKey;

typedef struct Plan {
    PlanKey key;
    bool taken, usable;
    int proofs; // still to be given
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t layout[3]; // of a, b, c
    cublasLtMatmulAlgo_t algorithm;
} Plan;

struct BlasProducts {
    const GpuBlas *blas;
    cublasLtHandle_t handle;
    int plan_count;
    Plan plan[PLANS];
};

static Lie lie_of(const ProductFactor *factor, int64_t outers, int64_t depths, int64_t step) {
    bool along = factor->depth == 1 || (depths == 1 && factor->outer != 1);
    bool across = factor->outer == 1 || outers == 1;
    int64_t inner = along ? depths : outers, others = along ? outers : depths;
    int64_t leading = along ? factor->outer : factor->depth;
    if (others == 1)
        leading = inner;
    return (Lie){leading, step, along, (along || across) && leading >= inner};
}

static uint32_t alignment_of(const void *data) {
    uintptr_t at = (uintptr_t)data;
    return at % ALIGNED == 0 ? ALIGNED : (uint32_t)(at & (~at + 1));
}

// The library reads a bias in pieces as large as those in which it writes the result: neither may
// be less aligned than was promised. One bias serves all matrices (is_offered).
static uint32_t alignment_of_result(const ProductArguments *product) {
    const uint32_t result = alignment_of(product->c.data);
    const uint32_t bias = product->bias ? alignment_of(product->bias) : ALIGNED;
    return bias < result ? bias : result;
}

static cudaDataType_t type_of(uint32_t format) {
    return format == FORMAT_FP32 || format == FORMAT_TF32 ? CUDA_R_32F
           : format == FORMAT_BF16                        ? CUDA_R_16BF
                                                          : CUDA_R_16F;
}

// Which formats the library multiplies in fp32 without rounding twice, and which epilogues it has.
static bool is_offered(const ProductArguments *product, int64_t matrices) {
    bool formats = product->a.format == product->b.format &&
                   (product->c.format == product->a.format || product->c.format == FORMAT_FP32);
    bool bias = !product->bias || (product->bias_format == product->c.format &&
                                   (matrices == 1 || product->bias_step == 0));
    return formats && bias && product->activation == ACTIVATION_NONE && product->rows > 0 &&
           product->columns > 0 && product->depth > 0;
}

static cublasLtEpilogue_t epilogue_of(const ProductArguments *product) {
    return product->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// ---- plans --------------------------------------------------------------------------------------

#define SET(kind, of, attribute, value)                                                       \
    (blas->cublasLt##kind##SetAttribute(of, CUBLASLT_##attribute, &(value), sizeof(value)) == \
     CUBLAS_STATUS_SUCCESS)

static bool make_layout(const GpuBlas *blas, const PlanKey *key, int which, cudaDataType_t type,
                        int64_t inner, int64_t columns, cublasLtMatrixLayout_t *layout) {
    int32_t matrices = (int32_t)key->matrices;
    return blas->cublasLtMatrixLayoutCreate(layout, type, (uint64_t)inner, (uint64_t)columns,
                                            key->leading[which]) == CUBLAS_STATUS_SUCCESS &&
           SET(MatrixLayout, *layout, MATRIX_LAYOUT_BATCH_COUNT, matrices) &&
           SET(MatrixLayout, *layout, MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, key->step[which]);
}

// The library counts columns first: its product is ours turned round, b' a', and its left factor b.
static bool describe(const GpuBlas *blas, Plan *plan) {
    const PlanKey *key = &plan->key;
    cublasOperation_t left = key->along_depth[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = key->along_depth[0] ? CUBLAS_OP_N : CUBLAS_OP_T;
    cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)key->epilogue;
    cudaDataType_t factors = type_of(key->factors);
    cublasComputeType_t compute =
        key->factors == FORMAT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int64_t inner_a = key->along_depth[0] ? key->depth : key->rows;
    const int64_t inner_b = key->along_depth[1] ? key->depth : key->columns;
    return blas->cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F) ==
               CUBLAS_STATUS_SUCCESS &&
           SET(MatmulDesc, plan->product, MATMUL_DESC_TRANSA, left) &&
           SET(MatmulDesc, plan->product, MATMUL_DESC_TRANSB, right) &&
           SET(MatmulDesc, plan->product, MATMUL_DESC_EPILOGUE, epilogue) &&
           make_layout(blas, key, 0, factors, inner_a, key->rows + key->depth - inner_a,
                       &plan->layout[0]) &&
           make_layout(blas, key, 1, factors, inner_b, key->columns + key->depth - inner_b,
                       &plan->layout[1]) &&
           make_layout(blas, key, 2, type_of(key->result), key->columns, key->rows,
                       &plan->layout[2]);
}

// Partial sums stay in fp32, in the workspace: else results would be rounded more than once. Nor
// are there any where a bias is added: it is added to what was joined of them, after that was
// rounded.
static bool prefer(const GpuBlas *blas, const PlanKey *key, cublasLtMatmulPreference_t preference) {
    uint64_t bytes = WORKSPACE;
    bool joins = key->epilogue == CUBLASLT_EPILOGUE_DEFAULT || key->result == FORMAT_FP32;
    uint32_t schemes =
        joins ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
    return SET(MatmulPreference, preference, MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes) &&
           SET(MatmulPreference, preference, MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes) &&
           SET(MatmulPreference, preference, MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->aligned[1]) &&
           SET(MatmulPreference, preference, MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->aligned[0]) &&
           SET(MatmulPreference, preference, MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->aligned[2]) &&
           SET(MatmulPreference, preference, MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->aligned[2]);
}

static bool choose(BlasProducts *products, Plan *plan) {
    const GpuBlas *blas = products->blas;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result = {0};
    int count = 0;
    bool chosen =
        blas->cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS &&
        prefer(blas, &plan->key, preference) &&
        blas->cublasLtMatmulAlgoGetHeuristic(
            products->handle, plan->product, plan->layout[1], plan->layout[0], plan->layout[2],
            plan->layout[2], preference, 1, &result, &count) == CUBLAS_STATUS_SUCCESS &&
        count > 0 && result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= WORKSPACE;
    if (preference)
        blas->cublasLtMatmulPreferenceDestroy(preference);
    plan->algorithm = result.algo;
    return chosen;
}

static void forget(BlasProducts *products) {
    const GpuBlas *blas = products->blas;
    for (int i = 0; i < PLANS; i++) {
        Plan *plan = &products->plan[i];
        for (int k = 0; k < 3; k++)
            if (plan->layout[k])
                blas->cublasLtMatrixLayoutDestroy(plan->layout[k]);
        if (plan->product)
            blas->cublasLtMatmulDescDestroy(plan->product);
    }
    memset(products->plan, 0, sizeof products->plan);
    products->plan_count = 0;
}

static Plan *plan_for(Gpu *gpu, const PlanKey *key) {
    BlasProducts *products = gpu->products;
    if (products->plan_count > PLANS / 4 * 3) { // no model has so many shapes at a time
        gpu_forget_steps(gpu);
        forget(products);
    }
    Plan *plan = &products->plan[mix_bytes(MIX_BEGIN, key, sizeof *key) % PLANS];
    while (plan->taken && memcmp(&plan->key, key, sizeof *key) != 0)
        plan = plan + 1 < products->plan + PLANS ? plan + 1 : products->plan;
    if (!plan->taken) {
        *plan = (Plan){.taken = true, .proofs = PROOF_MOST};
        memcpy(&plan->key, key, sizeof *key);
        plan->usable = describe(products->blas, plan) && choose(products, plan);
        products->plan_count++;
    }
    return plan;
}

BlasProducts *blas_products_open(void) {
    const GpuBlas *blas = gpu_blas();
    BlasProducts *products = blas ? calloc(1, sizeof *products) : NULL;
    if (!products)
        return NULL;
    products->blas = blas;
    if (blas->cublasLtCreate(&products->handle) == CUBLAS_STATUS_SUCCESS)
        return products;
    free(products);
    return NULL;
}

void blas_products_close(BlasProducts *products) {
    if (!products)
        return;
    forget(products);
    products->blas->cublasLtDestroy(products->handle);
    free(products);
}

// ---- the proof ----------------------------------------------------------------------------------

enum { DISTANCE = 256 }; // bytes for what is found, so that the sample behind it is aligned

// Holds the first results of a product against those of our own kernel.
static Proof prove(Device *device, const ProductArguments *product, char *scratch, Error *error) {
    static_assert(sizeof(ProofDistance) <= DISTANCE, "what is found has its room");
    ProductArguments sample = *product;
    sample.columns = product->columns < SAMPLE ? product->columns : SAMPLE;
    int64_t rows = SAMPLE / sample.columns;
    sample.rows = product->rows < rows ? product->rows : rows;
    for (int i = 0; i < PRODUCT_BATCHES; i++)
        sample.batch[i] = 1;
    sample.c.data = scratch + DISTANCE;
    sample.c.row = sample.columns;
    ProofArguments results = {
        .result = product->c.data,
        .expected = sample.c.data,
        .format = product->c.format,
        .row = product->c.row,
        .rows = sample.rows,
        .columns = sample.columns,
        .distance = (ProofDistance *)scratch,
    };
    return product_run_own(device, &sample, error)
               ? gpu_prove(device,
                           product->a.format == FORMAT_TF32 ? PROOF_OF_TF32 : PROOF_OF_PRODUCT,
                           &results, error)
               : PROOF_FAILED;
}

// ---- running ------------------------------------------------------------------------------------

enum { SCRATCH = WORKSPACE + DISTANCE + SAMPLE * (int)sizeof(float) };

// A call of the library as work for the stream.
typedef struct Run {
    Plan *plan;
    const void *a, *b, *bias; // bias NULL: none
    void *c, *workspace;
} Run;

static CUresult refused(Gpu *gpu, cublasStatus_t status) {
    (void)error_fail(&gpu->refusal, ERROR_UNAVAILABLE, "its status is %d", (int)status);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult put_product(Gpu *gpu, const void *what) {
    const Run *run = what;
    const Plan *plan = run->plan;
    const GpuBlas *blas = gpu->products->blas;
    const float one = 1, zero = 0;
    if (!plan->usable)
        return refused(gpu, CUBLAS_STATUS_NOT_SUPPORTED);
    if (run->bias && !SET(MatmulDesc, plan->product, MATMUL_DESC_BIAS_POINTER, run->bias))
        return refused(gpu, CUBLAS_STATUS_INVALID_VALUE);
    cublasStatus_t status = blas->cublasLtMatmul(
        gpu->products->handle, plan->product, &one, run->b, plan->layout[1], run->a,
        plan->layout[0], &zero, run->c, plan->layout[2], run->c, plan->layout[2], &plan->algorithm,
        run->workspace, WORKSPACE, (cudaStream_t)gpu->stream);
    return status == CUBLAS_STATUS_SUCCESS ? CUDA_SUCCESS : refused(gpu, status);
}

typedef struct Instead {
    Plan *plan;
    ProductArguments product;
} Instead;

static bool multiply_instead(Device *device, const void *told, Error *error) {
    const Instead *instead = told;
    instead->plan->usable = false;
    return product_run(device, &instead->product, error);
}

// One call of the library: matrices one step behind the other.
static BlasAnswer run_one(Device *device, const ProductArguments *product, const PlanKey *key,
                          char *scratch, Error *error) {
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    Plan *plan = plan_for(gpu, key);
    if (!plan->usable)
        return BLAS_DECLINED;
    const Run run = {.plan = plan,
                     .a = product->a.data,
                     .b = product->b.data,
                     .bias = product->bias,
                     .c = product->c.data,
                     .workspace = scratch};
    const Instead told = {plan, *product};
    const GpuInstead instead = {multiply_instead, &told, sizeof told, 0};
    bool done =
        gpu->failure.code == ERROR_NONE &&
        gpu_put_or(gpu, put_product, &instead, "cuBLASLt", &run, sizeof run) == CUDA_SUCCESS;
    if (gpu->failure.code != ERROR_NONE)
        return gpu_has_failed(gpu, error) ? BLAS_DONE : BLAS_FAILED;
    if (!done) {
        plan->usable = false;
        return BLAS_DECLINED;
    }
    if (plan->proofs == 0)
        return BLAS_DONE;
    Proof proof = prove(device, product, scratch + WORKSPACE, error);
    if (proof == PROOF_FAILED)
        return BLAS_FAILED;
    plan->proofs = proof == PROOF_GIVEN ? 0 : plan->proofs - 1;
    plan->usable = proof != PROOF_REFUTED;
    return plan->usable ? BLAS_DONE : BLAS_DECLINED;
}

BlasAnswer blas_product_run(Device *device, const ProductArguments *product, Error *error) {
    enum { LAST = PRODUCT_BATCHES - 1 };
    int64_t calls = 1, matrices = product->batch[LAST];
    for (int i = 0; i < LAST; i++)
        calls *= product->batch[i];
    Lie a = lie_of(&product->a, product->rows, product->depth, product->a.batch[LAST]);
    Lie b = lie_of(&product->b, product->columns, product->depth, product->b.batch[LAST]);
    if (!gpu_of(device)->products || !is_offered(product, calls * matrices) || !a.fits || !b.fits ||
        calls < 1 || calls > MOST_CALLS || matrices < 1 || matrices > INT32_MAX)
        return BLAS_DECLINED;
    char *scratch = device_workspace(device, SCRATCH, error);
    if (!scratch)
        return BLAS_FAILED;
    PlanKey key;
    memset(&key, 0, sizeof key);
    key.rows = product->rows, key.columns = product->columns, key.depth = product->depth;
    key.matrices = matrices;
    key.leading[0] = a.leading, key.leading[1] = b.leading;
    key.leading[2] = product->rows > 1 ? product->c.row : product->columns;
    key.step[0] = a.step, key.step[1] = b.step, key.step[2] = product->c.batch[LAST];
    key.along_depth[0] = a.along_depth, key.along_depth[1] = b.along_depth;
    key.factors = product->a.format, key.result = product->c.format;
    key.epilogue = epilogue_of(product);
    for (int64_t call = 0; call < calls; call++) {
        ProductArguments part = *product;
        int64_t at_a = 0, at_b = 0, at_c = 0, rest = call;
        for (int i = LAST - 1; i >= 0; i--) {
            int64_t at = rest % product->batch[i];
            rest /= product->batch[i];
            at_a += at * product->a.batch[i];
            at_b += at * product->b.batch[i];
            at_c += at * product->c.batch[i];
            part.batch[i] = 1;
        }
        part.a.data = product_moved(part.a.data, part.a.format, at_a);
        part.b.data = product_moved(part.b.data, part.b.format, at_b);
        part.c.data = product_moved(part.c.data, part.c.format, at_c);
        key.aligned[0] = alignment_of(part.a.data), key.aligned[1] = alignment_of(part.b.data);
        key.aligned[2] = alignment_of_result(&part);
        BlasAnswer answer = run_one(device, &part, &key, scratch, error);
        if (answer != BLAS_DONE)
            return answer;
    }
    return BLAS_DONE;
}
#else
BlasProducts *blas_products_open(void) {
    return NULL;
}

void blas_products_close(BlasProducts *products) {
    (void)products;
}

BlasAnswer blas_product_run(Device *device, const ProductArguments *product, Error *error) {
    (void)device, (void)product, (void)error;
    return BLAS_DECLINED;
}
#endif
