/* Texts token by token. See engine/generator.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/generator.h"

#include <string.h>

#include "base/memory.h"
#include "engine/plans.h"
#include "engine/prediction.h"
#include "engine/sample_states.h"
#include "graph/stepwise.h"

/* A net with room for the inputs of all rows. */
struct stage {
    struct ls_net *net;
    struct ls_prediction *prediction;
    int64_t steps;             /* tokens that it computes */
    const void **inputs;       /* by input of the graph */
    enum ls_token_input *what; /* the same */
    size_t count;
    int64_t numbers; /* that its output has of a token; 0: none is wanted */
};

/* Keys or values of all rows, in the device's memory. */
struct cache {
    void *numbers;
    size_t bytes; /* of a row */
};

struct ls_generator {
    struct ls_engine *engine;
    struct ls_generator_options options;
    struct stage net, chunk; /* chunk.net NULL: the whole window is computed each time */
    struct ls_prediction *head;
    struct ls_sample_states *states;
    struct cache *caches; /* in the order of a graph's inputs */
    size_t cache_count;
    size_t vocabulary;
    int64_t window;   /* 0: texts may be of any length */
    int64_t length;   /* tokens of each row, of those that count */
    int64_t computed; /* of them, those that states and caches know */
    int32_t *tokens;  /* [rows, window], or without a window the last one of each row */
    float *last;      /* with a head: what it reads of the last token of each row */
    float *logits;    /* [rows, vocabulary] */
};

/* ---- Creation -------------------------------------------------------------------------------- */

/* Room for the tokens of all rows. */
static int generator_open_input(struct stage *stage, const struct ls_generator *generator, size_t i,
                                struct ls_error *error)
{
    const struct ls_language_net *language = generator->options.language;
    const struct ls_value *value = ls_net_graph(stage->net)->inputs[i].value;
    if (value->type != LS_F32 && value->type != LS_I32)
        return ls_fail(error, LOCKSTEP_DEFINITION, language->definition.definition->file,
                       "tokens are F32 or I32", "input '%.100s' has elements of type %s",
                       value->name, ls_dtype_name(value->type));
    stage->steps = ls_shape_size(&value->shape);
    stage->inputs[i] = ls_alloc_aligned((size_t)generator->options.rows * ls_value_bytes(value));
    return stage->inputs[i] != NULL ? 0 : ls_fail_memory(error, "the tokens of texts");
}

static int generator_open_stage(struct stage *stage, const struct ls_generator *generator,
                                struct ls_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    stage->net = net;
    stage->inputs = ls_alloc(graph->input_count + 1, sizeof *stage->inputs);
    stage->what = ls_alloc(graph->input_count + 1, sizeof *stage->what);
    if (stage->inputs == NULL || stage->what == NULL)
        return ls_fail_memory(error, "the tokens of texts");
    stage->count = graph->input_count;
    LS_TRY(ls_prediction_create(generator->engine, net, &stage->prediction, error));
    for (size_t i = 0, caches = 0; i < stage->count; i++) {
        const struct ls_input *input = &graph->inputs[i];
        stage->what[i] =
            input->cache ? LS_TOKEN_UNUSED
                         : ls_language_net_input(generator->options.language, input->value->name);
        if (input->cache)
            stage->inputs[i] = generator->caches[caches++].numbers;
        else if (stage->what[i] != LS_TOKEN_UNUSED)
            LS_TRY(generator_open_input(stage, generator, i, error));
    }
    return 0;
}

/* Memory for the keys and values of all rows. */
static int generator_create_caches(struct ls_generator *generator, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(generator->options.net);
    const size_t rows = (size_t)generator->options.rows;
    generator->caches = ls_alloc(graph->input_count + 1, sizeof *generator->caches);
    if (generator->caches == NULL)
        return ls_fail_memory(error, "texts");
    for (size_t i = 0; i < graph->input_count; i++) {
        struct cache *cache = &generator->caches[generator->cache_count];
        if (!graph->inputs[i].cache)
            continue;
        cache->bytes = ls_value_bytes(graph->inputs[i].value);
        if (cache->bytes <= SIZE_MAX / rows)
            cache->numbers = generator->engine->device->memory->create(rows * cache->bytes);
        generator->cache_count++;
        if (cache->numbers == NULL)
            return ls_fail_memory(error, "the keys and values of texts");
    }
    return 0;
}

/* All rows become what the first one is. */
static int generator_spread_caches(const struct ls_generator *generator, struct ls_error *error)
{
    const struct ls_device_memory *memory = generator->engine->device->memory;
    for (size_t i = 0; i < generator->cache_count; i++) {
        const struct cache *cache = &generator->caches[i];
        for (size_t row = 1; row < (size_t)generator->options.rows; row++)
            LS_TRY(memory->copy(NULL, (char *)cache->numbers + row * cache->bytes, cache->numbers,
                                cache->bytes, error));
    }
    return 0;
}

