/* Using a trained net: tests and predictions. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/net.h"
#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_model_options {
    size_t struct_size;
    int workers;     /* 0: lockstep_default_workers() */
    const char *isa; /* as in lockstep_train_options */
    int level;       /* the net's state, for include and exclude rules */
    const char *const *stages;
    size_t stage_count;
    int64_t iterations; /* lockstep_model_test: batches to test; 0: every sample once */
    uint64_t memory;    /* as in lockstep_train_options */
    struct lockstep_callbacks callbacks;
    const char *device;                         /* as in lockstep_train_options */
    const struct lockstep_dummy_options *dummy; /* NULL: the net's own data */
    const char *labels; /* a file with a class's name on each line; NULL: those of the weights */
    /* Predictions of pictures by a net that has no data layer, in place of what a snapshot's
     * definition says: a mean picture (.binaryproto) or means of channels ("104,117,123"), a factor
     * (0: 1), and the side that pictures are resized to before the centre of the net's size is cut
     * out (0: that of the mean picture, or of the net's input). */
    const char *mean;
    double scale;
    int resize;
    const char *output; /* the blob that is predicted; NULL: what the net ends with */
    /* Of pictures, the mean of ten predictions: of the four corners and the centre, and of these
     * mirrored. For nets without a data layer, and pictures that are larger than the net's input
     * (mean, resize). */
    int oversample;
    const char *map; /* the map of names of weights of another program; NULL: Lockstep's names */
};
LOCKSTEP_API void lockstep_model_options_init(struct lockstep_model_options *options);

/* A net in its test phase with weights. */
struct lockstep_model;

/* `path` is a net prototxt (train-and-test or deploy form), or a solver's; `weights` a snapshot, a
 * safetensors file, a caffemodel or Caffe's HDF5 (several, separated by commas). Where one of
 * these, or `options`, is NULL, that is LOCKSTEP_USAGE. */
LOCKSTEP_API int lockstep_model_load(const char *path, const char *weights,
                                     const struct lockstep_model_options *options,
                                     struct lockstep_model **model, struct lockstep_error *error);
LOCKSTEP_API void lockstep_model_free(struct lockstep_model *model);

/* Runs the net over its own data. The outputs belong to the model until its next call; *samples
 * (may be NULL) is how many were tested. A loss that is not finite is LOCKSTEP_DIVERGED; the
 * outputs are given then, too. */
LOCKSTEP_API int lockstep_model_test(struct lockstep_model *model,
                                     const struct lockstep_output **outputs, size_t *count,
                                     int64_t *samples, struct lockstep_error *error);

/* The shape that one input sample has after transformation (channels, height, width); of other
 * inputs its axes without that of the samples, the third and those behind it multiplied. */
LOCKSTEP_API void lockstep_model_input_shape(const struct lockstep_model *model, int64_t shape[3]);
/* Numbers a sample yields: the size of the prediction (for a classifier, one per class). They come
 * in the order of the blob's axes, without that of the samples. */
LOCKSTEP_API size_t lockstep_model_output_size(const struct lockstep_model *model);
/* Positions that these numbers are for: 1 for a classifier; height x width where every position of
 * a picture is classified, and the output is one map after the other, class by class. */
LOCKSTEP_API size_t lockstep_model_output_positions(const struct lockstep_model *model);
/* The name of a class, from the weights file; NULL if it is not known. */
LOCKSTEP_API const char *lockstep_model_class_name(const struct lockstep_model *model,
                                                   size_t index);

/* `count` samples of input (already transformed), one behind the other, to `count` x
 * lockstep_model_output_size numbers: the values of the layer before the loss, through a softmax
 * where the loss has one. LOCKSTEP_DEFINITION where the net has no such output, or needs other
 * inputs besides. */
LOCKSTEP_API int lockstep_model_predict(struct lockstep_model *model, const float *input,
                                        size_t count, float *output, struct lockstep_error *error);
/* The inputs of a net (its Input layers' tops), in the order of the definition: how many there are,
 * what they are called, and how many numbers of each a sample has. A net that mixes the samples of
 * a batch (Faster R-CNN's pictures and regions, for example) predicts for whole batches, as its
 * shapes have them: a sample is a batch then, here and in lockstep_model_output_size. */
