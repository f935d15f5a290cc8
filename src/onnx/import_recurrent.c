/* Import: LSTM and GRU.
 *
 * A layer reads x [T, N, I] and `cont`, which is 0 in the first step, so that each sequence begins
 * with zeros; with a state that the model gives it is 1. Around the layers sequences lie as [N, T,
 * I], as all blobs do, and what the operator makes is a view of these. Reversed sequences go
 * through a layer of their own between two layers Gather. The operators' parts of weights have
 * another order: i, o, f, c of LSTM (here i, f, o, g) and z, r, h of GRU (here r, z, n).
 *
 * An LSTM layer has one bias where the model has two, which are added: it learns twice as fast.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "onnx/import_view.h"

enum { X, W, R, B, LENGTHS, H0, C0, PEEPHOLES };
enum { Y, Y_H, Y_C };

struct cells {
    bool lstm;
    int parts, directions;
    int64_t steps, rows, inputs, hidden;
    struct ls_onnx_value x; /* [N, T, I] */
    bool reversed[2];
    bool states;      /* the layer has states as bottoms and tops */
    const char *cont; /* blob */
};

/* ---- What the node says ---------------------------------------------------------------------- */

static bool is_zero(struct ls_importer *x, struct ls_onnx_value *value)
{
    const float *numbers = value->constant ? ls_import_reals_of(x, value) : NULL;
    bool zero = numbers != NULL;
    for (int64_t i = 0; zero && i < ls_shape_size(&value->shape); i++)
        zero = numbers[i] == 0;
    return zero;
}

static bool is_used(const struct ls_importer *x, int output)
{
    const struct ls_onnx_value *value = ls_import_output(x, output);
    return value != NULL && value->uses > 0;
}

static int read_direction(struct ls_importer *x, struct cells *c)
{
    const bool both = ls_import_text_is(x, "direction", "bidirectional", false),
               back = ls_import_text_is(x, "direction", "reverse", false);
    if (!both && !back && !ls_import_text_is(x, "direction", "forward", true))
        return ls_import_cannot(x, NULL, "its direction is none");
    c->directions = both ? 2 : 1;
    c->reversed[0] = back;
    c->reversed[1] = both;
    return 0;
}

/* Functions other than the usual ones. */
static int check_functions(struct ls_importer *x, const struct cells *c)
{
    static const char *const usual[2][3] = {{"Sigmoid", "Tanh", ""}, {"Sigmoid", "Tanh", "Tanh"}};
    const Onnx__AttributeProto *all = ls_import_attribute(x, "activations");
    const size_t each = c->lstm ? 3 : 2;
    for (size_t i = 0; all != NULL && i < all->n_strings; i++) {
        const char *word = usual[c->lstm][i % each];
        if (all->n_strings != each * (size_t)c->directions || all->strings[i].len != strlen(word) ||
            memcmp(all->strings[i].data, word, strlen(word)) != 0)
            return ls_import_cannot(x, NULL,
                                    "activations other than Sigmoid and Tanh have no "
                                    "equivalent");
    }
    if (ls_import_attribute(x, "clip") != NULL || ls_import_integer(x, "input_forget", 0) != 0)
        return ls_import_cannot(x, NULL, "clip and input_forget have no equivalent");
    if (!c->lstm && ls_import_integer(x, "linear_before_reset", 0) == 0)
        return ls_import_cannot(x, "PyTorch's GRU, and Keras's with reset_after=True, have it",
                                "without linear_before_reset it has no equivalent");
    if (ls_import_integer(x, "layout", 0) != 0)
        return ls_import_cannot(x, NULL, "layout 1 is not read");
    return 0;
}

static int check_lengths(struct ls_importer *x, const struct cells *c)
{
    const int64_t *lengths;
    int64_t count;
    struct ls_onnx_value *peepholes = ls_import_input(x, PEEPHOLES);
    LS_TRY(ls_import_integers(x, NULL, LENGTHS, &lengths, &count));
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] != c->steps)
            return ls_import_cannot(x, NULL, "sequences of different lengths have no equivalent");
    if (c->lstm && peepholes != NULL && !is_zero(x, peepholes))
        return ls_import_cannot(x, NULL, "peepholes have no equivalent");
    return 0;
}

