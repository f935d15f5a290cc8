/* See products.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/operand.h"
#include "ops/cuda/kernels/product_tile.h"
#include "ops/cuda/kernels/products.h"

namespace
{

constexpr int AXES = 3;

/* Groups of single channels have one chain without blocks, a thread for each result. */
template <class A, class B, class Out>
__global__ void chain(A a, B b, Out out, struct ls_tile_size of)
{
    const int64_t results = of.groups * of.lines * of.columns;
    for (LS_EACH(i, results)) {
        const int64_t at = (int64_t)i, c = at % of.columns, l = at / of.columns % of.lines;
        const int64_t group = at / of.columns / of.lines;
        float sum = 0;
        for (int64_t t = 0; t < of.terms; t++)
            sum = fmaf(a(group, l, t), b(group, c, t), sum);
        out(group, l, c, sum + 0.0F);
    }
}

template <class A, class B, class Out>
int launch(cudaStream_t stream, const A &a, const B &b, const Out &out,
           const struct ls_tile_size &of, bool single)
{
    const A left = a;
    const B right = b;
    const Out to = out;
    const struct ls_tile_size all = of;
    const int64_t results = of.groups * of.lines * of.columns;
    if (!single || results <= 0)
        return ls_tile_launch(stream, a, b, out, of);
    return LS_LAUNCH((chain<A, B, Out>), ls_blocks((uint64_t)results), LS_THREADS, stream, left,
                     right, to, all);
}

/* ---- Matrices -------------------------------------------------------------------------------- */

struct matrix {
    struct ls_operand data;
    int64_t line, term; /* steps */
    __device__ float operator()(int64_t, int64_t at, int64_t t) const
    {
        return data[at * line + t * term];
    }
};

__device__ inline bool ls_tile_by_line(const struct matrix &matrix)
{
    return matrix.term == 1;
}

__device__ inline float finish(float sum, const float *bias, int64_t channel, bool relu,
                               float slope)
{
    if (bias != NULL)
        sum = sum + bias[channel];
    return !relu || !(sum < 0) ? sum : slope == 0 ? 0 : slope * sum;
}

struct rows {
    struct ls_result data;
    int64_t line, column;
    const float *bias; /* by column */
    bool relu;
    float slope;
    __device__ void operator()(int64_t, int64_t at, int64_t c, float sum) const
    {
        data.put(at * line + c * column, finish(sum, bias, c, relu, slope));
    }
};

/* ---- Windows --------------------------------------------------------------------------------- */

/* Steps from one sample, channel or point to the next. */
struct steps {
    int64_t sample, channel, point;
};

struct windows {
    struct ls_cuda_convolution of;
    int64_t x_points, y_points, k_points;
    struct steps x, y;
    int64_t w_point; /* from one weight of a window to the next */
};

struct steps steps_of(int64_t channels, int64_t points, bool last)
{
    return last ? steps{channels * points, 1, channels} : steps{channels * points, points, 1};
}

struct windows windows_of(const struct ls_cuda_convolution *of)
{
    struct windows windows = {*of, 1, 1, 1, {}, {}, of->last ? of->x_channels : 1};
    for (int a = 0; a < AXES; a++) {
        windows.x_points *= of->x[a];
        windows.y_points *= of->y[a];
        windows.k_points *= of->kernel[a];
    }
    windows.x = steps_of(of->groups * of->x_channels, windows.x_points, of->last);
    windows.y = steps_of(of->groups * of->y_channels, windows.y_points, of->last);
    return windows;
}

/* Where the window of position y has weight k, in x; -1: outside. */
__device__ inline int64_t find_x(const struct windows &w, int64_t y, int64_t k)
{
    int64_t place = 0, step = 1;
    for (int a = AXES - 1; a >= 0; a--) {
        const int64_t at =
            y % w.of.y[a] * w.of.stride[a] + k % w.of.kernel[a] * w.of.dilation[a] - w.of.pad[a];
        if (at < 0 || at >= w.of.x[a])
            return -1;
        place += at * step;
        step *= w.of.x[a];
        y /= w.of.y[a];
        k /= w.of.kernel[a];
    }
    return place;
}

