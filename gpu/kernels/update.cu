// The optimizers' updates: fp32 inside, the low copy of the weights rewritten in the same pass.
//
// What the scan found decides here whether anything happens: nobody asks the host. update_begin
// goes first: it computes what each tensor has of its own, and counts the update.
#include "gpu/kernels/block.h"
#include "gpu/kernels/pieces.h"
#include "kernel/random.h"
#include "number/inline.h"

static __device__ __forceinline__ bool is_skipped(const UpdateArguments &a) {
    return a.flags && a.flags->found_inf;
}

static __device__ __forceinline__ const UpdateRecord *records_of(const UpdateArguments &a) {
    return (const UpdateRecord *)a.table.records;
}

// The squares of some pieces, added in their order; every thread of the block gets the sums.
static __device__ __forceinline__ Squares sum_pieces(const Squares *of, u32 first, u32 number,
                                                     double (&between)[2 * PIECE_WARPS]) {
    double sum[2] = {0, 0};
    for (u32 i = threadIdx.x; i < number; i += PIECE_THREADS) {
        sum[0] += of[first + i].a;
        sum[1] += of[first + i].b;
    }
    block_sums<PIECE_WARPS>(sum, between);
    return Squares{sum[0], sum[1]};
}

// ---- before -------------------------------------------------------------------------------------

struct NormOfGradients {
    const UpdateRecord &record;
    double sum;
    template <int N> __device__ __forceinline__ void run(i64 at) {
        float g[N];
        load_span<N>(record.gradient, at, g);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += (double)g[i] * (double)g[i];
    }
};

// The norm of the gradients, where nobody has measured it.
GPU_DEFINE(update_norm) {
    SHARED(double, between, PIECE_WARPS);
    const Piece<UpdateRecord> piece = piece_of_block<UpdateRecord>(a.table);
    NormOfGradients norm = {*piece.record, 0};
    for_piece(piece, piece.record->wide, norm);
    double sum[1] = {norm.sum};
    block_sums<PIECE_WARPS>(sum, between);
    if (threadIdx.x == 0)
        a.squares[blockIdx.x] = Squares{sum[0], 0};
}

static __device__ __forceinline__ float clip_of(const UpdateArguments &a, double squares) {
    const StepFlags *measured = a.rule.measured ? a.rule.measured : a.flags;
    double clip = a.flags ? (double)a.flags->clip : 1;
    if (a.rule.max_grad_norm > 0) {
        const double norm =
            measured ? sqrt(measured->norm_squared) * (double)measured->clip : sqrt(squares);
        clip /= fmax(1.0, norm / (double)a.rule.max_grad_norm);
    }
    return (float)clip;
}

// What is found is put away at once: a card keeps little through a call of pow.
static __device__ __forceinline__ void set_numbers(const UpdateArguments &a, u32 tensor,
                                                   u64 applied) {
    const UpdateRecord &record = records_of(a)[tensor];
    UpdateNumbers &numbers = a.numbers[tensor];
    const u64 own = record.steps ? *record.steps : applied;
    numbers.ratio = numbers.step1 = numbers.step2 = 1;
    numbers.first = own == 0;
    numbers.rate = (float)update_rate(&a.rule, record.group, applied);
    if (a.rule.bias_correction) {
        const double t = (double)(own + 1);
        numbers.step1 = (float)(1 / (1 - pow((double)a.rule.beta1, t)));
        numbers.step2 = (float)(1 / (1 - pow((double)a.rule.beta2, t)));
    }
}

