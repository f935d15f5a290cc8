/* A plugin with two layer types. Built and used:
 *
 *     cc -O2 -shared -fPIC -I include -o shrink.so examples/plugin/shrink.c
 *     lockstep check-plugin shrink.so
 *     lockstep train --plugin ./shrink.so --solver solver.prototxt
 *
 * Shrink: y = sign(x) max(|x| - t, 0), with a threshold t for each channel (axis 1), which is
 * learned; plugin_param { threshold: 0.1 } is what it begins with.
 *
 * BatchCentre: y = x - the mean of x over the samples of the batch. It mixes samples.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "lockstep/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor as samples x channels x what lies behind them. */
struct extents {
    int64_t samples, channels, inner;
};

static void set_extents(struct extents *extents, const struct lockstep_plugin_shape *shape)
{
    *extents = (struct extents){1, 1, 1};
    if (shape->axes > 0)
        extents->samples = shape->dim[0];
    if (shape->axes > 1)
        extents->channels = shape->dim[1];
    for (int i = 2; i < shape->axes; i++)
        extents->inner *= shape->dim[i];
}

/* Refuses a setup with a message. */
static int refuse(struct lockstep_plugin_setup *setup, const char *message, const char *word)
{
    snprintf(setup->message, sizeof setup->message, "%s%s", message, word);
    return 1;
}

/* ---- Shrink ---------------------------------------------------------------------------------- */

static int shrink_setup(struct lockstep_plugin_setup *setup)
{
    float threshold = 0.1F;
    for (size_t i = 0; i < setup->setting_count; i++) {
        const struct lockstep_plugin_setting *setting = &setup->settings[i];
        char *end = NULL;
        if (strcmp(setting->key, "threshold") != 0)
            return refuse(setup, "Shrink has no setting ", setting->key);
        if (setting->count == 1)
            threshold = strtof(setting->values[0], &end);
        if (end == NULL || *end != '\0' || !(threshold >= 0))
            return refuse(setup, "threshold must be a number of at least 0", "");
    }
    struct extents *extents = setup->state;
    set_extents(extents, &setup->bottom[0]);
    setup->top[0] = setup->bottom[0];
    setup->blobs = 1;
    struct lockstep_plugin_blob *blob = &setup->blob[0];
    blob->shape = (struct lockstep_plugin_shape){1, {extents->channels}};
    blob->constant = threshold;
    return 0;
}

static int shrink_forward(const struct lockstep_plugin_call *call)
{
    const struct extents *extents = call->state;
    const float *x = call->bottom[0], *t = call->blob[0];
    float *y = call->top[0];
    for (int64_t n = 0, i = 0; n < extents->samples; n++)
        for (int64_t c = 0; c < extents->channels; c++)
            for (int64_t k = 0; k < extents->inner; k++, i++)
                y[i] = x[i] > t[c] ? x[i] - t[c] : x[i] < -t[c] ? x[i] + t[c] : 0;
    return 0;
}

static int shrink_backward(const struct lockstep_plugin_call *call)
{
    const struct extents *extents = call->state;
    const float *x = call->bottom[0], *t = call->blob[0], *dy = call->top_gradient[0];
    float *dx = call->bottom_gradient[0], *dt = call->blob_gradient[0];
    for (int64_t c = 0; dt != NULL && c < extents->channels; c++)
        dt[c] = 0;
    for (int64_t n = 0, i = 0; n < extents->samples; n++)
        for (int64_t c = 0; c < extents->channels; c++)
            for (int64_t k = 0; k < extents->inner; k++, i++) {
                const int side = (x[i] > t[c]) - (x[i] < -t[c]);
                if (dx != NULL)
                    dx[i] = side != 0 ? dy[i] : 0;
                if (dt != NULL)
                    dt[c] -= (float)side * dy[i];
            }
    return 0;
}

static const struct lockstep_plugin_layer shrink = {
    .struct_size = sizeof shrink,
    .type = "Shrink",
    .summary = "y = sign(x) max(|x| - t, 0), with a learned threshold for each channel",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .state_size = sizeof(struct extents),
    .setup = shrink_setup,
    .forward = shrink_forward,
    .backward = shrink_backward,
};

/* ---- BatchCentre ----------------------------------------------------------------------------- */

static int centre_setup(struct lockstep_plugin_setup *setup)
{
    if (setup->setting_count > 0)
        return refuse(setup, "BatchCentre has no setting ", setup->settings[0].key);
    set_extents(setup->state, &setup->bottom[0]);
    setup->top[0] = setup->bottom[0];
    return 0;
}

/* out = in - the mean of in over the samples, whose sum is taken in their order. */
static void centre(const struct extents *extents, const float *in, float *out)
{
    const int64_t sample = extents->channels * extents->inner;
    for (int64_t i = 0; i < sample; i++) {
        double sum = 0;
        for (int64_t n = 0; n < extents->samples; n++)
            sum += (double)in[n * sample + i];
        const float mean = (float)(sum / (double)extents->samples);
        for (int64_t n = 0; n < extents->samples; n++)
            out[n * sample + i] = in[n * sample + i] - mean;
    }
}

static int centre_forward(const struct lockstep_plugin_call *call)
{
    centre(call->state, call->bottom[0], call->top[0]);
    return 0;
}

static int centre_backward(const struct lockstep_plugin_call *call)
{
    if (call->bottom_gradient[0] != NULL)
        centre(call->state, call->top_gradient[0], call->bottom_gradient[0]);
    return 0;
}

static const struct lockstep_plugin_layer batch_centre = {
    .struct_size = sizeof batch_centre,
    .type = "BatchCentre",
    .summary = "y = x - the mean over the samples of the batch",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .flags = LOCKSTEP_PLUGIN_MIXES,
    .state_size = sizeof(struct extents),
    .setup = centre_setup,
    .forward = centre_forward,
    .backward = centre_backward,
};

/* ---- The plugin ------------------------------------------------------------------------------ */

static const struct lockstep_plugin_layer *const layers[] = {&shrink, &batch_centre, NULL};

LOCKSTEP_PLUGIN_EXPORT const struct lockstep_plugin lockstep_plugin = {
    .abi = LOCKSTEP_PLUGIN_ABI,
    .struct_size = sizeof lockstep_plugin,
    .name = "shrink",
    .version = "1",
    .layers = layers,
};
