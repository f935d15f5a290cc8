/* The graph of one net, in one phase, for one number of samples: values and ops, in order.
 *
 * Layers build it with the functions below; `graph/` decides which layers take part and in which
 * order they emit, and rewrites it; `plan/` binds it to memory. Everything a graph holds is freed
 * with it; parameters belong to the ls_parameter_set, which outlives it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_GRAPH_H
#define LS_IR_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/op.h"
#include "ir/sync.h"
#include "schema/net.h"

struct ls_layer;
struct ls_source_shapes;

/* A figure that a net reports: sums and counts in the record of a micro-batch. */
/* Which of two figures is the better one; also the numbers of lockstep_output.better. */
enum ls_better { LS_BETTER_SMALLER = -1, LS_BETTER_UNKNOWN = 0, LS_BETTER_LARGER = 1 };

struct ls_metric {
    const char *name; /* the top blob */
    const struct ls_layer *layer;
    int top;          /* which top of the layer */
    int entries;      /* figures: 1, or the number of classes, or classes^2 */
    int offset;       /* record[offset + i]: the sums */
    int count_offset; /* record[count_offset + (count_each ? i : 0)]: what they are divided by;
                         -1: nothing. A count of zero gives the figure zero */
    double divisor;   /* by which the sums are divided besides; 0: nothing */
    bool count_each;
    bool exponential; /* the figure is exp of the quotient; 0 where the count is 0 */
    bool is_count;    /* the sums themselves are the figures (confusion matrix) */
    int overlaps; /* 0, or the number of classes, whose intersections over unions are the figures:
                     h / (t + l - h), with h in record[offset + c], t `overlaps` behind it, l twice
                     as far; see MEAN_IOU. 0 for a class with t + l = 0 */
    bool mean;    /* the figure is their mean, without classes with t + l = 0 */
    float loss_weight;     /* 0: not part of the loss */
    enum ls_better better; /* UNKNOWN: what its weight in the loss or its layer says */
    bool is_output;        /* no layer consumes the top, so that it is printed */
};

/* Numbers of a find in the lists of a micro-batch: its class + 1, negative where it is wrong, 0
 * where nothing was found; its score. */
enum { LS_FIND = 2 };

/* What a test ranks: all that was found in its samples, the highest scores first, which is judged
 * when all is known (engine/rankings.h). Micro-batches leave lists of finds behind their records.
 */
struct ls_ranking {
    const struct ls_layer *layer;
    int classes;
    int background; /* a class that is not ranked; -1: there is none */
    int truths;  /* record[truths + c]: how many true boxes there are of class c; behind them: how
                    many are of no class */
    int figures; /* record[figures]: the mean over classes; record[figures + 1 + c]: of class c */
    int list;    /* where its finds begin in the lists */
    int finds;   /* of a micro-batch */
};

/* A divisor of losses: how many samples, positions or valid labels an update has. */
struct ls_normalizer {
    int64_t per_sample; /* positions a sample contributes; 0 where labels must be counted */
    int64_t samples;    /* how many samples contribute them to a micro-batch: those of the graph,
                           or 1, the batch, behind what mixes samples */
    int record_offset;  /* where an op leaves its count; -1: per_sample says it all */
    int64_t each;       /* what is counted stands for so many positions */
    bool none;          /* the divisor is `fixed` */
    double fixed;       /* 1, or what the definition gives */
    int sync;           /* the sync point that brings the count; -1: it is known before the pass */
};

/* State per sample: a tensor that goes on from one window to the next, that is from a row of a
 * batch in one update to the same row in the next one (docs/numerics.md, section 15). */
struct ls_sample_state {
    const char *name; /* "rnn1.hidden": unique in the graph */
    const struct ls_layer *layer;
    struct ls_value *value; /* what the previous window has left; or what is collected */
};

/* A file that a test writes rows to, those of all its samples in their order: an HDF5Output layer.
 * They are collected as states per sample that nothing recalls. */