LOCKSTEP_API size_t lockstep_model_input_count(const struct lockstep_model *model);
LOCKSTEP_API const char *lockstep_model_input_name(const struct lockstep_model *model,
                                                   size_t index);
LOCKSTEP_API size_t lockstep_model_input_size(const struct lockstep_model *model, size_t index);
/* The same as lockstep_model_predict from all inputs: inputs[i] are `count` samples of input i. */
LOCKSTEP_API int lockstep_model_predict_inputs(struct lockstep_model *model,
                                               const float *const *inputs, size_t count,
                                               float *output, struct lockstep_error *error);
/* The extents that input `index`, or what is predicted, has for one sample, and the axis that
 * samples lie along (*axis, which may be NULL; its extent is 1, or that of a batch where a net
 * mixes samples). Returns how many extents there are; 0: there is no such value. */
LOCKSTEP_API int lockstep_model_input_extents(const struct lockstep_model *model, size_t index,
                                              int64_t extent[LOCKSTEP_AXES_MAX], int *axis);
LOCKSTEP_API int lockstep_model_output_extents(const struct lockstep_model *model,
                                               int64_t extent[LOCKSTEP_AXES_MAX], int *axis);
/* The blob that is predicted; NULL: there is none. */
LOCKSTEP_API const char *lockstep_model_output_name(const struct lockstep_model *model);
/* What training did with pictures: `count` of them, one behind the other, 0 to 255, of `shape`
 * (channels in the net's order, height, width), to samples that lockstep_model_predict takes. They
 * have the size of the records of the training; or that of the net's input: then only mean, scale
 * and standardization are left to do. LOCKSTEP_DATA for pictures of another size. */
LOCKSTEP_API int lockstep_model_transform(struct lockstep_model *model, const float *pixels,
                                          const int64_t shape[3], size_t count, float *samples,
                                          struct lockstep_error *error);
/* The least and the largest number that pixels of 0 to 255 become by that. Returns 0 where training
 * left pixels as they are, or nothing is known of it. */
LOCKSTEP_API int lockstep_model_input_range(struct lockstep_model *model, double *least,
                                            double *most);
/* Reads a JPEG or PNG picture, resizes and transforms it as the test phase's data layer would, and
 * predicts: lockstep_model_output_size numbers. */
LOCKSTEP_API int lockstep_model_predict_picture(struct lockstep_model *model, const char *path,
                                                float *output, struct lockstep_error *error);
/* The index-th sample of the test phase's data: its shape (channels, height, width), its pixels
 * before transformation (0..255; three channels are red, green, blue), its label (0 where it has
 * not just one), and the prediction of lockstep_model_output_size numbers. `pixels`, `label` and
 * `output` may be NULL; a call without `pixels` says how many there are, the product of `shape`.
 * LOCKSTEP_USAGE where there is no such sample, or no picture in it. */
LOCKSTEP_API int lockstep_model_predict_sample(struct lockstep_model *model, int64_t index,
                                               int64_t shape[3], float *pixels, int *label,
                                               float *output, struct lockstep_error *error);
/* How a net does at one class of samples, or of positions where every position of a picture is
 * classified. A figure that there is none of is NaN. */
struct lockstep_class_figures {
    const char *name;                /* NULL: not known */
    int64_t count, predicted, right; /* with this label; predicted as this; both */
    double precision, recall, f1;    /* right / predicted, right / count, their harmonic mean */
    double iou;                      /* intersection over union */
};

/* A sample at which the net does badly. */
struct lockstep_worst_sample {
    int64_t index; /* as lockstep_model_predict_sample takes it */
    double score;  /* what the net gives the label; of many positions the part that is right */
    /* The labels of its positions, and what is predicted: numbers of classes; -1: a label that is
     * left out. */
    const int32_t *labels, *predicted;
};

/* Which classes a net takes for which. */
struct lockstep_confusion {
    size_t classes, positions; /* positions of a sample: 1 for a classifier */
    int64_t samples;           /* tested */
    int64_t counted, left_out; /* labels that name a class, and labels that do not (255 around a
                                  segmentation, -1) */
    double accuracy;           /* the part of those counted that is right */
    double mean_iou;           /* over the classes that occur */
    const int64_t *matrix;     /* classes x classes: how often label i was taken for j */
    const struct lockstep_class_figures *figures; /* of each class */
    const struct lockstep_worst_sample *worst;    /* the worst first */
    size_t worst_count;
};

