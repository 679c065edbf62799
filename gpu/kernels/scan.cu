// The one pass over the gradients: rounds to the layer's format, counts, checks and unscales.
//
// Counts are whole numbers, so that they may be added up in any order: each block adds its own to
// the statistics. Sums are kept a piece, and added in their order when all blocks are done.
#include "gpu/kernels/block.h"
#include "gpu/kernels/pieces.h"
#include "number/inline.h"

enum {
    MAGNITUDE = 0x7FFFFFFF,
    INFINITE = 0x7F800000,
    LOWEST = 127 + EXPONENT_LOWEST, // the exponent that bin 0 begins with
    BINS = EXPONENT_BINS
};

static __device__ __forceinline__ u32 magnitude_of(float value) {
    return __float_as_uint(value) & MAGNITUDE;
}

static __device__ __forceinline__ void add_count(u64 *sum, u32 count) {
    if (count)
        atomicAdd((unsigned long long *)sum, (unsigned long long)count);
}

// Of numbers that are not negative the patterns are in the order of the numbers.
static __device__ __forceinline__ void take_most(float *most, u32 magnitude) {
    if (magnitude)
        atomicMax((u32 *)most, magnitude);
}

// ---- rounding -----------------------------------------------------------------------------------

template <Format format> static __device__ __forceinline__ float round_to(float x) {
    switch (format) {
    case FORMAT_FP16: return fp32_of_fp16(fp16_of_fp32(x));
    case FORMAT_BF16: return fp32_of_bf16(bf16_of_fp32(x));
    case FORMAT_TF32: return number_fp32_through_tf32(x);
    case FORMAT_E4M3: return number_e4m3_to_fp32(number_fp32_to_e4m3_special(x));
    case FORMAT_E5M2: return number_e5m2_to_fp32(number_fp32_to_e5m2_special(x));
    default: return x;
    }
}

// ---- what a thread finds ------------------------------------------------------------------------

enum { // what is counted, in the order of a block's sums
    ZEROS,
    NANS,
    INFS,
    FLUSHED,
    SUBNORMAL,
    OVERFLOWED,
    LOST, // rounded, no finite number
    KEPT, // left behind, a finite number
    COUNTS
};

enum { SEEN, SEEN_SQUARES, STORED, STORED_SQUARES, SUMS };

struct Found {
    u32 count[COUNTS];
    double sum[SUMS];
    u32 seen_largest, stored_largest; // magnitudes
};

static __device__ __forceinline__ void find_nothing(Found &found) {
#pragma unroll
    for (int k = 0; k < COUNTS; k++)
        found.count[k] = 0;
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        found.sum[k] = 0;
    found.seen_largest = found.stored_largest = 0;
}

// Where fp32 can hold the squares. A NaN is among none.
static __device__ __forceinline__ bool is_ordinary(u32 largest) {
    return largest == 0 || (largest < 0x58635FA9 && largest > 0x2B8CBCCC); // 1e15 and 1e-12
}

// Sums of N magnitudes and of their squares, which are few: in fp32 where it can hold them, else of
// what the values are rounded products of, one by one.
template <int N>
static __device__ __forceinline__ void add_sums(const float (&value)[N], const float (&source)[N],
                                                float factor, u32 &most, double *sum) {
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        largest = max(largest, magnitude_of(value[i]));
    if (is_ordinary(largest)) {
        float plain = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            plain += fabsf(value[i]);
            squares = fmaf(value[i], value[i], squares);
        }
        sum[0] += plain;
        sum[1] += squares;
        most = max(most, largest);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (magnitude_of(source[i]) < INFINITE) {
            const double wide = fabs((double)source[i] * (double)factor);
            sum[0] += wide;
            sum[1] += wide * wide;
            most = max(most, magnitude_of((float)wide));
        }
}

// ---- a piece ------------------------------------------------------------------------------------

