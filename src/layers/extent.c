/* Fields that say something of each spatial axis. See layers/extent.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/extent.h"

bool ls_extent_given(const struct ls_extent *extent)
{
    return extent->count > 0 || extent->has_h || extent->has_w;
}

const char *ls_extent_field(const struct ls_extent *extent, int axis)
{
    if (extent->count > 0 || !(extent->has_h || extent->has_w))
        return extent->list;
    return axis == 0 ? extent->h_name : extent->w_name;
}

const char *ls_extent_axis_name(int axes, int axis)
{
    static const char *const names[3][3] = {
        {"length", NULL, NULL}, {"height", "width", NULL}, {"depth", "height", "width"}};
    return names[axes - 1][axis];
}

static int check_values(const struct ls_layer *layer, struct ls_error *error, const void *message,
                        const struct ls_extent *extent, int axes, const int64_t *out)
{
    for (int i = 0; i < axes; i++) {
        const char *field = ls_extent_field(extent, i);
        if (out[i] < extent->least || out[i] > INT32_MAX)
            return ls_layer_fail(layer, error, message, field, NULL,
                                 "%s %lld is out of range; it must be %lld to 2147483647", field,
                                 (long long)out[i], (long long)extent->least);
    }
    return 0;
}

/* The form of Caffe's older definitions, for two axes. */
static int read_pair(const struct ls_layer *layer, struct ls_error *error, const void *message,
                     const struct ls_extent *extent, int axes, int64_t *out)
{
    const char *field = extent->has_h ? extent->h_name : extent->w_name;
    if (extent->count > 0)
        return ls_layer_fail(layer, error, message, field, "keep one of the two forms",
                             "%s and %s cannot both be given", extent->list, field);
    if (axes != 2)
        return ls_layer_fail(layer, error, message, field, "use the list form",
                             "%s is for bottoms with two spatial axes; this one has %d", field,
                             axes);
    if (extent->together && extent->has_h != extent->has_w)
        return ls_layer_fail(layer, error, message, field, NULL, "%s and %s must be given together",
                             extent->h_name, extent->w_name);
    out[0] = extent->h;
    out[1] = extent->w;
    return check_values(layer, error, message, extent, axes, out);
}

int ls_extent_read(const struct ls_layer *layer, struct ls_error *error, const void *message,
                   const struct ls_extent *extent, int axes, int64_t *out)
{
    if (extent->has_h || extent->has_w)
        return read_pair(layer, error, message, extent, axes, out);
    if (extent->count == 0 && extent->missing < 0)
        return ls_layer_fail(layer, error, message, NULL, extent->hint, "%s is missing",
                             extent->list);
    if (extent->count > 1 && extent->count != (size_t)axes)
        return ls_layer_fail(layer, error, message, extent->list, NULL,
                             "%s is given %zu times; it must be given once, or once for each of "
                             "the %d spatial axes",
                             extent->list, extent->count, axes);
    for (int i = 0; i < axes; i++)
        out[i] = extent->count == 0 ? extent->missing : extent->values[extent->count == 1 ? 0 : i];
    return check_values(layer, error, message, extent, axes, out);
}