// One block: what it counts is read by all of it first.
GPU_DEFINE(update_begin) {
    SHARED(double, between, 2 * PIECE_WARPS);
    if (is_skipped(a)) {
        if (threadIdx.x == 0)
            a.progress->skipped++;
        return;
    }
    const bool sums = a.rule.max_grad_norm > 0 && !a.rule.measured && !a.flags;
    const Squares norm = sum_pieces(a.squares, 0, sums ? a.table.pieces : 0, between);
    const float clip = clip_of(a, norm.a);
    const u64 applied = a.progress->applied;
    for (u32 i = threadIdx.x; i < a.table.tensors; i += PIECE_THREADS)
        a.numbers[i].clip = clip;
    for (u32 i = threadIdx.x; i < a.table.tensors; i += PIECE_THREADS) {
        set_numbers(a, i, applied);
        u64 *const steps = records_of(a)[i].steps;
        if (steps)
            ++*steps;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        a.progress->applied = applied + 1;
}

// ---- the rules ----------------------------------------------------------------------------------

enum Rule { SGD, ADAM, ADAMW, LAMB_MOMENTS, LAMB };

// What is the same for all elements of a piece.
struct Constants {
    float clip, rate, decay, momentum, beta1, beta2, rest1, rest2, step1, step2, epsilon;
    bool first, nesterov;
};

static __device__ __forceinline__ Constants constants_of(const UpdateArguments &a,
                                                         const Piece<UpdateRecord> &piece) {
    const UpdateNumbers &own = a.numbers[piece.tensor];
    const UpdateRule &rule = a.rule;
    return Constants{own.clip,
                     own.rate * own.ratio,
                     piece.record->weight_decay,
                     rule.momentum,
                     rule.beta1,
                     rule.beta2,
                     a.rest1,
                     a.rest2,
                     own.step1,
                     own.step2,
                     rule.epsilon,
                     own.first != 0,
                     rule.nesterov};
}

// Where SGD goes, for a rate of 1.
static __device__ __forceinline__ float sgd_direction(const Constants &c, float p, float g,
                                                      float &m) {
    const float gradient = fmaf(c.decay, p, g * c.clip);
    if (c.momentum == 0)
        return gradient;
    const float velocity = c.first ? gradient : fmaf(c.momentum, m, gradient);
    m = velocity;
    if (!c.nesterov)
        return velocity;
    return c.first ? gradient * (1 + c.momentum) : fmaf(c.momentum, velocity, gradient);
}

static __device__ __forceinline__ float adam_ratio(const Constants &c, float m, float v) {
    return m * c.step1 / (sqrtf(v * c.step2) + c.epsilon);
}

// Moves both moments; where Adam goes.
static __device__ __forceinline__ float adam_direction(const Constants &c, float gradient, float &m,
                                                       float &v) {
    m = fmaf(c.beta1, m, c.rest1 * gradient);
    v = fmaf(c.beta2, v, c.rest2 * gradient * gradient);
    return adam_ratio(c, m, v);
}

// Where the parameter goes, for a rate of 1; moves the moments.
template <Rule rule>
static __device__ __forceinline__ float direction_of(const Constants &c, float p, float g, float &m,
                                                     float &v) {
    switch (rule) {
    case SGD: return sgd_direction(c, p, g, m);
    case ADAM: return adam_direction(c, fmaf(c.decay, p, g * c.clip), m, v);
    case ADAMW:
    case LAMB_MOMENTS: return fmaf(c.decay, p, adam_direction(c, g * c.clip, m, v));
    case LAMB: return fmaf(c.decay, p, adam_ratio(c, m, v));
    }
    return 0;
}

// ---- a piece ------------------------------------------------------------------------------------

// The bits that bf16 lacks are the probability of going up. Past the largest finite value, and for
// what is not finite, it stays the nearest. The same numbers as on every other device.
template <int N>
static __device__ __forceinline__ void store_stochastically(const UpdateArguments &a,
                                                            const UpdateRecord &record, i64 at,
                                                            float (&value)[N]) {
    const u64 block = random_begin(&a.rule.random) + record.block + (u64)at / 4;
    RandomBlock random = random_block(a.rule.random.seed, block);
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i == 4)
            random = random_block(a.rule.random.seed, block + 1);
        // Of a single one it is not known before which word of the block is its own.
        const u32 which = N == 1 ? (u32)at % 4 : i % 4;
        const u32 word = which == 0   ? random.word[0]
                         : which == 1 ? random.word[1]
                         : which == 2 ? random.word[2]
                                      : random.word[3];
        const u32 bits = __float_as_uint(value[i]);
        const u32 down = bits & 0xFFFF0000, up = (word >> 16) < (bits & 0xFFFF) ? 0x10000 : 0;
        if ((bits & 0x7FFFFFFF) < 0x7F7F0000)
            value[i] = __uint_as_float(down + up);
    }
    store_span<N>(record.parameter, at, value);
}

