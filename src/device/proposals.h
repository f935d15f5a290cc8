/* Regions that a net proposes, for host code and kernels alike. See layers/proposal.c, which has
 * the formulas. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_PROPOSALS_H
#define LS_DEVICE_PROPOSALS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/elementary_double.h"
#include "ir/detection.h"

enum { LS_PROPOSAL_CORNERS = 4, LS_PROPOSAL_ROW = 5 };

struct ls_proposal_box {
    double left, top, right, bottom; /* pixels, both edges belong to it */
};

struct ls_proposal {
    float score;
    int32_t box; /* row by row of positions, anchor by anchor */
};

/* What one sample has: scores and differences are planes. */
struct ls_proposal_sample {
    const struct ls_proposal_attr *attr;
    int64_t rows, columns;
    const float *score, *difference;
    double height, width;             /* of the picture */
    double least_height, least_width; /* of a box */
};

LS_HOST_DEVICE double ls_proposal_length(double first, double last)
{
    return last - first + 1;
}

LS_HOST_DEVICE double ls_proposal_area(const struct ls_proposal_box *box)
{
    return ls_proposal_length(box->left, box->right) * ls_proposal_length(box->top, box->bottom);
}

/* Intersection over union. */
LS_HOST_DEVICE double ls_proposal_overlap(const struct ls_proposal_box *a,
                                          const struct ls_proposal_box *b)
{
    const double width = ls_proposal_length(fmax(a->left, b->left), fmin(a->right, b->right));
    const double height = ls_proposal_length(fmax(a->top, b->top), fmin(a->bottom, b->bottom));
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (ls_proposal_area(a) + ls_proposal_area(b) - width * height);
}

/* The anchor at the first position: ratio by ratio, scale by scale. */
LS_HOST_DEVICE struct ls_proposal_box ls_proposal_anchor(const struct ls_proposal_attr *attr,
                                                         int64_t anchor)
{
    const double ratio = (double)attr->ratio[anchor / attr->scales];
    const double scale = (double)attr->scale[anchor % attr->scales];
    const double base = attr->base, centre = (base - 1) / 2;
    const double width = round(sqrt(base * base / ratio)), height = round(width * ratio);
    const double half_width = (width * scale - 1) / 2, half_height = (height * scale - 1) / 2;
    const struct ls_proposal_box box = {centre - half_width, centre - half_height,
                                        centre + half_width, centre + half_height};
    return box;
}

LS_HOST_DEVICE double ls_proposal_limit(double number, double extent)
{
    return fmax(fmin(number, extent - 1), 0.0);
}

/* Moves an anchor by four predicted numbers, `plane` apart, and cuts it to the picture. Returns
 * whether it is large enough. */
LS_HOST_DEVICE bool ls_proposal_move_anchor(const struct ls_proposal_sample *sample,
                                            const float *numbers, int64_t plane,
                                            struct ls_proposal_box *box)
{
    const double width = ls_proposal_length(box->left, box->right);
    const double height = ls_proposal_length(box->top, box->bottom);
    const double x = (double)numbers[0] * width + (box->left + width / 2);
    const double y = (double)numbers[plane] * height + (box->top + height / 2);
    const double half_width =
        ls_double_flush(ls_double_exp((double)numbers[2 * plane]) * width / 2);
    const double half_height =
        ls_double_flush(ls_double_exp((double)numbers[3 * plane]) * height / 2);
    box->left = ls_proposal_limit(x - half_width, sample->width);
    box->top = ls_proposal_limit(y - half_height, sample->height);
    box->right = ls_proposal_limit(x + half_width, sample->width);
    box->bottom = ls_proposal_limit(y + half_height, sample->height);
    return ls_proposal_length(box->left, box->right) >= sample->least_width &&
           ls_proposal_length(box->top, box->bottom) >= sample->least_height;
}

/* The box of anchor `a` at position i. Returns whether it counts. */
LS_HOST_DEVICE bool ls_proposal_make(const struct ls_proposal_sample *sample, int64_t i, int64_t a,
                                     struct ls_proposal_box *box)
{
    const int64_t plane = sample->rows * sample->columns;
    const double x = (double)(i % sample->columns) * sample->attr->stride;
    const double y = (double)(i / sample->columns) * sample->attr->stride;
    const float score = sample->score[a * plane + i];
    *box = ls_proposal_anchor(sample->attr, a);
    box->left += x;
    box->top += y;
    box->right += x;
    box->bottom += y;
    const bool large = ls_proposal_move_anchor(
        sample, sample->difference + a * LS_PROPOSAL_CORNERS * plane + i, plane, box);
    return large && score == score;
}

/* The higher score first; of equal ones that of the first position, then of the first anchor. */
LS_HOST_DEVICE bool ls_proposal_is_before(const struct ls_proposal *a, const struct ls_proposal *b)
{
    return a->score != b->score ? a->score > b->score : a->box < b->box;
}

/* Row of a box, but for the number of its picture. */
LS_HOST_DEVICE void ls_proposal_write(const struct ls_proposal_box *box, float *row)
{
    row[1] = (float)box->left;
    row[2] = (float)box->top;
    row[3] = (float)box->right;
    row[4] = (float)box->bottom;
}

/* Sample n of scores, differences and facts about pictures. */
LS_HOST_DEVICE struct ls_proposal_sample
ls_proposal_sample_of(const struct ls_proposal_attr *attr, int64_t rows, int64_t columns,
                      const float *score, const float *difference, const float *info, int64_t n)
{
    const int64_t boxes = attr->ratios * attr->scales * rows * columns;
    const float *picture = info + n * attr->info;
    struct ls_proposal_sample sample;
    sample.attr = attr;
    sample.rows = rows;
    sample.columns = columns;
    sample.score = score + (2 * n + 1) * boxes;
    sample.difference = difference + n * LS_PROPOSAL_CORNERS * boxes;
    sample.height = (double)picture[0];
    sample.width = (double)picture[1];
    sample.least_height = (double)attr->least * (double)picture[2];
    sample.least_width = (double)attr->least * (double)picture[attr->info > 3 ? 3 : 2];
    return sample;
}

#endif
