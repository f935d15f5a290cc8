/* What a filler of a definition means for a shape. See device/filler.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/filler.h"

#include <math.h>
#include <string.h>

#include "lockstep.pb-c.h"

static const char *const filler_names = "constant, uniform, integer, boxes, gaussian, xavier, "
                                        "msra, positive_unitball and bilinear exist";

/* What xavier and msra divide by. */
static int fan(const Lockstep__FillerParameter *parameter, const struct ls_shape *shape,
               double *result, struct ls_error *error)
{
    if (shape->rank < 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler '%s' needs a blob with at least one axis", parameter->type);
    double count = (double)ls_shape_size(shape);
    double in = count / (double)shape->dim[0];
    double out = shape->rank > 1 ? count / (double)shape->dim[1] : count;
    switch (parameter->variance_norm) {
    case LOCKSTEP__FILLER_PARAMETER__VARIANCE_NORM__FAN_OUT:
        *result = out;
        return 0;
    case LOCKSTEP__FILLER_PARAMETER__VARIANCE_NORM__AVERAGE:
        *result = (in + out) / 2;
        return 0;
    default:
        *result = in;
        return 0;
    }
}

static int resolve_uniform(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                           struct ls_error *error)
{
    if (!(parameter->min <= parameter->max) || !isfinite(parameter->max - parameter->min))
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler 'uniform' from min %g to max %g: min must not be above max",
                       (double)parameter->min, (double)parameter->max);
    filler->kind = LS_FILLER_UNIFORM;
    filler->first = parameter->min;
    filler->second = parameter->max;
    return 0;
}

/* Uniform numbers have 24 bits; so many of them can tell apart all whole numbers of the range. */
static int resolve_integer(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                           struct ls_error *error)
{
    double first = parameter->min, last = parameter->max;
    if (!(first <= last) || first != trunc(first) || last != trunc(last) || last - first >= 0x1p24)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler '%s' from min %g to max %g: both must be whole numbers, min not "
                       "above max, and less than 2^24 apart",
                       parameter->type, first, last);
    filler->kind = LS_FILLER_INTEGER;
    filler->first = first;
    filler->second = last;
    return 0;
}

static int resolve_boxes(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                         const struct ls_shape *shape, struct ls_error *error)
{
    char text[160];
    LS_TRY(resolve_integer(filler, parameter, error));
    filler->kind = LS_FILLER_BOXES;
    if (shape->rank > 1 && shape->dim[shape->rank - 1] == LS_BOX_ROW)
        return 0;
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                   "filler 'boxes' needs a blob of rows of 8 numbers; this one is %s",
                   ls_shape_text(shape, text, sizeof text));
}

static int resolve_gaussian(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                            const struct ls_shape *shape, struct ls_error *error)
{
    if (!(parameter->std >= 0) || !isfinite(parameter->std) || !isfinite(parameter->mean))
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler 'gaussian' with mean %g and std %g: both must be finite, and std "
                       "not negative",
                       (double)parameter->mean, (double)parameter->std);
    filler->kind = LS_FILLER_NORMAL;
    filler->first = parameter->mean;
    filler->second = parameter->std;
    if (parameter->sparse < 0)
        return 0;
    if (shape->rank < 1 || parameter->sparse > shape->dim[0])
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler 'gaussian' with sparse %d needs a blob whose first axis is at "
                       "least that long",
                       parameter->sparse);
    filler->keep = (uint64_t)((double)parameter->sparse / (double)shape->dim[0] * 0x1p32);
    return 0;
}

static int resolve_shaped(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                          const struct ls_shape *shape, struct ls_error *error)
{
    double n = 0;
    if (strcmp(parameter->type, "xavier") == 0) {
        LS_TRY(fan(parameter, shape, &n, error));
        filler->kind = LS_FILLER_UNIFORM;
        filler->second = sqrt(3 / n);
        filler->first = -filler->second;
    } else if (strcmp(parameter->type, "msra") == 0) {
        LS_TRY(fan(parameter, shape, &n, error));
        filler->kind = LS_FILLER_NORMAL;
        filler->second = sqrt(2 / n);
    } else if (strcmp(parameter->type, "positive_unitball") == 0) {
        if (shape->rank < 1)
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                           "filler 'positive_unitball' needs a blob with at least one axis");
        filler->kind = LS_FILLER_UNITBALL;
        filler->row = ls_shape_count(shape, 1, shape->rank);
    } else if (strcmp(parameter->type, "bilinear") == 0) {
        if (shape->rank != 4 || shape->dim[2] != shape->dim[3]) {
            char text[160];
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                           "filler 'bilinear' needs a blob of 4 axes, the last two of one length; "
                           "this one is %s",
                           ls_shape_text(shape, text, sizeof text));
        }
        filler->kind = LS_FILLER_BILINEAR;
        filler->row = shape->dim[3];
    } else {
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, filler_names, "unknown filler '%s'",
                       parameter->type);
    }
    return 0;
}

int ls_filler_resolve(struct ls_filler *filler, const Lockstep__FillerParameter *parameter,
                      const struct ls_shape *shape, struct ls_error *error)
{
    *filler = (struct ls_filler){.kind = LS_FILLER_CONSTANT, .keep = UINT64_C(1) << 32};
    if (parameter == NULL)
        return 0;
    const char *type = parameter->type != NULL ? parameter->type : "constant";
    if (parameter->sparse < -1)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "sparse is %d; it must be -1 (not sparse) or more", parameter->sparse);
    if (strcmp(type, "gaussian") == 0)
        return resolve_gaussian(filler, parameter, shape, error);
    if (parameter->sparse != -1)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                       "filler '%s' cannot be sparse; only 'gaussian' can", type);
    if (strcmp(type, "constant") == 0) {
        if (!isfinite(parameter->value))
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                           "filler 'constant' with value %g: it must be finite",
                           (double)parameter->value);
        filler->first = parameter->value;
        return 0;
    }
    if (strcmp(type, "uniform") == 0)
        return resolve_uniform(filler, parameter, error);
    if (strcmp(type, "integer") == 0)
        return resolve_integer(filler, parameter, error);
    if (strcmp(type, "boxes") == 0)
        return resolve_boxes(filler, parameter, shape, error);
    return resolve_shaped(filler, parameter, shape, error);
}

int ls_filler_resolve_op(struct ls_filler *filler, const struct ls_op *op, int64_t *each,
                         struct ls_error *error)
{
    const struct ls_fill_attr *attr = &op->attr.fill;
    struct ls_shape sample = op->output[0]->shape;
    if (op->output[0]->sample_axis == 0)
        sample.dim[0] = op->output[0]->rows;
    *each = ls_shape_size(&sample);
    LS_TRY(ls_filler_resolve(filler, attr->filler, &sample, error));
    if (attr->filler == NULL)
        filler->first = (double)attr->value;
    return 0;
}
