/* Sequences of random networks: see random_sequences.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_sequences.h"

#include "support/npy_files.h"

enum { IDS = 23, STREAM = 2000, RECORDS = 60, PLACES = 19, SEPARATOR = 3 };

/* What layers of a net may read. Activations are [N, T, channels]. */
struct sequences {
    struct random_net *net;
    int window; /* the most that T is */
    bool varies;
    bool documents; /* "segment", "place" and "mask" */
    bool arrays;    /* "length" and "added" */
    int channels;
    bool tied; /* the table of ids has a name */
};

/* ---- Data ------------------------------------------------------------------------------------ */

/* Small ids are frequent. */
static int id_at(int i)
{
    const uint32_t word = (uint32_t)i * 2654435761U >> 7;
    return (int)(word % IDS * (word >> 9 & 15) / 15);
}

static void write_arrays(void)
{
    static int32_t ids[RECORDS * PLACES], next[RECORDS * PLACES], segment[RECORDS * PLACES];
    static int32_t place[RECORDS * PLACES], length[RECORDS];
    static float mask[RECORDS * PLACES], added[RECORDS * PLACES * PLACES];
    const char *shape = ls_test_text("(%d, %d)", RECORDS, PLACES);
    for (int i = 0; i < RECORDS * PLACES; i++) {
        ids[i] = id_at(i);
        next[i] = i % 9 == 4 ? -1 : id_at(i + 1);
        segment[i] = i % PLACES / (3 + i / PLACES % 5);
        place[i] = (i + i / PLACES) % PLACES;
        mask[i] = i / PLACES % 11 != 3 && i % 7 != 5;
    }
    for (int i = 0; i < RECORDS; i++)
        length[i] = i * 7 % (PLACES + 1);
    for (int i = 0; i < RECORDS * PLACES * PLACES; i++)
        added[i] = (float)(id_at(i) - IDS / 2) / 16;
    write_npy(ls_test_path("tokens.npy"), "<i4", shape, ids, sizeof ids);
    write_npy(ls_test_path("target.npy"), "<i4", shape, next, sizeof next);
    write_npy(ls_test_path("segment.npy"), "<i4", shape, segment, sizeof segment);
    write_npy(ls_test_path("place.npy"), "<i4", shape, place, sizeof place);
    write_npy(ls_test_path("mask.npy"), "<f4", shape, mask, sizeof mask);
    write_npy(ls_test_path("length.npy"), "<i4", ls_test_text("(%d,)", RECORDS), length,
              sizeof length);
    write_npy(ls_test_path("added.npy"), "<f4",
              ls_test_text("(%d, %d, %d)", RECORDS, PLACES, PLACES), added, sizeof added);
}

void write_random_sequences(void)
{
    char text[STREAM];
    unsigned char raw[2 * STREAM] = {0};
    int32_t offsets[RECORDS + 1] = {0}, ids[STREAM];
    for (int i = 0; i < STREAM; i++) {
        ids[i] = id_at(i);
        text[i] = (char)('a' + ids[i]);
        raw[2 * i] = (unsigned char)ids[i];
    }
    for (int i = 0; i < RECORDS; i++)
        offsets[i + 1] = offsets[i] + 1 + i * 5 % PLACES;
    const char *shape = ls_test_text("(%d,)", offsets[RECORDS]);
    const size_t bytes = (size_t)offsets[RECORDS] * sizeof *ids;
    ls_test_write(ls_test_path("stream.txt"), text, sizeof text);
    ls_test_write(ls_test_path("stream.bin"), raw, sizeof raw);
    write_npy(ls_test_path("x.npy"), "<i4", shape, ids, bytes);
    write_npy(ls_test_path("y.npy"), "<i4", shape, ids + 1, bytes);
    shape = ls_test_text("(%d,)", RECORDS + 1);
    write_npy(ls_test_path("x.offsets.npy"), "<i4", shape, offsets, sizeof offsets);
    write_npy(ls_test_path("y.offsets.npy"), "<i4", shape, offsets, sizeof offsets);
    write_arrays();
}

