/* The public interface: texts that a net writes. See include/lockstep/generate.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/characters.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/generator.h"
#include "engine/token.h"
#include "graph/stepwise.h"
#include "ir/layer.h"
#include "ops/devices.h"
#include "solver/check.h"
#include "solver/fit.h"
#include "solver/masks.h"
#include "solver/weights.h"
#include "transport/comm.h"
#include "transport/comm_job.h"

enum { NETS_MAX = 2, SAMPLES_MAX = 65536 };

struct lockstep_generator {
    struct lockstep_callbacks outer_callbacks, callbacks; /* the caller's, and around them */
    struct ls_definition *file;
    struct ls_language_net language;
    struct ls_net_definition made[NETS_MAX];
    struct ls_net *nets[NETS_MAX]; /* for a token and for a chunk; or for the window */
    size_t net_count;
    struct ls_parameter_set *parameters;
    struct ls_view_set views;
    const struct ls_device *device;
    struct ls_forecast forecast;
    struct ls_comm *comm; /* of one rank */
    struct ls_engine *engine;
    struct ls_generator *inner;
    struct ls_token_options choice;
    struct ls_token_candidate *candidates;
    size_t vocabulary;
    int64_t samples;
    uint64_t position; /* of the next token in its text */
    bool begun;
    int32_t *chosen;                 /* by sample */
    struct ls_characters characters; /* none: it is not known what tokens stand for */
    int32_t *ids;                    /* what was encoded last */
};

void lockstep_generator_options_init(struct lockstep_generator_options *options)
{
    *options = (struct lockstep_generator_options){
        .struct_size = sizeof *options, .temperature = 1, .top_p = 1};
}

static void generator_say(const struct lockstep_generator *generator, enum lockstep_event_kind kind,
                          const char *text)
{
    const struct lockstep_event event = {.kind = kind, .text = text};
    if (generator->callbacks.event != NULL)
        generator->callbacks.event(generator->callbacks.user, &event);
}

