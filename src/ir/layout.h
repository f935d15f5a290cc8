/* How a tensor's elements lie in memory.
 *
 * A layout is an interned constant: two layouts are the same if their pointers are equal. The plain
 * layout is Caffe's order (row-major). Blocked layouts hold the channels (axis 1) in blocks:
 * N, ceil(C / block), spatial..., block; the lanes behind the last channel are zero, and every
 * kernel keeps them zero. Channels-last is N, spatial..., C, of values and of weights (axis 1 is
 * the last in memory in both). Opaque layouts (of parameters) belong to a device.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_LAYOUT_H
#define LS_IR_LAYOUT_H

#include <stddef.h>

#include "ir/dtype.h"
#include "ir/shape.h"

struct ls_layout {
    const char *name;   /* "plain", "nChw16c", "OIhw16i16o" */
    int block;          /* channels per block; 1: plain; 0: opaque; -1: channels-last */
    size_t elements;    /* opaque: elements including padding; else 0 */
    const void *detail; /* opaque: what the device needs */
};

extern const struct ls_layout ls_layout_plain;
extern const struct ls_layout ls_layout_blocked8;      /* nChw8c, with any number of spatial axes */
extern const struct ls_layout ls_layout_blocked16;     /* nChw16c */
extern const struct ls_layout ls_layout_channels_last; /* nhwc, with any number of spatial axes */

/* The four above. A device that is loaded (device/module.h) has a copy of this folder, but its
 * layouts must be those of the program that loads it: what is compiled with LS_LAYOUTS_OF_PROGRAM
 * means these by the names above. They are no constants there: no static array can hold one. */
struct ls_layouts {
    const struct ls_layout *plain, *blocked8, *blocked16, *channels_last;
};
extern const struct ls_layouts ls_layouts_here;
extern const struct ls_layouts *ls_layouts; /* &ls_layouts_here until a device is loaded */

#ifdef LS_LAYOUTS_OF_PROGRAM
#define ls_layout_plain         (*ls_layouts->plain)
#define ls_layout_blocked8      (*ls_layouts->blocked8)
#define ls_layout_blocked16     (*ls_layouts->blocked16)
#define ls_layout_channels_last (*ls_layouts->channels_last)
#endif

/* For reports: the name with a letter for each axis of a tensor of `rank`, "nCdhw16c" say. */
const char *ls_layout_name(const struct ls_layout *layout, int rank);

/* Elements, padding included, that a tensor of `shape` takes. */
size_t ls_layout_elements(const struct ls_layout *layout, const struct ls_shape *shape);
/* Bytes that it takes if its elements are of `type`; layout NULL: plain. Whatever asks how large a
 * tensor is in memory asks here. */
size_t ls_layout_bytes(const struct ls_layout *layout, const struct ls_shape *shape,
                       enum ls_dtype type);

#endif