static void generator_close_stage(struct stage *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        if (stage->what[i] != LS_TOKEN_UNUSED)
            ls_free_aligned((void *)stage->inputs[i]);
    ls_free((void *)stage->inputs);
    ls_free(stage->what);
    ls_prediction_free(stage->prediction);
}

/* What a stage ends with lies token by token. */
static int generator_check_output(const struct ls_generator *generator,
                                  struct ls_prediction *prediction, int64_t steps, int64_t *numbers,
                                  struct ls_error *error)
{
    const struct ls_language_net *language = generator->options.language;
    const char *file = language->definition.definition->file;
    const struct ls_value *output = ls_prediction_output(prediction);
    if (output == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, NULL,
                       "blob '%.200s' does not belong to samples", language->logits);
    const int64_t size = ls_shape_size(&output->shape);
    const int64_t classes = output->shape.rank > 0 ? output->shape.dim[output->shape.rank - 1] : 1;
    if (size != steps * classes || output->selected != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, file,
                       "a layer such as InnerProduct with axis: 2 gives each of the tokens a row",
                       "blob '%.200s' must hold the logits of %lld tokens, row by row, but has "
                       "%lld numbers, with %lld in its last axis",
                       language->logits, (long long)steps, (long long)size, (long long)classes);
    *numbers = classes;
    return 0;
}

/* Logits of a token, which `net` or the head makes. */
static int generator_open_logits(struct ls_generator *generator, struct ls_error *error)
{
    struct stage *net = &generator->net;
    int64_t numbers;
    LS_TRY(generator_check_output(generator, net->prediction, net->steps, &net->numbers, error));
    generator->vocabulary = (size_t)net->numbers;
    if (generator->options.head == NULL)
        return 0;
    LS_TRY(
        ls_prediction_create(generator->engine, generator->options.head, &generator->head, error));
    LS_TRY(generator_check_output(generator, generator->head, 1, &numbers, error));
    generator->vocabulary = (size_t)numbers;
    return 0;
}

static int generator_allocate(struct ls_generator *generator, struct ls_error *error)
{
    const size_t rows = (size_t)generator->options.rows;
    const size_t kept = generator->window > 0 ? (size_t)generator->window : 1;
    const size_t last = generator->head != NULL ? (size_t)generator->net.numbers : 1;
    if (rows > SIZE_MAX / sizeof *generator->logits / generator->vocabulary ||
        rows > SIZE_MAX / sizeof *generator->last / last ||
        rows > SIZE_MAX / sizeof *generator->tokens / kept)
        return ls_fail_memory(error, "texts");
    generator->last = ls_alloc_aligned(rows * last * sizeof *generator->last);
    generator->logits = ls_alloc(rows * generator->vocabulary, sizeof *generator->logits);
    generator->tokens = ls_alloc(rows * kept, sizeof *generator->tokens);
    if (generator->last == NULL || generator->logits == NULL || generator->tokens == NULL)
        return ls_fail_memory(error, "texts");
    return 0;
}

static int generator_create(struct ls_generator *generator, struct ls_error *error)
{
    const struct ls_generator_options *options = &generator->options;
    const struct ls_graph *graph = ls_net_graph(options->net);
    const bool steps = options->chunk != NULL;
    LS_TRY(generator_create_caches(generator, error));
    LS_TRY(generator_open_stage(&generator->net, generator, options->net, error));
    if (steps)
        LS_TRY(generator_open_stage(&generator->chunk, generator, options->chunk, error));
    LS_TRY(generator_open_logits(generator, error));
    if (!steps || !ls_graph_is_endless(graph, options->language))
        generator->window = options->language->window;
    if (steps)
        LS_TRY(ls_sample_states_open(graph, generator->engine->device->memory,
                                     generator->engine->comm, options->rows, &generator->states,
                                     error));
    return generator_allocate(generator, error);
}

static int generator_check_order(struct ls_generator *generator, struct ls_error *error);

int ls_generator_create(struct ls_engine *engine, const struct ls_generator_options *options,
                        struct ls_generator **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_generator *generator = ls_alloc(1, sizeof *generator);
    if (generator == NULL)
        return ls_fail_memory(error, "texts");
    generator->engine = engine;
    generator->options = *options;
    int status = generator_create(generator, error);
    if (status == 0 && options->chunk == NULL)
        status = generator_check_order(generator, error);
    if (status != 0)
        ls_generator_free(generator);
    else
        *out = generator;
    return status;
}

