/* The public interface: texts that a net writes. See include/lockstep/generate.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/cards.h"
#include "api/generate_inner.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ops/devices.h"
#include "solver/check.h"
#include "solver/masks.h"
#include "solver/weights.h"
#include "transport/comm.h"
#include "transport/comm_job.h"

enum { SAMPLES_MAX = 65536 };

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

void ls_generate_notice(void *generator, const char *line)
{
    generator_say(generator, LOCKSTEP_EVENT_NOTICE, line);
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

static void say(void *user, enum lockstep_event_kind kind, const char *line)
{
    generator_say(user, kind, line);
}

static int load_weights(struct lockstep_generator *generator, const char *weights, const char *map,
                        struct ls_error *error)
{
    const struct ls_graph *graphs[LS_GENERATE_NETS];
    struct ls_store *store = generator->engine->store;
    char *names = NULL, *tokenizer = NULL;
    for (size_t i = 0; i < generator->net_count; i++)
        graphs[i] = ls_net_graph(generator->nets[i]);
    const struct ls_weights_request request = {
        .files = weights, .map = map, .use = LS_WEIGHTS_PART, .say = say, .user = generator};
    int status = ls_load_weights(store, graphs, generator->net_count, &request, error);
    if (status == 0)
        status = ls_read_weights_names(weights, &names, &tokenizer, error);
    if (status == 0 && names != NULL)
        status = ls_characters_read(names, &generator->characters, error);
    generator->trained_tokenizer = ls_weights_tokenizer(tokenizer);
    ls_free(names);
    ls_free(tokenizer);
    for (size_t i = 0; i < generator->net_count && status == 0; i++)
        status = ls_check_averages(store, graphs[i],
                                   "train the net, or name a file of weights that has them", error);
    return status;
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
                         .there = ls_fit_there(1),
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

static int create_texts(struct lockstep_generator *generator, const char *tokenizer,
                        struct ls_error *error)
{
    const struct ls_generator_options options = {.language = &generator->language,
                                                 .net = generator->net,
                                                 .chunk = generator->chunk,
                                                 .head = generator->head,
                                                 .rows = generator->samples};
    LS_TRY(ls_generator_create(generator->engine, &options, &generator->inner, error));
    LS_TRY(ls_generate_set_vocabulary(generator, tokenizer, error));
    generator->candidates = ls_alloc(generator->vocabulary, sizeof *generator->candidates);
    generator->chosen = ls_alloc((size_t)generator->samples, sizeof *generator->chosen);
    return generator->candidates != NULL && generator->chosen != NULL
               ? 0
               : ls_fail_memory(error, "texts");
}

static int load(struct lockstep_generator *generator, const char *path, const char *weights,
                const struct lockstep_generator_options *options, struct ls_error *error)
{
    generator->outer_callbacks = options->callbacks;
    generator->callbacks = ls_caller_callbacks(&generator->outer_callbacks);
    generator->samples = options->samples > 0 ? options->samples : 1;
    generator->choice = (struct ls_token_options){.temperature = options->temperature,
                                                  .top_k = options->top_k,
                                                  .top_p = options->top_p,
                                                  .seed = options->seed};
    LS_TRY(ls_token_options_check(&generator->choice, error));
    LS_TRY(ls_device_find(options->device, &generator->device, error));
    LS_TRY(ls_api_use_card(options->device, "a generator", &generator->card, error));
    const int workers = ls_api_workers(generator->device, options->workers);
    LS_TRY(read_definition(generator, path, options, error));
    LS_TRY(create_engine(generator, workers, error));
    LS_TRY(ls_generate_open_nets(generator, options->whole != 0, error));
    LS_TRY(fill_engine(generator, weights, options->map, error));
    return create_texts(generator, options->tokenizer, error);
}

int lockstep_generator_load(const char *path, const char *weights,
                            const struct lockstep_generator_options *options,
                            struct lockstep_generator **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_generator_options mine;
    *out = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(ls_api_require(weights, "weights", inner));
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
    LS_OWN_MODE;
    ls_thread_set_card(generator->card);
    ls_generator_free(generator->inner);
    for (size_t i = 0; i < LS_GENERATE_NETS; i++)
        ls_net_close(generator->nets[i]);
    ls_engine_free(generator->engine);
    ls_comm_end(generator->comm);
    ls_view_set_free(&generator->views);
    ls_parameter_set_free(generator->parameters);
    ls_definition_free(generator->file);
    ls_generate_free_vocabulary(generator);
    ls_free(generator->candidates);
    ls_free(generator->chosen);
    ls_free(generator);
}

/* ---- Writing --------------------------------------------------------------------------------- */

int lockstep_generator_begin(struct lockstep_generator *generator, const int32_t *ids, size_t count,
                             struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(generator->card);
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
    ls_thread_set_card(generator->card);
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