template <Format format> struct Scan {
    const ScanRecord &record;
    const float inverse;
    u32 *const bins; // of the warp; NULL: nobody asks
    Found found;

    __device__ __forceinline__ void count_one(float x, float rounded, float seen) {
        const u32 own = magnitude_of(x), kept = magnitude_of(rounded);
        found.count[ZEROS] += own == 0;
        found.count[NANS] += own > INFINITE;
        found.count[INFS] += own == INFINITE;
        found.count[LOST] += kept >= INFINITE;
        if (own >= INFINITE)
            return;
        found.count[FLUSHED] += own > 0 && kept == 0;
        found.count[SUBNORMAL] += kept > 0 && kept < record.smallest_normal;
        found.count[OVERFLOWED] += kept >= INFINITE;
        if (bins && own > 0) {
            const int bin = (int)(magnitude_of(seen) >> 23) - LOWEST;
            atomicAdd(&bins[bin < 0 ? 0 : bin < BINS ? bin : BINS - 1], 1u);
        }
    }

    template <int N> __device__ __forceinline__ void run(i64 at) {
        float x[N], seen[N], kept[N];
        load_span<N>(record.gradient, at, x);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float rounded = round_to<format>(x[i]);
            seen[i] = x[i] * inverse;
            kept[i] = rounded * inverse;
            count_one(x[i], rounded, seen[i]);
            found.count[KEPT] += magnitude_of(kept[i]) < INFINITE;
        }
        store_span<N>(record.gradient, at, kept);
        add_sums<N>(seen, x, inverse, found.seen_largest, &found.sum[SEEN]);
        if (format != FORMAT_FP32)
            add_sums<N>(kept, kept, 1, found.stored_largest, &found.sum[STORED]);
    }
};

template <Format format>
static __device__ __forceinline__ void scan_piece(const Piece<ScanRecord> &piece, float inverse,
                                                  u32 *bins, Found &found) {
    Scan<format> scan = {*piece.record, inverse, bins, {}};
    find_nothing(scan.found);
    for_piece(piece, piece.record->wide, scan);
    found = scan.found;
    if (format == FORMAT_FP32) { // what is left behind is what was seen
        found.sum[STORED] = found.sum[SEEN];
        found.sum[STORED_SQUARES] = found.sum[SEEN_SQUARES];
        found.stored_largest = found.seen_largest;
    }
}

// What a block found, told by the first thread; the counts of each warp were added up before.
static __device__ __forceinline__ void tell(const ScanArguments &a, const Piece<ScanRecord> &piece,
                                            const u32 *count, const double *sum, u32 seen_largest,
                                            u32 stored_largest) {
    a.sums[blockIdx.x] = ScanSums{sum[SEEN], sum[SEEN_SQUARES], sum[STORED], sum[STORED_SQUARES]};
    if (count[LOST])
        atomicExch(&a.flags->found_inf, 1u);
    add_count(&a.flags->count, count[KEPT]);
    take_most(&a.flags->largest, stored_largest);
    GradStats *stats = piece.record->stats;
    if (!stats)
        return;
    add_count(&stats->count, (u32)(piece.end - piece.begin));
    add_count(&stats->zeros, count[ZEROS]);
    add_count(&stats->nans, count[NANS]);
    add_count(&stats->infs, count[INFS]);
    add_count(&stats->flushed, count[FLUSHED]);
    add_count(&stats->subnormal, count[SUBNORMAL]);
    add_count(&stats->overflowed, count[OVERFLOWED]);
    take_most(&stats->largest, seen_largest);
}

// ---- the kernels --------------------------------------------------------------------------------

GPU_DEFINE(scan_begin) {
    const ScanRecord &record = ((const ScanRecord *)a.table.records)[blockIdx.x];
    if (blockIdx.x == a.table.tensors) {
        if (threadIdx.x == 0)
            *a.flags = StepFlags{0, 1, 0, 0, 0, 0, 0};
        return;
    }
    if (!record.stats || record.adds)
        return;
    u64 *const word = (u64 *)record.stats;
    for (u32 i = threadIdx.x; i < sizeof(GradStats) / sizeof *word; i += GPU_THREADS_scan_begin)
        word[i] = 0;
}
static_assert(sizeof(GradStats) % sizeof(u64) == 0, "statistics are cleared by words");

