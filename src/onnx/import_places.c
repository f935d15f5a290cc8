/* Import: places along an axis, in any order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/importer.h"

enum { PLACES = 1 << 24 }; /* whole numbers beyond are not all floats */

const char *ls_import_places(struct ls_importer *x, const char *top, int axis,
                             const int64_t *places, int64_t count)
{
    const struct ls_shape shape = {.rank = 1, .dim = {count}};
    const char *bottoms[2] = {top}, *wanted = x->wanted;
    float *numbers = top != NULL ? ls_import_new_reals(x, count) : NULL;
    for (int64_t i = 0; numbers != NULL && i < count; i++) {
        if (places[i] < 0 || places[i] >= PLACES) {
            ls_import_cannot(x, NULL, "place %lld is out of range", (long long)places[i]);
            return NULL;
        }
        numbers[i] = (float)places[i];
    }
    if (numbers == NULL)
        return NULL;
    x->wanted = NULL;
    bottoms[1] = ls_import_layer(x, "Parameter", NULL, 0,
                                 "param { lr_mult: 0 decay_mult: 0 } "
                                 "parameter_param { shape { dim: %lld } }",
                                 (long long)count);
    x->wanted = wanted;
    if (ls_import_weight(x, bottoms[1], "parameter", NULL, &shape, numbers) != 0)
        return NULL;
    return ls_import_layer(x, "Gather", bottoms, 2, "gather_param { axis: %d }", axis);
}
