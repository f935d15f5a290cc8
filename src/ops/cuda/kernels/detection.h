/* Ops that find boxes, learn to, and judge what was found, for host code; as kernels.h says. The
 * bits are those of device/defined.h: formulas and their order are in headers of src/device. What
 * attributes point to is in the card's memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_DETECTION_H
#define LS_OPS_CUDA_DETECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/batch_numbers.h"
#include "ir/detection.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* ---- SSD's loss ---- */

/* Bytes of scratch, of the loss and of counts. */
size_t ls_cuda_multibox_scratch(const struct ls_multibox_attr *attr, int64_t samples);

struct ls_cuda_multibox_values {
    const float *loc, *conf, *prior, *rows;
    float *dloc, *dconf;
};
/* Adds [sum, count] to the record, and the matches to *count, if that is there. */
int ls_cuda_multibox(cudaStream_t stream, const struct ls_multibox_attr *attr, int64_t samples,
                     const struct ls_cuda_multibox_values *of, void *scratch, double *record,
                     double *count);
/* *record += matches */
int ls_cuda_count_matches(cudaStream_t stream, const struct ls_multibox_attr *attr, int64_t samples,
                          const float *prior, const float *rows, void *scratch, double *record);
/* dx[i] = weight / normalizers[normalizer] slope[i]; normalizer -1: 1 */
int ls_cuda_scale_slopes(cudaStream_t stream, float weight, const struct ls_batch_numbers *numbers,
                         int normalizer, const float *slope, float *dx, int64_t n);

/* ---- YOLO's losses ---- */

/* Planes of `samples` samples, and rows of true boxes. */
struct ls_cuda_planes {
    int64_t samples, rows, columns;
    const float *x, *truths;
};
/* Bytes of scratch; `truths`: true boxes of a sample that one anchor or several may learn. */
size_t ls_cuda_planes_scratch(int64_t samples, int64_t plane, int anchors, int64_t classes,
                              int64_t truths);
/* record[0] += the sum of squares, record[1] += count */
int ls_cuda_region_loss(cudaStream_t stream, const struct ls_region_attr *attr,
                        const struct ls_cuda_planes *of, void *scratch, double count, float *slope,
                        double *record);
int ls_cuda_yolo_loss(cudaStream_t stream, const struct ls_yolo_attr *attr,
                      const struct ls_cuda_planes *of, void *scratch, double count, float *slope,
                      double *record);

/* ---- What was found ---- */

size_t ls_cuda_detection_scratch(const struct ls_detection_attr *attr, int64_t samples);
int ls_cuda_detect(cudaStream_t stream, const struct ls_detection_attr *attr, int64_t samples,
                   const struct ls_batch_numbers *numbers, const float *place, const float *conf,
                   const float *prior, void *scratch, float *rows);

/* `cells` of a sample, in all inputs. */
size_t ls_cuda_yolo_output_scratch(const struct ls_yolo_output_attr *attr, int64_t samples,
                                   int64_t cells);
/* Lists what input `input` may have found, its cells from `first` on; the first input begins. */
int ls_cuda_yolo_list(cudaStream_t stream, const struct ls_yolo_output_attr *attr, int input,
                      const struct ls_cuda_planes *of, int64_t cells, int64_t first, void *scratch);
int ls_cuda_yolo_keep(cudaStream_t stream, const struct ls_yolo_output_attr *attr, int64_t samples,
                      int64_t cells, const struct ls_batch_numbers *numbers, void *scratch,
                      float *rows);

struct ls_cuda_proposals {
    int64_t samples, rows, columns;
    const float *score, *difference, *info;
    float *region, *region_score; /* region_score NULL: it is not asked for */
};
size_t ls_cuda_proposal_scratch(const struct ls_proposal_attr *attr, int64_t samples,
                                int64_t plane);
int ls_cuda_propose(cudaStream_t stream, const struct ls_proposal_attr *attr,
                    const struct ls_cuda_proposals *of, void *scratch);

/* `count` positions, of which `inner` lie in each row, with `each` weights. */
struct ls_cuda_hardest {
    int64_t count, inner, each;
    const float *rois, *loss, *label, *weight;
    float *new_label, *new_weight;
};
int ls_cuda_hardest_regions(cudaStream_t stream, const struct ls_hardest_attr *attr,
                            const struct ls_cuda_hardest *of);

/* ---- How much of it is right ---- */

size_t ls_cuda_evaluation_scratch(const struct ls_evaluate_attr *attr, int64_t samples);
/* Of rows of what was found, or, where rows and columns are not 0, of YOLO's planes. */
int ls_cuda_evaluate(cudaStream_t stream, const struct ls_evaluate_attr *attr,
                     const struct ls_cuda_planes *of, const struct ls_batch_numbers *numbers,
                     void *scratch, double *record, double *list);

#ifdef __cplusplus
}
#endif

#endif