// What a parameter holds when the value was put there.
template <int N>
static __device__ __forceinline__ void round_to_span(const Span &span, float (&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = span.format == FORMAT_BF16   ? fp32_of_bf16(bf16_of_fp32(value[i]))
                   : span.format == FORMAT_FP16 ? fp32_of_fp16(fp16_of_fp32(value[i]))
                                                : value[i];
}

template <Rule rule> struct Update {
    const UpdateArguments &a;
    const UpdateRecord &record;
    const Constants c;
    Squares squares; // of LAMB's parameter and direction, else of change and parameter

    template <int N>
    __device__ __forceinline__ void measure(const float (&x)[N], const float (&y)[N]) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            squares.a += (double)x[i] * (double)x[i];
            squares.b += (double)y[i] * (double)y[i];
        }
    }

    template <int N> __device__ __forceinline__ void run(i64 at) {
        const bool has_moment = rule != SGD || c.momentum != 0;
        float p[N], g[N], m[N], v[N];
        load_span<N>(record.parameter, at, p);
        if (rule != LAMB)
            load_span<N>(record.gradient, at, g);
        if (has_moment)
            load_span<N>(record.moment[0], at, m);
        if (rule != SGD)
            load_span<N>(record.moment[1], at, v);
#pragma unroll
        for (int i = 0; i < N; i++)
            g[i] = direction_of<rule>(c, p[i], g[i], m[i], v[i]); // in place of the gradient
        if (rule != LAMB && has_moment)
            store_span<N>(record.moment[0], at, m);
        if (rule != LAMB && rule != SGD)
            store_span<N>(record.moment[1], at, v);
        if (rule == LAMB_MOMENTS)
            measure<N>(p, g);
        else
            move<N>(at, p, g);
    }

    template <int N>
    __device__ __forceinline__ void move(i64 at, const float (&p)[N], float (&value)[N]) {
#pragma unroll
        for (int i = 0; i < N; i++)
            value[i] = fmaf(-c.rate, value[i], p[i]);
        if (a.rule.stochastic && record.parameter.format == FORMAT_BF16) {
            store_stochastically<N>(a, record, at, value);
        } else {
            store_span<N>(record.parameter, at, value);
        }
        round_to_span<N>(record.parameter, value);
        if (record.low.data)
            store_span<N>(record.low, at, value);
        if (!a.moved)
            return;
#pragma unroll
        for (int i = 0; i < N; i++)
            value[i] -= p[i];
        measure<N>(value, p);
    }
};

template <Rule rule>
static __device__ __forceinline__ void update_piece(const UpdateArguments &a,
                                                    double (&between)[2 * PIECE_WARPS]) {
    if (is_skipped(a))
        return;
    const Piece<UpdateRecord> piece = piece_of_block<UpdateRecord>(a.table);
    Update<rule> update = {a, *piece.record, constants_of(a, piece), {0, 0}};
    for_piece(piece, piece.record->wide, update);
    Squares *const sums = rule == LAMB_MOMENTS ? a.squares : a.moved;
    if (!sums)
        return;
    double sum[2] = {update.squares.a, update.squares.b};
    block_sums<PIECE_WARPS>(sum, between);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = Squares{sum[0], sum[1]};
}

#define UPDATE(name, rule)                        \
    GPU_DEFINE(name) {                            \
        SHARED(double, between, 2 * PIECE_WARPS); \
        update_piece<rule>(a, between);           \
    }
UPDATE(update_sgd, SGD)
UPDATE(update_adam, ADAM)
UPDATE(update_adamw, ADAMW)
UPDATE(update_lamb_moments, LAMB_MOMENTS)
UPDATE(update_lamb, LAMB)

// ---- sums of a tensor ---------------------------------------------------------------------------

GPU_DEFINE(update_lamb_ratio) {
    SHARED(double, between, 2 * PIECE_WARPS);
    if (is_skipped(a))
        return;
    const UpdateRecord &record = records_of(a)[blockIdx.x];
    const Squares sum = sum_pieces(a.squares, record.pieces.first, record.pieces.number, between);
    if (threadIdx.x == 0)
        a.numbers[blockIdx.x].ratio =
            sum.a > 0 && sum.b > 0 ? (float)(sqrt(sum.a) / sqrt(sum.b)) : 1;
}

GPU_DEFINE(update_moved) {
    SHARED(double, between, 2 * PIECE_WARPS);
    if (is_skipped(a))
        return;
    const UpdateRecord &record = records_of(a)[blockIdx.x];
    const Squares sum = sum_pieces(a.moved, record.pieces.first, record.pieces.number, between);
    if (threadIdx.x == 0 && record.moved) {
        record.moved[0] = sum.a;
        record.moved[1] = sum.b;
    }
}
