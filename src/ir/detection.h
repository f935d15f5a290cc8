/* The attributes of ops that find boxes, learn to, and judge what was found, in a header by itself
 * for kernels of a GPU.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_DETECTION_H
#define LS_IR_DETECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/loss.h"
#include "ir/methods.h"

/* Boxes are xmin, ymin, xmax, ymax, of an image from 0 to 1. A prior has a box and four variances;
 * what is predicted of a box is how it differs from the prior's, in one of three codes. */
enum ls_box_code { LS_BOX_CORNER, LS_BOX_CENTER_SIZE, LS_BOX_CORNER_SIZE };

/* Which priors SSD's loss learns from: all, hard negatives, or hard examples. */
enum ls_mining { LS_MINING_NONE, LS_MINING_NEGATIVES, LS_MINING_EXAMPLES };

/* SSD's loss; see device/multibox.h. */
struct ls_multibox_attr {
    int64_t priors, classes, objects; /* of a sample */
    enum ls_box_code code;
    bool variance_in_target, bipartite, difficult, euclidean, logistic;
    bool agnostic; /* all classes but the background are one */
    bool by_class; /* each class has its own places: loc [N, P classes 4] */
    bool by_place; /* predicted boxes are matched, not those of the priors */
    bool within;   /* boxes that leave the picture are not matched */
    bool inside;   /* sides outside the picture learn nothing */
    int background;
    float overlap, neg_overlap, neg_pos_ratio, loc_weight;
    enum ls_mining mining;
    int64_t sample_size;    /* EXAMPLES: how many are chosen */
    int64_t top_k;          /* so many can be chosen; -1: all */
    float nms_threshold;    /* chosen ones overlap by no more; 0: they may */
    bool suppresses_priors; /* whose overlap is that of the priors, not of the predicted boxes */
    enum ls_normalization normalization;
    int normalizer;    /* as in ls_loss_attr */
    float loss_weight; /* multiplies the gradient */
    int metric_offset; /* [sum, count]; COUNT_MATCHES: [count] */
    int count_offset;  /* where matches that depend on predictions are counted; -1: nowhere */
};

/* What the score of a found object learns, see layers/region_loss.c: to be 1, the more the further
 * it is from it; 1; or how far its box and the true one overlap. */
enum ls_region_score { LS_REGION_SCORE_FOCUSED, LS_REGION_SCORE_ONE, LS_REGION_SCORE_OVERLAP };

/* YOLOv2's loss; see layers/region_loss.c. */
struct ls_region_attr {
    struct ls_loss_attr loss;
    enum ls_region_score score;
    int anchors;
    int64_t classes, objects;  /* rows of true boxes a sample */
    const float *anchor_sizes; /* width and height of each, in positions, of the definition */
    bool by_anchor;
    float object, no_object, kind, place, threshold;
};

/* YOLOv3's loss; see layers/yolov3.c. Numbers of anchors are those of `biases`. */
struct ls_yolo_attr {
    struct ls_loss_attr loss;
    int anchors, all;         /* of this bottom; of all bottoms */
    const uint32_t *mask;     /* which those of this bottom are, of the definition */
    const float *biases;      /* width and height of each of all, in pixels, of the definition */
    double step;              /* pixels from one position to the next */
    int64_t classes, objects; /* rows of true boxes a sample */
    float object, kind, place, threshold, also, smoothing; /* also: other anchors from here on */
    bool logistic; /* the gradient goes through the logistic function */
};

/* What YOLO's nets have found; see layers/yolo_output.c. Each input has the planes of `anchors`
 * anchors. */
struct ls_yolo_output_attr {
    int anchors;
    const uint32_t *mask;  /* which of `biases`, input by input; NULL: all, in each input */
    const float *biases;   /* width and height, in pixels */
    const uint32_t *steps; /* pixels from one position to the next, by input; NULL: 1 */
    int64_t classes, keep; /* rows of a sample in the top */
    bool softmax;          /* scores of classes; else each by itself */
    float threshold, nms_threshold;
};

/* What a region proposal network has found; see layers/proposal.c. */
struct ls_proposal_attr {
    const float *ratio, *scale; /* `ratios` and `scales` of them, of the definition */
    int64_t ratios, scales;
    int64_t info;            /* numbers of a picture in im_info */
    int64_t before, regions; /* boxes that count; rows of a sample in the top */
    double base, stride;
    uint32_t least;
    float overlap;
};

/* The regions of a picture whose losses are the largest; see layers/box_annotator_ohem.c. */
struct ls_hardest_attr {
    int64_t most; /* of a picture */
    float ignore_label;
};

struct ls_detection_attr {
    int64_t priors, classes, keep; /* rows of a sample in the top */
    enum ls_box_code code;
    bool by_class; /* each class has its own places: loc [N, P classes 4] */
    bool variance_in_target, has_threshold;
    int background;     /* -1: there is none */
    int64_t top_k;      /* of a class, before boxes that overlap are left out; -1: all */
    int64_t keep_top_k; /* of a sample; -1: all */
    float threshold, nms_threshold, eta;
};

/* How a picture became the net's input. */
enum ls_picture_fit { LS_FIT_WARPED, LS_FIT_PADDED, LS_FIT_CROPPED };

/* What an overlap is taken of: boxes in sizes of the picture, or in its pixels. */
struct ls_picture_sizes {
    const int32_t *sizes; /* height and width by ordinal, owned by the graph; NULL: not in pixels */
    int64_t count;
    enum ls_picture_fit fit;
    double height, width; /* PADDED: of the input; CROPPED: what boxes are in sizes of */
};

/* What a region is found by. */
enum ls_found_score { LS_SCORE_OBJECT, LS_SCORE_CLASS, LS_SCORE_BOTH };

/* How many of the boxes that a net finds are right; see layers/detection_evaluate.c. The record has
 * at `truths` the numbers of true boxes by class and of those of no class, the lists have at `list`
 * a find each (struct ls_ranking). */
struct ls_evaluate_attr {
    int64_t finds, objects; /* of a sample */
    int classes, background;
    bool difficult; /* true boxes that are marked as difficult count like others */
    float overlap;  /* from which on a box is right */
    struct ls_picture_sizes pictures;
    int truths, list;
    /* REGION_EVALUATE: */
    int anchors;
    const float *anchor_sizes; /* as in ls_region_attr */
    enum ls_found_score score;
    float nms; /* boxes that overlap a better one so much do not count; negative: all do */
};

#endif
