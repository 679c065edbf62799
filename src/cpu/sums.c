// Matrix products whose sums are kept in fewer digits than fp32's, or in chunks: to see what that
// does, term by term, not to be fast.
#include "number/sums.h"
#include "cpu/products.h"

typedef struct SummedProduct {
    const Device *device;
    const Gemm *gemm;
    int64_t batch[GEMM_BATCH_DIMS];
    float *columns, *row; // B turned, [columns][depth]; a row of A each thread
} SummedProduct;

static float load(const Device *device, Format format, const void *data, int64_t at) {
    float value;
    cpu_load(device, format, (const char *)data + at * (int64_t)format_table[format].bytes, &value,
             1);
    return value;
}

static int64_t start_of(const SummedProduct *work, const int64_t stride[GEMM_BATCH_DIMS]) {
    return work->batch[0] * stride[0] + work->batch[1] * stride[1];
}

static double activated(GemmActivation activation, double x) {
    switch (activation) {
    case GEMM_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case GEMM_ACTIVATION_TANH: return tanh(x);
    case GEMM_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case GEMM_ACTIVATION_NONE:
    case GEMM_ACTIVATION_COUNT: break;
    }
    return x;
}

static void rows_task(void *context, int64_t begin, int64_t end, int thread) {
    const SummedProduct *work = context;
    const Gemm *gemm = work->gemm;
    float *row = work->row + thread * gemm->depth;
    const int64_t a_start = start_of(work, gemm->a.batch_stride);
    for (int64_t i = begin; i < end; i++) {
        for (int64_t k = 0; k < gemm->depth; k++)
            row[k] = load(work->device, gemm->a.format, gemm->a.data,
                          a_start + i * gemm->a.row_stride + k * gemm->a.column_stride);
        for (int64_t j = 0; j < gemm->columns; j++) {
            const float *column = work->columns + j * gemm->depth;
            NumberSum sum = {.how = gemm->sums};
            for (int64_t k = 0; k < gemm->depth; k++)
                number_sum_add(&sum, (double)row[k] * (double)column[k]);
            double total = number_sum_end(&sum) * (double)gemm->alpha;
            if (gemm->bias)
                total += (double)load(work->device, gemm->bias_format, gemm->bias, j);
            const float result = (float)activated(gemm->activation, total);
            const int64_t at = start_of(work, gemm->c.batch_stride) + i * gemm->c.row_stride + j;
            cpu_store(work->device, gemm->c.format, &result,
                      (char *)gemm->c.data + at * (int64_t)format_table[gemm->c.format].bytes, 1);
        }
    }
}

bool product_run_summed(Device *device, const Gemm *gemm, Error *error) {
    const double term_cost = 3; // nanoseconds
    SummedProduct work = {.device = device, .gemm = gemm};
    const int64_t floats = (gemm->columns + device->threads) * gemm->depth + 1;
    work.columns = device_workspace(device, (size_t)floats * sizeof(float), error);
    if (!work.columns)
        return false;
    work.row = work.columns + gemm->columns * gemm->depth;
    for (work.batch[0] = 0; work.batch[0] < gemm->batch[0]; work.batch[0]++)
        for (work.batch[1] = 0; work.batch[1] < gemm->batch[1]; work.batch[1]++) {
            const int64_t b_start = start_of(&work, gemm->b.batch_stride);
            for (int64_t j = 0; j < gemm->columns; j++)
                for (int64_t k = 0; k < gemm->depth; k++)
                    work.columns[j * gemm->depth + k] =
                        load(device, gemm->b.format, gemm->b.data,
                             b_start + k * gemm->b.row_stride + j * gemm->b.column_stride);
            cpu_parallel(device, gemm->rows, 1,
                         term_cost * (double)gemm->rows * (double)gemm->columns *
                             (double)gemm->depth,
                         rows_task, &work);
        }
    return true;
}