static void emit_source(struct sequences *s, const char *name)
{
    struct random_net *net = s->net;
    EMIT(" source: '%s'", ls_test_path(name));
}

/* [N, T] with all that attention can read. */
static void emit_arrays(struct sequences *s)
{
    static const char *const names[] = {"tokens", "target", "segment", "place",
                                        "mask",   "length", "added"};
    struct random_net *net = s->net;
    s->documents = s->arrays = true;
    s->window = PLACES;
    EMIT("backend: NPY");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        emit_source(s, ls_test_text("%s.npy", names[i]));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        EMIT(" tensor { name: '%s' }", names[i]);
}

static void emit_records(struct sequences *s)
{
    struct random_net *net = s->net;
    const bool buckets = toss(net);
    s->window = PLACES;
    s->varies = buckets;
    EMIT("backend: RECORDS");
    emit_source(s, "x.npy");
    emit_source(s, "x.offsets.npy");
    emit_source(s, "y.npy");
    emit_source(s, "y.offsets.npy");
    EMIT(" tensor { name: 'x' } tensor { name: 'y' pad: -1 } records_param { ");
    if (buckets)
        EMIT("lengths: BUCKET bucket: %d }", draw(net, 2, 9));
    else
        EMIT("lengths: PAD }");
}

/* Windows of a stream, or its documents. */
static void emit_windows(struct sequences *s)
{
    struct random_net *net = s->net;
    const bool text = toss(net);
    const int kind = draw(net, 0, 4);
    s->documents = true;
    s->window = draw(net, 0, 5) == 0 ? draw(net, 65, 80) : draw(net, 1, 16);
    s->varies = kind == 3;
    EMIT("backend: %s", text ? "TEXT" : "TOKENS");
    emit_source(s, text ? "stream.txt" : "stream.bin");
    EMIT(" tensor { name: 'tokens' } tensor { name: 'target' } tensor { name: 'segment' } "
         "tensor { name: 'position' } tensor { name: 'mask' } %s { window: %d ",
         text ? "text_param" : "tokens_param", s->window);
    if (kind == 0)
        EMIT("stride: %d }", draw(net, 1, s->window));
    else
        EMIT("separator: %d ", text ? 'a' + SEPARATOR : SEPARATOR);
    if (kind == 1)
        EMIT("}");
    else if (kind == 3)
        EMIT("documents: WHOLE lengths: BUCKET bucket: %d }", draw(net, 1, s->window));
    else if (kind > 0)
        EMIT("documents: WHOLE lengths: %s }", kind == 2 ? "PAD" : "PACK");
}

