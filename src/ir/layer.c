/* What all layer types share: places, failures, axes. See ir/layer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layer.h"

#include <stdarg.h>
#include <stdio.h>

const char *ls_layer_place(const struct ls_layer *layer, const void *message, const char *field,
                           char buffer[LS_PLACE_SIZE])
{
    const struct ls_definition *definition = layer->graph != NULL ? layer->graph->definition : NULL;
    if (definition != NULL)
        return ls_place(definition, message != NULL ? message : layer->definition, field, buffer,
                        LS_PLACE_SIZE);
    snprintf(buffer, LS_PLACE_SIZE, "layer '%s'", layer->name);
    return buffer;
}

int ls_layer_fail(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, const char *hint, const char *format, ...)
{
    char place[LS_PLACE_SIZE];
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_layer_place(layer, message, field, place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s: %s", layer->name, text);
}

int ls_layer_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, int axis, const struct ls_value *value, bool samples_ok)
{
    int resolved = ls_shape_axis(&value->shape, axis);
    char shape[160];
    if (resolved < 0) {
        ls_layer_fail(layer, error, message, field, NULL,
                      "axis %d is out of range for '%s' with shape %s", axis, value->name,
                      ls_shape_text(&value->shape, shape, sizeof shape));
        return -1;
    }
    if (!samples_ok && value->sample_axis >= 0 && resolved <= value->sample_axis) {
        ls_layer_fail(layer, error, message, field, "use an axis behind the one of the samples",
                      "axis %d of '%s' runs over the samples of a batch; a result that mixes "
                      "samples would depend on how the batch is cut into micro-batches",
                      axis, value->name);
        return -1;
    }
    return resolved;
}
