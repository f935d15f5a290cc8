/* Parts of a picture; see the header.
 *
 * A part has the area scale^2 and the aspect ratio that are drawn, as far as it fits the picture,
 * anywhere in it. It satisfies a constraint if there is a box for which all limits hold.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/part_sampler.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/annotation.h"

/* Limits of a share; without limits everything is well. */
struct limits {
    bool given;
    double least, most;
};

struct sampler {
    double scale[2], aspect[2]; /* least, most */
    struct limits overlap, part, object;
    int64_t most; /* parts that are wanted */
    int64_t trials;
};

struct ls_part_sampler {
    int64_t count;
    struct sampler item[];
};

/* ---- Parameters ------------------------------------------------------------------------------ */

static bool is_range(float low, float high, float most)
{
    return low > 0 && high >= low && high <= most && isfinite(high);
}

const char *ls_part_sampler_check(const Lockstep__BatchSampler *sampler,
                                  const ProtobufCMessage **at, const char **why)
{
    const Lockstep__Sampler *s = sampler->sampler;
    *at = &sampler->base;
    *why = "must be 1 to 10000";
    if (sampler->max_trials < 1 || sampler->max_trials > LS_PART_TRIALS)
        return "max_trials";
    *why = "false: parts are of the picture as it is; leave it out";
    if (!sampler->use_original_image)
        return "use_original_image";
    if (s != NULL) {
        *at = &s->base;
        *why = "must be 0 < min_scale <= max_scale <= 1";
        if (!is_range(s->min_scale, s->max_scale, 1))
            return s->has_min_scale ? "min_scale" : "max_scale";
        *why = "must be 0 < min_aspect_ratio <= max_aspect_ratio";
        if (!is_range(s->min_aspect_ratio, s->max_aspect_ratio, 1e6F))
            return s->has_min_aspect_ratio ? "min_aspect_ratio" : "max_aspect_ratio";
    }
    const Lockstep__SampleConstraint *c = sampler->sample_constraint;
    if (c == NULL)
        return NULL;
    const struct {
        const char *field;
        float value;
    } shares[] = {{"min_jaccard_overlap", c->min_jaccard_overlap},
                  {"max_jaccard_overlap", c->max_jaccard_overlap},
                  {"min_sample_coverage", c->min_sample_coverage},
                  {"max_sample_coverage", c->max_sample_coverage},
                  {"min_object_coverage", c->min_object_coverage},
                  {"max_object_coverage", c->max_object_coverage}};
    *at = &c->base;
    *why = "must be a finite number";
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (!isfinite(shares[i].value))
            return shares[i].field;
    return NULL;
}

static struct limits limits_of(bool has_least, float least, bool has_most, float most)
{
    return (struct limits){has_least || has_most, has_least ? (double)least : -HUGE_VAL,
                           has_most ? (double)most : HUGE_VAL};
}

static struct sampler read_sampler(const Lockstep__BatchSampler *from)
{
    static const Lockstep__Sampler whole = LOCKSTEP__SAMPLER__INIT;
    static const Lockstep__SampleConstraint none = LOCKSTEP__SAMPLE_CONSTRAINT__INIT;
    const Lockstep__Sampler *s = from->sampler != NULL ? from->sampler : &whole;
    const Lockstep__SampleConstraint *c =
        from->sample_constraint != NULL ? from->sample_constraint : &none;
    return (struct sampler){.scale = {(double)s->min_scale, (double)s->max_scale},
                            .aspect = {(double)s->min_aspect_ratio, (double)s->max_aspect_ratio},
                            .overlap =
                                limits_of(c->has_min_jaccard_overlap, c->min_jaccard_overlap,
                                          c->has_max_jaccard_overlap, c->max_jaccard_overlap),
                            .part = limits_of(c->has_min_sample_coverage, c->min_sample_coverage,
                                              c->has_max_sample_coverage, c->max_sample_coverage),
                            .object = limits_of(c->has_min_object_coverage, c->min_object_coverage,
                                                c->has_max_object_coverage, c->max_object_coverage),
                            .most = from->has_max_sample ? (int64_t)from->max_sample : INT64_MAX,
                            .trials = (int64_t)from->max_trials};
}