static void emit_data(struct sequences *s)
{
    static const char *const lasts[] = {"WRAP", "DROP", "PARTIAL"};
    struct random_net *net = s->net;
    const int kind = draw(net, 0, 3);
    EMIT("layer { name: 'data' type: 'Data' top: 'tokens' top: 'target' %s %s\n  data_param { ",
         kind != 1 ? "top: 'segment' top: 'place' top: 'mask'" : "",
         kind == 0 ? "top: 'length' top: 'added'" : "");
    if (kind == 0)
        emit_arrays(s);
    else if (kind == 1)
        emit_records(s);
    else
        emit_windows(s);
    EMIT("\n  batch_size: %d shuffle: %s last_batch: %s } }\n", net->batch,
         toss(net) ? "true" : "false", lasts[draw(net, 0, 2)]);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static struct blob emit_sum(struct random_net *net, const struct blob *a, const struct blob *b)
{
    struct blob top = begin_layer(net, "Eltwise", a);
    EMIT("bottom: '%s' }\n", b->name);
    return top;
}

/* A product at each place. */
static struct blob emit_place_product(struct random_net *net, const struct blob *bottom,
                                      int outputs)
{
    struct blob top = begin_layer(net, "InnerProduct", bottom);
    top.channels = outputs;
    if (draw(net, 0, 7) == 0)
        EMIT("param { lr_mult: %d } ", draw(net, 0, 2));
    EMIT("inner_product_param { num_output: %d axis: 2 bias_term: %s weight_filler { type: "
         "'gaussian' std: 0.%d } } }\n",
         outputs, toss(net) ? "true" : "false", draw(net, 1, 3));
    return top;
}

static struct blob emit_place_norm(struct random_net *net, const struct blob *bottom)
{
    const int kind = draw(net, 0, 2);
    if (kind == 0)
        return *bottom;
    struct blob top = begin_layer(net, kind == 1 ? "LayerNorm" : "RMSNorm", bottom);
    EMIT("%s }\n", kind == 1   ? "layer_norm_param { axis: -1 }"
                   : toss(net) ? "rms_norm_param { affine: false }"
                               : "");
    return top;
}

/* The bottoms behind q, k and v, each there or not. */
static void emit_extras(struct sequences *s, bool rotary, struct ls_text *field)
{
    static const struct {
        const char *blob, *name;
    } extras[] = {{"length", "KEY_LENGTHS"},
                  {"mask", "KEY_MASK"},
                  {"added", "ADDED_MASK"},
                  {"segment", "SEGMENTS"},
                  {"place", "POSITIONS"}};
    struct random_net *net = s->net;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        const bool array = i == 0 || i == 2;
        if ((array ? !s->arrays : !s->documents) || (i == 4 && !rotary) || toss(net))
            continue;
        EMIT("bottom: '%s' ", extras[i].blob);
        ls_text_format(field, "extra: %s ", extras[i].name);
    }
}

static void emit_attention_fields(struct sequences *s, int heads, int kv_heads, int depth)
{
    struct random_net *net = s->net;
    struct ls_text field = {0};
    const bool rotary = depth > 1 && draw(net, 0, 2) == 0;
    ls_text_format(&field, "num_heads: %d num_kv_heads: %d ", heads, kv_heads);
    if (toss(net))
        ls_text_format(&field, "causal: true ");
    if (draw(net, 0, 2) == 0)
        ls_text_format(&field, "window: %d ", draw(net, 1, s->window));
    if (draw(net, 0, 2) == 0)
        ls_text_format(&field, "dropout_ratio: 0.%d ", draw(net, 1, 5));
    if (rotary)
        ls_text_format(&field, "rotary { dims: %d pairs: %s } ", 2 * draw(net, 1, depth / 2),
                       toss(net) ? "HALVES" : "NEIGHBOURS");
    emit_extras(s, rotary, &field);
    EMIT("attention_param { %s} }\n", field.data);
    ls_text_free(&field);
}

static struct blob emit_attention(struct sequences *s, const struct blob *x)
{
    struct random_net *net = s->net;
    const int kv_heads = draw(net, 1, 2), heads = kv_heads * draw(net, 1, 3);
    const int depth = draw(net, 0, 5) == 0 ? draw(net, 30, 40) : draw(net, 1, 9);
    const struct blob h = emit_place_norm(net, x);
    const bool fused = toss(net);
    struct blob q = emit_place_product(net, &h, (fused ? heads + 2 * kv_heads : heads) * depth);
    struct blob top;
    if (fused) {
        top = begin_layer(net, "Attention", &q);
    } else {
        const int of_values = draw(net, 1, 9);
        const struct blob k = emit_place_product(net, &h, kv_heads * depth);
        const struct blob v = emit_place_product(net, x, kv_heads * of_values);
        top = begin_layer(net, "Attention", &q);
        EMIT("bottom: '%s' bottom: '%s' ", k.name, v.name);
    }
    emit_attention_fields(s, heads, kv_heads, depth);
    top = emit_place_product(net, &top, x->channels);
    return emit_sum(net, x, &top);
}