/* Whether a model gives the state in front of the first step. */
static int check_states(struct ls_importer *x, struct cells *c)
{
    const struct ls_shape wanted = {.rank = 3, .dim = {c->directions, c->rows, c->hidden}};
    int given = 0;
    for (int i = H0; i <= (c->lstm ? C0 : H0); i++) {
        struct ls_onnx_value *state = ls_import_input(x, i);
        if (state == NULL || is_zero(x, state))
            continue;
        if (state->constant)
            return ls_import_cannot(x, NULL, "a state other than zeros must be an input");
        if (!ls_shape_equal(&state->shape, &wanted))
            return ls_import_cannot(x, NULL, "input %d does not fit its sequences", i);
        given++;
    }
    if (given != 0 && given != (c->lstm ? 2 : 1))
        return ls_import_cannot(x, NULL, "of its two states one is an input, the other is not");
    c->states = given > 0;
    if (c->lstm && is_used(x, Y_C) && !c->states)
        return ls_import_cannot(x, "make its states inputs of the model",
                                "its last cells (Y_c) are imported where its first ones are inputs "
                                "of the model");
    return 0;
}

/* A value [A, N, B] as a blob [N, A, B]. */
static int swap(struct ls_importer *x, const struct ls_onnx_value *in, struct ls_onnx_value *out)
{
    struct ls_onnx_view view;
    if (!ls_view_of(in, &view) || !ls_view_transpose(&view, (int[]){1, 0, 2}, 3))
        return ls_import_cannot(x, NULL, "its input must be steps x samples x numbers");
    view.made = true;
    *out = (struct ls_onnx_value){.maker = SIZE_MAX, .shape = in->shape};
    out->shape.dim[0] = in->shape.dim[1];
    out->shape.dim[1] = in->shape.dim[0];
    if (ls_view_is_base(&view, &out->shape)) {
        out->top = view.base;
        return 0;
    }
    out->view = &view;
    out->waiting = true;
    const int status = ls_import_write(x, out);
    out->view = NULL;
    return status;
}

