// Attention over [batch, time, head, depth]: blocks of queries against all keys that they see, a
// thread a block, so that the scores never leave its cache. The backward pass computes the shares
// anew from the sums that the forward pass left.
#include <string.h>

#include "base/isa.h"
#include "cpu/kernels.h"
#include "cpu/products.h"
#include "cpu/rounded.h"

enum { SCORE_BYTES = 128 << 10, FEWEST_ROWS = 32, MOST_ROWS = 256, VECTOR = 16 };
// Queries of a block that each see the keys before them: the fewer, the less is computed of what
// they do not see; the more, the less often keys are packed, which on tiles takes as long as the
// products. Whole register tiles, of 14 rows or of 32.
enum { CAUSAL_ROWS = 56, CAUSAL_ROWS_ON_TILES = 96 };

typedef struct Attention {
    const Device *device;
    const CpuAttention *table;
    float scale;
    bool causal;
    Format compute; // what shares, and gradients of scores, are rounded to as factors
    int64_t heads, queries, keys, depth;
    int64_t block, blocks; // queries of a block, and how many blocks
    int64_t score_stride;
    View q, k, v, y, sums;
    View dy, dq, dk, dv;
    View given; // dy before it is rounded, which is no factor where it meets y
    char *workspace;
    size_t per_thread, gemm_bytes;
} Attention;

// Element (batch, first, head, 0) of a view [B,T,H,D].
static void *at(const View *view, int64_t batch, int64_t head, int64_t first) {
    return cpu_at_mutable(view, batch * view->stride[0] + first * view->stride[1] +
                                    head * view->stride[2]);
}

// The matrix [T, D] of one batch and head as it lies, or transposed.
static GemmOperand operand(const View *view, int64_t batch, int64_t head, int64_t first,
                           bool transposed) {
    return (GemmOperand){at(view, batch, head, first),
                         view->format,
                         transposed ? 1 : view->stride[1],
                         transposed ? view->stride[1] : 1,
                         {0}};
}

static GemmOperand scratch_operand(const float *data, int64_t stride, bool transposed) {
    return (GemmOperand){data, FORMAT_FP32, transposed ? 1 : stride, transposed ? stride : 1, {0}};
}

static Gemm product(const Attention *attention, int64_t rows, int64_t columns, int64_t depth,
                    GemmOperand a, GemmOperand b) {
    return (Gemm){.rows = rows,
                  .columns = columns,
                  .depth = depth,
                  .batch = {1, 1},
                  .a = a,
                  .b = b,
                  .alpha = 1,
                  .pairs = cpu_has_pairs(attention->device),
                  .threads = 1};
}

// A is shares or gradients of scores in fp32, of which 16 digits are enough.
static Gemm product_of_shares(const Attention *attention, int64_t rows, int64_t columns,
                              int64_t depth, GemmOperand a, GemmOperand b) {
    Gemm gemm = product(attention, rows, columns, depth, a, b);
    gemm.splits_a = true;
    return gemm;
}

static GemmResult into_scratch(float *data, int64_t stride) {
    return (GemmResult){data, FORMAT_FP32, stride, {0}};
}

// Where all queries see all keys, blocks are as large as their scores' cache allows, and alike.
static int64_t even_block(const Attention *attention) {
    int64_t rows = SCORE_BYTES / (int64_t)sizeof(float) / attention->score_stride;
    rows = rows < FEWEST_ROWS ? FEWEST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
    int64_t blocks = product_larger((attention->queries + rows - 1) / rows, 1);
    return product_larger(cpu_padded((attention->queries + blocks - 1) / blocks), 1);
}

static Attention attention_of(const Device *device, const KernelCall *call, int q) {
    const View *queries = &call->input[q];
    Attention attention = {
        .device = device,
        .table = cpu_simd(device)->attention,
        .scale = (float)call->attr->attention.scale,
        .causal = call->attr->attention.causal,
        .compute = call->attr->has_compute ? call->attr->compute : FORMAT_FP32,
        .heads = queries->shape[2],
        .queries = queries->shape[1],
        .keys = call->input[q + 1].shape[1],
        .depth = queries->shape[3],
        .q = *queries,
        .k = call->input[q + 1],
        .v = call->input[q + 2],
    };
    attention.score_stride = cpu_padded(attention.keys) + VECTOR; // not a power of two apart
    const bool on_tiles =
        isa_has_amx() && queries->format == FORMAT_BF16 && attention.depth >= FEWEST_ROWS;
    const int64_t causal_rows = on_tiles ? CAUSAL_ROWS_ON_TILES : CAUSAL_ROWS;
    attention.block = attention.causal ? causal_rows : even_block(&attention);
    attention.blocks = (attention.queries + attention.block - 1) / attention.block;
    return attention;
}

