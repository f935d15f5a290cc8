/* A template for lrn_across.c: between tiles of a tensor and buffers. Included once for fp32 and
 * once for bf16, with NUMBER the type of the tensor's elements, GET and PUT between it and fp32,
 * and RUNS(name) the names of functions. Buffers, and what is kept for the backward pass, are fp32.
 *
 * SPDX-License-Identifier: BSD-2-Clause */

static ALWAYS_INLINE void RUNS(square)(const NUMBER *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = GET(x[i]) * GET(x[i]);
}

static ALWAYS_INLINE void RUNS(multiply)(const NUMBER *restrict a, const float *restrict b,
                                         NUMBER *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = PUT(GET(a[i]) * b[i]);
}

static ALWAYS_INLINE void RUNS(multiply3)(const NUMBER *restrict a, const NUMBER *restrict b,
                                          const float *restrict c, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = GET(a[i]) * GET(b[i]) * c[i];
}

static ALWAYS_INLINE void RUNS(gradient)(const NUMBER *restrict dy, const float *restrict power,
                                         const NUMBER *restrict x, float slope,
                                         const float *restrict sum, NUMBER *restrict dx, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = PUT(GET(dy[i]) * power[i] - slope * GET(x[i]) * sum[i]);
}

static void RUNS(gather_squares)(const struct tile *tile, const NUMBER *x, float *window)
{
#define RUN(m, b, n) RUNS(square)(x + (m), window + (b), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

static void RUNS(scatter_product)(const struct tile *tile, const NUMBER *x, const float *power,
                                  NUMBER *y)
{
#define RUN(m, b, n) RUNS(multiply)(x + (m), power + (b), y + (m), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

static void RUNS(gather_ratios)(const struct tile *tile, const NUMBER *y, const NUMBER *dy,
                                const float *inverse, float *window)
{
#define RUN(m, b, n) RUNS(multiply3)(dy + (m), y + (m), inverse + (b), window + (b), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

static void RUNS(scatter_gradient)(const struct tile *tile, const struct buffers *at, float slope,
                                   const NUMBER *x, const NUMBER *dy, NUMBER *dx)
{
#define RUN(m, b, n)                                                                               \
    RUNS(gradient)(dy + (m), at->power + (b), x + (m), slope, at->sum + (b), dx + (m), n)
    EACH_RUN(tile, RUN);
#undef RUN
}

static void RUNS(forward_tile)(const struct ls_lrn *lrn, const struct tile *tile,
                               const struct buffers *at, const NUMBER *x, NUMBER *y, float *scale)
{
    RUNS(gather_squares)(tile, x, at->window);
    sum_window(lrn, tile, at);
    ls_lrn_scale(lrn, tile->elements, at->sum);
    ls_lrn_powers(lrn->beta, at->sum, tile->elements, at->power, at->inverse);
    clear_lanes(lrn, tile, at->power);
    RUNS(scatter_product)(tile, x, at->power, y);
    if (scale == NULL)
        return;
    clear_lanes(lrn, tile, at->sum);
    scatter(tile, at->sum, scale);
}

static void RUNS(forward)(const struct ls_lrn *lrn, const NUMBER *x, NUMBER *y, float *scale,
                          float *scratch)
{
    int64_t points = lrn->height * lrn->width, step = tile_positions(lrn);
    const struct buffers at = make_buffers(lrn, scratch);
    for (int64_t n = 0; n < lrn->samples; n++)
        for (int64_t p = 0; p < points; p += step) {
            const struct tile tile = make_tile(lrn, step < points - p ? step : points - p);
            int64_t first = n * sample_elements(lrn) + p * lrn->block;
            RUNS(forward_tile)
            (lrn, &tile, &at, x + first, y + first, scale != NULL ? scale + first : NULL);
        }
}

static void RUNS(backward)(const struct ls_lrn *lrn, const NUMBER *x, const NUMBER *y,
                           const NUMBER *dy, const float *scale, NUMBER *dx, float *scratch)
{
    int64_t points = lrn->height * lrn->width, step = tile_positions(lrn);
    const struct buffers at = make_buffers(lrn, scratch);
    for (int64_t n = 0; n < lrn->samples; n++)
        for (int64_t p = 0; p < points; p += step) {
            const struct tile tile = make_tile(lrn, step < points - p ? step : points - p);
            int64_t first = n * sample_elements(lrn) + p * lrn->block;
            gather(&tile, scale + first, at.sum);
            ls_lrn_powers(lrn->beta, at.sum, tile.elements, at.power, at.inverse);
            RUNS(gather_ratios)(&tile, y + first, dy + first, at.inverse, at.window);
            clear_lanes(lrn, &tile, at.window);
            sum_window(lrn, &tile, &at);
            clear_lanes(lrn, &tile, at.power);
            clear_lanes(lrn, &tile, at.sum);
            RUNS(scatter_gradient)(&tile, &at, lrn->slope, x + first, dy + first, dx + first);
        }
}