/* Predicts the first `samples` samples (0: all) of the net's own data and compares with their
 * labels, the second tensor of each; `worst` is how many of the worst samples are kept. What is
 * returned belongs to the model until its next call. LOCKSTEP_DEFINITION where the net does not
 * classify: the prediction is one number, or there is not one label for each position. */
LOCKSTEP_API int lockstep_model_confusion(struct lockstep_model *model, int64_t samples,
                                          size_t worst, const struct lockstep_confusion **confusion,
                                          struct lockstep_error *error);

/* What a box in a picture is: found and right, found and wrong, a true box that was not found, or
 * found where nothing says whether it is right. */
enum lockstep_box_kind {
    LOCKSTEP_BOX_RIGHT,
    LOCKSTEP_BOX_WRONG,
    LOCKSTEP_BOX_MISSED,
    LOCKSTEP_BOX_OPEN
};

/* Its corners are parts of the sides of the sample as the net gets it: 0 is left or top, 1 right or
 * bottom. */
struct lockstep_box {
    enum lockstep_box_kind kind;
    int label;        /* its class */
    const char *name; /* of the class; NULL: not known */
    double score;     /* of a found box; NaN: a true one */
    double xmin, ymin, xmax, ymax;
};

/* A sample with what was found in it, the highest score first, and what was missed. */
struct lockstep_boxed_sample {
    int64_t index;
    double score; /* right ones / (found + missed ones); 1 where there are none of either */
    const struct lockstep_box *boxes;
    size_t box_count;
};

/* How a net does that finds boxes in pictures. */
struct lockstep_found_boxes {
    int64_t samples; /* looked at */
    size_t classes;  /* the largest class that there is, and 1 */
    /* Of each class: count are the true boxes, predicted those found; iou is NaN. */
    const struct lockstep_class_figures *figures;
    int judged;                                /* the data have true boxes */
    const struct lockstep_boxed_sample *worst; /* the worst first; not judged: the first samples */
    size_t worst_count;
};

/* Whether a net predicts boxes: the rows of a DetectionOutput, or of a YOLO one. */
LOCKSTEP_API int lockstep_model_finds_boxes(const struct lockstep_model *model);
/* Looks for boxes in the first `samples` samples (0: all) of the net's own data; those count whose
 * score is at least `score`. A found box is right if the true box of its class that it overlaps
 * most, by half of what both cover at least, belongs to none with a higher score; difficult true
 * boxes need not be found. `worst` samples are kept. True boxes are rows of 8 numbers in the second
 * tensor of each sample (docs/caffe.md, "Boxes"). What is returned belongs to the model until its
 * next call. LOCKSTEP_DEFINITION where the net predicts no boxes or has no data, LOCKSTEP_USAGE for
 * samples below 0, more than 1000 of the worst, or a score that is no number. */
LOCKSTEP_API int lockstep_model_find_boxes(struct lockstep_model *model, int64_t samples,
                                           size_t worst, double score,
                                           const struct lockstep_found_boxes **found,
                                           struct lockstep_error *error);
/* The index-th sample of the test phase's data as the net gets it, which boxes are parts of: as
 * lockstep_model_predict_sample has it, but behind crops and resizing, with mean and scale undone.
 * Numbers that no pixels can be made of again lie from 0 (the least) to 255. A call with `pixels`
 * NULL says how many there are. LOCKSTEP_USAGE where there is no such sample, or no picture in it.
 */
LOCKSTEP_API int lockstep_model_sample_picture(struct lockstep_model *model, int64_t index,
                                               int64_t shape[3], float *pixels,
                                               struct lockstep_error *error);

/* Samples in the test phase's data; 0 if the net has no data layer. */
LOCKSTEP_API int64_t lockstep_model_sample_count(const struct lockstep_model *model);

/* Writes what the net predicts (lockstep_model_options.output) for the samples of its data, so many
 * batches from the first sample on, into a new LMDB database of Caffe's Datum records, as
 * extract_features does. Behind the last sample comes the first again. */
LOCKSTEP_API int lockstep_model_extract(struct lockstep_model *model, int64_t batches,
                                        const char *path, int64_t *records,
                                        struct lockstep_error *error);