/* x as the lines of a forward product: (sample, position of y); terms: (weight, channel of x). */
struct x_windows {
    struct windows w;
    struct ls_operand x;
    __device__ float operator()(int64_t group, int64_t at, int64_t t) const
    {
        const int64_t n = at / w.y_points, c = t % w.of.x_channels;
        const int64_t place = find_x(w, at % w.y_points, t / w.of.x_channels);
        const int64_t channel = group * w.of.x_channels + c;
        return place < 0 ? 0 : x[n * w.x.sample + channel * w.x.channel + place * w.x.point];
    }
};

/* Weights by channel of y; terms: (weight, channel of x). */
struct weights_of_y {
    struct windows w;
    struct ls_operand weights;
    __device__ float operator()(int64_t group, int64_t o, int64_t t) const
    {
        return weights[group * w.of.w_group + o * w.of.w_y + t % w.of.x_channels * w.of.w_x +
                       t / w.of.x_channels * w.w_point];
    }
};

struct to_y {
    struct windows w;
    struct ls_result y;
    __device__ void operator()(int64_t group, int64_t at, int64_t o, float sum) const
    {
        const int64_t channel = group * w.of.y_channels + o;
        y.put(at / w.y_points * w.y.sample + channel * w.y.channel + at % w.y_points * w.y.point,
              finish(sum, w.of.bias, channel, w.of.relu, w.of.slope));
    }
};

/* Positions of x that meet the same weights: along each axis those `step` apart from `first` on,
 * and of the weights those `tap_step` apart. */
struct residue {
    int64_t first[AXES], step[AXES], count[AXES], points;
    int64_t tap[AXES], tap_step[AXES], taps[AXES], weights;
};

__device__ inline int64_t x_of(const struct windows &w, const struct residue &r, int64_t at)
{
    int64_t place = 0, step = 1;
    for (int a = AXES - 1; a >= 0; a--) {
        place += (r.first[a] + at % r.count[a] * r.step[a]) * step;
        step *= w.of.x[a];
        at /= r.count[a];
    }
    return place;
}

__device__ inline int64_t weight_of(const struct windows &w, const struct residue &r, int64_t k)
{
    int64_t place = 0, step = 1;
    for (int a = AXES - 1; a >= 0; a--) {
        place += (r.tap[a] + k % r.taps[a] * r.tap_step[a]) * step;
        step *= w.of.kernel[a];
        k /= r.taps[a];
    }
    return place;
}

/* Where weight k of the residue's lies at its position `at`, in y; -1: outside. */
__device__ inline int64_t find_y(const struct windows &w, const struct residue &r, int64_t at,
                                 int64_t k)
{
    int64_t place = 0, step = 1;
    for (int a = AXES - 1; a >= 0; a--) {
        const int64_t x = r.first[a] + at % r.count[a] * r.step[a];
        const int64_t tap = r.tap[a] + k % r.taps[a] * r.tap_step[a];
        const int64_t distance = x + w.of.pad[a] - tap * w.of.dilation[a];
        const int64_t y = distance / w.of.stride[a];
        if (distance < 0 || y >= w.of.y[a])
            return -1;
        place += y * step;
        step *= w.of.y[a];
        at /= r.count[a];
        k /= r.taps[a];
    }
    return place;
}

/* y as lines: (sample, position of x in the residue); terms: (weight, channel of y). */
struct y_windows {
    struct windows w;
    struct residue r;
    struct ls_operand y;
    __device__ float operator()(int64_t group, int64_t at, int64_t t) const
    {
        const int64_t o = t % w.of.y_channels;
        const int64_t place = find_y(w, r, at % r.points, t / w.of.y_channels);
        const int64_t channel = group * w.of.y_channels + o;
        return place < 0
                   ? 0
                   : y[at / r.points * w.y.sample + channel * w.y.channel + place * w.y.point];
    }
};

/* Weights by channel of x; terms: (weight, channel of y). */
struct weights_of_x {
    struct windows w;
    struct residue r;
    struct ls_operand weights;
    __device__ float operator()(int64_t group, int64_t c, int64_t t) const
    {
        return weights[group * w.of.w_group + t % w.of.y_channels * w.of.w_y + c * w.of.w_x +
                       weight_of(w, r, t / w.of.y_channels) * w.w_point];
    }
};

