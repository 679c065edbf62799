// Normalisation down the channels: batch normalisation, and the gradients of all weights and
// biases.
#include "gpu/kernels/columns.h"
#include "gpu/kernels/team.h"

// ---- what weights and biases get ----------------------------------------------------------------

struct WeightSums {
    float products, gradients; // dy n, and dy
};
struct AddWeightSums {
    __device__ __forceinline__ WeightSums operator()(const WeightSums &x,
                                                     const WeightSums &y) const {
        return WeightSums{x.products + y.products, x.gradients + y.gradients};
    }
};

// The sums of a part of the rows.
template <int width> static __device__ __forceinline__ void sum_weights(const NormArguments &a) {
    const ColumnWalk<width> walk(a.team, a.channels, a.rows, a.part);
    WeightSums sums[width];
    float mean[width], inverse[width];
    u32 group[width];
#pragma unroll
    for (int k = 0; k < width; k++) {
        sums[k] = WeightSums{0, 0};
        mean[k] = inverse[k] = 0;
        group[k] = (u32)quotient(walk.column + k, a.group);
    }
    i64 image = -1; // of which mean and inverse are
    for (i64 i = walk.begin + walk.row; i < walk.end; i += walk.down) {
        const i64 own = quotient(i, a.rows_of_set);
        if (own != image) {
            image = own;
#pragma unroll
            for (int k = 0; k < width; k++) {
                mean[k] = load_float(a.mean, image * a.groups + group[k]);
                inverse[k] = load_float(a.inverse, image * a.groups + group[k]);
            }
        }
        float x[width], dy[width];
        walk.load(a.x, i * a.channels + walk.column, x);
        walk.load(a.dy, i * a.channels + walk.column, dy);
#pragma unroll
        for (int k = 0; k < width; k++) {
            sums[k].products += dy[k] * ((x[k] - mean[k]) * inverse[k]);
            sums[k].gradients += dy[k];
        }
    }
    walk.join(sums, AddWeightSums());
    if (walk.valid && walk.row == 0)
#pragma unroll
        for (int k = 0; k < width; k++) {
            const i64 at = blockIdx.y * a.channels + walk.column + k;
            a.partial[at] = sums[k].products;
            a.partial[gridDim.y * a.channels + at] = sums[k].gradients;
        }
}

GPU_DEFINE(norm_weights) {
    if (a.wide)
        sum_weights<EIGHT>(a);
    else
        sum_weights<1>(a);
}

// ---- statistics of a batch ----------------------------------------------------------------------

// Of so many numbers the mean, and the sum of the squares of the differences from it.
struct Moments {
    float count, mean, squares;
};

struct JoinMoments {
    __device__ __forceinline__ Moments operator()(const Moments &x, const Moments &y) const {
        if (y.count == 0)
            return x;
        if (x.count == 0)
            return y;
        const float count = x.count + y.count, share = y.count / count;
        const float away = y.mean - x.mean;
        return Moments{count, x.mean + away * share,
                       x.squares + y.squares + away * away * (x.count * share)};
    }
};

enum { ROWS_AT_ONCE = 4 };

// The moments of a part of the rows. A few rows' are taken exactly and joined with those before.
template <int width> static __device__ __forceinline__ void find_moments(const NormArguments &a) {
    const ColumnWalk<width> walk(a.team, a.channels, a.rows, a.part);
    Moments moments[width];
#pragma unroll
    for (int k = 0; k < width; k++)
        moments[k] = Moments{0, 0, 0};
    for (i64 i = walk.begin + walk.row; i < walk.end; i += ROWS_AT_ONCE * walk.down) {
        float x[ROWS_AT_ONCE][width], count = 0;
#pragma unroll
        for (int r = 0; r < ROWS_AT_ONCE; r++)
            if (i + r * walk.down < walk.end) {
                walk.load(a.x, (i + r * walk.down) * a.channels + walk.column, x[r]);
                count++;
            }
        const float share = 1 / count;
#pragma unroll
        for (int k = 0; k < width; k++) {
            float mean = 0, squares = 0;
#pragma unroll
            for (int r = 0; r < ROWS_AT_ONCE; r++)
                mean += i + r * walk.down < walk.end ? x[r][k] * share : 0;
#pragma unroll
            for (int r = 0; r < ROWS_AT_ONCE; r++)
                squares += i + r * walk.down < walk.end ? (x[r][k] - mean) * (x[r][k] - mean) : 0;
            moments[k] = JoinMoments()(moments[k], Moments{count, mean, squares});
        }
    }
    walk.join(moments, JoinMoments());
    if (walk.valid && walk.row == 0)
#pragma unroll
        for (int k = 0; k < width; k++) {
            const i64 at = blockIdx.y * a.channels + walk.column + k;
            a.partial[at] = moments[k].mean;
            a.partial[gridDim.y * a.channels + at] = moments[k].squares;
        }
}