/* Parameters of the net, as lockstep_trainer_parameter_count and those behind it have them. */
LOCKSTEP_API size_t lockstep_model_parameter_count(const struct lockstep_model *model);
LOCKSTEP_API const char *lockstep_model_parameter_name(const struct lockstep_model *model,
                                                       size_t index);
LOCKSTEP_API int lockstep_model_parameter_shape(const struct lockstep_model *model, size_t index,
                                                int64_t extent[LOCKSTEP_AXES_MAX]);
LOCKSTEP_API int lockstep_model_read_parameter(const struct lockstep_model *model, size_t index,
                                               float *data, size_t size,
                                               struct lockstep_error *error);
LOCKSTEP_API int lockstep_model_write_parameter(struct lockstep_model *model, size_t index,
                                                const float *data, size_t size,
                                                struct lockstep_error *error);

/* Writes the model's weights: a caffemodel where `path` ends so, Caffe's HDF5 where it ends in .h5,
 * else safetensors. */
LOCKSTEP_API int lockstep_model_save(struct lockstep_model *model, const char *path,
                                     struct lockstep_error *error);
/* Writes the weights of one file as another, in the format that the ending of its name says
 * (.caffemodel, .h5, .safetensors), without a net. Where only its definition could tell what a
 * tensor is, that is LOCKSTEP_WEIGHTS: load a model then, and save it. `tell` (may be NULL) gets a
 * line about tensors that are left out. */
LOCKSTEP_API int lockstep_convert_weights(const char *from, const char *to,
                                          void (*tell)(void *user, const char *line), void *user,
                                          struct lockstep_error *error);
/* Writes the weights of one file with other names: from those of a family of networks to
 * Lockstep's, or back as safetensors, whichever `from` does not have. `map` is a map of names
 * (docs/weights.md): one of the library's ("gpt2") or a file. `from` may be an index of several
 * safetensors files. */
LOCKSTEP_API int lockstep_convert_weight_names(const char *from, const char *to, const char *map,
                                               void (*tell)(void *user, const char *line),
                                               void *user, struct lockstep_error *error);

/* Export to ONNX. */
struct lockstep_onnx_options {
    size_t struct_size;
    int opset;     /* the version of ONNX's operators, 13 to 17; 0: 17 */
    int64_t batch; /* samples of a run of the model; 0: any number, if the net permits it */
    int external;  /* weights in a file beside the model, called as it is with ".data" behind; they
                      are there in any case where the model would have more than 2 GiB */
    int preprocessing; /* mean and scale of the transformation are part of the model */
    /* Told of what the model takes for granted, a sentence a call; may be NULL. */
    void (*tell)(void *user, const char *sentence);
    void *user;
};
LOCKSTEP_API void lockstep_onnx_options_init(struct lockstep_onnx_options *options);
/* Writes the net as it predicts, with its weights, as a model of ONNX (docs/onnx.md). Its outputs
 * are the net's prediction (lockstep_model_options.output) and, where no blob is named there, all
 * other blobs that no layer reads, with the logits of a LinearSoftmaxLoss ("logits") in place of
 * that loss. The same model gives the same bytes. LOCKSTEP_DEFINITION names all layers that ONNX
 * has no equivalent for. */
LOCKSTEP_API int lockstep_model_export_onnx(struct lockstep_model *model, const char *path,
                                            const struct lockstep_onnx_options *options,
                                            struct lockstep_error *error);

/* Pruning: which weights of a file are to become zero. */
struct lockstep_prune_options {
    size_t struct_size;
    double sparsity;           /* 0 to 1: the part of the weights that is masked */
    const char *const *layers; /* patterns of layers' names ("conv*"); none: all layers */
    size_t layer_count;
    int global; /* the part of all weights together; 0: of each parameter's */
    /* Told of each parameter; may be NULL. */
    void (*tell)(void *user, const char *parameter, int64_t weights, int64_t masked);
    void *user;
};
LOCKSTEP_API void lockstep_prune_options_init(struct lockstep_prune_options *options);
/* Writes masks of the weights with the smallest magnitudes, of equal ones those that come first in
 * the file, as safetensors that a solver's `mask` takes. Biases and statistics are left out. *size
 * and *masked: weights in all, and those that are masked. */
LOCKSTEP_API int lockstep_prune(const char *weights, const char *path,
                                const struct lockstep_prune_options *options, int64_t *size,
                                int64_t *masked, struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