struct to_x {
    struct windows w;
    struct residue r;
    struct ls_result x;
    __device__ void operator()(int64_t group, int64_t at, int64_t c, float sum) const
    {
        const int64_t channel = group * w.of.x_channels + c;
        x.put(at / r.points * w.x.sample + channel * w.x.channel +
                  x_of(w, r, at % r.points) * w.x.point,
              finish(sum, w.of.bias, channel, w.of.relu, w.of.slope));
    }
};

/* y by channel; terms: (sample, position of y). */
struct y_channels {
    struct windows w;
    struct ls_operand y;
    __device__ float operator()(int64_t group, int64_t o, int64_t t) const
    {
        const int64_t channel = group * w.of.y_channels + o;
        return y[t / w.y_points * w.y.sample + channel * w.y.channel + t % w.y_points * w.y.point];
    }
};

/* x by (channel, weight); terms: (sample, position of y). */
struct x_channels {
    struct windows w;
    struct ls_operand x;
    __device__ float operator()(int64_t group, int64_t at, int64_t t) const
    {
        const int64_t place = find_x(w, t % w.y_points, at % w.k_points);
        const int64_t channel = group * w.of.x_channels + at / w.k_points;
        return place < 0
                   ? 0
                   : x[t / w.y_points * w.x.sample + channel * w.x.channel + place * w.x.point];
    }
};

struct to_w {
    struct windows w;
    struct ls_result weights;
    __device__ void operator()(int64_t group, int64_t o, int64_t at, float sum) const
    {
        weights.put(group * w.of.w_group + o * w.of.w_y + at / w.k_points * w.of.w_x +
                        at % w.k_points * w.w_point,
                    sum);
    }
};

/* The weights along an axis that positions of x with this remainder meet: the first of them, how
 * far they are apart, and how many there are. */
void find_taps(const struct ls_cuda_convolution *of, int a, int64_t first, struct residue *r)
{
    r->taps[a] = 0;
    r->tap_step[a] = 1;
    for (int64_t k = 0; k < of->kernel[a]; k++) {
        if ((first + of->pad[a] - k * of->dilation[a]) % of->stride[a] != 0)
            continue;
        if (r->taps[a]++ == 0)
            r->tap[a] = k;
        else if (r->taps[a] == 2)
            r->tap_step[a] = k - r->tap[a];
    }
}

/* The residue that begins at these positions of x. */
struct residue residue_of(const struct ls_cuda_convolution *of, const int64_t first[AXES])
{
    struct residue r = {};
    r.points = r.weights = 1;
    for (int a = 0; a < AXES; a++) {
        r.first[a] = first[a];
        r.step[a] = of->stride[a];
        r.count[a] = (of->x[a] - first[a] + of->stride[a] - 1) / of->stride[a];
        find_taps(of, a, first[a], &r);
        r.points *= r.count[a];
        r.weights *= r.taps[a];
    }
    return r;
}

} // namespace

/* ---- For host code --------------------------------------------------------------------------- */

int ls_cuda_inner_product(cudaStream_t stream, const struct ls_cuda_inner *of, const void *x,
                          const void *w, void *y)
{
    const struct matrix a = {{x, of->bf16}, of->k, 1};
    const struct matrix b = {{w, of->bf16}, of->transpose ? 1 : of->k, of->transpose ? of->n : 1};
    const struct rows out = {{y, of->out_bf16}, of->n, 1, of->bias, of->relu, of->slope};
    return launch(stream, a, b, out, {of->m, of->n, of->k, 1}, false);
}

int ls_cuda_inner_product_data(cudaStream_t stream, const struct ls_cuda_inner *of, const void *dy,
                               const void *w, void *dx)
{
    const struct matrix a = {{dy, of->bf16}, of->n, 1};
    const struct matrix b = {{w, of->bf16}, of->transpose ? of->n : 1, of->transpose ? 1 : of->k};
    const struct rows out = {{dx, of->out_bf16}, of->k, 1, NULL, false, 0};
    return launch(stream, a, b, out, {of->m, of->k, of->n, 1}, false);
}

int ls_cuda_inner_product_weights(cudaStream_t stream, const struct ls_cuda_inner *of,
                                  const void *x, const void *dy, void *dw)
{
    const struct matrix a = {{dy, of->bf16}, 1, of->n}, b = {{x, of->bf16}, 1, of->k};
    const struct rows out = {
        {dw, false}, of->transpose ? 1 : of->k, of->transpose ? of->n : 1, NULL, false, 0};
    return launch(stream, a, b, out, {of->n, of->k, of->m, 1}, false);
}