GPU_DEFINE(scan) {
    SHARED(u32, bins, PIECE_WARPS * BINS);
    SHARED(double, sums, PIECE_WARPS *SUMS);
    SHARED(u32, counts, COUNTS + 2);
    const Piece<ScanRecord> piece = piece_of_block<ScanRecord>(a.table);
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool is_counted = piece.record->stats != nullptr;
    for (u32 i = threadIdx.x; i < PIECE_WARPS * BINS; i += PIECE_THREADS)
        bins[i] = 0;
    if (threadIdx.x < COUNTS + 2)
        counts[threadIdx.x] = 0;
    __syncthreads();
    const float inverse = a.scale ? (float)(1.0 / (double)a.scale->scale) : 1;
    u32 *const own = is_counted ? &bins[warp * BINS] : nullptr;
    Found found;
    switch (piece.record->round_to) {
    case FORMAT_FP16: scan_piece<FORMAT_FP16>(piece, inverse, own, found); break;
    case FORMAT_BF16: scan_piece<FORMAT_BF16>(piece, inverse, own, found); break;
    case FORMAT_TF32: scan_piece<FORMAT_TF32>(piece, inverse, own, found); break;
    case FORMAT_E4M3: scan_piece<FORMAT_E4M3>(piece, inverse, own, found); break;
    case FORMAT_E5M2: scan_piece<FORMAT_E5M2>(piece, inverse, own, found); break;
    default: scan_piece<FORMAT_FP32>(piece, inverse, own, found); break;
    }
#pragma unroll
    for (int k = 0; k < COUNTS; k++) {
        const u32 count = __reduce_add_sync(~0u, found.count[k]);
        if (lane == 0)
            atomicAdd(&counts[k], count);
    }
    const u32 seen = __reduce_max_sync(~0u, found.seen_largest);
    const u32 stored = __reduce_max_sync(~0u, found.stored_largest);
    if (lane == 0) {
        atomicMax(&counts[COUNTS], seen);
        atomicMax(&counts[COUNTS + 1], stored);
    }
    block_sums<PIECE_WARPS>(found.sum, sums);
    if (threadIdx.x == 0)
        tell(a, piece, counts, found.sum, counts[COUNTS], counts[COUNTS + 1]);
    if (!is_counted)
        return;
    for (u32 bin = threadIdx.x; bin < BINS; bin += PIECE_THREADS) {
        u32 count = 0;
#pragma unroll
        for (int i = 0; i < PIECE_WARPS; i++)
            count += bins[i * BINS + bin];
        add_count(&piece.record->stats->exponents[bin], count);
    }
}

// Block `tensors` adds up what is left behind of all of them; every other, what was seen of one.
GPU_DEFINE(scan_end) {
    SHARED(double, between, 2 * PIECE_WARPS);
    const bool all = blockIdx.x == a.table.tensors;
    const ScanRecord &record = ((const ScanRecord *)a.table.records)[all ? 0 : blockIdx.x];
    const u32 first = all ? 0 : record.pieces.first;
    const u32 end = all ? a.table.pieces : first + record.pieces.number;
    if (!all && !record.stats)
        return;
    double sum[2] = {0, 0};
    for (u32 i = first + threadIdx.x; i < end; i += PIECE_THREADS) {
        sum[0] += all ? a.sums[i].kept : a.sums[i].seen;
        sum[1] += all ? a.sums[i].kept_squares : a.sums[i].seen_squares;
    }
    block_sums<PIECE_WARPS>(sum, between);
    if (threadIdx.x != 0)
        return;
    if (all) {
        a.flags->sum = sum[0];
        a.flags->norm_squared = sum[1];
    } else {
        record.stats->sum = (record.adds ? record.stats->sum : 0) + sum[0];
        record.stats->sum_squares = (record.adds ? record.stats->sum_squares : 0) + sum[1];
    }
}
