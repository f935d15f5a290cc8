/* A template: batch normalisation where channels lie side by side, WIDTH of them at a time.
 * Included once for each width by batch_norm.c, with NAME(x) giving the names, for example load16.
 * The registers are those of batch_norm_registers.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */

/* A sum in double of each of WIDTH channels. */
struct NAME(sum) {
    NAME(dreg) low, high;
};

static ALWAYS_INLINE void NAME(add)(struct NAME(sum) * sum, NAME(reg) x)
{
    sum->low += NAME(lower)(x);
    sum->high += NAME(upper)(x);
}

static ALWAYS_INLINE void NAME(add_from)(struct NAME(sum) * sum, const float *x)
{
    sum->low += NAME(load_lower)(x);
    sum->high += NAME(load_upper)(x);
}

static ALWAYS_INLINE void NAME(add_product)(struct NAME(sum) * sum, NAME(reg) x, NAME(reg) y)
{
    sum->low = NAME(multiply_add)(NAME(lower)(x), NAME(lower)(y), sum->low);
    sum->high = NAME(multiply_add)(NAME(upper)(x), NAME(upper)(y), sum->high);
}

static ALWAYS_INLINE struct NAME(sum) NAME(join)(struct NAME(sum) a, struct NAME(sum) b)
{
    return (struct NAME(sum)){a.low + b.low, a.high + b.high};
}

static ALWAYS_INLINE void NAME(column_sum)(const struct ls_batch_norm_view *view, const float *x,
                                           double *sum)
{
    struct NAME(sum) a = {0}, b = {0}, c = {0}, d = {0};
#define TERM(at, sum) NAME(add_from)(&(sum), x + (at))
    EACH_POSITION(view, TERM, a, b, c, d);
#undef TERM
    a = NAME(join)(NAME(join)(a, c), NAME(join)(b, d));
    NAME(store_doubles)(sum, a.low, a.high);
}

/* The sum of (x - shift)^2. */
static ALWAYS_INLINE void NAME(column_squares)(const struct ls_batch_norm_view *view,
                                               const float *x, const float *shift, double *squares)
{
    const NAME(reg) centre = NAME(load)(shift);
    struct NAME(sum) a = {0}, b = {0}, c = {0}, d = {0};
#define TERM(at, sum)                                                                              \
    do {                                                                                           \
        NAME(reg) distance = NAME(load)(x + (at)) - centre;                                        \
        NAME(add_product)(&(sum), distance, distance);                                             \
    } while (0)
    EACH_POSITION(view, TERM, a, b, c, d);
#undef TERM
    a = NAME(join)(NAME(join)(a, c), NAME(join)(b, d));
    NAME(store_doubles)(squares, a.low, a.high);
}

static ALWAYS_INLINE void NAME(piece_moments)(const struct ls_batch_norm_view *piece,
                                              const float *x, double *mean, double *m2)
{
    float shift[WIDTH];
    NAME(column_sum)(piece, x, mean);
    to_mean(piece, WIDTH, mean, shift);
    NAME(column_squares)(piece, x, shift, m2);
    to_m2(piece, WIDTH, mean, shift, m2);
}

/* Piece by piece, so that the second look at the values of each finds them in the nearest cache. */
static void NAME(column_moments)(const struct ls_batch_norm_view *view, const float *x,
                                 double *mean, double *m2)
{
    struct ls_batch_norm_view piece = *view;
    const int64_t runs = PIECE / view->points > 1 ? PIECE / view->points : 1;
    double count = 0, next_mean[WIDTH], next_m2[WIDTH];
    for (int64_t run = 0; run < view->runs; run += runs)
        for (int64_t p = 0; p < view->points; p += PIECE) {
            const float *first = x + run * view->run_stride + p * view->point_stride;
            piece.runs = runs < view->runs - run ? runs : view->runs - run;
            piece.points = PIECE < view->points - p ? PIECE : view->points - p;
            if (count == 0) {
                NAME(piece_moments)(&piece, first, mean, m2);
            } else {
                NAME(piece_moments)(&piece, first, next_mean, next_m2);
                join_moments(WIDTH, count, value_count(&piece), next_mean, next_m2, mean, m2);
            }
            count += value_count(&piece);
        }
}

static ALWAYS_INLINE NAME(reg)
    NAME(normal)(NAME(reg) x, NAME(reg) mean, NAME(reg) rest, NAME(reg) inv_std)
{
    return ((x - mean) - rest) * inv_std;
}

static ALWAYS_INLINE void NAME(forward)(const struct ls_batch_norm_view *view,
                                        const struct ls_batch_norm_channels *channels, int64_t c,
                                        const float *x, float *y, bool relu)
{
    const NAME(reg) mean = NAME(load)(channels->mean + c), rest = NAME(load)(channels->rest + c);
    const NAME(reg) inv_std = NAME(load)(channels->inv_std + c);
    const NAME(reg) scale = NAME(load)(channels->scale + c), bias = NAME(load)(channels->bias + c);
    const float slope = channels->slope;
#define STEP(at, unused)                                                                           \
    do {                                                                                           \
        NAME(reg) z = scale * NAME(normal)(NAME(load)(x + (at)), mean, rest, inv_std) + bias;      \
        NAME(store)(y + (at), relu ? NAME(positive)(z, z, slope * z) : z);                         \
    } while (0)
    EACH_POSITION(view, STEP, , , , );
#undef STEP
}