static double attention_cost(const Attention *attention, double products) {
    double scores = (double)attention->q.shape[0] * (double)attention->heads *
                    (double)attention->queries * (double)attention->keys;
    return scores * (1 + products * (double)attention->depth / 30);
}

// How many keys the queries before `end` see.
static int64_t keys_before(const Attention *attention, int64_t end) {
    return attention->causal ? cpu_smaller(end, attention->keys) : attention->keys;
}

static CpuScores block_of(const Attention *attention, float *scores, int64_t first, int64_t rows,
                          int64_t keys) {
    return (CpuScores){.scores = scores,
                       .rows = rows,
                       .stride = attention->score_stride,
                       .width = keys,
                       .seen = attention->causal ? first + 1 : keys,
                       .step = attention->causal ? 1 : 0};
}

// Scores, or their gradients, that are to be multiplied.
static void round_block(const Attention *attention, const CpuScores *block, float *numbers) {
    if (attention->compute == FORMAT_FP32)
        return;
    for (int64_t i = 0; i < block->rows; i++)
        cpu_simd(attention->device)
            ->convert->round[attention->compute][OVERFLOW_SATURATES](numbers + i * block->stride,
                                                                     (size_t)block->width);
}

static void add_size(size_t *bytes, const Gemm *gemm) {
    size_t size = gemm_workspace_size(gemm);
    *bytes = size > *bytes ? size : *bytes;
}

// ---- what is not seen ---------------------------------------------------------------------------

// The products run over whole blocks, where a key that a query does not see has the share 0. That
// adds nothing, unless what it is multiplied by is not finite: such rows are done again, over what
// they see.

static int64_t seen_in(const CpuScores *block, int64_t row) {
    return cpu_smaller(block->seen + row * block->step, block->width);
}

// Of one query, at element `first` of its batch and head.
static bool is_finite(const Attention *attention, const View *view, int64_t batch, int64_t head,
                      int64_t first) {
    return attention->table->is_finite(view->format, at(view, batch, head, first),
                                       attention->depth);
}

static void add_scaled(float *restrict sum, const float *restrict x, int64_t count, float factor) {
    for (int64_t i = 0; i < count; i++)
        sum[i] += factor * x[i];
}

// sum = the row of `factors` times the rows of `view` that it sees; `buffer` holds one of them.
static void product_of_seen(const Attention *attention, const float *factors, int64_t seen,
                            const View *view, int64_t batch, int64_t head, float *sum,
                            float *buffer) {
    memset(sum, 0, (size_t)attention->depth * sizeof *sum);
    for (int64_t j = 0; j < seen; j++) {
        cpu_load(attention->device, view->format, at(view, batch, head, j), buffer,
                 attention->depth);
        add_scaled(sum, buffer, attention->depth, factors[j]);
    }
}

// ---- forward ------------------------------------------------------------------------------------

typedef struct ForwardProducts {
    Gemm scores, values;
} ForwardProducts;

static ForwardProducts forward_products(const Attention *attention, int64_t batch, int64_t head,
                                        int64_t first, int64_t rows, float *scores, float *out) {
    int64_t keys = keys_before(attention, first + rows);
    ForwardProducts products = {
        .scores = product(attention, rows, keys, attention->depth,
                          operand(&attention->q, batch, head, first, false),
                          operand(&attention->k, batch, head, 0, true)),
        .values = product_of_shares(attention, rows, attention->depth, keys,
                                    scratch_operand(scores, attention->score_stride, false),
                                    operand(&attention->v, batch, head, 0, false)),
    };
    products.scores.alpha = attention->scale;
    products.scores.c = into_scratch(scores, attention->score_stride);
    products.values.c = into_scratch(out, cpu_padded(attention->depth));
    return products;
}