/* Attention by products of matrices and a softmax, which may have a mask. */
static struct blob emit_matrices(struct sequences *s, const struct blob *x)
{
    struct random_net *net = s->net;
    const int depth = draw(net, 1, 9);
    const struct blob q = emit_place_product(net, x, depth), k = emit_place_product(net, x, depth);
    struct blob mask = {"mask", 0, 0, 0};
    const bool masked = s->documents && toss(net);
    if (masked) {
        mask = begin_layer(net, "Reshape", &mask);
        EMIT("reshape_param { axis: 1 num_axes: 0 shape { dim: 1 } } }\n");
    }
    struct blob top = begin_layer(net, "MatMul", &q);
    EMIT("bottom: '%s' matmul_param { transpose_b: true scale: 0.4 } }\n", k.name);
    top = begin_layer(net, "Softmax", &top);
    if (masked)
        EMIT("bottom: '%s' ", mask.name);
    EMIT("softmax_param { axis: 2 } }\n");
    top = begin_layer(net, "MatMul", &top);
    EMIT("bottom: '%s' }\n", x->name);
    top.channels = x->channels;
    return emit_sum(net, x, &top);
}

static struct blob emit_feed_forward(struct sequences *s, const struct blob *x)
{
    static const char *const gates[] = {"SIGMOID", "SILU", "GELU", "GELU_TANH", "RELU", "NONE"};
    struct random_net *net = s->net;
    const struct blob h = emit_place_norm(net, x);
    const int inner = draw(net, 0, 3) == 0 ? draw(net, 150, 200) : draw(net, 1, 30);
    const bool gated = toss(net);
    struct blob top = emit_place_product(net, &h, gated ? 2 * inner : inner);
    if (gated) {
        top = begin_layer(net, "GLU", &top);
        EMIT("glu_param { gate: %s gate_first: %s } }\n", gates[draw(net, 0, 5)],
             toss(net) ? "true" : "false");
    } else {
        top = begin_layer(net, "GELU", &top);
        EMIT("%s }\n", toss(net) ? "gelu_param { approximate: TANH }" : "");
    }
    top = emit_place_product(net, &top, x->channels);
    return emit_sum(net, x, &top);
}

/* More numbers at each place, or other places. */
static struct blob emit_moves(struct sequences *s, const struct blob *x)
{
    static const char *const modes[] = {"CONSTANT", "REFLECT", "EDGE"};
    struct random_net *net = s->net;
    if (toss(net) || s->varies || s->window < 3) {
        struct blob wide = begin_layer(net, "Pad", x);
        EMIT("pad_param { before: %d after: %d mode: %s } }\n", draw(net, 0, x->channels - 1),
             draw(net, 0, x->channels - 1), modes[draw(net, 0, 2)]);
        return emit_place_product(net, &wide, x->channels);
    }
    struct blob place = {"place", 0, 0, 0};
    if (s->arrays && toss(net)) {
        struct blob taken = begin_layer(net, "Gather", x);
        EMIT("bottom: '%s' }\n", place.name);
        return emit_sum(net, x, &taken);
    }
    const int before = draw(net, 0, 2), after = draw(net, 0, 2);
    struct blob longer = begin_layer(net, "Pad", x);
    EMIT("pad_param { axis: 1 before: %d after: %d mode: %s } }\n", before, after,
         modes[draw(net, 0, 2)]);
    struct blob same = begin_layer(net, "Crop", &longer);
    EMIT("bottom: '%s' crop_param { axis: 1 offset: %d offset: 0 } }\n", x->name,
         draw(net, 0, before + after));
    return emit_sum(net, x, &same);
}

static struct blob emit_table(struct sequences *s, const char *index, int rows, bool tied)
{
    struct random_net *net = s->net;
    const struct blob bottom = {"", s->channels, 0, 0};
    struct blob top = bottom;
    snprintf(top.name, sizeof top.name, "Embed%d", ++net->layers);
    EMIT("layer { name: '%s' type: 'Embed' bottom: '%s' top: '%s' %s embed_param { input_dim: %d "
         "num_output: %d bias_term: false weight_filler { type: 'gaussian' std: 0.4 } } }\n",
         top.name, index, top.name, tied ? "param { name: 'table' }" : "", rows, s->channels);
    return top;
}

