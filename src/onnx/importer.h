/* What the functions that import nodes share; for the files import*.c alone.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORTER_H
#define LS_ONNX_IMPORTER_H

#include "base/names.h"
#include "onnx/import.h"
#include "onnx/tensor.h"

enum { LS_ONNX_NODE_INPUTS = 4096 };

/* A value of the model: a constant with its numbers, or a blob of the net. */
struct ls_onnx_value {
    const char *name;
    struct ls_shape shape;
    const Onnx__TensorProto *tensor; /* a constant of the file whose numbers are not read yet */
    bool constant;
    bool learned;  /* a weight of the model, and nothing that was worked out */
    bool derived;  /* worked out from weights */
    bool written;  /* stands in a Constant node, or was worked out from such */
    bool integers; /* its numbers are whole */
    const float *reals;
    const int64_t *wholes;
    const char *top;                   /* the blob */
    const char *scores;                /* of a softmax: what it reads */
    size_t begin, end;                 /* where the layers of a softmax stand in the text */
    bool broken;                       /* a node before it was refused */
    const struct ls_onnx_view *view;   /* what it is of a blob; NULL: nothing but itself */
    const struct ls_onnx_pairs *pairs; /* scores or weights of attention */
    const struct ls_onnx_mask *mask;   /* of attention */
    bool waiting;                      /* its layers are written when a node needs it as a blob */
    int depth;                         /* how many nodes wait with it, one for the other */
    const char *share; /* layers of this name have the same weights; NULL: none has */
    size_t readers;    /* how many nodes read it as a weight */
    bool twice;        /* which is why there is a `share` */
    bool asked;        /* for which the file gives no reason: the user does */
    size_t weight;     /* 1 + the place in the net of the first weight that it became; 0: none */
    const struct ls_onnx_value *table; /* a constant: rows of this one, of learned embeddings */
    int64_t row;                       /* the first of them */
    bool one_row;                      /* all are the same */
    size_t uses;                       /* how many nodes and outputs read it */
    size_t user;                       /* the last node that does */
    size_t maker;                      /* the node that makes it; SIZE_MAX: none does */
};

/* What a pattern has decided of a node. */
enum ls_onnx_fate {
    LS_ONNX_AS_IT_IS,
    LS_ONNX_INSIDE, /* a part of what a later node stands for: nothing to do */
    LS_ONNX_SAME,   /* has been done by an earlier node: hands on its input */
    /* The last node of a pattern; `in` is what it reads. */
    LS_ONNX_GELU,
    LS_ONNX_GELU_TANH,
    LS_ONNX_SILU,
    LS_ONNX_LAYER_NORM,
    LS_ONNX_RMS_NORM
};

struct ls_onnx_plan {
    enum ls_onnx_fate fate;
    size_t in;          /* value */
    size_t scale, bias; /* values of a norm */
    double eps;
    int64_t axis;
};

/* Layers of one kind, for a note to the user: their names, and how many there are. */
struct ls_onnx_listed {
    struct ls_text names;
    size_t count;
    const char *last;
};

struct ls_importer {
    const char *path;
    const Onnx__GraphProto *graph;
    int64_t opset;
    struct ls_error *error;
    struct ls_arena *arena;
    struct ls_onnx_net *net;
    struct ls_onnx_value *values;
    size_t value_count;
    struct ls_names names;       /* of values */
    struct ls_onnx_plan *plan;   /* by node */
    struct ls_names layers;      /* names that are taken */
    const Onnx__NodeProto *node; /* at hand */
    size_t index;                /* of it */
    const char *wanted;          /* what the next layer should be called; NULL: as the node */
    const char *learning; /* what `param` of the next weight says; NULL: as its value learns */
    size_t blobs, params; /* weights of the last layer, and how many of them have a `param` */
    struct ls_onnx_array *owned; /* of tensors whose numbers do not lie in the message */
    size_t owned_count;
    bool writing;         /* layers of a node that was passed over are written */
    bool tie;             /* layers that begin with the same weights keep them in common */
    bool constants_learn; /* the model's weights are in Constant nodes */
    struct ls_onnx_listed frozen, apart; /* for notes */
    size_t folded;                       /* bytes of constants that were worked out */
    size_t weight_room;
    int status;
};