enum { LS_ROW_FILE_TENSORS = 2 };
struct ls_row_file {
    const struct ls_layer *layer;
    const char *path;
    const char *dataset[LS_ROW_FILE_TENSORS]; /* "data", "label" */
    int state[LS_ROW_FILE_TENSORS];           /* numbers of states */
    int selected; /* that which is 0 for rows that are left out; -1: all are written */
};

/* A tensor that comes from outside with each micro-batch: a top of a Data or Input layer. */
struct ls_input {
    struct ls_layer *layer;
    int top;
    struct ls_value *value;
    bool cache; /* a layer's own: memory of the device that ops read and write, run by run */
};

/* A parameter message that a layer of its type does not read. */
struct ls_ignored {
    const struct ls_layer *layer;
    const char *field;
};

/* A figure of debug_info: the mean absolute value of a top, or of the gradient of a bottom. */
struct ls_debug_figure {
    const struct ls_layer *layer;
    int blob; /* which top, or bottom */
    bool gradient;
    int offset; /* record[offset]: the sum; behind it the number of elements */
};

struct ls_graph {
    int phase;              /* LOCKSTEP__PHASE__TRAIN or _TEST */
    int64_t samples;        /* in the micro-batch that this graph is for */
    int64_t update_samples; /* of all batches of an update; 0: there are none */
    uint64_t seed;
    bool training; /* emit backward ops */
    /* The micro-batch is a whole batch, so that layers may mix its samples: ls_layer_mix. */
    bool whole;
    bool dummy; /* of dummy data: averages that are not there are a mean of 0, a variance of 1 */
    int64_t cached;                    /* as in struct ls_net_definition */
    const struct ls_layer *mixer;      /* the first layer that does; NULL: none */
    const struct ls_layer *mixing;     /* the last one that asked to */
    const Lockstep__NetParameter *net; /* (may be NULL) what the graph is made of */
    /* All products have sums in a declared order, so that nothing that the net computes depends on
     * the processor: every device gives the same bits (docs/numerics.md, sections 16 and 17). */
    bool portable;
    struct ls_parameter_set *parameters;
    const struct ls_definition *definition; /* for places */
    const struct ls_source_shapes *sources; /* what Data layers read: see layers/source.h */

    struct ls_layer **layers;
    size_t layer_count, layer_capacity;
    struct ls_value **values;
    size_t value_count, value_capacity;
    struct ls_value **of_parameter; /* by parameter: a value that is it, or NULL */
    size_t of_parameter_capacity;
    struct ls_op **ops; /* forward ops, then backward ops, in execution order */
    size_t op_count, op_capacity;
    struct ls_input *inputs;
    size_t input_count, input_capacity;
    struct ls_metric *metrics;
    size_t metric_count, metric_capacity;
    struct ls_normalizer *normalizers;
    size_t normalizer_count, normalizer_capacity;
    int record_size; /* doubles in the record of a micro-batch, which are added up */
    int list_size;   /* doubles behind them, which are not: the lists of rankings */
    struct ls_ranking *rankings;
    size_t ranking_count, ranking_capacity;
    enum ls_average_precision average_precision; /* for rankings */
    bool class_figures;                          /* they show those of each class, too */
    struct ls_sync *syncs;
    size_t sync_count, sync_capacity;
    struct ls_sample_state *sample_states;
    size_t sample_state_count, sample_state_capacity;
    struct ls_row_file *row_files;
    size_t row_file_count, row_file_capacity;
    int64_t *groupings; /* the sizes of groups that occur; 0: the whole batch */
    size_t grouping_count, grouping_capacity;

    struct ls_ignored *ignored;
    size_t ignored_count, ignored_capacity;
    struct ls_debug_figure *debug; /* with debug_info alone */
    size_t debug_count, debug_capacity;