void ls_generator_free(struct ls_generator *generator)
{
    if (generator == NULL)
        return;
    generator_close_stage(&generator->net);
    generator_close_stage(&generator->chunk);
    ls_prediction_free(generator->head);
    ls_sample_states_free(generator->states);
    for (size_t i = 0; i < generator->cache_count; i++)
        generator->engine->device->memory->free(generator->caches[i].numbers);
    ls_free(generator->caches);
    ls_free_aligned(generator->last);
    ls_free(generator->tokens);
    ls_free(generator->logits);
    ls_free(generator);
}

size_t ls_generator_vocabulary(const struct ls_generator *generator)
{
    return generator->vocabulary;
}

int64_t ls_generator_window(const struct ls_generator *generator)
{
    return generator->window;
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* Tokens that are to be computed: of row r those from tokens[r * stride] on. */
struct run {
    struct stage *stage;
    const int32_t *tokens;
    size_t stride;
    int64_t rows, count; /* of tokens; the stage's others are filled up */
    int32_t filler;      /* with this token */
    bool logits;         /* of the last of these tokens are wanted */
};

static int32_t generator_number(const struct ls_generator *generator, const struct run *run,
                                enum ls_token_input what, int64_t row, int64_t step)
{
    const int64_t position = generator->computed + step;
    switch (what) {
    case LS_TOKEN_IDS:
        return step < run->count ? run->tokens[(size_t)row * run->stride + (size_t)step]
                                 : run->filler;
    case LS_TOKEN_CONT:
        return position > 0;
    case LS_TOKEN_POSITIONS:
        return position < INT32_MAX ? (int32_t)position : INT32_MAX;
    case LS_TOKEN_MASK:
        return step < run->count;
    default: /* all of them are of one text */
        return 0;
    }
}

static void generator_fill(const struct ls_generator *generator, const struct run *run)
{
    const struct stage *stage = run->stage;
    const struct ls_graph *graph = ls_net_graph(stage->net);
    for (size_t i = 0; i < stage->count; i++) {
        if (stage->what[i] == LS_TOKEN_UNUSED)
            continue;
        void *numbers = (void *)stage->inputs[i];
        const bool whole = graph->inputs[i].value->type == LS_I32;
        for (int64_t row = 0; row < run->rows; row++)
            for (int64_t step = 0; step < stage->steps; step++) {
                const int64_t at = row * stage->steps + step;
                const int32_t number = generator_number(generator, run, stage->what[i], row, step);
                if (whole)
                    ((int32_t *)numbers)[at] = number;
                else
                    ((float *)numbers)[at] = (float)number;
            }
    }
}

/* The logits of a token of each row, of what the net has made of it. */
static int generator_run_head(const struct ls_generator *generator, int64_t rows,
                              struct ls_error *error)
{
    const void *inputs[] = {generator->last};
    const struct ls_prediction_rows head = {.inputs = inputs,
                                            .count = (size_t)rows,
                                            .numbers = (int64_t)generator->vocabulary,
                                            .output = generator->logits};
    return ls_prediction_run_rows(generator->head, &head, error);
}

static int generator_run(struct ls_generator *generator, const struct run *run,
                         struct ls_error *error)
{
    const int64_t numbers = run->stage->numbers;
    const bool head = run->logits && generator->head != NULL;
    generator_fill(generator, run);
    const struct ls_prediction_rows rows = {.inputs = run->stage->inputs,
                                            .count = (size_t)run->rows,
                                            .states = generator->states,
                                            .position = generator->computed,
                                            .begin = (run->count - 1) * numbers,
                                            .numbers = numbers,
                                            .output = !run->logits ? NULL
                                                      : head       ? generator->last
                                                                   : generator->logits};
    LS_TRY(ls_prediction_run_rows(run->stage->prediction, &rows, error));
    ls_sample_states_turn(generator->states);
    return head ? generator_run_head(generator, run->rows, error) : 0;
}

/* Which tokens of `count` are computed next, as `run` has it then; they begin at `computed`. Where
 * nothing but caches keeps what was computed, a chunk may also begin with tokens that it has, or
 * end with others that are none: what it keeps of these is written over. */
static void generator_cut(struct ls_generator *generator, int64_t count, struct run *run)
{
    const int64_t left = count - generator->computed, chunk = generator->chunk.steps;
    const bool most = generator->states == NULL && left >= chunk / 8; /* then it is faster */
    run->stage = left >= chunk || most ? &generator->chunk : &generator->net;
    if (left < chunk && most && generator->computed > generator->window - chunk)
        generator->computed = generator->window - chunk;
    run->count = count - generator->computed;
    if (run->count > run->stage->steps)
        run->count = run->stage->steps;
}

/* Lets states and caches know of tokens: chunks of them, then one after the other. */
static int generator_read(struct ls_generator *generator, const int32_t *tokens, size_t stride,
                          int64_t rows, int64_t count, struct ls_error *error)
{
    while (generator->computed < count) {
        struct run run = {.stride = stride, .rows = rows};
        generator_cut(generator, count, &run);
        run.tokens = tokens + generator->computed;
        LS_TRY(generator_run(generator, &run, error));
        generator->computed += run.count;
    }
    return 0;
}

/* What a net for the whole window says of a token must not depend on those behind it, which are not
 * there yet: it is tried with two different ones. */
static int generator_check_order(struct ls_generator *generator, struct ls_error *error)
{
    const struct ls_language_net *language = generator->options.language;
    const size_t bytes = generator->vocabulary * sizeof *generator->logits;
    float *before = ls_alloc(1, bytes);
    if (before == NULL)
        return ls_fail_memory(error, "texts");
    struct run run = {.stage = &generator->net,
                      .tokens = generator->tokens,
                      .rows = 1,
                      .count = (generator->window + 1) / 2,
                      .logits = true};
    int status = generator_run(generator, &run, error);
    memcpy(before, generator->logits, bytes);
    run.filler = generator->vocabulary > 1;
    if (status == 0)
        status = generator_run(generator, &run, error);
    if (status == 0 && memcmp(before, generator->logits, bytes) != 0)
        status = ls_fail(error, LOCKSTEP_DEFINITION, language->definition.definition->file,
                         "attention_param { causal: true } reads what is in front of a token alone",
                         "the net is none that writes texts: what it says of a token depends on "
                         "the tokens behind it");
    ls_free(before);
    return status;
}

int ls_generator_begin(struct ls_generator *generator, const int32_t *tokens, size_t count,
                       struct ls_error *error)
{
    const int64_t rows = generator->options.rows, window = generator->window;
    const int64_t kept = window > 0 && (uint64_t)window < count ? window : (int64_t)count;
    const int64_t room = window > 0 ? window : 1, written = window > 0 ? kept : 1;
    for (int64_t row = 0; row < rows; row++)
        memcpy(generator->tokens + row * room, tokens + count - (size_t)written,
               (size_t)written * sizeof *tokens);
    generator->length = kept;
    generator->computed = 0;
    if (generator->chunk.net == NULL)
        return 0;
    LS_TRY(ls_sample_states_clear(generator->states, error));
    LS_TRY(generator_read(generator, tokens + count - (size_t)kept, 0, 1, kept - 1, error));
    LS_TRY(generator_spread_caches(generator, error));
    return ls_sample_states_spread(generator->states, error);
}

int ls_generator_logits(struct ls_generator *generator, const float **logits,
                        struct ls_error *error)
{
    const bool steps = generator->chunk.net != NULL;
    struct run run = {.stage = &generator->net,
                      .stride = generator->window > 0 ? (size_t)generator->window : 1,
                      .rows = generator->options.rows,
                      .count = steps ? 1 : generator->length,
                      .logits = true};
    run.tokens = generator->tokens + (steps && generator->window > 0 ? generator->length - 1 : 0);
    LS_TRY(generator_run(generator, &run, error));
    generator->computed += steps ? 1 : 0;
    *logits = generator->logits;
    return 0;
}

/* Drops all but the last half of the tokens of each row. */
static int generator_halve(struct ls_generator *generator, struct ls_error *error)
{
    const int64_t window = generator->window, kept = window / 2;
    for (int64_t row = 0; row < generator->options.rows; row++) {
        int32_t *tokens = generator->tokens + row * window;
        memmove(tokens, tokens + window - kept, (size_t)kept * sizeof *tokens);
    }
    generator->length = kept;
    generator->computed = 0;
    if (generator->chunk.net == NULL)
        return 0;
    LS_TRY(ls_sample_states_clear(generator->states, error));
    return generator_read(generator, generator->tokens, (size_t)window, generator->options.rows,
                          kept, error);
}

int ls_generator_append(struct ls_generator *generator, const int32_t *tokens,
                        struct ls_error *error)
{
    const int64_t rows = generator->options.rows, window = generator->window;
    if (window == 0) {
        memcpy(generator->tokens, tokens, (size_t)rows * sizeof *tokens);
        return 0;
    }
    if (generator->length == window)
        LS_TRY(generator_halve(generator, error));
    for (int64_t row = 0; row < rows; row++)
        generator->tokens[row * window + generator->length] = tokens[row];
    generator->length++;
    return 0;
}
