/* A template: pooling over channels in blocks of BLOCK lanes. Included once for each block size by
 * pooling.c, with NAME(x) giving the names, for example maximum16.
 *
 * A block is one or several registers of LANES channels. A window's maximum (or sum) stays in
 * registers, so that each input is read from the nearest cache only. The gradient is added to all
 * positions of the window, under the mask of the winner: that needs no scatter. The registers are
 * those of pooling_registers.h, included before.
 *
 * SPDX-License-Identifier: BSD-2-Clause */

static ALWAYS_INLINE NAME(reg) NAME(masked)(NAME(ireg) mask, NAME(reg) value)
{
    return (NAME(reg))(mask & (NAME(ireg))value);
}

/* The maximum of a box of inputs, `count` along each axis, and where it lies: `base` is the
 * position of x in its plane. */
static ALWAYS_INLINE void NAME(max_box)(const float *x, const struct strides step,
                                        const struct box count, int32_t base, float *y,
                                        int32_t *index, bool indexed)
{
    for (int part = 0; part < BLOCK; part += LANES) {
        NAME(reg) best = NAME(spread)(-FLT_MAX);
        NAME(ireg) at = NAME(spread_int)(~base); /* so that at + base is -1 */
        for (int64_t d = 0; d < count.d; d++)
            for (int64_t h = 0; h < count.h; h++)
                for (int64_t w = 0; w < count.w; w++) {
                    int64_t offset = d * step.slice + h * step.row + w;
                    NAME(reg) value = NAME(load)(x + offset * BLOCK + part);
                    NAME(challenge)(value, NAME(spread_int)((int32_t)offset), &best, &at, indexed);
                }
        NAME(store)(y + part, best);
        if (indexed)
            *(NAME(ireg) *)(index + part) = at + NAME(spread_int)(base);
    }
}

/* Adds the gradient to where the maximum came from. `store`: the box is written instead. */
static ALWAYS_INLINE void NAME(max_box_backward)(const float *dy, const int32_t *index,
                                                 const struct strides step, const struct box count,
                                                 int32_t base, float *dx, bool store)
{
    for (int part = 0; part < BLOCK; part += LANES) {
        NAME(reg) gradient = NAME(load)(dy + part);
        NAME(ireg) at = *(const NAME(ireg) *)(index + part) - NAME(spread_int)(base);
        for (int64_t d = 0; d < count.d; d++)
            for (int64_t h = 0; h < count.h; h++)
                for (int64_t w = 0; w < count.w; w++) {
                    int64_t offset = d * step.slice + h * step.row + w;
                    float *to = dx + offset * BLOCK + part;
                    NAME(ireg) here = at == NAME(spread_int)((int32_t)offset);
                    NAME(reg) share = NAME(masked)(here, gradient);
                    /* Adding to zero turns -0 into 0, as the other path does. */
                    NAME(store)(to, share + (store ? (NAME(reg)){0} : NAME(load)(to)));
                }
    }
}

static ALWAYS_INLINE void NAME(average_box)(const float *x, const struct strides step,
                                            const struct box count, float factor, float *y)
{
    for (int part = 0; part < BLOCK; part += LANES) {
        NAME(reg) sum = {0};
        for (int64_t d = 0; d < count.d; d++)
            for (int64_t h = 0; h < count.h; h++)
                for (int64_t w = 0; w < count.w; w++)
                    sum += NAME(load)(x + (d * step.slice + h * step.row + w) * BLOCK + part);
        NAME(store)(y + part, sum * factor);
    }
}

static ALWAYS_INLINE void NAME(average_box_backward)(const float *dy, const struct strides step,
                                                     const struct box count, float factor,
                                                     float *dx)
{
    for (int part = 0; part < BLOCK; part += LANES) {
        NAME(reg) share = NAME(load)(dy + part) * factor;
        for (int64_t d = 0; d < count.d; d++)
            for (int64_t h = 0; h < count.h; h++)
                for (int64_t w = 0; w < count.w; w++) {
                    float *to = dx + (d * step.slice + h * step.row + w) * BLOCK + part;
                    NAME(store)(to, NAME(load)(to) + share);
                }
    }
}

/* What is done with the window of one output; dispatched at compile time. */
static ALWAYS_INLINE void NAME(one_window)(enum task task, const struct strides step,
                                           const struct box count, int32_t base, float factor,
                                           const struct arrays *at, int64_t output)
{
    float *inner = at->inner + (int64_t)base * BLOCK, *outer = at->outer + output * BLOCK;
    int32_t *index = at->index != NULL ? at->index + output * BLOCK : NULL;
    switch (task) {
    case MAX:
        NAME(max_box)(inner, step, count, base, outer, NULL, false);
        break;
    case MAX_INDEXED:
        NAME(max_box)(inner, step, count, base, outer, index, true);
        break;
    case MAX_BACKWARD:
        NAME(max_box_backward)(outer, index, step, count, base, inner, false);
        break;
    case MAX_BACKWARD_DISJOINT:
        NAME(max_box_backward)(outer, index, step, count, base, inner, true);
        break;
    case AVERAGE:
        NAME(average_box)(inner, step, count, factor, outer);
        break;
    case AVERAGE_BACKWARD:
        NAME(average_box_backward)(outer, step, count, factor, inner);
        break;
    }
}