static void generator_notice(void *user, const char *line)
{
    generator_say(user, LOCKSTEP_EVENT_NOTICE, line);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

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

/* Opens the net for `steps` tokens as one more of the generator's. */
static int open_net(struct lockstep_generator *generator, int64_t steps, bool logits,
                    struct ls_error *error)
{
    const size_t index = generator->net_count;
    const int workers = generator->engine->workers;
    LS_TRY(ls_language_net_make(&generator->language, steps, &generator->made[index], error));
    const struct ls_net_options options = {.definition = &generator->made[index],
                                           .phase = LOCKSTEP__PHASE__TEST,
                                           .from_outside = true,
                                           .seed = 1,
                                           .workers = workers,
                                           .device = generator->device,
                                           .parameters = generator->parameters,
                                           .views = &generator->views,
                                           .output = logits ? find_logits : find_nothing,
                                           .blob = generator->language.logits};
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

/* Nets, parameters and views are as before there were any. */
static int forget_nets(struct lockstep_generator *generator, struct ls_error *error)
{
    while (generator->net_count > 0) {
        ls_net_close(generator->nets[--generator->net_count]);
        generator->nets[generator->net_count] = NULL;
    }
    ls_view_set_free(&generator->views);
    ls_parameter_set_free(generator->parameters);
    generator->views = (struct ls_view_set){0};
    generator->parameters = ls_parameter_set_new();
    return generator->parameters != NULL ? 0 : ls_fail_memory(error, "a net");
}

/* Opens the net for one token and for a chunk of them. False: it cannot be taken apart so. */
static bool open_steps(struct lockstep_generator *generator)
{
    struct ls_error ignored = {0};
    const int64_t window = generator->language.window;
    const int64_t chunk = window < LS_GENERATOR_CHUNK ? window : LS_GENERATOR_CHUNK;
    return open_net(generator, 1, true, &ignored) == 0 &&
           open_net(generator, chunk, false, &ignored) == 0;
}

/* The window's net shows what is wrong with the definition, and whether tokens can be taken one by
 * one. */
static int open_nets(struct lockstep_generator *generator, bool whole, struct ls_error *error)
{
    const struct ls_layer *mixer;
    char text[400];
    LS_TRY(open_net(generator, generator->language.window, true, error));
    if (whole || generator->language.window == 1)
        return 0;
    LS_TRY(ls_graph_find_token_mixer(ls_net_graph(generator->nets[0]), &generator->language, &mixer,
                                     error));
    snprintf(text, sizeof text,
             "each token takes the whole window of %lld tokens: layer '%.100s' brings tokens "
             "together in a way of which nothing can be kept",
             (long long)generator->language.window, mixer != NULL ? mixer->name : "");
    if (mixer == NULL) {
        LS_TRY(forget_nets(generator, error));
        if (open_steps(generator))
            return 0;
        snprintf(text, sizeof text,
                 "each token takes the whole window of %lld tokens: the net's shapes are for so "
                 "many",
                 (long long)generator->language.window);
        LS_TRY(forget_nets(generator, error));
        LS_TRY(open_net(generator, generator->language.window, true, error));
    }
    generator_notice(generator, text);
    return 0;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static int read_definition(struct lockstep_generator *generator, const char *path,
                           const struct lockstep_generator_options *options, struct ls_error *error)
{
    struct ls_net_definition definition = {0};
    const struct ls_net_state state = {.phase = LOCKSTEP__PHASE__TEST,
                                       .level = options->level,
                                       .stages = options->stages,
                                       .stage_count = options->stage_count};
    int status = ls_net_read(path, &state, &definition, error);
    generator->file = definition.definition;
    LS_TRY(status);
    LS_TRY(definition.status); /* which was reported */
    if (definition.definition->warning != NULL)
        generator_say(generator, LOCKSTEP_EVENT_WARNING, definition.definition->warning);
    return ls_language_net_find(&definition, options->output, &generator->language, error);
}

static int create_engine(struct lockstep_generator *generator, int workers, struct ls_error *error)
{
    LS_TRY(ls_comm_create_alone(&generator->comm, error));
    LS_TRY(ls_comm_start(generator->comm, workers, NULL, error));
    generator->parameters = ls_parameter_set_new();
    if (generator->parameters == NULL)
        return ls_fail_memory(error, "a net");
    return ls_engine_create(generator->device, generator->comm, workers, &generator->engine, error);
}

static int load_weights(struct lockstep_generator *generator, const char *weights, const char *map,
                        struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(generator->nets[0]);
    struct ls_store *store = generator->engine->store;
    char *classes = NULL;
    int status = ls_load_weights(store, &graph, 1, weights, map, LS_WEIGHTS_PART, generator_notice,
                                 generator, &classes, error);
    if (status == 0 && classes != NULL)
        status = ls_characters_read(classes, &generator->characters, error);
    ls_free(classes);
    LS_TRY(status);
    return ls_check_averages(store, graph, "train the net, or name a file of weights that has them",
                             error);
}

/* Memory for nets and texts, and the weights. */
static int fill_engine(struct lockstep_generator *generator, const char *weights, const char *map,
                       struct ls_error *error)
{
    struct ls_engine *engine = generator->engine;
    struct ls_fit fit = {.what = "writing a text",
                         .nets = generator->nets,
                         .count = generator->net_count,
                         .set = generator->parameters,
                         .views = &generator->views,
                         .store = {.ranks = 1, .workers = engine->workers, .seed = 1}};
    LS_TRY(ls_masks_read(generator->parameters, NULL, error));
    LS_TRY(ls_fit(&fit, 0, &generator->forecast, error));
    LS_TRY(ls_engine_create_store(engine, generator->parameters, &generator->views, &fit.store,
                                  error));
    LS_TRY(load_weights(generator, weights, map, error));
    ls_thread_pool_enter(engine->pool);
    int status = ls_engine_bind(engine, generator->nets, generator->net_count, error);
    ls_thread_pool_leave(engine->pool);
    return status;
}

/* Tokens that the table of the net does not have, or that stand for nothing, are never chosen. */
static int create_texts(struct lockstep_generator *generator, struct ls_error *error)
{
    const struct ls_generator_options options = {
        .language = &generator->language,
        .net = generator->nets[0],
        .chunk = generator->net_count > 1 ? generator->nets[1] : NULL,
        .rows = generator->samples};
    LS_TRY(ls_generator_create(generator->engine, &options, &generator->inner, error));
    const size_t logits = ls_generator_vocabulary(generator->inner);
    const size_t rows = (size_t)generator->language.tokens;
    const size_t known = generator->characters.count;
    generator->vocabulary = rows > 0 && rows < logits ? rows : logits;
    if (known > generator->vocabulary) {
        ls_characters_free(&generator->characters); /* they are those of something else */
        generator_notice(generator, "the names in the weights are none of the net's tokens");
    } else if (known > 0) {
        generator->vocabulary = known;
    }
    generator->candidates = ls_alloc(generator->vocabulary, sizeof *generator->candidates);
    generator->chosen = ls_alloc((size_t)generator->samples, sizeof *generator->chosen);
    return generator->candidates != NULL && generator->chosen != NULL
               ? 0
               : ls_fail_memory(error, "texts");
}

static int load(struct lockstep_generator *generator, const char *path, const char *weights,
                const struct lockstep_generator_options *options, struct ls_error *error)
{
    const int workers = options->workers > 0 ? options->workers : ls_cpu_count();
    generator->outer_callbacks = options->callbacks;
    generator->callbacks = ls_caller_callbacks(&generator->outer_callbacks);
    generator->samples = options->samples > 0 ? options->samples : 1;
    generator->choice = (struct ls_token_options){.temperature = options->temperature,
                                                  .top_k = options->top_k,
                                                  .top_p = options->top_p,
                                                  .seed = options->seed};
    LS_TRY(ls_token_options_check(&generator->choice, error));
    LS_TRY(ls_device_find(options->device, &generator->device, error));
    LS_TRY(read_definition(generator, path, options, error));
    LS_TRY(create_engine(generator, workers, error));
    LS_TRY(open_nets(generator, options->whole != 0, error));
    LS_TRY(fill_engine(generator, weights, options->map, error));
    return create_texts(generator, error);
}

int lockstep_generator_load(const char *path, const char *weights,
                            const struct lockstep_generator_options *options,
                            struct lockstep_generator **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_generator_options mine;
    *out = NULL;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_generator_options_init", inner));
    if (mine.workers < 0 || mine.workers > 4096)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                       "%d workers are not possible", mine.workers);
    if (mine.samples < 0 || mine.samples > SAMPLES_MAX)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "use 1 to 65536",
                       "%d texts cannot be written side by side", mine.samples);
    LS_TRY(ls_api_select(mine.device, mine.isa, inner));
    struct lockstep_generator *generator = ls_alloc(1, sizeof *generator);
    if (generator == NULL)
        return ls_fail_memory(inner, "a generator");
    int status = load(generator, path, weights, &mine, inner);
    if (status != 0)
        lockstep_generator_free(generator);
    else
        *out = generator;
    return status;
}

void lockstep_generator_free(struct lockstep_generator *generator)
{
    if (generator == NULL)
        return;
    ls_generator_free(generator->inner);
    for (size_t i = 0; i < NETS_MAX; i++)
        ls_net_close(generator->nets[i]);
    ls_engine_free(generator->engine);
    ls_comm_end(generator->comm);
    ls_view_set_free(&generator->views);
    ls_parameter_set_free(generator->parameters);
    ls_definition_free(generator->file);
    ls_characters_free(&generator->characters);
    ls_free(generator->candidates);
    ls_free(generator->chosen);
    ls_free(generator->ids);
    ls_free(generator);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

size_t lockstep_generator_vocabulary(const struct lockstep_generator *generator)
{
    return generator->vocabulary;
}

int64_t lockstep_generator_window(const struct lockstep_generator *generator)
{
    return ls_generator_window(generator->inner);
}

/* The token at byte `at` of a text of which `done` characters are encoded. */
static int encode_one(const struct ls_characters *characters, const char *text, size_t length,
                      size_t done, int32_t *id, size_t *size, struct ls_error *error)
{
    *id = ls_characters_find(characters, text, length, size);
    if (*id >= 0)
        return 0;
    if (ls_character_size(text, length) == 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "texts are UTF-8",
                       "byte %02X behind %zu characters of the text begins no character",
                       (unsigned)(unsigned char)*text, done);
    const bool shown = *(const unsigned char *)text >= 0x20;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "the net knows those of the text it was trained on",
                   "character %zu of the text, %s%.*s%s, is none of the net's", done + 1,
                   shown ? "'" : "a control character", shown ? (int)*size : 0, text,
                   shown ? "'" : "");
}

static int encode(struct lockstep_generator *generator, const char *text, size_t length,
                  size_t *count, struct ls_error *error)
{
    *count = 0;
    if (generator->characters.count == 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "hand in numbers of tokens, or weights of a snapshot that has characters",
                       "it is not known what the net's tokens stand for");
    ls_free(generator->ids);
    generator->ids = ls_alloc(length + 1, sizeof *generator->ids);
    if (generator->ids == NULL)
        return ls_fail_memory(error, "a text");
    for (size_t at = 0, size; at < length; at += size) {
        LS_TRY(encode_one(&generator->characters, text + at, length - at, *count,
                          &generator->ids[*count], &size, error));
        ++*count;
    }
    return 0;
}

int lockstep_generator_encode(struct lockstep_generator *generator, const char *text, size_t length,
                              const int32_t **ids, size_t *count, struct lockstep_error *error)
{
    int status = encode(generator, text, length, count, ls_api_error(error));
    *ids = status == 0 ? generator->ids : NULL;
    return status;
}

const char *lockstep_generator_token(const struct lockstep_generator *generator, int32_t id,
                                     size_t *length)
{
    *length = 0;
    if (id < 0 || (size_t)id >= generator->characters.count)
        return NULL;
    *length = generator->characters.items[id].length;
    return generator->characters.items[id].bytes;
}

int32_t lockstep_generator_start(const struct lockstep_generator *generator)
{
    return generator->characters.count > 0 ? generator->characters.bytes['\n'] : -1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

int lockstep_generator_begin(struct lockstep_generator *generator, const int32_t *ids, size_t count,
                             struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    generator->begun = false;
    if (count == 0)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "lockstep_generator_start is one to begin with",
                       "a text needs a token to begin with");
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= generator->vocabulary)
            return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                           "token %d of the prompt (number %zu) is none of the net's, which are 0 "
                           "to %zu",
                           ids[i], i + 1, generator->vocabulary - 1);
    LS_TRY(ls_generator_begin(generator->inner, ids, count, inner));
    generator->position = count;
    generator->begun = true;
    return 0;
}

/* The logits of the next tokens, and one of these for each text. */
static int choose_all(struct lockstep_generator *generator, struct ls_error *error)
{
    const float *logits;
    const size_t stride = ls_generator_vocabulary(generator->inner);
    LS_TRY(ls_generator_logits(generator->inner, &logits, error));
    for (int64_t sample = 0; sample < generator->samples; sample++) {
        uint32_t token = 0;
        LS_TRY(ls_token_choose(&generator->choice, logits + (size_t)sample * stride,
                               generator->vocabulary, (uint64_t)sample, generator->position,
                               generator->candidates, &token, error));
        generator->chosen[sample] = (int32_t)token;
    }
    return ls_generator_append(generator->inner, generator->chosen, error);
}

int lockstep_generator_next(struct lockstep_generator *generator, int32_t *ids,
                            struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    if (!generator->begun)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "call lockstep_generator_begin first",
                       "there is no text to go on with");
    int status = choose_all(generator, inner);
    generator->begun = status == 0;
    generator->position++;
    if (status == 0)
        memcpy(ids, generator->chosen, (size_t)generator->samples * sizeof *ids);
    return status;
}
