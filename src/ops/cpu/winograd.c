/* Which convolutions are done by Winograd's algorithm. See ops/cpu/winograd.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/winograd.h"

#include "ir/layer.h"
#include "ops/cpu/isa.h"

/* Measured with oneDNN 2.6 on AVX-512, see docs/performance.md: with at least this many channels
 * and tiles of 4 x 4 results in the micro-batch, all three passes are faster than the direct ones.
 * With fewer tiles transforming the weights takes more than it saves; where both are few nothing
 * is won that would be worth the algorithm's scratch. */
enum {
    CHANNELS_MIN = 64,
    CHANNELS_MULTIPLE = 16,
    TILES_MIN = 64,
    PRODUCT_MIN = 96 * TILES_MIN, /* tiles x the smaller number of channels */
    TILE = 4
};

/* Volumes are ops/cpu/winograd_volume.c's. */
static bool has_window(const struct ls_convolution_attr *attr)
{
    return attr->window.axes == 2 && ls_convolution_suits_winograd(attr);
}

static int64_t tiles(int64_t extent)
{
    return (extent + TILE - 1) / TILE;
}

bool ls_winograd_pays(const struct ls_convolution_attr *attr, const struct ls_shape *x,
                      const struct ls_shape *y)
{
    if (!has_window(attr) || x->rank != 4)
        return false;
    int64_t in = x->dim[1], out = y->dim[1], least = in < out ? in : out;
    if (least < CHANNELS_MIN || in % CHANNELS_MULTIPLE != 0 || out % CHANNELS_MULTIPLE != 0)
        return false;
    int64_t n = y->dim[0] * tiles(y->dim[2]) * tiles(y->dim[3]);
    return n >= TILES_MIN && n * least >= PRODUCT_MIN;
}

/* Whether oneDNN has all three passes. The layout that the forward pass reads its weights in is
 * given; the others may like another one. */
static int find_passes(const struct ls_primitive_spec *forward, bool *there, struct ls_error *error)
{
    static const enum ls_onednn_pass passes[] = {LS_PASS_FORWARD, LS_PASS_DATA, LS_PASS_WEIGHTS};
    for (int i = 0; i < 3; i++) {
        struct ls_primitive_spec spec = *forward;
        struct ls_primitive_plan plan;
        spec.pass = passes[i];
        spec.winograd = true;
        if (spec.pass != LS_PASS_FORWARD)
            spec.tensor[LS_WEIGHTS].layout = NULL;
        int status = ls_primitive_query(&spec, &plan, NULL);
        if (status == LOCKSTEP_RESOURCE)
            return ls_fail_memory(error, "a convolution");
        *there = status == 0;
        if (!*there)
            return 0;
    }
    return 0;
}

static int fail_missing(const struct ls_op *op, struct ls_error *error)
{
    const char *hint = op->attr.convolution.window.axes == 3
                           ? "of volumes it is for 16 channels or more on both sides and extents "
                             "of 4 or more, with AVX2; algorithm: AUTO takes what there is"
                           : "algorithm: AUTO takes what there is";
    const char *version = ls_onednn_version(), *isa = ls_cpu_isa_name(ls_cpu_isa());
    if (op->layer == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, hint,
                       "oneDNN %s with %s does not have Winograd's algorithm for this convolution",
                       version, isa);
    return ls_layer_fail(op->layer, error, op->layer->definition->convolution_param, "algorithm",
                         hint,
                         "oneDNN %s with %s does not have Winograd's algorithm for this "
                         "convolution",
                         version, isa);
}

int ls_winograd_choose(const struct ls_op *op, const struct ls_primitive_spec *forward, bool *use,
                       struct ls_error *error)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_value *x = ls_primitive_value(op, LS_SOURCE);
    const struct ls_value *y = ls_primitive_value(op, LS_TARGET);
    bool demanded = attr->algorithm == LS_CONVOLUTION_WINOGRAD;
    *use = false;
    if (attr->algorithm == LS_CONVOLUTION_DIRECT ||
        (!demanded && !ls_winograd_pays(attr, &x->shape, &y->shape)))
        return 0;
    /* oneDNN fuses no slope but 0. */
    if (has_window(attr) && !(attr->relu && attr->relu_slope != 0))
        LS_TRY(find_passes(forward, use, error));
    return *use || !demanded ? 0 : fail_missing(op, error);
}