static int read_cells(struct ls_importer *x, struct cells *c)
{
    struct ls_onnx_value *in, *w, *r;
    if ((in = ls_import_seen(x, X)) == NULL || (w = ls_import_constant(x, W)) == NULL ||
        (r = ls_import_constant(x, R)) == NULL)
        return x->status;
    if (in->shape.rank != 3 || r->shape.rank != 3 || w->shape.rank != 3)
        return ls_import_cannot(x, NULL, "its input or its weights have not 3 axes");
    c->parts = c->lstm ? 4 : 3;
    c->steps = in->shape.dim[0];
    c->rows = in->shape.dim[1];
    c->inputs = in->shape.dim[2];
    c->hidden = ls_import_integer(x, "hidden_size", r->shape.dim[2]);
    LS_TRY(read_direction(x, c));
    if (c->hidden < 1 || c->hidden >= INT32_MAX / 8)
        return ls_import_cannot(x, NULL, "hidden_size is out of range");
    const struct ls_shape ws = {.rank = 3, .dim = {c->directions, c->parts * c->hidden, c->inputs}},
                          rs = {.rank = 3, .dim = {c->directions, c->parts * c->hidden, c->hidden}},
                          bs = {.rank = 2, .dim = {c->directions, 2 * c->parts * c->hidden}};
    struct ls_onnx_value *b = ls_import_input(x, B);
    if (b != NULL && (b = ls_import_constant(x, B)) == NULL)
        return x->status;
    if (!ls_shape_equal(&w->shape, &ws) || !ls_shape_equal(&r->shape, &rs) ||
        (b != NULL && !ls_shape_equal(&b->shape, &bs)))
        return ls_import_cannot(x, NULL, "its weights do not fit its input and hidden_size");
    LS_TRY(check_functions(x, c));
    LS_TRY(check_lengths(x, c));
    LS_TRY(check_states(x, c));
    return swap(x, in, &c->x);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Steps in front of samples, and back. */
static const char *turn_axes(struct ls_importer *x, const char *top)
{
    return top != NULL ? ls_import_permuted(x, top, (int[]){1, 0, 2}, 3) : NULL;
}

/* Where each sequence goes on: everywhere but in the first step, or everywhere. [T, N] */
static const char *add_cont(struct ls_importer *x, const struct cells *c)
{
    const char *top = c->x.top != NULL ? LS_LAYER(x, "Positions", c->x.top, "%s", "") : NULL;
    if (top != NULL)
        top = c->states ? LS_LAYER(x, "Power", top, "power_param { scale: 0 shift: 1 }%s", "")
                        : LS_LAYER(x, "Clip", top, "clip_param { min: 0 max: 1 }%s", "");
    return top != NULL ? ls_import_permuted(x, top, (int[]){1, 0}, 2) : NULL;
}

/* Sequences [N, T, ...] from their end to their beginning. */
static const char *reverse(struct ls_importer *x, const struct cells *c, const char *top)
{
    int64_t *places = top != NULL ? ls_import_new_places(x, c->steps) : NULL;
    for (int64_t i = 0; places != NULL && i < c->steps; i++)
        places[i] = c->steps - 1 - i;
    return places != NULL ? ls_import_places(x, top, 1, places, c->steps) : NULL;
}

/* Rows of a direction's weights in the layer's order, in the arena; `second` is added. */
static const float *order_rows(struct ls_importer *x, const struct cells *c, const float *from,
                               const float *second, int64_t columns)
{
    static const int orders[2][4] = {{1, 0, 2}, {0, 2, 1, 3}};
    const int64_t part = c->hidden * columns;
    float *out = from != NULL ? ls_import_new_reals(x, c->parts * part) : NULL;
    for (int p = 0; out != NULL && p < c->parts; p++)
        for (int64_t i = 0; i < part; i++) {
            const int64_t at = orders[c->lstm][p] * part + i;
            out[p * part + i] = second != NULL ? from[at] + second[at] : from[at];
        }
    return out;
}

static int add_weights(struct ls_importer *x, const struct cells *c, const char *layer, int which)
{
    struct ls_onnx_value *w = ls_import_input(x, W), *r = ls_import_input(x, R),
                         *b = ls_import_input(x, B);
    const int64_t outputs = c->parts * c->hidden;
    const float *ws = ls_import_reals_of(x, w), *rs = ls_import_reals_of(x, r),
                *bs = b != NULL ? ls_import_reals_of(x, b) : ls_import_new_reals(x, 2 * outputs);
    if (ws == NULL || rs == NULL || bs == NULL)
        return x->status;
    const struct ls_shape w_shape = {.rank = 2, .dim = {outputs, c->inputs}},
                          r_shape = {.rank = 2, .dim = {outputs, c->hidden}},
                          b_shape = {.rank = 1, .dim = {outputs}};
    bs += b != NULL ? which * 2 * outputs : 0;
    LS_TRY(ls_import_weight(x, layer, c->lstm ? "W_xc" : "W_x", w, &w_shape,
                            order_rows(x, c, ws + which * outputs * c->inputs, NULL, c->inputs)));
    if (c->lstm && b != NULL) /* one bias learns as fast as both did */
        x->learning = "lr_mult: 2 decay_mult: 0.5";
    LS_TRY(ls_import_weight(x, layer, c->lstm ? "b_c" : "b_x", b, &b_shape,
                            order_rows(x, c, bs, c->lstm ? bs + outputs : NULL, 1)));
    LS_TRY(ls_import_weight(x, layer, c->lstm ? "W_hc" : "W_h", r, &r_shape,
                            order_rows(x, c, rs + which * outputs * c->hidden, NULL, c->hidden)));
    if (c->lstm)
        return 0;
    return ls_import_weight(x, layer, "b_h", b, &b_shape, order_rows(x, c, bs + outputs, NULL, 1));
}

/* One direction: tops[0] are all steps [N, T, H]; tops[1] and tops[2] the last step's hidden and
 * cells [N, 1, H], where they are read. */
static int add_direction(struct ls_importer *x, const struct cells *c, int which,
                         const char *tops[3])
{
    const char *bottoms[4] = {c->x.top, c->cont}, *made[3] = {NULL};
    size_t count = 2, top_count = 1;
    if (c->reversed[which])
        bottoms[0] = reverse(x, c, bottoms[0]);
    bottoms[0] = turn_axes(x, bottoms[0]);
    for (int i = H0; c->states && i <= (c->lstm ? C0 : H0); i++) {
        struct ls_onnx_value state;
        LS_TRY(swap(x, ls_import_input(x, i), &state));
        bottoms[count++] = turn_axes(x, ls_import_part(x, &state, 1, which, which + 1));
        top_count++;
    }
    char fields[256];
    snprintf(fields, sizeof fields, "recurrent_param { num_output: %lld %s}", (long long)c->hidden,
             c->states ? "expose_hidden: true " : "");
    const char *layer =
        ls_import_layer_many(x, c->lstm ? "LSTM" : "GRU", bottoms, count, made, top_count, fields);
    if (layer == NULL)
        return x->status;
    LS_TRY(add_weights(x, c, layer, which));
    tops[0] = turn_axes(x, made[0]);
    for (int k = Y_H; k <= Y_C; k++)
        if (is_used(x, k) && made[k] != NULL)
            tops[k] = turn_axes(x, made[k]);
    if (!c->states && is_used(x, Y_H)) { /* the last step that it has done */
        const struct ls_onnx_value all = {
            .top = tops[0], .shape = {.rank = 3, .dim = {c->rows, c->steps, c->hidden}}};
        tops[Y_H] = ls_import_part(x, &all, 1, c->steps - 1, c->steps);
    }
    if (c->reversed[which] && is_used(x, Y))
        tops[0] = reverse(x, c, tops[0]);
    return x->status;
}

/* Both directions one behind the other along an axis. */
static const char *join(struct ls_importer *x, const struct cells *c, const char *const *tops,
                        int axis)
{
    for (int i = 0; i < c->directions; i++)
        if (tops[i] == NULL)
            return NULL;
    return c->directions == 1
               ? tops[0]
               : ls_import_layer(x, "Concat", tops, 2, "concat_param { axis: %d }", axis);
}

/* An axis of a view of the blob; one of extent 1 has no atom. */
static void see(struct ls_onnx_view *view, int axis, int64_t extent, int64_t stride)
{
    if (extent > 1)
        view->atom[view->count++] = (struct ls_onnx_atom){extent, stride, axis, false};
}

/* Y [T, directions, N, H] of a blob [N, T, directions H]; Y_h and Y_c [directions, N, H] of [N,
 * directions, H]. */
static int add_output(struct ls_importer *x, const struct cells *c, int index, const char *base)
{
    const int64_t all = c->directions * c->hidden;
    struct ls_onnx_view view = {.base = base, .scale = 1, .made = true};
    struct ls_shape shape = {.rank = 3, .dim = {c->directions, c->rows, c->hidden}};
    if (base == NULL)
        return x->status;
    if (index == Y) {
        shape = (struct ls_shape){.rank = 4, .dim = {c->steps, c->directions, c->rows, c->hidden}};
        view.shape = (struct ls_shape){.rank = 3, .dim = {c->rows, c->steps, all}};
        see(&view, 0, c->steps, all);
    } else {
        view.shape = (struct ls_shape){.rank = 3, .dim = {c->rows, c->directions, c->hidden}};
    }
    see(&view, shape.rank - 3, c->directions, c->hidden);
    view.atom[view.count++] = (struct ls_onnx_atom){c->rows, all, shape.rank - 2, true};
    if (index == Y)
        view.atom[view.count - 1].stride = all * c->steps;
    see(&view, shape.rank - 1, c->hidden, 1);
    return ls_import_view(x, index, &view, &shape);
}

static int recur(struct ls_importer *x, bool lstm)
{
    struct cells c = {.lstm = lstm};
    const char *tops[2][3] = {{NULL}};
    LS_TRY(read_cells(x, &c));
    c.cont = add_cont(x, &c);
    for (int i = 0; i < c.directions; i++)
        LS_TRY(add_direction(x, &c, i, tops[i]));
    for (int k = Y; k <= Y_C; k++)
        if (is_used(x, k))
            LS_TRY(add_output(
                x, &c, k,
                join(x, &c, (const char *const[]){tops[0][k], tops[1][k]}, k == Y ? 2 : 1)));
    return 0;
}

static int read_lstm(struct ls_importer *x)
{
    return recur(x, true);
}

static int read_gru(struct ls_importer *x)
{
    return recur(x, false);
}

static int read_rnn(struct ls_importer *x)
{
    return ls_import_cannot(x, "use a GRU or an LSTM",
                            "it has no equivalent: an RNN layer here multiplies its states again");
}

bool ls_import_is_recurrent(const char *type)
{
    return strcmp(type, "LSTM") == 0 || strcmp(type, "GRU") == 0 || strcmp(type, "RNN") == 0;
}

const struct ls_onnx_operator ls_onnx_read_recurrent[] = {
    {"GRU", read_gru},
    {"LSTM", read_lstm},
    {"RNN", read_rnn},
    {NULL, NULL},
};
