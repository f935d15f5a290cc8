/* Fields that say something of each spatial axis: kernel_size, stride, pad, dilation.
 *
 * Each is a list, given once for all axes or once for each, or for two axes a pair of fields with
 * _h and _w.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_EXTENT_H
#define LS_LAYERS_EXTENT_H

#include "layers/common.h"

struct ls_extent {
    const char *list, *h_name, *w_name; /* h_name NULL: there is no pair */
    size_t count;
    const uint32_t *values; /* `count` of them */
    bool has_h, has_w;
    uint32_t h, w;
    int64_t missing; /* what stands for one that is not given; -1: it must be given */
    int64_t least;
    bool together;    /* _h and _w must be given both, or neither; else the other is 0 */
    const char *hint; /* where one that must be given is not; or NULL */
};

/* Reads one of `message` for `axes` spatial axes, or reports what is wrong with it. */
int ls_extent_read(const struct ls_layer *layer, struct ls_error *error, const void *message,
                   const struct ls_extent *extent, int axes, int64_t *out);

/* Whether any of the three forms is given. */
bool ls_extent_given(const struct ls_extent *extent);
/* The field that gives the number of spatial axis `axis`: "kernel_h". */
const char *ls_extent_field(const struct ls_extent *extent, int axis);
/* For messages about spatial axis `axis` of `axes`: "height". */
const char *ls_extent_axis_name(int axes, int axis);

#endif