GPU_DEFINE(batch_moments) {
    if (a.wide)
        find_moments<EIGHT>(a);
    else
        find_moments<1>(a);
}

// Joins those of all parts, a warp a channel.
GPU_DEFINE(batch_statistics) {
    const Team warp = team_of(WARP);
    const i64 channel = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const bool valid = channel < a.channels;
    Moments moments = {0, 0, 0};
    for (i64 i = warp.member; valid && i < a.parts; i += WARP) {
        const i64 rest = a.rows - i * a.part;
        const i64 at = i * a.channels + channel;
        const Moments part = {rest > 0 ? (float)min(rest, a.part) : 0, a.partial[at],
                              a.partial[a.parts * a.channels + at]};
        moments = JoinMoments()(moments, part);
    }
    moments = join_team(warp, moments, JoinMoments());
    if (valid && warp.member == 0) {
        store_float(a.mean, channel, moments.mean);
        store_float(a.inverse, channel, 1 / sqrtf(moments.squares / (float)a.rows + a.epsilon));
    }
}

// ---- element by element -------------------------------------------------------------------------

template <int width>
static __device__ __forceinline__ void normalise_columns(const NormArguments &a) {
    const ColumnWalk<width> walk(a.team, a.channels, a.rows, a.part);
    float mean[width], factor[width], weight[width], bias[width];
    walk.load_vector(a.mean, 0, mean);
    walk.load_vector(a.inverse, 0, factor);
    walk.load_vector(a.weight, 1, weight);
    walk.load_vector(a.bias, 0, bias);
#pragma unroll
    for (int k = 0; k < width; k++)
        if (a.inverse_is_variance)
            factor[k] = 1 / sqrtf(factor[k] + a.epsilon);
    for (i64 i = walk.begin + walk.row; i < walk.end; i += walk.down) {
        const i64 at = i * a.channels + walk.column;
        float x[width];
        walk.load(a.x, at, x);
#pragma unroll
        for (int k = 0; k < width; k++)
            x[k] = (x[k] - mean[k]) * factor[k] * weight[k] + bias[k];
        walk.store(a.output, at, x);
    }
}

GPU_DEFINE(batch_apply) {
    if (a.wide)
        normalise_columns<EIGHT>(a);
    else
        normalise_columns<1>(a);
}

// With n = (x - mean) / deviation: dx = (dy - mean(dy) - n * mean(dy * n)) * weight / deviation.
template <int width>
static __device__ __forceinline__ void gradient_of_columns(const NormArguments &a) {
    const ColumnWalk<width> walk(a.team, a.channels, a.rows, a.part);
    const float share = 1 / (float)a.rows;
    float mean[width], inverse[width], weight[width], gradients[width], products[width];
    walk.load_vector(a.mean, 0, mean);
    walk.load_vector(a.inverse, 0, inverse);
    walk.load_vector(a.weight, 1, weight);
#pragma unroll
    for (int k = 0; k < width; k++) {
        products[k] = walk.valid ? a.products[walk.column + k] * share : 0;
        gradients[k] = walk.valid ? a.gradients[walk.column + k] * share : 0;
    }
    for (i64 i = walk.begin + walk.row; i < walk.end; i += walk.down) {
        const i64 at = i * a.channels + walk.column;
        float x[width], dy[width];
        walk.load(a.x, at, x);
        walk.load(a.dy, at, dy);
#pragma unroll
        for (int k = 0; k < width; k++) {
            const float normal = (x[k] - mean[k]) * inverse[k];
            dy[k] = (dy[k] - gradients[k] - normal * products[k]) * weight[k] * inverse[k];
        }
        walk.store(a.output, at, dy);
    }
}

GPU_DEFINE(batch_norm_backward) {
    if (a.wide)
        gradient_of_columns<EIGHT>(a);
    else
        gradient_of_columns<1>(a);
}

GPU_DEFINE(batch_norm_track) {
    const i64 channel = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= a.channels)
        return;
    const float inverse = load_float(a.inverse, channel);
    float variance = 1 / (inverse * inverse) - a.epsilon;
    variance = variance < 0 ? 0 : variance * a.unbiased; // below 0: the rounding of inverse
    store_float(a.new_mean, channel,
                a.old_share * load_float(a.old_mean, channel) +
                    a.new_share * load_float(a.mean, channel));
    store_float(a.new_variance, channel,
                a.old_share * load_float(a.old_variance, channel) + a.new_share * variance);
}
