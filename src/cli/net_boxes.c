/* A net as boxes. See cli/net_boxes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/net_boxes.h"

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

/* The layer in front of number `index` that writes a blob last; `index` if none does. */
static size_t find_writer(const struct lockstep_net_layer *layers, size_t index, const char *blob)
{
    for (size_t i = index; i-- > 0;)
        for (size_t t = 0; t < layers[i].top_count; t++)
            if (strcmp(layers[i].tops[t].name, blob) == 0)
                return i;
    return index;
}

static size_t count_readers(const struct lockstep_net_layer *layers, size_t count, size_t writer,
                            const char *blob)
{
    size_t readers = 0;
    for (size_t i = writer + 1; i < count; i++) {
        bool written = false;
        for (size_t b = 0; b < layers[i].bottom_count; b++)
            readers += strcmp(layers[i].bottoms[b], blob) == 0;
        for (size_t t = 0; t < layers[i].top_count; t++)
            written = written || strcmp(layers[i].tops[t].name, blob) == 0;
        if (written)
            break;
    }
    return readers;
}

/* The layer whose box a layer shares; itself: it has one of its own. */
static size_t find_host(const struct lockstep_net_layer *layers, size_t count, size_t index)
{
    const struct lockstep_net_layer *layer = &layers[index];
    if (layer->bottom_count != 1 || layer->top_count != 1)
        return index;
    const char *blob = layer->bottoms[0];
    const size_t writer = find_writer(layers, index, blob);
    if (writer == index)
        return index;
    const bool in_place = strcmp(blob, layer->tops[0].name) == 0;
    const bool behind =
        is_small(layer->type) && layers[writer].top_count == 1 && layers[writer].bottom_count > 0;
    return (in_place || behind) && count_readers(layers, count, writer, blob) == 1 ? writer : index;
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

static void add_edges(const struct lockstep_net_layer *layers, size_t index,
                      struct ls_net_boxes *boxes)
{
    for (size_t b = 0; b < layers[index].bottom_count; b++) {
        size_t writer = find_writer(layers, index, layers[index].bottoms[b]), reader = index;
        if (writer == index || !ls_net_repeats_map(&boxes->repeats, &writer, &reader))
            continue;
        const size_t from = boxes->box_of[writer], to = boxes->box_of[reader];
        bool known = from >= to;
        for (size_t e = 0; e < boxes->edges && !known; e++)
            known = boxes->edge[e][0] == from && boxes->edge[e][1] == to;
        if (known)
            continue;
        boxes->edge[boxes->edges][0] = from;
        boxes->edge[boxes->edges++][1] = to;
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
    size_t bottoms = 1;
    for (size_t i = 0; i < count; i++)
        bottoms += layers[i].bottom_count;
    *boxes = (struct ls_net_boxes){.box = calloc(count + 1, sizeof *boxes->box),
                                   .box_of = calloc(count + 1, sizeof *boxes->box_of),
                                   .edge = calloc(bottoms, sizeof *boxes->edge)};
    if (boxes->box == NULL || boxes->box_of == NULL || boxes->edge == NULL ||
        !ls_net_repeats_find(layers, count, &boxes->repeats)) {
        ls_net_boxes_free(boxes);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t shown = i, first = i;
        (void)ls_net_repeats_map(&boxes->repeats, &shown, &first);
        const size_t host = shown == i ? find_host(layers, count, i) : i;
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
        add_edges(layers, i, boxes);
    }
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