struct ls_part_sampler *ls_part_sampler_open(const Lockstep__AnnotatedDataParameter *param)
{
    struct ls_part_sampler *made =
        ls_alloc(1, sizeof *made + param->n_batch_sampler * sizeof made->item[0]);
    if (made == NULL)
        return NULL;
    made->count = (int64_t)param->n_batch_sampler;
    for (size_t i = 0; i < param->n_batch_sampler; i++)
        made->item[i] = read_sampler(param->batch_sampler[i]);
    return made;
}

void ls_part_sampler_free(struct ls_part_sampler *sampler)
{
    ls_free(sampler);
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static double between(const double range[2], uint64_t key, uint64_t ordinal, uint64_t element)
{
    return range[0] + (double)ls_random_uniform(key, ordinal, element) * (range[1] - range[0]);
}

static struct ls_rectangle draw_part(const struct sampler *s, uint64_t key, uint64_t ordinal,
                                     uint64_t element)
{
    const double scale = between(s->scale, key, ordinal, element), area = scale * scale;
    double aspect = between(s->aspect, key, ordinal, element + 1);
    aspect = aspect > area ? aspect : area;
    aspect = aspect < 1 / area ? aspect : 1 / area;
    const double root = sqrt(aspect);
    double width = scale * root, height = scale / root;
    width = width < 1 ? width : 1;
    height = height < 1 ? height : 1;
    const double x = between((const double[]){0, 1 - width}, key, ordinal, element + 2);
    const double y = between((const double[]){0, 1 - height}, key, ordinal, element + 3);
    return (struct ls_rectangle){x, y, x + width, y + height};
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double area_of(double width, double height)
{
    return width > 0 && height > 0 ? width * height : 0;
}

static bool within(const struct limits *limits, double share)
{
    return !limits->given || (share >= limits->least && share <= limits->most);
}

static bool fits_box(const struct sampler *s, const struct ls_rectangle *part, const float *row)
{
    const double xmin = (double)row[3], ymin = (double)row[4];
    const double xmax = (double)row[5], ymax = (double)row[6];
    const double shared = area_of(least(part->xmax, xmax) - -least(-part->xmin, -xmin),
                                  least(part->ymax, ymax) - -least(-part->ymin, -ymin));
    const double sampled = area_of(part->xmax - part->xmin, part->ymax - part->ymin);
    const double object = area_of(xmax - xmin, ymax - ymin);
    const double all = sampled + object - shared;
    return within(&s->overlap, all > 0 ? shared / all : 0) &&
           within(&s->part, sampled > 0 ? shared / sampled : 0) &&
           within(&s->object, object > 0 ? shared / object : 0);
}

static bool fits(const struct sampler *s, const struct ls_rectangle *part, const float *boxes,
                 int64_t count)
{
    if (!s->overlap.given && !s->part.given && !s->object.given)
        return true;
    for (int64_t i = 0; i < count; i++)
        if (fits_box(s, part, boxes + LS_BOX_NUMBERS * i))
            return true;
    return false;
}

/* How many parts are found; number `wanted` of them, from 0, is *part. */
static int64_t find(const struct ls_part_sampler *samplers, uint64_t key, uint64_t ordinal,
                    uint64_t element, const float *boxes, int64_t count, int64_t wanted,
                    struct ls_rectangle *part)
{
    int64_t all = 0;
    for (int64_t i = 0; i < samplers->count; i++) {
        const struct sampler *s = &samplers->item[i];
        int64_t found = 0;
        for (int64_t trial = 0; trial < s->trials; trial++) {
            const uint64_t at = element + 4 * (uint64_t)trial;
            if (found >= s->most)
                break;
            const struct ls_rectangle drawn = draw_part(s, key, ordinal, at);
            if (!fits(s, &drawn, boxes, count))
                continue;
            found++;
            if (all++ == wanted) {
                *part = drawn;
                return all;
            }
        }
        element += 4 * (uint64_t)s->trials;
    }
    return all;
}

bool ls_part_sampler_draw(const struct ls_part_sampler *sampler, uint64_t key, uint64_t ordinal,
                          uint64_t first, const float *boxes, int64_t count,
                          struct ls_rectangle *part)
{
    *part = (struct ls_rectangle){0, 0, 1, 1};
    const int64_t found = find(sampler, key, ordinal, first + 1, boxes, count, -1, part);
    if (found == 0)
        return false;
    const uint32_t choice = ls_random_below(key, ordinal, first, (uint32_t)found);
    (void)find(sampler, key, ordinal, first + 1, boxes, count, (int64_t)choice, part);
    return true;
}
