/* The nets of a generator: for one token and for a chunk of them, or for the whole window. See
 * engine/generator.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "api/generate_inner.h"
#include "graph/stepwise.h"
#include "ir/layer.h"

static struct ls_value *find_logits(const struct ls_graph *graph, const char *blob)
{
    for (size_t i = graph->layer_count; i-- > 0;) {
        const struct ls_layer *layer = graph->layers[i];
        for (int t = 0; t < layer->tops && t < (int)layer->definition->n_top; t++)
            if (strcmp(layer->definition->top[t], blob) == 0)
                return layer->top[t] != NULL && layer->top[t]->storage == LS_STORE_ARENA &&
                               ls_dtype_is_float(layer->top[t]->type)
                           ? layer->top[t]
                           : NULL;
    }
    return NULL;
}

/* Of a chunk: what it leaves behind is in states and caches. */
static struct ls_value *find_nothing(const struct ls_graph *graph, const char *blob)
{
    (void)graph;
    (void)blob;
    return NULL;
}

/* Opens a net that was made, made[net_count], as one more of the generator's. */
static int open_made(struct lockstep_generator *generator, const char *output,
                     struct ls_error *error)
{
    const size_t index = generator->net_count;
    const int workers = generator->engine->workers;
    const struct ls_net_options options = {.definition = &generator->made[index],
                                           .phase = LOCKSTEP__PHASE__TEST,
                                           .from_outside = true,
                                           .seed = 1,
                                           .workers = workers,
                                           .device = generator->device,
                                           .parameters = generator->parameters,
                                           .views = &generator->views,
                                           .output = output != NULL ? find_logits : find_nothing,
                                           .blob = output};
    LS_TRY(ls_net_open(&options, &generator->nets[index], error));
    generator->net_count++;
    const struct ls_net *net = generator->nets[index];
    if (net->mixer != NULL && net->batching.batch > 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, generator->file->file,
                       "give its inputs a batch of 1",
                       "layer '%.100s' mixes the samples of a batch, so that texts are not written "
                       "one by one",
                       ls_net_mixer_name(net));
    return 0;
}

/* Opens a part of the net, with logits or without. */
static int open_part(struct lockstep_generator *generator, const struct ls_language_part *part,
                     bool logits, struct ls_net **net, struct ls_error *error)
{
    const struct ls_language_net *language = &generator->language;
    const char *end = part->body ? language->head->bottom[0] : language->logits;
    LS_TRY(ls_language_net_make(language, part, &generator->made[generator->net_count], error));
    LS_TRY(open_made(generator, logits ? end : NULL, error));
    *net = generator->nets[generator->net_count - 1];
    return 0;
}

/* Nets, parameters and views are as before there were any. */
static int forget_nets(struct lockstep_generator *generator, struct ls_error *error)
{
    while (generator->net_count > 0) {
        ls_net_close(generator->nets[--generator->net_count]);
        generator->nets[generator->net_count] = NULL;
    }
    generator->net = generator->chunk = generator->head = NULL;
    ls_view_set_free(&generator->views);
    ls_parameter_set_free(generator->parameters);
    generator->views = (struct ls_view_set){0};
    generator->parameters = ls_parameter_set_new();
    return generator->parameters != NULL ? 0 : ls_fail_memory(error, "a net");
}

/* ---- For some tokens at a time --------------------------------------------------------------- */

/* What is wrong with a part of a definition that is good as a whole is that it is no part. */
static int forget_definition(int status, bool *opened, struct ls_error *error)
{
    *opened = status == 0;
    if (status != LOCKSTEP_DEFINITION)
        return status;
    if (error != NULL)
        ls_error_clear(error);
    return 0;
}

/* Opens the net for one token and for a chunk of them. *opened: it can be taken apart so. */
static int open_steps(struct lockstep_generator *generator, bool *opened, struct ls_error *error)
{
    const int64_t window = generator->language.window;
    const int64_t chunk = window < LS_GENERATOR_CHUNK ? window : LS_GENERATOR_CHUNK;
    const struct ls_language_part one = {.steps = 1, .cached = window};
    const struct ls_language_part some = {
        .steps = chunk, .body = generator->language.head != NULL, .cached = window};
    int status = open_part(generator, &one, true, &generator->net, error);
    if (status == 0)
        status = open_part(generator, &some, false, &generator->chunk, error);
    return forget_definition(status, opened, error);
}

/* ---- For the window -------------------------------------------------------------------------- */

static int open_window(struct lockstep_generator *generator, bool body, struct ls_error *error)
{
    const struct ls_language_part part = {.steps = generator->language.window, .body = body};
    return open_part(generator, &part, true, &generator->net, error);
}

/* Opens the head, if it can be computed for a single token. */
static int open_head(struct lockstep_generator *generator, bool *opened, struct ls_error *error)
{
    const struct ls_value *last = generator->net->plans[0]->output;
    const int samples = last != NULL ? last->sample_axis : -1;
    *opened = false;
    if (last == NULL || last->shape.rank != 3 || samples < 0 || samples > 1 ||
        last->selected != NULL || last->shape.dim[samples] != 1 ||
        last->shape.dim[1 - samples] != generator->language.window)
        return 0;
    const int64_t dim[] = {1, 1, last->shape.dim[2]};
    LS_TRY(ls_language_net_make_head(&generator->language, dim, samples,
                                     &generator->made[generator->net_count], error));
    LS_TRY(
        forget_definition(open_made(generator, generator->language.logits, error), opened, error));
    if (*opened)
        generator->head = generator->nets[generator->net_count - 1];
    return 0;
}

/* Opens the net of the window anew, and the head by itself where there is one. */
static int open_whole(struct lockstep_generator *generator, struct ls_error *error)
{
    LS_TRY(forget_nets(generator, error));
    if (generator->language.head == NULL || generator->language.window == 1)
        return open_window(generator, false, error);
    bool opened;
    LS_TRY(open_window(generator, true, error));
    LS_TRY(open_head(generator, &opened, error));
    if (opened)
        return 0;
    LS_TRY(forget_nets(generator, error));
    return open_window(generator, false, error);
}

/* ---- Which it is ----------------------------------------------------------------------------- */

static void say_whole(struct lockstep_generator *generator, const struct ls_layer *mixer)
{
    const long long window = (long long)generator->language.window;
    char text[400];
    if (mixer != NULL)
        snprintf(
            text, sizeof text,
            "each new token takes as long as %lld of them: layer '%.100s' (%.40s) computes "
            "with several tokens at a time, so that no work is kept from one token to the next",
            window, mixer->name, mixer->type->type);
    else
        snprintf(text, sizeof text,
                 "each new token takes as long as %lld of them: a layer has a shape or weights for "
                 "so many, so that the net cannot be computed for fewer",
                 window);
    ls_generate_notice(generator, text);
}

/* The window's net shows what is wrong with the definition, and whether tokens can be taken one by
 * one. */
int ls_generate_open_nets(struct lockstep_generator *generator, bool whole, struct ls_error *error)
{
    const struct ls_layer *mixer;
    bool opened = false;
    LS_TRY(open_window(generator, false, error));
    if (whole || generator->language.window == 1)
        return open_whole(generator, error);
    LS_TRY(ls_graph_find_token_mixer(ls_net_graph(generator->net), &generator->language, &mixer,
                                     error));
    if (mixer == NULL) {
        LS_TRY(forget_nets(generator, error));
        LS_TRY(open_steps(generator, &opened, error));
    }
    if (opened)
        return 0;
    say_whole(generator, mixer);
    return open_whole(generator, error);
}