static struct blob emit_embedding(struct sequences *s)
{
    struct random_net *net = s->net;
    struct blob x = emit_table(s, "tokens", IDS, s->tied), place = {"tokens", 0, 0, 0};
    if (draw(net, 0, 2) == 0)
        return x;
    place = begin_layer(net, "Positions", &place);
    EMIT("%s }\n", s->documents && toss(net) ? "bottom: 'segment'" : "");
    const struct blob y = emit_table(s, place.name, s->window, false);
    return emit_sum(net, &x, &y);
}

/* A bag of all ids of a sample. */
static void emit_bag(struct sequences *s)
{
    struct random_net *net = s->net;
    struct blob bag = begin_layer(net, "EmbeddingBag", &(struct blob){"tokens", 0, 0, 0});
    EMIT("%s embedding_bag_param { input_dim: %d num_output: 5 mode: %s padding_index: %d "
         "weight_filler { type: 'gaussian' std: 0.4 } } }\n",
         s->arrays && toss(net) ? "bottom: 'length'" : "", IDS, toss(net) ? "SUM" : "MEAN",
         draw(net, 0, 2));
    bag = begin_layer(net, "Reduction", &bag);
    EMIT("reduction_param { operation: SUMSQ } loss_weight: 0.01 }\n");
}

static void emit_score_loss(struct sequences *s, const struct blob *x)
{
    static const char *const losses[] = {"", "normalization: FULL", "label_smoothing: 0.1",
                                         "normalization: BATCH_SIZE"};
    struct random_net *net = s->net;
    const char *table = s->tied && draw(net, 0, 3) > 0 ? "param { name: 'table' }" : "";
    const char *loss = losses[draw(net, 0, 3)];
    if (toss(net)) {
        const struct blob top = begin_layer(net, "LinearSoftmaxLoss", x);
        EMIT("bottom: 'target' top: '%sp' top: '%sa' %s linear_softmax_loss_param { num_output: %d "
             "metric: [PERPLEXITY, ACCURACY] weight_filler { type: 'gaussian' std: 0.2 } } "
             "loss_param { ignore_label: -1 %s } }\n",
             top.name, top.name, table, IDS, loss);
        return;
    }
    struct blob scores = begin_layer(net, "InnerProduct", x);
    EMIT("%s inner_product_param { num_output: %d axis: 2 bias_term: false weight_filler { type: "
         "'gaussian' std: 0.2 } } }\n",
         table, IDS);
    scores = begin_layer(net, "SoftmaxWithLoss", &scores);
    EMIT("bottom: 'target' softmax_param { axis: 2 } loss_param { ignore_label: -1 %s } }\n", loss);
}

void emit_sequences(struct random_net *net)
{
    static struct blob (*const kinds[])(struct sequences *, const struct blob *) = {
        emit_attention, emit_attention,    emit_attention,
        emit_matrices,  emit_feed_forward, emit_moves};
    struct sequences s = {.net = net};
    s.channels = draw(net, 0, 4) == 0 ? draw(net, 96, 120) : draw(net, 2, 14);
    s.tied = toss(net);
    emit_data(&s);
    struct blob x = emit_embedding(&s);
    for (int layers = draw(net, 1, 3); layers > 0; layers--)
        x = kinds[draw(net, 0, sizeof kinds / sizeof *kinds - 1)](&s, &x);
    if (draw(net, 0, 3) == 0)
        emit_bag(&s);
    x = begin_layer(net, "LayerNorm", &x); /* has vectors, which groups of parameters match */
    EMIT("layer_norm_param { axis: -1 } }\n");
    emit_score_loss(&s, &x);
    if (draw(net, 0, 4) == 0)
        emit_score_loss(&s, &x);
}