static void forward_block(const Attention *attention, int64_t index, char *own) {
    int64_t head_index = index / attention->blocks, first = index % attention->blocks;
    int64_t batch = head_index / attention->heads, head = head_index % attention->heads;
    first *= attention->block;
    int64_t rows = cpu_smaller(attention->block, attention->queries - first);
    int64_t out_stride = cpu_padded(attention->depth), depth = attention->depth;
    float *scores = (float *)(void *)own;
    float *out = scores + attention->block * attention->score_stride;
    float *inverse = out + attention->block * out_stride, *largest = inverse + attention->block;
    float *log_sum = largest + attention->block, *buffer = log_sum + attention->block;
    void *workspace = buffer + out_stride;

    ForwardProducts products = forward_products(attention, batch, head, first, rows, scores, out);
    gemm_run(&products.scores, workspace);
    CpuScores block = block_of(attention, scores, first, rows, products.scores.columns);
    attention->table->shares(&block, inverse, largest, log_sum);
    round_block(attention, &block, scores);
    gemm_run(&products.values, workspace);
    const View *y = &attention->y;
    for (int64_t i = 0; i < rows; i++) {
        if (seen_in(&block, i) < block.width &&
            !attention->table->is_finite(FORMAT_FP32, out + i * out_stride, depth))
            product_of_seen(attention, scores + i * block.stride, seen_in(&block, i), &attention->v,
                            batch, head, out + i * out_stride, buffer);
        cpu_simd(attention->device)->rows->scale_by(out + i * out_stride, depth, inverse[i]);
        cpu_store(attention->device, y->format, out + i * out_stride, at(y, batch, head, first + i),
                  depth);
    }
    const View *sums = &attention->sums;
    for (int part = 0; sums->data && part < 2; part++)
        cpu_store(
            attention->device, sums->format, part ? log_sum : largest,
            cpu_at_mutable(sums, part * sums->stride[0] + head_index * attention->queries + first),
            rows);
}

static void forward_blocks(void *context, int64_t begin, int64_t end, int thread) {
    const Attention *attention = context;
    for (int64_t i = begin; i < end; i++)
        forward_block(attention, i, attention->workspace + (size_t)thread * attention->per_thread);
}

static bool forward(Device *device, const KernelCall *call, Error *error) {
    Attention attention = attention_of(device, call, 0);
    attention.y = call->output[0];
    attention.sums = call->output[1];
    for (int64_t first = 0; first < attention.queries; first += attention.block) {
        int64_t rows = cpu_smaller(attention.block, attention.queries - first);
        ForwardProducts products = forward_products(&attention, 0, 0, first, rows, NULL, NULL);
        add_size(&attention.gemm_bytes, &products.scores);
        add_size(&attention.gemm_bytes, &products.values);
    }
    int64_t floats = attention.block * (attention.score_stride + cpu_padded(attention.depth) + 3) +
                     cpu_padded(attention.depth);
    attention.per_thread =
        cpu_line((size_t)floats * sizeof(float)) + cpu_line(attention.gemm_bytes);
    double cost = attention_cost(&attention, 2);
    int workers = cpu_workers(device, cost);
    attention.workspace = device_workspace(device, attention.per_thread * (size_t)workers, error);
    if (!attention.workspace)
        return false;
    int64_t count = attention.q.shape[0] * attention.heads * attention.blocks;
    cpu_parallel(device, count, 1, cost, forward_blocks, &attention);
    return true;
}

bool cpu_attention(Device *device, const KernelCall *call, Error *error) {
    return rounded_run(device, call, forward, error);
}

// ---- backward -----------------------------------------------------------------------------------

// Scratch of a thread.
typedef struct BackwardScratch {
    float *scores, *d; // of a block
    float *dk, *dv;    // of one batch and head
    float *largest, *log_sum, *delta, *row[2];
    void *gemm;
} BackwardScratch;

static BackwardScratch backward_scratch(const Attention *attention, char *own) {
    int64_t scores = attention->block * attention->score_stride;
    int64_t stride = cpu_padded(attention->depth), gradients = attention->keys * stride;
    BackwardScratch scratch = {.scores = (float *)(void *)own};
    scratch.d = scratch.scores + scores;
    scratch.dk = scratch.d + scores;
    scratch.dv = scratch.dk + gradients;
    scratch.largest = scratch.dv + gradients;
    scratch.log_sum = scratch.largest + attention->block;
    scratch.delta = scratch.log_sum + attention->block;
    scratch.row[0] = scratch.delta + attention->block;
    scratch.row[1] = scratch.row[0] + stride;
    scratch.gemm = scratch.row[1] + stride;
    return scratch;
}

static int64_t backward_floats(const Attention *attention) {
    int64_t stride = cpu_padded(attention->depth);
    return attention->block * (2 * attention->score_stride + 3) +
           2 * stride * (attention->keys + 1);
}

enum { PRODUCT_SCORES, PRODUCT_D, PRODUCT_DQ, PRODUCT_DK, PRODUCT_DV, BACKWARD_PRODUCTS };

