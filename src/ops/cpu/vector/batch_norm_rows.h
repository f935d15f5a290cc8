/* A template for batch_norm.c: batch normalisation where the positions of a channel are contiguous.
 * Included once for fp32 and once for bf16, with NUMBER the type of an element, GET and PUT between
 * it and fp32, GETS and PUTS the same of registers in memory (GET_LOWER and GET_UPPER: halves as
 * doubles), and ROWS(name) the names of functions.
 *
 * Pointers of row_... are to the first value of a run, of others to that of a channel. Each run
 * starts anew in lane 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */

/* Part k of 16 lanes of doubles: those of the lower and of the upper half of a register. */
#define LOW(lanes)  (lanes)[2 * k]
#define HIGH(lanes) (lanes)[2 * k + 1]

static void ROWS(row_sum)(const NUMBER *restrict x, int64_t n, double *restrict lane)
{
    const int64_t whole = n - n % LS_LANES;
    DOUBLES sum[LANE_PARTS];
    load_lanes(lane, sum);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        EACH_REGISTER(k)
        {
            LOW(sum) += GET_LOWER(x + i + k * LS_WIDTH);
            HIGH(sum) += GET_UPPER(x + i + k * LS_WIDTH);
        }
    store_lanes(sum, lane);
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += (double)GET(x[i]);
}

static void ROWS(row_squares)(const NUMBER *restrict x, int64_t n, float shift,
                              double *restrict lane)
{
    const int64_t whole = n - n % LS_LANES;
    const LS_REGISTER from = LS_SPREAD(shift);
    DOUBLES sum[LANE_PARTS];
    load_lanes(lane, sum);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        EACH_REGISTER(k)
        {
            const LS_REGISTER distance = GETS(x + i + k * LS_WIDTH) - from;
            LOW(sum) = MULTIPLY_ADD(LOWER(distance), LOWER(distance), LOW(sum));
            HIGH(sum) = MULTIPLY_ADD(UPPER(distance), UPPER(distance), HIGH(sum));
        }
    store_lanes(sum, lane);
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += square_of(GET(x[i]) - shift);
}

/* dz of value i. */
static ALWAYS_INLINE float ROWS(behind)(const struct channel *channel, const NUMBER *x,
                                        const NUMBER *y, float dy, int64_t i, enum gate gate)
{
    if (gate == GATE_OPEN)
        return dy;
    float z =
        gate == GATE_Y ? GET(y[i]) : channel->scale * normal(GET(x[i]), channel) + channel->bias;
    return z > 0 ? dy : channel->slope * dy;
}

/* The same of the values from i on that a register holds. */
static ALWAYS_INLINE LS_REGISTER ROWS(all_behind)(const struct wide_channel *channel,
                                                  const NUMBER *x, const NUMBER *y, LS_REGISTER dy,
                                                  int64_t i, enum gate gate)
{
    if (gate == GATE_OPEN)
        return dy;
    LS_REGISTER z;
    if (gate == GATE_Y)
        z = GETS(y + i);
    else
        z = channel->scale * wide_normal(GETS(x + i), channel) + channel->bias;
    return POSITIVE(z, dy, channel->slope * dy);
}

static ALWAYS_INLINE void ROWS(row_sums)(const NUMBER *restrict dy, const NUMBER *restrict x,
                                         const NUMBER *restrict y, int64_t n,
                                         const struct channel *channel, enum gate gate,
                                         double *restrict lane, double *restrict lane_x)
{
    const struct wide_channel wide = widen_channel(channel);
    const int64_t whole = n - n % LS_LANES;
    DOUBLES sum[LANE_PARTS], sum_x[LANE_PARTS];
    load_lanes(lane, sum);
    load_lanes(lane_x, sum_x);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        EACH_REGISTER(k)
        {
            const int64_t at = i + k * LS_WIDTH;
            const LS_REGISTER dz = ROWS(all_behind)(&wide, x, y, GETS(dy + at), at, gate);
            const LS_REGISTER normal = wide_normal(GETS(x + at), &wide);
            LOW(sum) += LOWER(dz);
            HIGH(sum) += UPPER(dz);
            LOW(sum_x) = MULTIPLY_ADD(LOWER(dz), LOWER(normal), LOW(sum_x));
            HIGH(sum_x) = MULTIPLY_ADD(UPPER(dz), UPPER(normal), HIGH(sum_x));
        }
    store_lanes(sum, lane);
    store_lanes(sum_x, lane_x);
    for (int64_t i = whole; i < n; i++) {
        float dz = ROWS(behind)(channel, x, y, GET(dy[i]), i, gate);
        lane[i - whole] += (double)dz;
        lane_x[i - whole] += (double)dz * (double)normal(GET(x[i]), channel);
    }
}

static void ROWS(row_forward)(const NUMBER *x, int64_t n, const struct channel *channel, bool relu,
                              NUMBER *y)
{
    const struct wide_channel wide = widen_channel(channel);
    int64_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH) {
        LS_REGISTER z = wide.scale * wide_normal(GETS(x + i), &wide) + wide.bias;
        if (relu)
            z = POSITIVE(z, z, wide.slope * z);
        PUTS(y + i, z);
    }
    for (; i < n; i++) {
        float z = channel->scale * normal(GET(x[i]), channel) + channel->bias;
        y[i] = PUT(!relu || z > 0 ? z : channel->slope * z);
    }
}

