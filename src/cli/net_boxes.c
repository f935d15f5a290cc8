/* A net as boxes. See cli/net_boxes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/net_boxes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/net.h"

/* What is drawn with the layer in front of it, if nothing else reads that. */
static bool is_small(const char *type)
{
    static const char *const types[] = {"BatchNorm", "Scale",   "Bias", "ReLU",    "PReLU",
                                        "ELU",       "Sigmoid", "TanH", "Dropout", "Swish",
                                        "ReLU6",     "BNLL",    "LRN",  "Clip",    "Power"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

/* A blob as a bottom or a top of a layer. */
struct mention {
    const char *blob;
    size_t place; /* in the order of the layers, of each the bottoms first */
    size_t layer;
    bool written; /* a top */
};

/* Who reads what, by place: what a top writes holds until the next one of the same blob. */
struct flow {
    size_t *first;          /* by layer: the place of its first bottom */
    size_t *writer;         /* of a bottom: the layer, or NOT_WRITTEN */
    size_t *readers;        /* of a bottom: how often it is read as it is there */
    size_t *newest, *older; /* edges plus 1: the last one to a box, the one to it before an edge */
};

static const size_t NOT_WRITTEN = SIZE_MAX;

static void free_flow(struct flow *flow)
{
    free(flow->first);
    free(flow->writer);
    free(flow->readers);
    free(flow->newest);
    free(flow->older);
}

static int by_blob(const void *left, const void *right)
{
    const struct mention *a = left, *b = right;
    const int order = strcmp(a->blob, b->blob);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

/* Every mention, those of a blob together. */
static void list_mentions(const struct lockstep_net_layer *layers, size_t count,
                          struct mention *mention, struct flow *flow)
{
    size_t place = 0;
    for (size_t i = 0; i < count; i++) {
        flow->first[i] = place;
        for (size_t b = 0; b < layers[i].bottom_count; b++, place++)
            mention[place] = (struct mention){layers[i].bottoms[b], place, i, false};
        for (size_t t = 0; t < layers[i].top_count; t++, place++)
            mention[place] = (struct mention){layers[i].tops[t].name, place, i, true};
    }
    qsort(mention, place, sizeof *mention, by_blob);
}

/* From each mention up to the next one that writes the blob, all read the same. */
static void find_readers(const struct mention *mention, size_t mentions, struct flow *flow)
{
    for (size_t begin = 0, end; begin < mentions; begin = end) {
        const bool written = mention[begin].written;
        for (end = begin + 1; end < mentions && !mention[end].written &&
                              strcmp(mention[end].blob, mention[begin].blob) == 0;)
            end++;
        for (size_t m = begin + written; m < end; m++) {
            flow->writer[mention[m].place] = written ? mention[begin].layer : NOT_WRITTEN;
            flow->readers[mention[m].place] = end - begin - written;
        }
    }
}

static bool make_flow(const struct lockstep_net_layer *layers, size_t count, size_t bottoms,
                      struct flow *flow)
{
    size_t mentions = bottoms;
    for (size_t i = 0; i < count; i++)
        mentions += layers[i].top_count;
    struct mention *mention = calloc(mentions + 1, sizeof *mention);
    *flow = (struct flow){.first = calloc(count + 1, sizeof *flow->first),
                          .writer = calloc(mentions + 1, sizeof *flow->writer),
                          .readers = calloc(mentions + 1, sizeof *flow->readers),
                          .newest = calloc(count + 1, sizeof *flow->newest),
                          .older = calloc(bottoms + 1, sizeof *flow->older)};
    const bool good = mention != NULL && flow->first != NULL && flow->writer != NULL &&
                      flow->readers != NULL && flow->newest != NULL && flow->older != NULL;
    if (good) {
        list_mentions(layers, count, mention, flow);
        find_readers(mention, mentions, flow);
    }
    free(mention);
    return good;
}

/* The layer in front of number `index` that writes its bottom last; `index` if none does. */
static size_t find_writer(const struct flow *flow, size_t index, size_t bottom)
{
    const size_t writer = flow->writer[flow->first[index] + bottom];
    return writer != NOT_WRITTEN ? writer : index;
}

/* The layer whose box a layer shares; itself: it has one of its own. */
static size_t find_host(const struct lockstep_net_layer *layers, const struct flow *flow,
                        size_t index)
{
    const struct lockstep_net_layer *layer = &layers[index];
    if (layer->bottom_count != 1 || layer->top_count != 1)
        return index;
    const size_t writer = find_writer(flow, index, 0);
    if (writer == index)
        return index;
    const bool in_place = strcmp(layer->bottoms[0], layer->tops[0].name) == 0;
    const bool behind =
        is_small(layer->type) && layers[writer].top_count == 1 && layers[writer].bottom_count > 0;
    const size_t readers = flow->readers[flow->first[index]];
    return (in_place || behind) && readers == 1 ? writer : index;
}

void ls_net_box_add(struct ls_net_box *box, const struct lockstep_net_layer *layer, size_t index)
{
    box->last = index;
    box->layers++;
    box->flops += layer->flops;
    box->bytes += (double)layer->bytes;
    for (size_t p = 0; p < layer->parameter_count && !layer->shares; p++)
        box->parameters += ls_cli_blob_size(&layer->parameters[p]);
}

static void add_edges(const struct lockstep_net_layer *layer, struct flow *flow, size_t index,
                      struct ls_net_boxes *boxes)
{
    for (size_t b = 0; b < layer->bottom_count; b++) {
        size_t writer = find_writer(flow, index, b), reader = index;
        if (writer == index || !ls_net_repeats_map(&boxes->repeats, &writer, &reader))
            continue;
        const size_t from = boxes->box_of[writer], to = boxes->box_of[reader];
        bool known = from >= to;
        for (size_t e = flow->newest[to]; e > 0 && !known; e = flow->older[e - 1])
            known = boxes->edge[e - 1][0] == from;
        if (known)
            continue;
        boxes->edge[boxes->edges][0] = from;
        boxes->edge[boxes->edges][1] = to;
        flow->older[boxes->edges] = flow->newest[to];
        flow->newest[to] = ++boxes->edges;
    }
}

/* Whether the first copies that one of two layers is in are those of the other. */
static bool in_same_copies(const struct ls_net_repeats *repeats, size_t a, size_t b)
{
    for (size_t i = 0; i < repeats->count; i++) {
        const size_t first = repeats->copies[i].first, end = first + repeats->copies[i].length;
        if ((a >= first && a < end) != (b >= first && b < end))
            return false;
    }
    return ls_net_repeats_shows(repeats, b);
}

bool ls_net_boxes_make(const struct lockstep_net_layer *layers, size_t count,
                       struct ls_net_boxes *boxes)
{
    size_t bottoms = 0;
    for (size_t i = 0; i < count; i++)
        bottoms += layers[i].bottom_count;
    *boxes = (struct ls_net_boxes){.box = calloc(count + 1, sizeof *boxes->box),
                                   .box_of = calloc(count + 1, sizeof *boxes->box_of),
                                   .edge = calloc(bottoms + 1, sizeof *boxes->edge)};
    struct flow flow;
    if (!make_flow(layers, count, bottoms, &flow) || boxes->box == NULL || boxes->box_of == NULL ||
        boxes->edge == NULL || !ls_net_repeats_find(layers, count, &boxes->repeats)) {
        free_flow(&flow);
        ls_net_boxes_free(boxes);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t shown = i, first = i;
        (void)ls_net_repeats_map(&boxes->repeats, &shown, &first);
        const size_t host = shown == i ? find_host(layers, &flow, i) : i;
        if (shown != i) {
            boxes->box_of[i] = boxes->box_of[shown];
        } else if (host == i || !in_same_copies(&boxes->repeats, i, host)) {
            boxes->box_of[i] = boxes->boxes;
            boxes->box[boxes->boxes++].first = i;
        } else {
            boxes->box_of[i] = boxes->box_of[host];
        }
        if (shown == i)
            ls_net_box_add(&boxes->box[boxes->box_of[i]], &layers[i], i);
        add_edges(&layers[i], &flow, i, boxes);
    }
    free_flow(&flow);
    return true;
}

void ls_net_boxes_free(struct ls_net_boxes *boxes)
{
    free(boxes->box);
    free(boxes->box_of);
    free(boxes->edge);
    ls_net_repeats_free(&boxes->repeats);
    *boxes = (struct ls_net_boxes){.box = NULL};
}