    bool backward;               /* layers are emitting backward ops now */
    struct ls_layer *emitting;   /* the layer that ops are attributed to */
    struct ls_value **gradients; /* by value index: the gradient so far, or NULL */
    size_t gradient_capacity;
    void **owned; /* memory that layers handed over, freed with the graph */
    size_t owned_count, owned_capacity;
    bool failed; /* out of memory while building; checked by graph/ after each layer */
};

/* ---- For layers: forward ---------------------------------------------------------------------
 * On a failed allocation these return NULL, or do nothing, and set graph->failed; they accept what
 * they return, so that a layer can emit straight through without a check. */

/* A new arena value of F32 with the sample axis and rows of `like` (which may be NULL: mixes
 * samples). */
struct ls_value *ls_graph_value(struct ls_graph *graph, const char *name,
                                const struct ls_shape *shape, const struct ls_value *like);
/* The value of the layer's blob `index`. */
struct ls_value *ls_graph_parameter(struct ls_graph *graph, struct ls_layer *layer, int index);
/* A tensor of elements of `type` that the data source hands in, with a row for each sample along
 * `sample_axis`. */
struct ls_value *ls_graph_input(struct ls_graph *graph, struct ls_layer *layer, int top,
                                const struct ls_shape *shape, enum ls_dtype type, int sample_axis);
/* A tensor of F32 of the layer that emits, called `name` ("keys"), which goes on from run to run:
 * it is in memory of the device that the caller hands in, and ops write to it. */
struct ls_value *ls_graph_cache(struct ls_graph *graph, const char *name,
                                const struct ls_shape *shape, const struct ls_value *like);
/* A new op behind all others; then its inputs and outputs in order (NULL for an absent optional
 * one). Outputs become `learned` and `needs_grad` where an input is; a VIEW has the type of what it
 * is a view of. */
struct ls_op *ls_graph_op(struct ls_graph *graph, enum ls_op_kind kind);
void ls_op_in(struct ls_graph *graph, struct ls_op *op, struct ls_value *value);
void ls_op_out(struct ls_graph *graph, struct ls_op *op, struct ls_value *value);
/* Notes that a layer does not read a parameter message of its definition. */
void ls_graph_ignore(struct ls_graph *graph, const struct ls_layer *layer, const char *field);
/* The graph takes over `memory` (made by ls_alloc) and returns it. */
void *ls_graph_own(struct ls_graph *graph, void *memory);

/* Room for `count` doubles in the record of a micro-batch; the offset. */
int ls_graph_record(struct ls_graph *graph, int count);
/* Registers a ranking (copied; its layer is the one given) and makes room for it. Returns where its
 * numbers are; false where it would be too large. */
bool ls_graph_ranking(struct ls_graph *graph, const struct ls_layer *layer,
                      struct ls_ranking *ranking);
/* Doubles of a record and its lists. */
static inline size_t ls_graph_record_doubles(const struct ls_graph *graph)
{
    return (size_t)graph->record_size + (size_t)graph->list_size;
}
/* Registers a metric (copied; name, layer and top are taken from `layer` and `top`). */
void ls_graph_metric(struct ls_graph *graph, struct ls_layer *layer, int top,
                     struct ls_metric metric);
/* The divisor of a loss that divides as `attr` says: `per_sample` positions a sample of `x`
 * (BATCH_SIZE: rows, mostly 1), or, where labels must be counted (VALID with an ignored label;
 * WEIGHTS), a COUNT_LABELS op on `label` that runs before the pass; if the labels depend on learned
 * parameters it runs within, and a sync point follows. Where rows of `x` are left out those that
 * are not are counted in the same way. Returns the index; NONE, 0, after a failed allocation.
 */
int ls_graph_normalizer(struct ls_graph *graph, const struct ls_loss_attr *attr,
                        const struct ls_value *x, int64_t per_sample, struct ls_value *label);

