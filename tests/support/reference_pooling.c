/* Pooling in double precision by plain loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_pooling.h"

#include <float.h>
#include <string.h>

/* The inputs [begin, end) of window `o` along one axis, and the window's size in the padded
 * input. */
struct span {
    int begin, end, padded;
};

static struct span span_of(const struct reference_pooling *pooling, int axis, int o)
{
    int first = o * pooling->stride[axis] - pooling->pad[axis];
    int behind = first + pooling->kernel[axis];
    int limit = pooling->in[axis] + pooling->pad[axis];
    struct span span = {.padded = (behind < limit ? behind : limit) - first};
    span.begin = first > 0 ? first : 0;
    span.end = behind < pooling->in[axis] ? behind : pooling->in[axis];
    return span;
}

static int volume(const int size[3])
{
    return size[0] * size[1] * size[2];
}

void reference_pooling_shape(struct reference_pooling *pooling)
{
    for (int a = 0; a < 3; a++) {
        int stride = pooling->stride[a], pad = pooling->pad[a];
        int room = pooling->in[a] + 2 * pad - pooling->kernel[a];
        pooling->out[a] = (room + stride - 1) / stride + 1;
        if (pad > 0 && (pooling->out[a] - 1) * stride >= pooling->in[a] + pad)
            pooling->out[a]--;
    }
}

/* Calls visit(position, size of the padded window) for each input of window `o` (in row-major
 * order of the outputs). */
static void each_input(const struct reference_pooling *p, int o,
                       void (*visit)(void *data, int position, int padded), void *data)
{
    struct span d = span_of(p, 0, o / (p->out[1] * p->out[2]));
    struct span h = span_of(p, 1, o / p->out[2] % p->out[1]);
    struct span w = span_of(p, 2, o % p->out[2]);
    int padded = d.padded * h.padded * w.padded;
    for (int i = d.begin; i < d.end; i++)
        for (int j = h.begin; j < h.end; j++)
            for (int k = w.begin; k < w.end; k++)
                visit(data, (i * p->in[1] + j) * p->in[2] + k, padded);
}

struct visit {
    const double *x;
    double *dx;
    double best, sum, dy;
    int index;
};

static void visit_maximum(void *data, int position, int padded)
{
    struct visit *visit = data;
    (void)padded;
    if (!(visit->x[position] > visit->best))
        return;
    visit->best = visit->x[position];
    visit->index = position;
}

static void visit_average(void *data, int position, int padded)
{
    struct visit *visit = data;
    visit->sum += visit->x[position] / padded;
}

static void visit_average_backward(void *data, int position, int padded)
{
    struct visit *visit = data;
    visit->dx[position] += visit->dy / padded;
}

void reference_pooling_maximum(const struct reference_pooling *pooling, const double *x, double *y,
                               int *index)
{
    int in = volume(pooling->in), out = volume(pooling->out);
    for (int i = 0; i < pooling->planes * out; i++) {
        struct visit visit = {.x = x + i / out * in, .best = -(double)FLT_MAX, .index = -1};
        each_input(pooling, i % out, visit_maximum, &visit);
        y[i] = visit.best;
        index[i] = visit.index;
    }
}

void reference_pooling_maximum_backward(const struct reference_pooling *pooling, const double *dy,
                                        const int *index, double *dx)
{
    int in = volume(pooling->in), out = volume(pooling->out);
    memset(dx, 0, (size_t)(pooling->planes * in) * sizeof *dx);
    for (int i = 0; i < pooling->planes * out; i++)
        if (index[i] >= 0)
            dx[i / out * in + index[i]] += dy[i];
}

void reference_pooling_average(const struct reference_pooling *pooling, const double *x, double *y)
{
    int in = volume(pooling->in), out = volume(pooling->out);
    for (int i = 0; i < pooling->planes * out; i++) {
        struct visit visit = {.x = x + i / out * in};
        each_input(pooling, i % out, visit_average, &visit);
        y[i] = visit.sum;
    }
}

void reference_pooling_average_backward(const struct reference_pooling *pooling, const double *dy,
                                        double *dx)
{
    int in = volume(pooling->in), out = volume(pooling->out);
    memset(dx, 0, (size_t)(pooling->planes * in) * sizeof *dx);
    for (int i = 0; i < pooling->planes * out; i++) {
        struct visit visit = {.dx = dx + i / out * in, .dy = dy[i]};
        each_input(pooling, i % out, visit_average_backward, &visit);
    }
}