static void backward_products(const Attention *attention, const BackwardScratch *scratch,
                              int64_t batch, int64_t head, int64_t first, int64_t rows,
                              Gemm products[BACKWARD_PRODUCTS]) {
    int64_t keys = keys_before(attention, first + rows), depth = attention->depth;
    int64_t stride = attention->score_stride, out = cpu_padded(depth);
    GemmOperand q = operand(&attention->q, batch, head, first, false);
    GemmOperand dy = operand(&attention->dy, batch, head, first, false);
    products[PRODUCT_SCORES] =
        product(attention, rows, keys, depth, q, operand(&attention->k, batch, head, 0, true));
    products[PRODUCT_SCORES].alpha = attention->scale;
    products[PRODUCT_SCORES].c = into_scratch(scratch->scores, stride);
    products[PRODUCT_D] =
        product(attention, rows, keys, depth, dy, operand(&attention->v, batch, head, 0, true));
    products[PRODUCT_D].c = into_scratch(scratch->d, stride);
    products[PRODUCT_DQ] =
        product_of_shares(attention, rows, depth, keys, scratch_operand(scratch->d, stride, false),
                          operand(&attention->k, batch, head, 0, false));
    products[PRODUCT_DQ].c = (GemmResult){
        at(&attention->dq, batch, head, first), attention->dq.format, attention->dq.stride[1], {0}};
    products[PRODUCT_DK] = product_of_shares(attention, keys, depth, rows,
                                             scratch_operand(scratch->d, stride, true), q);
    products[PRODUCT_DK].c = into_scratch(scratch->dk, out);
    products[PRODUCT_DV] = product_of_shares(attention, keys, depth, rows,
                                             scratch_operand(scratch->scores, stride, true), dy);
    products[PRODUCT_DV].c = into_scratch(scratch->dv, out);
    // The last block of queries comes first: it sees all keys.
    bool later = first + rows < attention->queries;
    products[PRODUCT_DK].accumulate = products[PRODUCT_DV].accumulate = later;
}

// delta[i] = dy[i] · y[i]: what the shares of a row have in common. Whether queries and gradients
// of the block are finite, where a causal product must know.
static bool fill_delta(const Attention *attention, const BackwardScratch *scratch, int64_t batch,
                       int64_t head, int64_t first, int64_t rows) {
    bool finite = true;
    for (int64_t i = 0; i < rows; i++) {
        scratch->delta[i] = attention->table->dot(
            attention->given.format, at(&attention->given, batch, head, first + i),
            attention->y.format, at(&attention->y, batch, head, first + i), attention->depth);
        finite = finite && (!attention->causal ||
                            (is_finite(attention, &attention->q, batch, head, first + i) &&
                             is_finite(attention, &attention->dy, batch, head, first + i)));
    }
    const View *sums = &attention->sums;
    const int64_t step = sums->stride[3], at_once = step == 1 ? rows : 1;
    for (int64_t i = 0; i < rows; i += at_once)
        for (int part = 0; part < 2; part++)
            cpu_load(attention->device, sums->format,
                     cpu_at(sums, part * sums->stride[0] + batch * sums->stride[1] +
                                      head * sums->stride[2] + (first + i) * step),
                     (part ? scratch->log_sum : scratch->largest) + i, at_once);
    return finite;
}

// The gradients of queries that are not finite once more, over the keys that each sees.
static void mend_dq(const Attention *attention, const BackwardScratch *scratch,
                    const CpuScores *block, int64_t batch, int64_t head, int64_t first) {
    const View *dq = &attention->dq;
    for (int64_t i = 0; i < block->rows; i++) {
        if (seen_in(block, i) == block->width || is_finite(attention, dq, batch, head, first + i))
            continue;
        product_of_seen(attention, scratch->d + i * block->stride, seen_in(block, i), &attention->k,
                        batch, head, scratch->row[1], scratch->row[0]);
        cpu_store(attention->device, dq->format, scratch->row[1], at(dq, batch, head, first + i),
                  attention->depth);
    }
}

// The gradients of keys and values, of each query for the keys that it sees.
static void add_seen(const Attention *attention, const BackwardScratch *scratch,
                     const CpuScores *block, int64_t batch, int64_t head, int64_t first) {
    int64_t stride = cpu_padded(attention->depth), depth = attention->depth;
    if (first + block->rows == attention->queries) { // the first block to come
        memset(scratch->dk, 0, (size_t)(attention->keys * stride) * sizeof *scratch->dk);
        memset(scratch->dv, 0, (size_t)(attention->keys * stride) * sizeof *scratch->dv);
    }
    for (int64_t i = 0; i < block->rows; i++) {
        cpu_load(attention->device, attention->q.format, at(&attention->q, batch, head, first + i),
                 scratch->row[0], depth);
        cpu_load(attention->device, attention->dy.format,
                 at(&attention->dy, batch, head, first + i), scratch->row[1], depth);
        for (int64_t j = 0; j < seen_in(block, i); j++) {
            add_scaled(scratch->dk + j * stride, scratch->row[0], depth,
                       scratch->d[i * block->stride + j]);
            add_scaled(scratch->dv + j * stride, scratch->row[1], depth,
                       block->scores[i * block->stride + j]);
        }
    }
}

