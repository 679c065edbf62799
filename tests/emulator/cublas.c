// cuBLASLt on the emulated card: the functions of gpu/blas.h, by what its documents promise and
// refuse.
//
// A product waits in its stream as a launch does, and runs as a kernel of one block, so that memory
// is watched as ever. What the library answers late or not at all (nonsense in a descriptor) fails
// here at the call, said on stderr.
#include "gpu/blas.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number/inline.h"
#include "tests/emulator/calls.h"
#include "tests/emulator/cublas.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/streams.h"
#include "tests/emulator/tf32.h"

enum { THREADS = 64, FIRST_ALGORITHM = 0x50524F44 };

// What the handles point to: the opaque structs of the library are of one size, ours lie in them.
typedef struct Layout {
    uint32_t type;
    uint64_t inner, columns;
    int64_t leading, step;
    int32_t matrices;
} Layout;

typedef struct Description {
    uint32_t compute, scale, epilogue;
    uint32_t turned[2]; // cublasOperation_t of the left and the right factor
    const void *bias;
} Description;

typedef struct Preference {
    uint64_t workspace;
    uint32_t schemes, aligned[4]; // of A, B, C, D
} Preference;

static Layout *layout_in(cublasLtMatrixLayout_t handle) {
    return (Layout *)(void *)handle;
}
static Description *description_in(cublasLtMatmulDesc_t handle) {
    return (Description *)(void *)handle;
}
static Preference *preference_in(cublasLtMatmulPreference_t handle) {
    return (Preference *)(void *)handle;
}

__attribute__((format(printf, 2, 3))) static cublasStatus_t refuse(cublasStatus_t status,
                                                                   const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "emulator: cuBLASLt: %s\n", text);
    return status;
}

static uint64_t products, descriptors;

void emulator_cublas_count(EmulatorState *state) {
    state->products = products;
    state->descriptors = descriptors;
}

static void *made(size_t bytes) {
    void *memory = calloc(1, bytes);
    descriptors += memory != NULL;
    return memory;
}

static cublasStatus_t unmade(void *memory) {
    descriptors -= memory != NULL;
    free(memory);
    return CUBLAS_STATUS_SUCCESS;
}

// ---- the handle ---------------------------------------------------------------------------------