static bool is_single(const struct ls_cuda_convolution *of)
{
    return of->x_channels == 1 && of->y_channels == 1;
}

int ls_cuda_convolve_to_y(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *x,
                          const void *w, void *y)
{
    const struct windows windows = windows_of(of);
    return launch(stream, x_windows{windows, {x, of->bf16}}, weights_of_y{windows, {w, of->bf16}},
                  to_y{windows, {y, of->out_bf16}},
                  {of->samples * windows.y_points, of->y_channels,
                   of->x_channels * windows.k_points, of->groups},
                  is_single(of));
}

int ls_cuda_convolve_to_x(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *y,
                          const void *w, void *x)
{
    const struct windows windows = windows_of(of);
    int code = 0;
    int64_t first[AXES];
    for (first[0] = 0; first[0] < of->stride[0] && first[0] < of->x[0]; first[0]++)
        for (first[1] = 0; first[1] < of->stride[1] && first[1] < of->x[1]; first[1]++)
            for (first[2] = 0; first[2] < of->stride[2] && first[2] < of->x[2] && code == 0;
                 first[2]++) {
                const struct residue r = residue_of(of, first);
                code = launch(stream, y_windows{windows, r, {y, of->bf16}},
                              weights_of_x{windows, r, {w, of->bf16}},
                              to_x{windows, r, {x, of->out_bf16}},
                              {of->samples * r.points, of->x_channels, of->y_channels * r.weights,
                               of->groups},
                              is_single(of));
            }
    return code;
}

int ls_cuda_convolve_to_w(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *x,
                          const void *y, void *w)
{
    const struct windows windows = windows_of(of);
    return launch(stream, y_channels{windows, {y, of->bf16}}, x_channels{windows, {x, of->bf16}},
                  to_w{windows, {w, false}},
                  {of->y_channels, of->x_channels * windows.k_points,
                   of->samples * windows.y_points, of->groups},
                  false);
}

/* The sum of a block of terms of channel c, in two chains: that from term `begin` on. */
__device__ static float sum_block(const struct ls_operand &dy, int64_t terms, int64_t channels,
                                  int64_t points, int64_t c, int64_t begin)
{
    float chain[2] = {0, 0};
    int64_t n = begin / points, p = begin % points;
    for (int64_t t = begin; t < begin + LS_TILE_TERMS && t < terms; t++) {
        const float value = dy[(n * channels + c) * points + p];
        if (t % 2 == 0)
            chain[0] = fmaf(value, 1, chain[0]);
        else
            chain[1] = fmaf(value, 1, chain[1]);
        if (++p == points) {
            p = 0;
            n++;
        }
    }
    return chain[0] + chain[1];
}

/* A block of threads has a channel, a thread a block of terms at a time; these are added up one
 * after the other. */
__global__ void sum_channels(struct ls_operand dy, int64_t samples, int64_t channels,
                             int64_t points, float *db)
{
    __shared__ float part[LS_THREADS];
    const int64_t terms = samples * points, step = LS_THREADS * LS_TILE_TERMS;
    for (int64_t c = blockIdx.x; c < channels; c += gridDim.x) {
        float sum = 0;
        for (int64_t first = 0; first < terms; first += step) {
            const int64_t begin = first + (int64_t)threadIdx.x * LS_TILE_TERMS;
            part[threadIdx.x] =
                begin < terms ? sum_block(dy, terms, channels, points, c, begin) : 0;
            __syncthreads();
            for (int64_t k = 0;
                 threadIdx.x == 0 && k < LS_THREADS && first + k * LS_TILE_TERMS < terms; k++)
                sum = sum + part[k];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            db[c] = sum + 0.0F;
    }
}

int ls_cuda_sum_channels(cudaStream_t stream, const void *dy, bool bf16, int64_t samples,
                         int64_t channels, int64_t points, float *db)
{
    const struct ls_operand from = {dy, bf16};
    if (channels <= 0)
        return 0;
    return LS_LAUNCH(sum_channels, ls_blocks((uint64_t)channels * LS_THREADS), LS_THREADS, stream,
                     from, samples, channels, points, db);
}