static ALWAYS_INLINE void ROWS(row_backward)(const NUMBER *dy, const NUMBER *x, const NUMBER *y,
                                             int64_t n, const struct channel *channel,
                                             enum gate gate, NUMBER *dx)
{
    const struct wide_channel wide = widen_channel(channel);
    int64_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH) {
        LS_REGISTER dz = ROWS(all_behind)(&wide, x, y, GETS(dy + i), i, gate);
        if (x != NULL)
            dz = (dz - wide.mean_dz) - wide_normal(GETS(x + i), &wide) * wide.mean_dzx;
        PUTS(dx + i, wide.factor * dz);
    }
    for (; i < n; i++) {
        float dz = ROWS(behind)(channel, x, y, GET(dy[i]), i, gate);
        if (x != NULL)
            dz = (dz - channel->mean_dz) - normal(GET(x[i]), channel) * channel->mean_dzx;
        dx[i] = PUT(channel->factor * dz);
    }
}

#undef LOW
#undef HIGH

/* ---- Channels -------------------------------------------------------------------------------- */

static void ROWS(moments)(const struct ls_batch_norm_view *view, const NUMBER *x, double *mean,
                          double *m2)
{
    for (int64_t c = 0; c < view->channels; c++) {
        const NUMBER *first = x + c * view->block_stride;
        double lane[LS_LANES] = {0}, square[LS_LANES] = {0};
        float shift;
        for (int64_t run = 0; run < view->runs; run++)
            ROWS(row_sum)(first + run * view->run_stride, view->points, lane);
        mean[c] = ls_fold_lanes_double(lane);
        to_mean(view, 1, &mean[c], &shift);
        for (int64_t run = 0; run < view->runs; run++)
            ROWS(row_squares)(first + run * view->run_stride, view->points, shift, square);
        m2[c] = ls_fold_lanes_double(square);
        to_m2(view, 1, &mean[c], &shift, &m2[c]);
    }
}

static void ROWS(forward)(const struct ls_batch_norm_view *view,
                          const struct ls_batch_norm_channels *channels, const NUMBER *x, NUMBER *y)
{
    for (int64_t c = 0; c < view->channels; c++) {
        const struct channel channel = channel_at(channels, c);
        for (int64_t run = 0; run < view->runs; run++) {
            int64_t at = c * view->block_stride + run * view->run_stride;
            ROWS(row_forward)(x + at, view->points, &channel, channels->relu, y + at);
        }
    }
}

static void ROWS(sums_of_channel)(const struct ls_batch_norm_view *view,
                                  const struct channel *channel, bool relu, const NUMBER *dy,
                                  const NUMBER *x, const NUMBER *y, double *sum_dz, double *sum_dzx)
{
    double lane[LS_LANES] = {0}, lane_x[LS_LANES] = {0};
    for (int64_t run = 0; run < view->runs; run++) {
        int64_t at = run * view->run_stride;
        if (!relu)
            ROWS(row_sums)(dy + at, x + at, NULL, view->points, channel, GATE_OPEN, lane, lane_x);
        else if (y != NULL)
            ROWS(row_sums)(dy + at, x + at, y + at, view->points, channel, GATE_Y, lane, lane_x);
        else
            ROWS(row_sums)(dy + at, x + at, NULL, view->points, channel, GATE_X, lane, lane_x);
    }
    *sum_dz = ls_fold_lanes_double(lane);
    *sum_dzx = ls_fold_lanes_double(lane_x);
}

static void ROWS(sums)(const struct ls_batch_norm_view *view,
                       const struct ls_batch_norm_channels *channels, const NUMBER *dy,
                       const NUMBER *x, const NUMBER *y, double *sum_dz, double *sum_dzx)
{
    for (int64_t c = 0; c < view->channels; c++) {
        const struct channel channel = channel_at(channels, c);
        int64_t o = c * view->block_stride;
        ROWS(sums_of_channel)
        (view, &channel, channels->relu, dy + o, x + o, y == NULL ? NULL : y + o, sum_dz + c,
         sum_dzx + c);
    }
}

static void ROWS(backward_of_channel)(const struct ls_batch_norm_view *view,
                                      const struct channel *channel, bool relu, const NUMBER *dy,
                                      const NUMBER *x, const NUMBER *y, NUMBER *dx)
{
    for (int64_t run = 0; run < view->runs; run++) {
        int64_t at = run * view->run_stride;
        const NUMBER *from = x == NULL ? NULL : x + at;
        if (!relu)
            ROWS(row_backward)(dy + at, from, NULL, view->points, channel, GATE_OPEN, dx + at);
        else if (y != NULL)
            ROWS(row_backward)(dy + at, from, y + at, view->points, channel, GATE_Y, dx + at);
        else
            ROWS(row_backward)(dy + at, from, NULL, view->points, channel, GATE_X, dx + at);
    }
}

static void ROWS(backward)(const struct ls_batch_norm_view *view,
                           const struct ls_batch_norm_channels *channels, const NUMBER *dy,
                           const NUMBER *x, const NUMBER *y, NUMBER *dx)
{
    for (int64_t c = 0; c < view->channels; c++) {
        struct channel channel = channel_at(channels, c);
        channel.factor = channels->factor[c];
        if (x != NULL) {
            channel.mean_dz = channels->mean_dz[c];
            channel.mean_dzx = channels->mean_dzx[c];
        }
        int64_t o = c * view->block_stride;
        ROWS(backward_of_channel)
        (view, &channel, channels->relu, dy + o, x == NULL ? NULL : x + o, y == NULL ? NULL : y + o,
         dx + o);
    }
}
