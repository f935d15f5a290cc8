/* Writers and readers of values, and the ops of layers. See graph/links.h.
 *
 * The reads of a value are a list that is linked both ways, and so are the ops of a layer, so that
 * to add and to take out take the same time however many there are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/links.h"

#include <string.h>

#include "base/memory.h"
#include "ir/layer.h"

/* One read: an input of an op. */
struct ls_link {
    int place; /* of the op */
    int value; /* -1: the input is absent */
    int next, previous;
};

struct ls_node {
    int first, count;   /* its links */
    int next, previous; /* ops of the same layer */
    bool attached;
};

/* ---- Lists ----------------------------------------------------------------------------------- */

static void add_link(struct ls_links *links, int place, const struct ls_value *value)
{
    if (!LS_GROW(links->link, links->link_count, links->link_capacity)) {
        links->graph->failed = true;
        return;
    }
    int l = (int)links->link_count++;
    struct ls_link *link = &links->link[l];
    *link = (struct ls_link){.place = place, .value = -1, .next = -1, .previous = -1};
    links->node[place].count++;
    if (value == NULL)
        return;
    int *head = &links->head[value->index];
    link->value = value->index;
    link->next = *head;
    if (*head >= 0)
        links->link[*head].previous = l;
    *head = l;
    links->readers[value->index]++;
}

static void take_out_link(struct ls_links *links, int l)
{
    const struct ls_link *link = &links->link[l];
    if (link->value < 0)
        return;
    if (link->next >= 0)
        links->link[link->next].previous = link->previous;
    if (link->previous >= 0)
        links->link[link->previous].next = link->next;
    else
        links->head[link->value] = link->next;
    links->readers[link->value]--;
}

static void add_to_layer(struct ls_links *links, const struct ls_op *op)
{
    struct ls_node *node = &links->node[op->place];
    node->next = node->previous = -1;
    if (op->layer == NULL)
        return;
    int *head = &links->of_layer[op->layer->index];
    node->next = *head;
    if (*head >= 0)
        links->node[*head].previous = op->place;
    *head = op->place;
}

static void take_out_of_layer(struct ls_links *links, const struct ls_op *op)
{
    const struct ls_node *node = &links->node[op->place];
    if (op->layer == NULL)
        return;
    if (node->next >= 0)
        links->node[node->next].previous = node->previous;
    if (node->previous >= 0)
        links->node[node->previous].next = node->next;
    else
        links->of_layer[op->layer->index] = node->next;
}

void ls_links_attach(struct ls_links *links, struct ls_op *op)
{
    struct ls_node *node = &links->node[op->place];
    *node = (struct ls_node){.first = (int)links->link_count, .attached = true};
    for (int i = 0; i < op->inputs; i++)
        add_link(links, op->place, op->input[i]);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            links->producer[op->output[i]->index] = op->place;
    add_to_layer(links, op);
}

void ls_links_detach(struct ls_links *links, struct ls_op *op)
{
    struct ls_node *node = &links->node[op->place];
    for (int i = 0; i < node->count; i++)
        take_out_link(links, node->first + i);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL && links->producer[op->output[i]->index] == op->place)
            links->producer[op->output[i]->index] = -1;
    take_out_of_layer(links, op);
    *node = (struct ls_node){0};
}

void ls_links_remove(struct ls_links *links, struct ls_op *op)
{
    if (op == NULL)
        return;
    if (links->node[op->place].attached)
        ls_links_detach(links, op);
    links->graph->ops[op->place] = NULL;
    ls_free(op->input);
    ls_free(op->output);
    ls_free(op);
}

void ls_links_swap(struct ls_links *links, struct ls_op *a, struct ls_op *b)
{
    int place = a->place;
    ls_links_detach(links, a);
    ls_links_detach(links, b);
    a->place = b->place;
    b->place = place;
    links->graph->ops[a->place] = a;
    links->graph->ops[b->place] = b;
    ls_links_attach(links, a);
    ls_links_attach(links, b);
}

/* ---- Questions ------------------------------------------------------------------------------- */

struct ls_op *ls_links_producer(const struct ls_links *links, const struct ls_value *value)
{
    int place = links->producer[value->index];
    return place >= 0 ? links->graph->ops[place] : NULL;
}

int ls_links_readers(const struct ls_links *links, const struct ls_value *value)
{
    return links->readers[value->index];
}

/* The earlier of two ops, of which the first may be NULL, if the second is such a one. */
static struct ls_op *earlier(struct ls_op *best, struct ls_op *op, enum ls_op_kind kind,
                             bool backward)
{
    if (op->kind != kind || op->backward != backward)
        return best;
    return best == NULL || op->place < best->place ? op : best;
}

struct ls_op *ls_links_reader(const struct ls_links *links, const struct ls_value *value,
                              enum ls_op_kind kind, bool backward)
{
    struct ls_op *best = NULL;
    for (int l = links->head[value->index]; l >= 0; l = links->link[l].next)
        best = earlier(best, links->graph->ops[links->link[l].place], kind, backward);
    return best;
}

struct ls_op *ls_links_of_layer(const struct ls_links *links, const struct ls_layer *layer,
                                enum ls_op_kind kind, bool backward)
{
    struct ls_op *best = NULL;
    for (int p = layer != NULL ? links->of_layer[layer->index] : -1; p >= 0;
         p = links->node[p].next)
        best = earlier(best, links->graph->ops[p], kind, backward);
    return best;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static bool allocate(struct ls_links *links)
{
    const struct ls_graph *graph = links->graph;
    size_t values = links->value_capacity, layers = graph->layer_count + 1;
    links->producer = ls_alloc(values, sizeof *links->producer);
    links->head = ls_alloc(values, sizeof *links->head);
    links->readers = ls_alloc(values, sizeof *links->readers);
    links->of_layer = ls_alloc(layers, sizeof *links->of_layer);
    links->node = ls_alloc(graph->op_count + 1, sizeof *links->node);
    if (links->producer == NULL || links->head == NULL || links->readers == NULL ||
        links->of_layer == NULL || links->node == NULL)
        return false;
    memset(links->producer, -1, values * sizeof *links->producer);
    memset(links->head, -1, values * sizeof *links->head);
    memset(links->of_layer, -1, layers * sizeof *links->of_layer);
    return true;
}

bool ls_links_open(struct ls_links *links, struct ls_graph *graph)
{
    *links = (struct ls_links){.graph = graph,
                               .value_capacity = graph->value_count + graph->op_count + 1};
    if (!allocate(links)) {
        ls_links_close(links);
        graph->failed = true;
        return false;
    }
    for (size_t i = graph->op_count; i-- > 0;) { /* so that lists begin with the first op */
        graph->ops[i]->place = (int)i;
        ls_links_attach(links, graph->ops[i]);
    }
    if (graph->failed)
        ls_links_close(links);
    return !graph->failed;
}

void ls_links_close(struct ls_links *links)
{
    struct ls_graph *graph = links->graph;
    size_t count = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i] != NULL)
            graph->ops[count++] = graph->ops[i];
    graph->op_count = count;
    ls_free(links->producer);
    ls_free(links->head);
    ls_free(links->readers);
    ls_free(links->of_layer);
    ls_free(links->node);
    ls_free(links->link);
    *links = (struct ls_links){0};
}
