/* What a definition says in vain. See engine/ignored.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/ignored.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/odd_layers.h"
#include "ir/layer.h"

static bool ignored_is_alike(const struct ls_ignored *a, const struct ls_ignored *b)
{
    return strcmp(a->field, b->field) == 0 && a->layer->type == b->layer->type;
}

/* How many layers of a net, up to its `end`-th entry, ignore the same. */
static size_t ignored_count(const struct ls_net *net, const struct ls_ignored *like, size_t end)
{
    const struct ls_graph *graph = ls_net_graph(net);
    size_t count = 0;
    for (size_t i = 0; i < end && i < graph->ignored_count; i++)
        count += ignored_is_alike(&graph->ignored[i], like);
    return count;
}

static void ignored_say(const struct ls_ignored *ignored, size_t count,
                        void (*say)(void *user, const char *sentence), void *user)
{
    char place[LS_PLACE_SIZE];
    struct ls_text text = {0};
    const struct ls_layer *layer = ignored->layer;
    ls_layer_place(layer, NULL, ignored->field, place);
    ls_text_format(&text, "%s: %s: %s is ignored: layers of type %s do not read it", place,
                   layer->name, ignored->field, layer->type->type);
    if (count > 1)
        ls_text_format(&text, " (%zu layers)", count);
    if (!text.failed)
        say(user, text.data);
    ls_text_free(&text);
}

/* Sentences that were said, so that what several nets have alike is said once. */
struct ignored_said {
    char **sentences;
    size_t count, capacity;
    void (*say)(void *user, const char *sentence);
    void *user;
};

static void ignored_say_once(void *user, const char *sentence)
{
    struct ignored_said *said = user;
    for (size_t i = 0; i < said->count; i++)
        if (strcmp(said->sentences[i], sentence) == 0)
            return;
    char *copy = ls_copy_string(sentence);
    if (copy != NULL && LS_GROW(said->sentences, said->count, said->capacity))
        said->sentences[said->count++] = copy;
    else
        ls_free(copy);
    said->say(said->user, sentence);
}

/* What data sets have passed over, and layers that cannot be meant. */
static void ignored_tell_sentences(struct ls_net *const *nets, size_t count,
                                   void (*say)(void *user, const char *sentence), void *user)
{
    struct ignored_said said = {.say = say, .user = user};
    for (size_t n = 0; n < count; n++)
        for (int d = 0; d < nets[n]->dataset_count; d++) {
            const struct ls_dataset *dataset = nets[n]->datasets[d];
            if (dataset != NULL && ls_dataset_warning(dataset) != NULL)
                ignored_say_once(&said, ls_dataset_warning(dataset));
        }
    for (size_t n = 0; n < count; n++)
        ls_graph_tell_odd(ls_net_graph(nets[n]), ignored_say_once, &said);
    for (size_t i = 0; i < said.count; i++)
        ls_free(said.sentences[i]);
    ls_free(said.sentences);
}

void ls_ignored_tell(struct ls_net *const *nets, size_t count,
                     void (*say)(void *user, const char *sentence), void *user)
{
    ignored_tell_sentences(nets, count, say, user);
    for (size_t n = 0; n < count; n++) {
        const struct ls_graph *graph = ls_net_graph(nets[n]);
        for (size_t i = 0; i < graph->ignored_count; i++) {
            const struct ls_ignored *ignored = &graph->ignored[i];
            size_t told = ignored_count(nets[n], ignored, i);
            for (size_t other = 0; other < n; other++)
                told += ignored_count(nets[other], ignored, SIZE_MAX);
            if (told == 0)
                ignored_say(ignored, ignored_count(nets[n], ignored, SIZE_MAX), say, user);
        }
    }
}