typedef int (*ls_onnx_reader)(struct ls_importer *x);
struct ls_onnx_operator {
    const char *name;
    ls_onnx_reader read;
};
/* By file, ended by a NULL. */
extern const struct ls_onnx_operator ls_onnx_read_products[], ls_onnx_read_windows[],
    ls_onnx_read_elements[], ls_onnx_read_shapes[], ls_onnx_read_norms[], ls_onnx_read_pooling[],
    ls_onnx_read_resize[], ls_onnx_read_attention[], ls_onnx_read_arithmetic[],
    ls_onnx_read_parts[], ls_onnx_read_lookups[], ls_onnx_read_places[], ls_onnx_read_recurrent[];
ls_onnx_reader ls_import_reader(const char *type);

/* The node at hand cannot be imported, because of ...; `hint` may be NULL. */
int ls_import_cannot(struct ls_importer *x, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int ls_import_no_memory(struct ls_importer *x);

/* Attributes of the node at hand. */
const Onnx__AttributeProto *ls_import_attribute(const struct ls_importer *x, const char *name);
int64_t ls_import_integer(const struct ls_importer *x, const char *name, int64_t otherwise);
float ls_import_real(const struct ls_importer *x, const char *name, float otherwise);
/* Whether an attribute is that text; `otherwise` where it is not there. */
bool ls_import_text_is(const struct ls_importer *x, const char *name, const char *text,
                       bool otherwise);

/* Integers that are an attribute or (index >= 0) a constant input. *count is -1 where they are
 * neither. A failure is that they are no constant. */
int ls_import_integers(struct ls_importer *x, const char *name, int index, const int64_t **out,
                       int64_t *count);
/* One number, likewise. */
int ls_import_number(struct ls_importer *x, const char *name, int index, double otherwise,
                     double *out);
/* The axis of an attribute within `rank`; -1 after a failure. */
int ls_import_axis(struct ls_importer *x, int64_t axis, int rank);

/* The node's inputs and outputs; NULL: absent. */
struct ls_onnx_value *ls_import_input(const struct ls_importer *x, int index);
struct ls_onnx_value *ls_import_output(const struct ls_importer *x, int index);
/* Input `index`, which must be a blob, or a constant (whose numbers are read). NULL after a
 * failure. */
struct ls_onnx_value *ls_import_blob(struct ls_importer *x, int index);
struct ls_onnx_value *ls_import_constant(struct ls_importer *x, int index);
/* Reads the numbers of a constant; as fp32 numbers, whatever they are. */
int ls_import_numbers_of(struct ls_importer *x, struct ls_onnx_value *value);
const float *ls_import_reals_of(struct ls_importer *x, struct ls_onnx_value *value);
/* Number `i` of a constant whose numbers have been read. */
double ls_import_number_at(const struct ls_onnx_value *value, int64_t i);
/* New numbers of the arena's; NULL after a failure. */
float *ls_import_new_reals(struct ls_importer *x, int64_t count);

/* Says what an output is. */
int ls_import_result(struct ls_importer *x, int index, const char *top,
                     const struct ls_shape *shape);
/* A value that is another. */
int ls_import_hand_on(struct ls_importer *x, const struct ls_onnx_value *from, int index);

/* Adds a layer with one top, which is its name, and returns that; NULL after a failure. The format
 * gives what stands behind its tops: "concat_param { axis: 1 }". */
const char *ls_import_layer(struct ls_importer *x, const char *type, const char *const *bottoms,
                            size_t count, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#define LS_LAYER(x, type, bottom, ...)                                                             \
    ls_import_layer(x, type, (const char *const[]){bottom}, 1, __VA_ARGS__)
#define LS_LAYER2(x, type, first, second, ...)                                                     \
    ls_import_layer(x, type, (const char *const[]){first, second}, 2, __VA_ARGS__)
/* The same with several tops. */
int ls_import_layer_tops(struct ls_importer *x, const char *type, const char *bottom, size_t count,
                         const char **tops, const char *parameters);
/* The same with several bottoms; returns its name, or NULL. */
const char *ls_import_layer_many(struct ls_importer *x, const char *type,
                                 const char *const *bottoms, size_t bottom_count, const char **tops,
                                 size_t count, const char *fields);
/* A learned constant [N or 1, rows, width] that stands before or behind `like`, for each sample. */
const char *ls_import_repeated(struct ls_importer *x, struct ls_onnx_value *value, const char *like,
                               const struct ls_shape *shape);
/* Adds a weight of the layer that was written last; its weights come in the order of its blobs. It
 * learns if `from` does, and is shared if that is; NULL: it is a constant made here. */
int ls_import_weight(struct ls_importer *x, const char *layer, const char *blob,
                     const struct ls_onnx_value *from, const struct ls_shape *shape,
                     const float *numbers);
/* The next layer is called as this weight is, without ".weight". */
void ls_import_call(struct ls_importer *x, const struct ls_onnx_value *weight);
void ls_import_call_without(struct ls_importer *x, const struct ls_onnx_value *weight,
                            const char *end);
/* Finds weights that stay one: tables of embeddings that are weights of products, too, and those of
 * modules that are used twice. */
int ls_import_find_shared(struct ls_importer *x);
/* Whether the weight, the last one of the net, is the same as the first one of its `share`. */
bool ls_import_is_tied(const struct ls_importer *x, const struct ls_onnx_value *value);

/* Adds the values that are initializers; when all values are there, finds out which are weights. */
int ls_import_add_initializers(struct ls_importer *x);
void ls_import_find_weights(struct ls_importer *x);
/* Whether a layer's weight that is made of this value learns. */
bool ls_import_learns(const struct ls_importer *x, const struct ls_onnx_value *value);
/* A factor (1) or bias (0) of a norm whose numbers have been read: it may be a constant that an
 * exporter has put there. */
void ls_import_find_norm_constant(struct ls_onnx_value *value, float number);

/* What the user should know of the last weight of the net, which was made of `value`. */
void ls_import_note_weight(struct ls_importer *x, const char *layer,
                           const struct ls_onnx_value *value, bool tied);
/* Writes what there is to say, a sentence a line, and frees what was noted. */
int ls_import_write_notes(struct ls_importer *x);

/* A blob under another shape of as many numbers. */
const char *ls_import_reshaped(struct ls_importer *x, const char *top, const struct ls_shape *from,
                               const struct ls_shape *to);
/* A blob whose axes are in another order. */
const char *ls_import_permuted(struct ls_importer *x, const char *top, const int *order, int rank);
/* The part of a blob from `begin` to `end` along an axis. */
const char *ls_import_part(struct ls_importer *x, const struct ls_onnx_value *in, int axis,
                           int64_t begin, int64_t end);
/* Where a slice begins or ends along an axis: a number below 0 counts from the end, and what lies
 * outside becomes the nearest place; -1 is in front of the first one, for steps backwards. */
int64_t ls_import_bound(int64_t number, int64_t extent, bool forward);
/* What lies at these places along an axis behind that of the samples. */
const char *ls_import_places(struct ls_importer *x, const char *top, int axis,
                             const int64_t *places, int64_t count);
/* Places of the arena's, to be filled in; NULL after a failure. */
int64_t *ls_import_new_places(struct ls_importer *x, int64_t count);
/* power(scale x + shift). */
const char *ls_import_power(struct ls_importer *x, const char *top, double power, double scale,
                            double shift);

/* Shapes of two values laid over each other; false: they do not fit. */
bool ls_import_broadcast(const struct ls_shape *a, const struct ls_shape *b, struct ls_shape *out);

/* Works out the node at hand, whose inputs are constants; *done says whether it could. */
int ls_import_fold(struct ls_importer *x, bool *done);
bool ls_import_folds(const char *type);
/* Reads the node at hand if it is a part of attention; *done says whether it is. */
int ls_import_attend(struct ls_importer *x, bool *done);
/* A new value of the model; *out is NULL where it has no name. */
int ls_import_add_value(struct ls_importer *x, const char *name, struct ls_onnx_value **out);
/* Adds the values that are inputs of the model, and of the net. */
int ls_import_add_inputs(struct ls_importer *x, const struct ls_onnx_import *options);
/* Whether an operator's inputs are steps x samples x numbers. */
bool ls_import_is_recurrent(const char *type);
/* Finds groups of nodes that one layer stands for. */
int ls_import_find_patterns(struct ls_importer *x);
int ls_import_read_pattern(struct ls_importer *x);

#endif