static void NAME(column_forward)(const struct ls_batch_norm_view *view,
                                 const struct ls_batch_norm_channels *channels, int64_t c,
                                 const float *x, float *y)
{
    if (channels->relu)
        NAME(forward)(view, channels, c, x, y, true);
    else
        NAME(forward)(view, channels, c, x, y, false);
}

/* dz of the values at y and dy; z is what y was made of, as in the forward pass. */
static ALWAYS_INLINE NAME(reg)
    NAME(behind)(NAME(reg) z, const float *y, const float *dy, float slope, enum gate gate)
{
    NAME(reg) gradient = NAME(load)(dy);
    if (gate == GATE_OPEN)
        return gradient;
    return NAME(positive)(gate == GATE_Y ? NAME(load)(y) : z, gradient, slope * gradient);
}

static ALWAYS_INLINE void NAME(sums)(const struct ls_batch_norm_view *view,
                                     const struct ls_batch_norm_channels *channels, int64_t c,
                                     const float *dy, const float *x, const float *y,
                                     double *sum_dz, double *sum_dzx, enum gate gate)
{
    const NAME(reg) mean = NAME(load)(channels->mean + c), rest = NAME(load)(channels->rest + c);
    const NAME(reg) inv_std = NAME(load)(channels->inv_std + c);
    const NAME(reg) scale = NAME(load)(channels->scale + c), bias = NAME(load)(channels->bias + c);
    const float slope = channels->slope;
    struct NAME(sum) a = {0}, b = {0}, ax = {0}, bx = {0};
#define TERM(at, sum)                                                                              \
    do {                                                                                           \
        NAME(reg) normal = NAME(normal)(NAME(load)(x + (at)), mean, rest, inv_std);                \
        NAME(reg) dz = NAME(behind)(scale * normal + bias, y + (at), dy + (at), slope, gate);      \
        NAME(add)(&(sum), dz);                                                                     \
        NAME(add_product)(&(sum##x), dz, normal);                                                  \
    } while (0)
    EACH_POSITION(view, TERM, a, b, a, b);
#undef TERM
    a = NAME(join)(a, b);
    ax = NAME(join)(ax, bx);
    NAME(store_doubles)(sum_dz, a.low, a.high);
    NAME(store_doubles)(sum_dzx, ax.low, ax.high);
}

static void NAME(column_sums)(const struct ls_batch_norm_view *view,
                              const struct ls_batch_norm_channels *channels, int64_t c,
                              const float *dy, const float *x, const float *y, double *sum_dz,
                              double *sum_dzx)
{
    if (!channels->relu)
        NAME(sums)(view, channels, c, dy, x, NULL, sum_dz, sum_dzx, GATE_OPEN);
    else if (y != NULL)
        NAME(sums)(view, channels, c, dy, x, y, sum_dz, sum_dzx, GATE_Y);
    else
        NAME(sums)(view, channels, c, dy, x, NULL, sum_dz, sum_dzx, GATE_X);
}

static ALWAYS_INLINE void NAME(backward)(const struct ls_batch_norm_view *view,
                                         const struct ls_batch_norm_channels *channels, int64_t c,
                                         const float *dy, const float *x, const float *y, float *dx,
                                         enum gate gate)
{
    const NAME(reg) mean = NAME(load)(channels->mean + c), rest = NAME(load)(channels->rest + c);
    const NAME(reg) inv_std = NAME(load)(channels->inv_std + c);
    const NAME(reg) scale = NAME(load)(channels->scale + c), bias = NAME(load)(channels->bias + c);
    const NAME(reg) factor = NAME(load)(channels->factor + c);
    const NAME(reg) mean_dz = NAME(load)(channels->mean_dz + c);
    const NAME(reg) mean_dzx = NAME(load)(channels->mean_dzx + c);
    const float slope = channels->slope;
#define STEP(at, unused)                                                                           \
    do {                                                                                           \
        NAME(reg) normal = NAME(normal)(NAME(load)(x + (at)), mean, rest, inv_std);                \
        NAME(reg) dz = NAME(behind)(scale * normal + bias, y + (at), dy + (at), slope, gate);      \
        NAME(store)(dx + (at), factor * ((dz - mean_dz) - normal * mean_dzx));                     \
    } while (0)
    EACH_POSITION(view, STEP, , , , );
#undef STEP
}

static ALWAYS_INLINE void NAME(scaled)(const struct ls_batch_norm_view *view,
                                       const struct ls_batch_norm_channels *channels, int64_t c,
                                       const float *dy, const float *y, float *dx, enum gate gate)
{
    const NAME(reg) factor = NAME(load)(channels->factor + c);
    const float slope = channels->slope;
#define STEP(at, unused)                                                                           \
    NAME(store)(dx + (at), factor * NAME(behind)(factor, y + (at), dy + (at), slope, gate))
    EACH_POSITION(view, STEP, , , , );
#undef STEP
}

static void NAME(column_backward)(const struct ls_batch_norm_view *view,
                                  const struct ls_batch_norm_channels *channels, int64_t c,
                                  const float *dy, const float *x, const float *y, float *dx)
{
    if (x == NULL && channels->relu)
        NAME(scaled)(view, channels, c, dy, y, dx, GATE_Y);
    else if (x == NULL)
        NAME(scaled)(view, channels, c, dy, NULL, dx, GATE_OPEN);
    else if (!channels->relu)
        NAME(backward)(view, channels, c, dy, x, NULL, dx, GATE_OPEN);
    else if (y != NULL)
        NAME(backward)(view, channels, c, dy, x, y, dx, GATE_Y);
    else
        NAME(backward)(view, channels, c, dy, x, NULL, dx, GATE_X);
}