/* All windows of a row of outputs. `full` has the kernel's size where that is known to the
 * compiler: then the windows inside the input are unrolled. */
static ALWAYS_INLINE void NAME(row)(enum task task, const struct ls_windows *windows,
                                    const struct box full, int64_t od, int64_t oh,
                                    const struct arrays *at)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    const struct strides step = {height->in * width->in, width->in};
    const bool averages = task == AVERAGE || task == AVERAGE_BACKWARD;
    struct box count = {depth->end[od] - depth->begin[od], height->end[oh] - height->begin[oh], 0};
    int64_t start = depth->begin[od] * step.slice + height->begin[oh] * step.row;
    bool whole = full.w > 0 && count.d == full.d && count.h == full.h;
    int64_t begin = whole ? width->full_begin : width->out;
    int64_t end = whole ? width->full_end : width->out;
    int64_t first = (od * height->out + oh) * width->out;
    for (int64_t ow = 0; ow < width->out; ow++) {
        if (ow == begin && begin < end) {
            float factor =
                averages ? ls_pooling_factor(depth->extent[od], height->extent[oh], full.w) : 0;
            int64_t base = start + begin * width->stride - width->pad;
            for (; ow < end; ow++, base += width->stride)
                NAME(one_window)(task, step, full, (int32_t)base, factor, at, first + ow);
            if (ow == width->out)
                return;
        }
        count.w = width->end[ow] - width->begin[ow];
        float factor =
            averages ? ls_pooling_factor(depth->extent[od], height->extent[oh], width->extent[ow])
                     : 0;
        NAME(one_window)
        (task, step, count, (int32_t)(start + width->begin[ow]), factor, at, first + ow);
    }
}

/* Clears the rows that the windows of output row `oh` reach and those before did not; the last
 * row of outputs clears the rest. In time for the first cache, in which they are added to. */
static ALWAYS_INLINE void NAME(clear)(const struct ls_pooling_axis *height, int64_t row, int64_t oh,
                                      float *plane)
{
    int64_t begin = oh == 0 ? 0 : height->end[oh - 1];
    int64_t end = oh + 1 == height->out ? height->in : height->end[oh];
    if (begin < end)
        memset(plane + begin * row, 0, (size_t)((end - begin) * row) * sizeof *plane);
}

static ALWAYS_INLINE void NAME(planes)(enum task task, const struct ls_windows *windows,
                                       const struct box full, struct arrays at)
{
    const struct ls_pooling_axis *axis = windows->axis;
    const bool clears = task == MAX_BACKWARD || task == AVERAGE_BACKWARD ||
                        (task == MAX_BACKWARD_DISJOINT && !windows->covered);
    int64_t in = axis[0].in * axis[1].in * axis[2].in * BLOCK;
    int64_t out = axis[0].out * axis[1].out * axis[2].out * BLOCK;
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        if (clears && axis[0].in > 1)
            memset(at.inner, 0, (size_t)in * sizeof *at.inner);
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                if (clears && axis[0].in == 1)
                    NAME(clear)(&axis[1], axis[2].in * BLOCK, oh, at.inner);
                NAME(row)(task, windows, full, od, oh, &at);
            }
        at.inner += in;
        at.outer += out;
        at.index = at.index != NULL ? at.index + out : NULL;
    }
}

/* The kernels that networks have are compiled with their size; others by loops. */
static ALWAYS_INLINE void NAME(any)(enum task task, const struct ls_windows *windows,
                                    struct arrays at)
{
    int64_t h = windows->axis[1].kernel, w = windows->axis[2].kernel;
    if (windows->axis[0].kernel == 1 && h == 2 && w == 2)
        NAME(planes)(task, windows, (struct box){1, 2, 2}, at);
    else if (windows->axis[0].kernel == 1 && h == 3 && w == 3)
        NAME(planes)(task, windows, (struct box){1, 3, 3}, at);
    else
        NAME(planes)(task, windows, (struct box){0, 0, 0}, at);
}

static void NAME(maximum)(const struct ls_windows *windows, const float *x, float *y,
                          int32_t *index, float *scratch)
{
    (void)scratch;
    struct arrays at = {(float *)x, y, index};
    if (index == NULL)
        NAME(any)(MAX, windows, at);
    else
        NAME(any)(MAX_INDEXED, windows, at);
}

static void NAME(maximum_backward)(const struct ls_windows *windows, const float *dy,
                                   const int32_t *index, float *dx)
{
    struct arrays at = {dx, (float *)dy, (int32_t *)index};
    if (windows->disjoint)
        NAME(any)(MAX_BACKWARD_DISJOINT, windows, at);
    else
        NAME(any)(MAX_BACKWARD, windows, at);
}

static void NAME(average)(const struct ls_windows *windows, const float *x, float *y,
                          float *scratch)
{
    (void)scratch;
    NAME(any)(AVERAGE, windows, (struct arrays){(float *)x, y, NULL});
}

static void NAME(average_backward)(const struct ls_windows *windows, const float *dy, float *dx)
{
    NAME(any)(AVERAGE_BACKWARD, windows, (struct arrays){dx, (float *)dy, NULL});
}
