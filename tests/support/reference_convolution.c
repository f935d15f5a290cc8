/* Convolution in double precision by plain loops.
 *
 *   y[n][o][p] = b[o] + sum over i, k of w[o][i][k] x[n][g I + i][s p - pad + d k]
 *
 * with p, k, s, pad, d along three axes, g the group of o and I the channels of a group; x outside
 * of its bounds is zero. Each pass visits the same triples (x, w, y) of elements.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_convolution.h"

#include <stdlib.h>
#include <string.h>

enum pass { FORWARD, DATA, WEIGHTS };

static size_t volume(const int size[3])
{
    return (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
}

int reference_convolution_shape(struct reference_convolution *convolution)
{
    for (int a = 0; a < 3; a++) {
        int extent = convolution->dilation[a] * (convolution->kernel[a] - 1) + 1;
        int room = convolution->in[a] + 2 * convolution->pad[a] - extent;
        if (room < 0)
            return 0;
        convolution->out[a] = room / convolution->stride[a] + 1;
    }
    return 1;
}

static void split(size_t index, const int size[3], int place[3])
{
    place[2] = (int)(index % (size_t)size[2]);
    place[1] = (int)(index / (size_t)size[2] % (size_t)size[1]);
    place[0] = (int)(index / ((size_t)size[2] * (size_t)size[1]));
}

/* Where kernel element k of output position p reads in a channel of x, or -1. */
static long read_place(const struct reference_convolution *convolution, size_t p, size_t k)
{
    int out[3], kernel[3];
    long place = 0;
    split(p, convolution->out, out);
    split(k, convolution->kernel, kernel);
    for (int a = 0; a < 3; a++) {
        int at = out[a] * convolution->stride[a] - convolution->pad[a] +
                 kernel[a] * convolution->dilation[a];
        if (at < 0 || at >= convolution->in[a])
            return -1;
        place = place * convolution->in[a] + at;
    }
    return place;
}

/* The places of all positions and kernel elements, which are the same in every channel. */
static long *read_places(const struct reference_convolution *convolution)
{
    size_t positions = volume(convolution->out), taps = volume(convolution->kernel);
    long *places = malloc(positions * taps * sizeof *places);
    if (places == NULL)
        abort();
    for (size_t p = 0; p < positions; p++)
        for (size_t k = 0; k < taps; k++)
            places[p * taps + k] = read_place(convolution, p, k);
    return places;
}

/* One channel of x against one of y, through one filter. */
static void visit(const long *places, size_t positions, size_t taps, enum pass pass, double *x,
                  double *w, double *y)
{
    for (size_t p = 0; p < positions; p++)
        for (size_t k = 0; k < taps; k++) {
            long place = places[p * taps + k];
            if (place < 0)
                continue;
            if (pass == FORWARD)
                y[p] += w[k] * x[place];
            else if (pass == DATA)
                x[place] += w[k] * y[p];
            else
                w[k] += y[p] * x[place];
        }
}

static void visit_all(const struct reference_convolution *convolution, enum pass pass, double *x,
                      double *w, double *y)
{
    int inputs = convolution->c / convolution->group, outputs = convolution->o / convolution->group;
    size_t in = volume(convolution->in), out = volume(convolution->out);
    size_t taps = volume(convolution->kernel);
    long *places = read_places(convolution);
    for (int n = 0; n < convolution->n; n++)
        for (int o = 0; o < convolution->o; o++)
            for (int i = 0; i < inputs; i++) {
                int channel = o / outputs * inputs + i;
                visit(places, out, taps, pass, x + (size_t)(n * convolution->c + channel) * in,
                      w + (size_t)(o * inputs + i) * taps,
                      y + (size_t)(n * convolution->o + o) * out);
            }
    free(places);
}

void reference_convolution_forward(const struct reference_convolution *convolution, const double *x,
                                   const double *w, const double *b, int relu, double slope,
                                   double *y)
{
    size_t out = volume(convolution->out);
    size_t rows = (size_t)convolution->n * (size_t)convolution->o;
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < out; p++)
            y[r * out + p] = b != NULL ? b[r % (size_t)convolution->o] : 0;
    visit_all(convolution, FORWARD, (double *)x, (double *)w, y);
    for (size_t e = 0; relu && e < rows * out; e++)
        y[e] = y[e] > 0 ? y[e] : slope * y[e];
}

void reference_convolution_data(const struct reference_convolution *convolution, const double *dy,
                                const double *w, double *dx)
{
    size_t count = (size_t)convolution->n * (size_t)convolution->c * volume(convolution->in);
    memset(dx, 0, count * sizeof *dx);
    visit_all(convolution, DATA, dx, (double *)w, (double *)dy);
}

void reference_convolution_weights(const struct reference_convolution *convolution, const double *x,
                                   const double *dy, double *dw, double *db)
{
    size_t inputs = (size_t)(convolution->c / convolution->group);
    size_t out = volume(convolution->out);
    memset(dw, 0, (size_t)convolution->o * inputs * volume(convolution->kernel) * sizeof *dw);
    visit_all(convolution, WEIGHTS, (double *)x, dw, (double *)dy);
    for (int o = 0; db != NULL && o < convolution->o; o++) {
        db[o] = 0;
        for (int n = 0; n < convolution->n; n++)
            for (size_t p = 0; p < out; p++)
                db[o] += dy[(size_t)(n * convolution->o + o) * out + p];
    }
}
