/* Layer types: what a definition is made of. One file a type in src/layers/, one table.
 *
 * A layer does not compute. It checks its parameters, says what shapes its tops have and which
 * learnable blobs it owns, and emits ops: forward ops when asked, then, for the gradients of its
 * tops, backward ops. For every graph (phase, number of samples) the layer is set up afresh.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_LAYER_H
#define LS_IR_LAYER_H

#include "base/error.h"
#include "ir/graph.h"

enum { LS_LAYER_BLOBS_MAX = 8 };

/* A learnable blob that a layer wants. */
struct ls_blob_request {
    const char *name; /* "weight", "bias" */
    struct ls_shape shape;
    const Lockstep__FillerParameter *filler; /* NULL: zeros */
    bool average; /* a moving average: the engine advances it, no solver trains it */
    bool fixed;   /* no solver trains it, whatever its lr_mult */
};

/* What a layer costs, for one micro-batch; backward parts are 0 where they are not computed. */
struct ls_cost {
    double forward_flops, backward_data_flops, backward_weights_flops; /* 2 a multiply-add */
    double forward_bytes, backward_bytes; /* memory that must move at least */
};

struct ls_layer {
    const struct ls_layer_type *type;
    const Lockstep__LayerParameter *definition;
    const char *name;
    struct ls_graph *graph;
    int index;     /* in its graph */
    bool bf16;     /* computes with bf16, if it rounds anything */
    bool tf32;     /* its products take their factors in TF32 */
    bool rounds;   /* whether these decide anything (set by graph/precision.c) */
    bool portable; /* the algorithm of products is PORTABLE where the layer does not say its own */
    int bottoms, tops;
    struct ls_value **bottom; /* set before `setup` */
    struct ls_value **top;    /* NULL until `forward` sets them */
    float *loss_weight;       /* one a top; resolved (1 for a loss's first top, else 0) */
    bool *propagate;          /* one a bottom: its gradient is wanted (set before `backward`) */
    bool *top_used;           /* one a top: some layer reads it */
    bool figure_loss; /* top 0 is a figure that can be a loss, as that of a loss layer (set by
                         `forward` of a type that is not always one) */
    struct ls_blob_request request[LS_LAYER_BLOBS_MAX]; /* set by `setup` */
    int blobs;
    struct ls_parameter *blob[LS_LAYER_BLOBS_MAX]; /* set after `setup` */
    bool train_blob[LS_LAYER_BLOBS_MAX]; /* its gradient is wanted (set before `backward`) */
    void *state; /* the type's own, `state_size` zeroed bytes, freed with the graph */
};

/* What a layer makes of bottoms with rows that a Filter layer has left out (ir/filter.h). */
enum ls_filtered {
    LS_FILTERED_REFUSED,   /* it wants all rows */
    LS_FILTERED_HANDED_ON, /* a row of its tops follows from the same row of its bottoms alone */
    LS_FILTERED_COUNTED    /* the same, and in its figures it does not count them */
};

struct ls_layer_type {
    const char *type;      /* "Convolution" */
    const char *parameter; /* "convolution_param"; NULL: the layer takes none */
    size_t state_size;
    int bottoms_min, bottoms_max; /* max -1: any number */
    int tops_min, tops_max;
    int auto_tops;      /* tops made up where the definition names fewer (losses: 1) */
    bool is_loss;       /* the first top has loss weight 1 unless the definition says otherwise;
                           bottoms from 1 on (labels) may not need gradients */
    bool is_random;     /* its random numbers go by the layer's name */
    bool mixes_samples; /* always: its tops depend on other samples of the batch than their own
                           (see ls_layer_mix) */
    enum ls_filtered filtered; /* what it makes of rows that are left out */
    enum ls_better better;     /* of its figures, unless they are losses */
    /* Checks the definition against the bottoms (shapes, axes of samples) and fills `state`,
     * `request` and `blobs`. Reports all problems that it can see, with places. */
    int (*setup)(struct ls_layer *layer, struct ls_error *error);
    /* Emits forward ops and sets every top. */
    int (*forward)(struct ls_layer *layer, struct ls_error *error);
    /* (optional) Emits backward ops for bottoms with `propagate` and blobs with `train_blob`, given
     * ls_graph_gradient of its tops (at least one is not NULL, or loss_weight[0] != 0). Without it
     * the gradient stops here. */
    int (*backward)(struct ls_layer *layer, struct ls_error *error);
    /* (optional) Fills in what the layer costs (zeros when called), when the backward
     * pass is there. */
    void (*cost)(const struct ls_layer *layer, struct ls_cost *cost);
    const struct ls_plugin *plugin; /* where it comes from; NULL: it is one of Lockstep's own */
};

/* A plugin that was loaded (layers/plugins.h). */
struct ls_plugin {
    const char *file, *name, *version;
    const char *hash; /* SHA-256 of the file */
};

/* What all layers of a graph cost together, forward and backward. */
void ls_graph_cost(const struct ls_graph *graph, struct ls_cost *cost);

/* For how many layers precision decides anything, and how many of them have which. */
struct ls_precision_counts {
    size_t computing, bf16, tf32;
};
struct ls_precision_counts ls_graph_count_precisions(const struct ls_graph *graph);

/* The name of a top; tops that are made up have the name of the layer. */
const char *ls_layer_top_name(const struct ls_layer *layer, int top);

/* "net.prototxt:12:5" of the layer, or of a field of its definition (NULL: the layer). For a field
 * of its parameter message pass that message. The buffer is returned. */
enum { LS_PLACE_SIZE = 320 };
const char *ls_layer_place(const struct ls_layer *layer, const void *message, const char *field,
                           char buffer[LS_PLACE_SIZE]);
/* ls_fail with status LOCKSTEP_DEFINITION, the layer's place and name in front of the message. */
int ls_layer_fail(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, const char *hint, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Refuses, as a mistake of the definition, what ops from number `first` on read of the layer's
 * bottoms with elements of a type that they do not take (ir/op_type.h). */
int ls_layer_check_types(const struct ls_layer *layer, size_t first, struct ls_error *error);

/* Whether the layer may mix the samples of a batch, which it is about to do: only where
 * micro-batches are whole batches. The graph remembers the first layer that asks (graph->mixer),
 * from which the engine knows that they must be. Where it may not, the layer refuses. Values behind
 * such a layer have all of their rows in one sample, the batch. */
bool ls_layer_mix(const struct ls_layer *layer);

/* Whether a value is one that samples were mixed in: the batch is its one sample. */
bool ls_layer_is_mixed(const struct ls_layer *layer, const struct ls_value *value);

/* The axis that a field names (may be negative), checked; -1 after a failure was reported. When
 * `samples_ok` is false, an axis that holds samples (or lies before it) is refused with an
 * explanation. */
int ls_layer_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, int axis, const struct ls_value *value, bool samples_ok);

/* The same, but where the graph is of whole batches, any axis may be named: ls_layer_mix. */
int ls_layer_mixing_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                         const char *field, int axis, const struct ls_value *value);

/* The same, for what works along this one axis and leaves the others as they are: only the axis of
 * the samples itself mixes them. */
int ls_layer_one_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                      const char *field, int axis, const struct ls_value *value);

/* Whether top 0 is a loss: a figure with a weight, whose gradient the layer makes itself. */
bool ls_layer_is_loss(const struct ls_layer *layer);

#endif