/* A divisor that `op` counts: it adds to the record at *offset, runs before the pass, and reads
 * nothing that is learned. Returns the index, as above. */
int ls_graph_counted(struct ls_graph *graph, struct ls_op *op, int *offset);

/* A divisor that an op counts in the pass, since it depends on what is learned: the op, which comes
 * next, adds to the record at *offset. Behind it, ls_graph_share_count emits the sync point that
 * brings the count of the whole update. */
int ls_graph_counted_within(struct ls_graph *graph, int *offset);
void ls_graph_share_count(struct ls_graph *graph, int normalizer);

/* A sync point (copied; its layer is the one that emits, its grouping is set from `group`, samples
 * that share statistics, 0: the whole batch). Returns the index. Emit the ops that leave partial
 * results for it, then the SYNC op, then those that read what was merged. */
int ls_graph_sync(struct ls_graph *graph, struct ls_sync sync, int64_t group);
/* Emits the SYNC op of one. */
void ls_graph_emit_sync(struct ls_graph *graph, int sync);

/* A state of the layer that emits, called `name` ("hidden"); it has this shape and type in this
 * graph, and the samples of `like`, which has some. Returns what the previous window has left,
 * which no gradient goes back to. */
struct ls_value *ls_graph_recall(struct ls_graph *graph, const char *name,
                                 const struct ls_shape *shape, enum ls_dtype type,
                                 const struct ls_value *like);
/* What the next window finds there: `value` is like `recalled`, which ls_graph_recall has returned.
 * Once for each state. */
void ls_graph_keep(struct ls_graph *graph, const struct ls_value *recalled, struct ls_value *value);

/* Keeps `value`, which has samples, as a state that nothing recalls; its number. */
int ls_graph_collect(struct ls_graph *graph, const char *name, struct ls_value *value);
/* Registers a file (copied) that is written in tests. */
void ls_graph_row_file(struct ls_graph *graph, struct ls_row_file file);

/* ---- For layers: backward ------------------------------------------------------------------- */

/* The gradient of a top, or of any value; NULL when no loss depends on it. */
struct ls_value *ls_graph_gradient(struct ls_graph *graph, const struct ls_value *value);
/* A new value shaped like `value`, to write a gradient of it to. */
struct ls_value *ls_graph_gradient_value(struct ls_graph *graph, const struct ls_value *value);
/* A contribution to the gradient of `value`; several are added up by an ELTWISE op. */
void ls_graph_add_gradient(struct ls_graph *graph, struct ls_value *value,
                           struct ls_value *gradient);
/* A new value to write a contribution to the gradient of blob `index` to (parameter's shape). */
struct ls_value *ls_graph_parameter_gradient(struct ls_graph *graph, struct ls_layer *layer,
                                             int index);
/* For inner products: RECORD ops for the factors of a gradient, `rows` rows of each. */
void ls_graph_factors(struct ls_graph *graph, const struct ls_factoring *factoring, int64_t rows,
                      struct ls_value *x, struct ls_value *dy);
/* Emits the ACCUMULATE op for it. */
void ls_graph_accumulate(struct ls_graph *graph, struct ls_layer *layer, int index,
                         struct ls_value *gradient);
/* The same for some rows of a gradient and their numbers (EMBED_ROWS). */
void ls_graph_accumulate_rows(struct ls_graph *graph, struct ls_layer *layer, int index,
                              struct ls_value *rows, struct ls_value *number);

/* ---- For graph/ ------------------------------------------------------------------------------ */

struct ls_graph *ls_graph_new(void);
void ls_graph_free(struct ls_graph *graph);

void ls_parameter_free(struct ls_parameter *parameter);
struct ls_parameter_set *ls_parameter_set_new(void);
void ls_parameter_set_free(struct ls_parameter_set *set);
/* The parameter called `name`, or NULL. */
struct ls_parameter *ls_parameter_find(const struct ls_parameter_set *set, const char *name);

#endif