static cublasStatus_t create(cublasLtHandle_t *handle) {
    if (!emulator_current_card())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = made(1);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t destroy(cublasLtHandle_t handle) {
    return unmade(handle);
}

size_t emulator_cublas_version(void) {
    return 130002;
}

// ---- descriptors --------------------------------------------------------------------------------

#define SETTABLE(attribute, member) \
    case CUBLASLT_##attribute:      \
        target = &(member);         \
        wanted = sizeof(member);    \
        break

static cublasStatus_t set(void *target, size_t wanted, const void *value, size_t size,
                          const char *what) {
    if (!target)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an attribute of %s not emulated", what);
    if (size != wanted)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of %s of %zu bytes, not %zu", what,
                      size, wanted);
    memcpy(target, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t description_create(cublasLtMatmulDesc_t *handle, cublasComputeType_t compute,
                                         cudaDataType_t scale) {
    Description *of = made(sizeof *of);
    if (!of)
        return CUBLAS_STATUS_ALLOC_FAILED;
    of->compute = compute;
    of->scale = scale;
    of->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *handle = (cublasLtMatmulDesc_t)(void *)of;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t description_destroy(cublasLtMatmulDesc_t handle) {
    return unmade(handle);
}
static cublasStatus_t description_set(cublasLtMatmulDesc_t handle,
                                      cublasLtMatmulDescAttributes_t attribute, const void *value,
                                      size_t size) {
    Description *of = description_in(handle);
    void *target = NULL;
    size_t wanted = 0;
    switch (attribute) {
        SETTABLE(MATMUL_DESC_TRANSA, of->turned[0]);
        SETTABLE(MATMUL_DESC_TRANSB, of->turned[1]);
        SETTABLE(MATMUL_DESC_EPILOGUE, of->epilogue);
        SETTABLE(MATMUL_DESC_BIAS_POINTER, of->bias);
    default: break;
    }
    return set(target, wanted, value, size, "a product");
}

static cublasStatus_t layout_create(cublasLtMatrixLayout_t *handle, cudaDataType type,
                                    uint64_t rows, uint64_t columns, int64_t leading) {
    Layout *of = made(sizeof *of);
    if (!of)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *of = (Layout){type, rows, columns, leading, 0, 1};
    *handle = (cublasLtMatrixLayout_t)(void *)of;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t layout_destroy(cublasLtMatrixLayout_t handle) {
    return unmade(handle);
}
static cublasStatus_t layout_set(cublasLtMatrixLayout_t handle,
                                 cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                 size_t size) {
    Layout *of = layout_in(handle);
    void *target = NULL;
    size_t wanted = 0;
    switch (attribute) {
        SETTABLE(MATRIX_LAYOUT_BATCH_COUNT, of->matrices);
        SETTABLE(MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, of->step);
    default: break;
    }
    return set(target, wanted, value, size, "a layout");
}

static cublasStatus_t preference_create(cublasLtMatmulPreference_t *handle) {
    Preference *of = made(sizeof *of);
    if (!of)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *of = (Preference){0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    *handle = (cublasLtMatmulPreference_t)(void *)of;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t preference_destroy(cublasLtMatmulPreference_t handle) {
    return unmade(handle);
}
static cublasStatus_t preference_set(cublasLtMatmulPreference_t handle,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, size_t size) {
    Preference *of = preference_in(handle);
    void *target = NULL;
    size_t wanted = 0;
    switch (attribute) {
        SETTABLE(MATMUL_PREF_MAX_WORKSPACE_BYTES, of->workspace);
        SETTABLE(MATMUL_PREF_REDUCTION_SCHEME_MASK, of->schemes);
        SETTABLE(MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of->aligned[0]);
        SETTABLE(MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of->aligned[1]);
        SETTABLE(MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of->aligned[2]);
        SETTABLE(MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of->aligned[3]);
    default: break;
    }
    return set(target, wanted, value, size, "a preference");
}

// ---- what is refused ----------------------------------------------------------------------------

// What a launch is given, and what an algorithm remembers it was chosen for.
typedef struct Product {
    Description how;
    Layout a, b, d;
    uint64_t rows, columns, depth; // of the library's result, columns of which lie side by side
    float alpha, beta;
    const void *at_a, *at_b;
    void *at_d;
    float error;     // added to every result
    uint32_t splits; // the sum is joined of parts, and rounded before a bias is added
} Product;

static size_t bytes_of(uint32_t type) {
    return type == CUDA_R_32F ? 4 : 2;
}

static bool types_fit(const Product *product) {
    uint32_t a = product->a.type, d = product->d.type;
    bool known = a == CUDA_R_32F || a == CUDA_R_16BF || a == CUDA_R_16F;
    return known && product->b.type == a && (d == a || d == CUDA_R_32F) &&
           (product->how.compute == CUBLAS_COMPUTE_32F ||
            (product->how.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a == CUDA_R_32F)) &&
           product->how.scale == CUDA_R_32F;
}

static bool epilogue_fits(uint32_t epilogue) {
    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS;
}

static const char *wrong_with(const Product *product) {
    const Layout *layouts[] = {&product->a, &product->b, &product->d};
    if (!types_fit(product))
        return "types that it does not multiply";
    if (!epilogue_fits(product->how.epilogue))
        return "an epilogue that is not emulated";
    for (int i = 0; i < 3; i++) {
        if (layouts[i]->inner == 0 || layouts[i]->columns == 0)
            return "an empty matrix";
        if (layouts[i]->leading < (int64_t)layouts[i]->inner)
            return "columns that overlap";
        if (layouts[i]->matrices != product->d.matrices || layouts[i]->matrices < 1)
            return "different counts of matrices";
    }
    bool turned_a = product->how.turned[0] == CUBLAS_OP_T;
    bool turned_b = product->how.turned[1] == CUBLAS_OP_T;
    uint64_t rows = turned_a ? product->a.columns : product->a.inner;
    uint64_t depth = turned_a ? product->a.inner : product->a.columns;
    uint64_t other = turned_b ? product->b.columns : product->b.inner;
    uint64_t columns = turned_b ? product->b.inner : product->b.columns;
    if (product->how.turned[0] > CUBLAS_OP_T || product->how.turned[1] > CUBLAS_OP_T)
        return "an operation that is not emulated";
    if (rows != product->d.inner || columns != product->d.columns || depth != other)
        return "sizes that do not fit";
    return NULL;
}

static Product product_of(cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
    Product product = {
        .how = *description_in(how), .a = *layout_in(a), .b = *layout_in(b), .d = *layout_in(d)};
    product.rows = product.d.inner;
    product.columns = product.d.columns;
    product.depth = product.how.turned[0] == CUBLAS_OP_T ? product.a.inner : product.a.columns;
    return product;
}

static uint32_t alignment(const void *at) {
    uintptr_t address = (uintptr_t)at;
    return (uint32_t)(address % 256 ? address & (~address + 1) : 256);
}

// An algorithm knows how much memory it wants and to what its pointers must be aligned.
typedef struct Choice {
    uint32_t magic, aligned[3]; // of A, B, D
    uint32_t splits;            // since it may
    uint64_t workspace;
} Choice;

static cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int asked,
                                cublasLtMatmulHeuristicResult_t *results, int *count) {
    Product product = product_of(how, a, b, d);
    const Preference *wanted = preference_in(preference);
    const char *wrong = wrong_with(&product);
    *count = 0;
    if (!handle || asked < 1 || wrong || memcmp(layout_in(c), layout_in(d), sizeof(Layout)) != 0)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "asked for an algorithm with %s",
                      wrong ? wrong : "no handle, or with C not like D");
    if (emulator_settings.products == PRODUCTS_REFUSED)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Choice choice = {FIRST_ALGORITHM,
                     {wanted->aligned[0], wanted->aligned[1], wanted->aligned[3]},
                     wanted->schemes != CUBLASLT_REDUCTION_SCHEME_NONE,
                     wanted->workspace};
    results[0] = (cublasLtMatmulHeuristicResult_t){
        .workspaceSize = choice.workspace, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
    static_assert(sizeof choice <= sizeof results[0].algo, "it lies in the library's own");
    memcpy(&results[0].algo, &choice, sizeof choice);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- the product --------------------------------------------------------------------------------

static float load(const void *data, uint32_t type, int64_t at) {
    switch (type) {
    case CUDA_R_32F: return ((const float *)data)[at];
    case CUDA_R_16BF: return number_bf16_to_fp32(((const uint16_t *)data)[at]);
    default: return number_fp16_to_fp32(((const uint16_t *)data)[at]);
    }
}

static void store(void *data, uint32_t type, int64_t at, float value) {
    switch (type) {
    case CUDA_R_32F: ((float *)data)[at] = value; break;
    case CUDA_R_16BF: ((uint16_t *)data)[at] = number_fp32_to_bf16(value); break;
    default: ((uint16_t *)data)[at] = number_fp32_to_fp16(value); break;
    }
}

static float rounded(uint32_t type, float value) {
    float kept;
    store(&kept, type, 0, value);
    return load(&kept, type, 0);
}

// Where element (i, k) of a factor's matrix lies, whatever way it is turned.
static int64_t place(const Layout *layout, uint32_t turned, uint64_t i, uint64_t k) {
    return turned == CUBLAS_OP_T ? (int64_t)k + (int64_t)i * layout->leading
                                 : (int64_t)i + (int64_t)k * layout->leading;
}

static double factor(const Product *product, const void *data, uint32_t type, int64_t at) {
    float value = load(data, type, at);
    return product->how.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? emulated_tf32(value)
                                                                : (double)value;
}

static float element_of(const Product *product, int64_t matrix, uint64_t row, uint64_t column) {
    const Layout *a = &product->a, *b = &product->b;
    double sum = 0;
    for (uint64_t k = 0; k < product->depth; k++)
        sum += factor(product, product->at_a, a->type,
                      matrix * a->step + place(a, product->how.turned[0], row, k)) *
               factor(product, product->at_b, b->type,
                      matrix * b->step + place(b, product->how.turned[1], k, column));
    float result = product->splits ? rounded(product->d.type, (float)sum) : (float)sum;
    if (product->how.epilogue & CUBLASLT_EPILOGUE_BIAS)
        result += load(product->how.bias, product->d.type, (int64_t)row);
    return result + product->error;
}

// A thread takes every so many-th element.
static void multiply(const void *arguments) {
    const Product *product = arguments;
    uint64_t size = product->rows * product->columns;
    uint64_t all = size * (uint64_t)product->d.matrices;
    for (uint64_t i = emulator_thread->number; i < all; i += THREADS) {
        int64_t matrix = (int64_t)(i / size);
        uint64_t row = i % size % product->rows, column = i % size / product->rows;
        store(product->at_d, product->d.type,
              matrix * product->d.step + (int64_t)row + (int64_t)column * product->d.leading,
              element_of(product, matrix, row, column));
    }
}

static const EmulatorKernel kernel = {"cuBLASLt", "product", multiply, sizeof(Product), THREADS};

static const char *wrong_with_call(const Product *product, const Choice *choice, const void *c,
                                   const void *workspace, size_t workspace_size) {
    if (wrong_with(product))
        return wrong_with(product);
    if (choice->magic != FIRST_ALGORITHM)
        return "an algorithm that nobody gave";
    if (product->at_d != c || product->beta != 0 || product->alpha != 1)
        return "another C than D, or factors but 1 and 0: not emulated";
    if (workspace_size < choice->workspace || (choice->workspace && alignment(workspace) < 256))
        return "a workspace that is too small, or is not aligned";
    const void *at[] = {product->at_a, product->at_b, product->at_d};
    for (int i = 0; i < 3; i++)
        if (!at[i] || alignment(at[i]) < choice->aligned[i])
            return "memory that is less aligned than was promised";
    bool biased = product->how.epilogue & CUBLASLT_EPILOGUE_BIAS;
    if (biased && (!product->how.bias || (uintptr_t)product->how.bias % bytes_of(product->d.type)))
        return "an epilogue with a bias, and none";
    if (biased && alignment(product->how.bias) < choice->aligned[2]) // it is read as D is written
        return "a bias that is less aligned than D was promised to be";
    return NULL;
}

static bool is_refused(CUstream stream) {
    EmulatorState state = {0};
    emulator_graphs_count(&state);
    return (emulator_settings.products == PRODUCTS_UNCAPTURED && stream->captures) ||
           (emulator_settings.products == PRODUCTS_FICKLE && state.graphs > 0);
}

static cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how, const void *alpha,
                             const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                             cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                             cublasLtMatrixLayout_t c_layout, void *d,
                             cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm,
                             void *workspace, size_t workspace_size, cudaStream_t stream) {
    (void)c_layout;
    EmulatorCall call __attribute__((cleanup(emulator_call_end))) =
        emulator_call_begin("cublasLtMatmul", NEEDS_CARD);
    if (call.result != CUDA_SUCCESS || !handle)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (is_refused((CUstream)stream))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Product product = product_of(how, a_layout, b_layout, d_layout);
    Choice choice;
    memcpy(&choice, algorithm, sizeof choice);
    memcpy(&product.alpha, alpha, sizeof product.alpha);
    memcpy(&product.beta, beta, sizeof product.beta);
    product.at_a = a, product.at_b = b, product.at_d = d;
    product.splits = choice.splits;
    static const float error[PRODUCTS_FICKLE + 1] = {[PRODUCTS_WRONG] = 1, [PRODUCTS_NAN] = NAN};
    product.error = error[emulator_settings.products];
    const char *wrong = wrong_with_call(&product, &choice, c, workspace, workspace_size);
    if (wrong)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "a product with %s", wrong);
    Operation *launch = emulator_operation_new(OPERATION_LAUNCH, sizeof product);
    if (!launch)
        return CUBLAS_STATUS_ALLOC_FAILED;
    products++;
    memcpy(launch->copy, &product, sizeof product);
    launch->launch = (EmulatorLaunch){&kernel, launch->copy, {1, 1, 1}, {THREADS, 1, 1}, 0};
    return emulator_stream_add(emulator_current_card(), (CUstream)stream, launch) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

typedef struct LibraryFunction {
    const char *name;
    void (*function)(void);
} LibraryFunction;

// Each held against the type that the table has for it.
#define FUNCTION(library_name, own) \
    { #library_name, (void (*)(void))(1 ? (own) : (__typeof__(&library_name))NULL) }

static const LibraryFunction functions[] = {
    FUNCTION(cublasLtCreate, create),
    FUNCTION(cublasLtDestroy, destroy),
    FUNCTION(cublasLtGetVersion, emulator_cublas_version),
    FUNCTION(cublasLtMatmulDescCreate, description_create),
    FUNCTION(cublasLtMatmulDescDestroy, description_destroy),
    FUNCTION(cublasLtMatmulDescSetAttribute, description_set),
    FUNCTION(cublasLtMatrixLayoutCreate, layout_create),
    FUNCTION(cublasLtMatrixLayoutDestroy, layout_destroy),
    FUNCTION(cublasLtMatrixLayoutSetAttribute, layout_set),
    FUNCTION(cublasLtMatmulPreferenceCreate, preference_create),
    FUNCTION(cublasLtMatmulPreferenceDestroy, preference_destroy),
    FUNCTION(cublasLtMatmulPreferenceSetAttribute, preference_set),
    FUNCTION(cublasLtMatmulAlgoGetHeuristic, heuristic),
    FUNCTION(cublasLtMatmul, matmul),
};

void *emulator_cublas_function(const char *name) {
    void *found = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            memcpy(&found, &functions[i].function, sizeof found);
    return found;
}
