/* Weights from files of others and of our own, and their way into a net.
 *
 * ls_weights_read knows a file by its content, not by its name:
 *   - safetensors, ours or made elsewhere: tensors "<layer>.<name of the blob>" and "<layer>.<n>"
 *     (blob n); "weight" is blob 0 and "bias" blob 1 of layers whose blobs have other names, unless
 *     they are saved averages. In a snapshot, "average.<name>" is the moving average
 *     of the tensor <name>, and names that begin with "state." are no weights.
 *   - caffemodel: a NetParameter in binary form with layers of any age (`layer`, V1 `layers`, and
 *     V0 within these), blobs with a shape or with the four legacy extents, floats or doubles.
 *   - an index of safetensors (".index.json"), whose files lie beside it.
 *   - HDF5, as Caffe writes it with snapshot_format: HDF5: arrays "/data/<layer>/<n>" (blob n).
 * ls_weights_apply gives them to a net by layer name, by the rules of Caffe.
 *
 * Failures have status LOCKSTEP_WEIGHTS and name the file and the layer or tensor.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHTS_H
#define LS_SNAPSHOT_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "ir/shape.h"
#include "snapshot/archive.h"

#define LS_PREFIX_AVERAGE "average." /* + name: its moving average */
#define LS_PREFIX_STATE   "state."   /* + anything: what a resume needs beside the weights */
#define LS_PREFIX_MEAN    LS_PREFIX_STATE "mean." /* + number of a data source, from 1 */

/* Whether a layer of this name would be taken for something else in a snapshot. */
bool ls_weights_name_reserved(const char *layer);

struct ls_weight_blob {
    bool present;          /* false: a blob between others that the file does not have */
    const char *name;      /* "scale": in a safetensors file; NULL: it has a number only */
    int number;            /* which blob of its layer; -1: its name says it */
    bool legacy;           /* the shape is num, channels, height, width of an old caffemodel */
    struct ls_shape shape; /* row-major */
    const float *data;     /* `copy`, or where it lies in the file */
    float *copy;           /* owned; NULL: none */
};

enum { LS_BLOBS_MAX = 64 }; /* of a layer */

struct ls_weights_origin;

struct ls_weight_layer {
    char *name;
    struct ls_weight_blob *blobs;
    int blob_count;
};

/* All zeros is empty. */
struct ls_weights {
    char *path;
    struct ls_mapping file;         /* what blobs without a copy are in */
    struct ls_weight_layer *layers; /* in the order of the file; from a caffemodel also those
                                       without blobs */
    size_t layer_count, layer_capacity;
    char **unused; /* tensors whose names are not those of a layer's blob */
    size_t unused_count, unused_capacity;
    struct ls_note *notes; /* of a safetensors file; see ls_weights_note */
    size_t note_count;
    bool averaged; /* these are the moving averages */
    /* What blobs without a copy are in, besides `file`; NULL: nothing. Owned. */
    struct ls_weights_origin *origin;
};

/* Which weights to take from a snapshot that has two sets. */
enum ls_weights_set {
    LS_WEIGHTS_BEST, /* the averaged ones where there are any, else the plain ones */
    LS_WEIGHTS_PLAIN,
    LS_WEIGHTS_AVERAGED /* fails where there are none */
};

/* Reads all weights of `path`. On failure *weights is empty. */
int ls_weights_read(const char *path, enum ls_weights_set set, struct ls_weights *weights,
                    struct ls_error *error);
/* As ls_weights_read, for safetensors with the names of another program: `map` (see
 * snapshot/weight_map.h) says what they are here; NULL: they are ours. What the map does not know
 * is `unused`. */
int ls_weights_read_mapped(const char *path, enum ls_weights_set set, const char *map,
                           struct ls_weights *weights, struct ls_error *error);
void ls_weights_free(struct ls_weights *weights); /* leaves it empty */

/* The map of the program's own that knows most of the names of weights that were read without one;
 * NULL: none knows half of them, or they are a snapshot's. */
const char *ls_weights_suggest_map(const struct ls_weights *weights);
/* A note of the snapshot that the weights came from (class names ...), or NULL. */
const char *ls_weights_note(const struct ls_weights *weights, const char *key);

/* A blob of the net that wants to be filled. */
struct ls_weight_target {
    const char *layer;
    const char *name; /* of the blob; NULL: the number is all that there is */
    int blob;
    int blob_count; /* blobs of this layer in all, shared ones included */
    bool average;   /* a saved average, of which a foreign file's "weight" is none */
    int parameter;  /* targets with the same number are one parameter under several names */
    bool shared;    /* another target's layer owns the parameter */
    bool random;    /* what it holds without a file is drawn */
    struct ls_shape shape;
    /* Takes ls_shape_size(&shape) numbers in Caffe's order. Returns a status. */
    int (*store)(void *user, const struct ls_weight_target *target, const float *data,
                 struct ls_error *error);
    void *user;
};

/* What becomes of a tensor of a file. */
struct ls_weight_fate {
    const struct ls_weight_layer *layer;
    const struct ls_weight_blob *blob;
    const struct ls_weight_target *target; /* that takes it; NULL: none */
};

/* What ls_weights_apply did: a fate for each blob that is there, in the order of the file. */
struct ls_weights_report {
    struct ls_weight_fate *fates;
    size_t count, taken;
};
void ls_weights_report_free(struct ls_weights_report *report);

/* Stores every blob that the file and the net both have. Targets of one layer follow each other.
 * A parameter with several names may be in the file under any of them, and under several if the
 * numbers are the same (or, if `partial`, others: then those under the owner's name count).
 * If numbers of blobs or shapes differ, two blobs are for one target, or a blob holds what no
 * training leaves (numbers that are not finite, variances below zero), all such problems are
 * reported and nothing is stored. `report` begins as zeros, is filled anew, and freed by the
 * caller, also on failure. */
int ls_weights_apply(const struct ls_weights *weights, const struct ls_weight_target *targets,
                     size_t count, bool partial, struct ls_weights_report *report,
                     struct ls_error *error);

/* Whether a blob of a file fits a parameter of that shape. One with legacy extents fits a shape
 * that is the same after leading ones are put before it to make four. */
bool ls_weights_fit(const struct ls_weight_blob *blob, const struct ls_shape *shape);
/* "ip.weight": how a tensor of a file is called, also of a file in which blobs have numbers. */
void ls_weights_name_blob(const struct ls_weight_layer *layer, const struct ls_weight_blob *blob,
                          struct ls_text *name);

#endif