static void backward_head(const Attention *attention, int64_t batch, int64_t head, char *own) {
    BackwardScratch scratch = backward_scratch(attention, own);
    if (attention->blocks == 0) // no query: keys and values have no gradient
        memset(scratch.dk, 0, (size_t)((char *)scratch.largest - (char *)scratch.dk));
    for (int64_t i = attention->blocks - 1; i >= 0; i--) {
        int64_t first = i * attention->block;
        int64_t rows = cpu_smaller(attention->block, attention->queries - first);
        Gemm products[BACKWARD_PRODUCTS];
        backward_products(attention, &scratch, batch, head, first, rows, products);
        gemm_run(&products[PRODUCT_SCORES], scratch.gemm);
        gemm_run(&products[PRODUCT_D], scratch.gemm);
        bool finite = fill_delta(attention, &scratch, batch, head, first, rows);
        CpuScores block =
            block_of(attention, scratch.scores, first, rows, products[PRODUCT_SCORES].columns);
        attention->table->gradients(&block, scratch.d, scratch.largest, scratch.log_sum,
                                    scratch.delta, attention->scale);
        round_block(attention, &block, scratch.scores);
        round_block(attention, &block, scratch.d);
        gemm_run(&products[PRODUCT_DQ], scratch.gemm);
        if (attention->causal)
            mend_dq(attention, &scratch, &block, batch, head, first);
        if (attention->causal && !finite) {
            add_seen(attention, &scratch, &block, batch, head, first);
            continue;
        }
        gemm_run(&products[PRODUCT_DK], scratch.gemm);
        gemm_run(&products[PRODUCT_DV], scratch.gemm);
    }
    int64_t stride = cpu_padded(attention->depth);
    for (int64_t i = 0; i < attention->keys; i++) {
        cpu_store(attention->device, attention->dk.format, scratch.dk + i * stride,
                  at(&attention->dk, batch, head, i), attention->depth);
        cpu_store(attention->device, attention->dv.format, scratch.dv + i * stride,
                  at(&attention->dv, batch, head, i), attention->depth);
    }
}

static void backward_heads(void *context, int64_t begin, int64_t end, int thread) {
    const Attention *attention = context;
    char *own = attention->workspace + (size_t)thread * attention->per_thread;
    for (int64_t i = begin; i < end; i++)
        backward_head(attention, i / attention->heads, i % attention->heads, own);
}

static bool backward(Device *device, const KernelCall *call, const View *given, Error *error) {
    Attention attention = attention_of(device, call, 1);
    attention.given = *given;
    attention.dy = call->input[0];
    attention.y = call->input[4];
    attention.sums = call->input[5];
    attention.dq = call->output[0];
    attention.dk = call->output[1];
    attention.dv = call->output[2];
    BackwardScratch none = {.scores = NULL};
    for (int64_t first = 0; first < attention.queries; first += attention.block) {
        int64_t rows = cpu_smaller(attention.block, attention.queries - first);
        Gemm products[BACKWARD_PRODUCTS];
        backward_products(&attention, &none, 0, 0, first, rows, products);
        for (int i = 0; i < BACKWARD_PRODUCTS; i++)
            add_size(&attention.gemm_bytes, &products[i]);
    }
    attention.per_thread = cpu_line((size_t)backward_floats(&attention) * sizeof(float)) +
                           cpu_line(attention.gemm_bytes);
    double cost = attention_cost(&attention, 5);
    size_t bytes = attention.per_thread * (size_t)cpu_workers(device, cost);
    if (!(attention.workspace = device_workspace(device, bytes, error)))
        return false;
    cpu_parallel(device, attention.q.shape[0] * attention.heads, 1, cost, backward_heads,
                 &attention);
    return true;
}

bool cpu_attention_backward(Device *device, const KernelCall *call, Error *error) {
    Rounded rounded;
    if (!rounded_begin(device, call, &rounded, error))
        return false;
    const bool done = backward(device, &rounded.call, &call->input[0], error);
    rounded_end(device, &rounded);
    return done;
}
