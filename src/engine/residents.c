/* See engine/residents.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/residents.h"

#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/reader.h"
#include "data/resident.h"
#include "data/samples.h"
#include "engine/thread_pool.h"

enum { THREADS_MAX = 32, CHUNK_BYTES = 4 << 20 };

/* The records of a data set. */
struct resident {
    bool chosen, there;
    const char *why; /* it was not chosen */
    uint32_t wanted; /* tensors */
    size_t bytes, mean_bytes;
    uint64_t *hashes;
    unsigned char *tensor[LS_RECORD_TENSORS]; /* in the device's memory; so is the mean */
    float *mean;
};

struct ls_residents {
    int datasets, inputs;
    struct resident *items; /* by data set */
    const uint64_t **hashes, **planned;
    struct ls_sample_making *makings; /* by input */
    const struct ls_sample_making **making;
    bool any; /* is there */
};

/* ---- Which ----------------------------------------------------------------------------------- */

static int residents_create(struct ls_net *net, struct ls_error *error)
{
    const size_t datasets = (size_t)net->dataset_count, inputs = (size_t)net->input_count;
    struct ls_residents *residents = net->residents = ls_alloc(1, sizeof *residents);
    if (residents == NULL)
        return ls_fail_memory(error, "data sets");
    residents->datasets = net->dataset_count;
    residents->inputs = net->input_count;
    residents->items = ls_alloc(datasets + 1, sizeof *residents->items);
    residents->hashes = ls_alloc(datasets + 1, sizeof *residents->hashes);
    residents->planned = ls_alloc(datasets + 1, sizeof *residents->planned);
    residents->makings = ls_alloc(inputs + 1, sizeof *residents->makings);
    residents->making = ls_alloc(inputs + 1, sizeof *residents->making);
    return residents->items != NULL && residents->hashes != NULL && residents->planned != NULL &&
                   residents->makings != NULL && residents->making != NULL
               ? 0
               : ls_fail_memory(error, "data sets");
}

/* What is wanted of a data set, and what that takes; whether it may lie there at all. */
static bool residents_measure(const struct ls_net *net, int d, struct resident *item)
{
    const struct ls_dataset *dataset = net->datasets[d];
    size_t record = 0, numbers;
    for (int i = 0; i < net->input_count; i++)
        item->wanted |= net->inputs[i][0] == d ? UINT32_C(1) << net->inputs[i][1] : 0;
    item->why = ls_dataset_stays_away(dataset, item->wanted);
    if (net->batching.own != NULL)
        item->why = "its batches have a size of their own";
    for (int i = 0; i < net->input_count && item->why == NULL; i++) {
        struct ls_sample_recipe recipe;
        ls_dataset_recipe(dataset, net->inputs[i][1], &recipe);
        if (net->inputs[i][0] == d && net->rounded[i] && recipe.standardize)
            item->why = "its samples are standardized and rounded";
    }
    if (item->why != NULL || item->wanted == 0)
        return false;
    for (int k = 0; k < ls_dataset_tensors(dataset); k++)
        if ((item->wanted >> k & 1) != 0) {
            struct ls_sample_recipe recipe;
            ls_dataset_recipe(dataset, k, &recipe);
            record += recipe.record_bytes;
            if (recipe.image && ls_dataset_mean(dataset, &numbers) != NULL)
                item->mean_bytes = numbers * ls_dtype_size(LS_F32);
        }
    item->bytes = record * (size_t)ls_dataset_size(dataset) + item->mean_bytes;
    return true;
}

static int residents_choose(struct ls_net *net, size_t *room, struct ls_error *error)
{
    static const uint64_t some;
    ls_residents_free(net);
    if (net->options.from_outside || net->options.device->make_samples == NULL)
        return 0;
    LS_TRY(residents_create(net, error));
    for (int d = 0; d < net->dataset_count; d++) {
        struct resident *item = &net->residents->items[d];
        if (!residents_measure(net, d, item))
            continue;
        if (item->bytes > *room) {
            item->why = "the device has no room for its records";
            continue;
        }
        *room -= item->bytes;
        item->chosen = true;
        net->residents->planned[d] = &some;
    }
    return 0;
}

int ls_residents_choose(struct ls_net *const *nets, size_t count, size_t memory,
                        struct ls_error *error)
{
    size_t room = memory / LS_RESIDENT_PARTS;
    for (size_t i = 0; i < count; i++)
        LS_TRY(residents_choose(nets[i], &room, error));
    return 0;
}

static void residents_drop(const struct ls_device_memory *memory, struct resident *item)
{
    for (int k = 0; k < LS_RECORD_TENSORS; k++) {
        memory->free(item->tensor[k]);
        item->tensor[k] = NULL;
    }
    memory->free(item->mean);
    ls_free(item->hashes);
    item->mean = NULL;
    item->hashes = NULL;
    item->there = item->chosen = false;
}

void ls_residents_free(struct ls_net *net)
{
    struct ls_residents *residents = net->residents;
    if (residents == NULL)
        return;
    for (int d = 0; residents->items != NULL && d < residents->datasets; d++)
        residents_drop(net->options.device->memory, &residents->items[d]);
    ls_free(residents->items);
    ls_free((void *)residents->hashes);
    ls_free((void *)residents->planned);
    ls_free(residents->makings);
    ls_free((void *)residents->making);
    ls_free(residents);
    net->residents = NULL;
}

size_t ls_residents_bytes(const struct ls_net *net)
{
    size_t bytes = 0;
    for (int d = 0; net->residents != NULL && d < net->residents->datasets; d++)
        bytes += net->residents->items[d].chosen ? net->residents->items[d].bytes : 0;
    return bytes;
}

size_t ls_residents_dataset_bytes(const struct ls_net *net, int dataset)
{
    return net->residents->items[dataset].bytes;
}

bool ls_residents_has(const struct ls_net *net, int dataset, const char **why)
{
    const struct resident *item = net->residents != NULL ? &net->residents->items[dataset] : NULL;
    *why = item != NULL ? item->why : NULL;
    return item != NULL && item->chosen;
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Threads that read the records of a data set and bring them to the device. */
struct load {
    const struct ls_net *net;
    struct ls_dataset *dataset;
    struct resident *item;
    int64_t size, chunk;  /* places; those of a turn */
    _Atomic int64_t next; /* place */
    struct ls_worker_failure failure;
};

struct loader {
    struct load *load;
    pthread_t thread;
    bool running;
    struct ls_pinned records[LS_RECORD_TENSORS];
};

static size_t residents_record_bytes(const struct load *load, int tensor)
{
    struct ls_sample_recipe recipe;
    ls_dataset_recipe(load->dataset, tensor, &recipe);
    return recipe.record_bytes;
}

/* Places [begin, end). */
static int residents_bring_places(struct loader *loader, struct ls_reader *reader, int64_t begin,
                                  int64_t end, struct ls_error *error)
{
    const struct load *load = loader->load;
    for (int64_t place = begin; place < end; place++) {
        void *out[LS_RECORD_TENSORS] = {NULL};
        for (int k = 0; k < LS_RECORD_TENSORS; k++)
            if (load->item->tensor[k] != NULL)
                out[k] = loader->records[k].memory +
                         (size_t)(place - begin) * residents_record_bytes(load, k);
        LS_TRY(ls_reader_load(reader, place, out, &load->item->hashes[place], error));
    }
    for (int k = 0; k < LS_RECORD_TENSORS; k++) {
        if (load->item->tensor[k] == NULL)
            continue;
        const size_t bytes = residents_record_bytes(load, k);
        LS_TRY(load->net->options.device->memory->write(
            NULL, load->item->tensor[k] + (size_t)begin * bytes, loader->records[k].memory,
            (size_t)(end - begin) * bytes, error));
    }
    return 0;
}

static int residents_load_some(struct loader *loader, struct ls_error *error)
{
    struct load *load = loader->load;
    struct ls_reader *reader = NULL;
    int status = ls_reader_open(load->dataset, &reader, error);
    for (int k = 0; k < LS_RECORD_TENSORS && status == 0; k++)
        if (load->item->tensor[k] != NULL &&
            !ls_pinned_create(&loader->records[k], load->net->options.device->memory->pinning,
                              (size_t)load->chunk * residents_record_bytes(load, k)))
            status = ls_fail_memory(error, "records");
    while (status == 0) {
        const int64_t begin = atomic_fetch_add(&load->next, load->chunk);
        const int64_t end = begin + load->chunk < load->size ? begin + load->chunk : load->size;
        if (begin >= load->size)
            break;
        status = residents_bring_places(loader, reader, begin, end, error);
    }
    if (status != 0)
        atomic_store(&load->next, load->size);
    for (int k = 0; k < LS_RECORD_TENSORS; k++)
        ls_pinned_free(&loader->records[k]);
    ls_reader_close(reader);
    return status;
}

static void *residents_load_thread(void *argument)
{
    struct loader *loader = argument;
    struct ls_error *error = ls_worker_error();
    ls_unpin_thread();
    ls_set_float_mode();
    ls_worker_failure_note(&loader->load->failure, residents_load_some(loader, error), error);
    return NULL;
}

/* By some threads where decoding takes long, else by this one. */
static int residents_read(struct load *load, struct ls_error *error)
{
    struct loader loaders[THREADS_MAX] = {{0}};
    int threads = ls_dataset_encoded(load->dataset) ? ls_cpu_count() : 1;
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    load->failure = (struct ls_worker_failure){.error = error};
    loaders[0].load = load;
    for (int t = 1; t < threads; t++)
        loaders[t].load = load;
    for (int t = 1; t < threads; t++)
        loaders[t].running =
            ls_thread_create(&loaders[t].thread, residents_load_thread, &loaders[t]) == 0;
    struct ls_error *mine = ls_worker_error();
    ls_worker_failure_note(&load->failure, residents_load_some(&loaders[0], mine), mine);
    for (int t = 1; t < threads; t++)
        if (loaders[t].running)
            pthread_join(loaders[t].thread, NULL);
    return atomic_load(&load->failure.status);
}

/* Memory for the records of a data set, and its mean. */
static int residents_allocate(const struct ls_net *net, int d, struct ls_error *error)
{
    struct resident *item = &net->residents->items[d];
    struct ls_dataset *dataset = net->datasets[d];
    const struct ls_device_memory *memory = net->options.device->memory;
    const size_t size = (size_t)ls_dataset_size(dataset);
    size_t numbers;
    bool made = (item->hashes = ls_alloc(size, sizeof *item->hashes)) != NULL;
    for (int k = 0; made && k < ls_dataset_tensors(dataset); k++) {
        struct ls_sample_recipe recipe;
        if ((item->wanted >> k & 1) == 0)
            continue;
        ls_dataset_recipe(dataset, k, &recipe);
        made = (item->tensor[k] = memory->create(size * recipe.record_bytes)) != NULL;
    }
    if (made && item->mean_bytes > 0)
        made = (item->mean = memory->create(item->mean_bytes)) != NULL;
    if (!made)
        return ls_fail_memory(error, "records");
    return item->mean_bytes > 0
               ? memory->write(NULL, item->mean, ls_dataset_mean(dataset, &numbers),
                               item->mean_bytes, error)
               : 0;
}

static int residents_bring(const struct ls_net *net, int d, struct ls_error *error)
{
    struct resident *item = &net->residents->items[d];
    struct load load = {.net = net,
                        .dataset = net->datasets[d],
                        .item = item,
                        .size = ls_dataset_size(net->datasets[d])};
    const size_t record = item->bytes / (size_t)load.size + 1;
    load.chunk = CHUNK_BYTES / record < 1 ? 1 : (int64_t)(CHUNK_BYTES / record);
    LS_TRY(residents_allocate(net, d, error));
    return residents_read(&load, error);
}

/* How inputs of a data set are made from now on. */
static void residents_describe(const struct ls_net *net, int d)
{
    struct ls_residents *residents = net->residents;
    const struct resident *item = &residents->items[d];
    residents->hashes[d] = item->hashes;
    residents->any = true;
    for (int i = 0; i < net->input_count; i++) {
        const struct ls_value *value = ls_net_graph(net)->inputs[i].value;
        struct ls_sample_making *making = &residents->makings[i];
        const int tensor = net->inputs[i][1];
        if (net->inputs[i][0] != d)
            continue;
        ls_dataset_recipe(net->datasets[d], tensor, &making->recipe);
        making->recipe.bytes = (size_t)ls_value_sample_size(value) * ls_dtype_size(value->type);
        making->recipe.runs = net->runs[i] > 1 ? net->runs[i] : 1;
        making->recipe.rounded = net->rounded[i];
        making->records = item->tensor[tensor];
        making->mean = item->mean;
        residents->making[i] = making;
    }
}

int ls_residents_load(const struct ls_net *net, struct ls_error *error)
{
    struct ls_residents *residents = net->residents;
    for (int d = 0; residents != NULL && d < residents->datasets; d++) {
        struct resident *item = &residents->items[d];
        if (!item->chosen || item->there)
            continue;
        struct ls_error *aside = ls_alloc(1, sizeof *aside);
        if (aside == NULL)
            return ls_fail_memory(error, "records");
        const int status = residents_bring(net, d, aside);
        const bool stays = status == LOCKSTEP_DATA || status == LOCKSTEP_RESOURCE;
        if (status != 0 && !stays)
            ls_error_add(error, aside);
        ls_free(aside);
        item->there = status == 0;
        if (status == 0) {
            residents_describe(net, d);
            continue;
        }
        residents_drop(net->options.device->memory, item);
        item->why = status == LOCKSTEP_DATA ? "one of its records cannot be read"
                                            : "the device had no room for its records";
        residents->planned[d] = NULL;
        if (!stays)
            return status;
    }
    return 0;
}

const uint64_t *const *ls_residents_hashes(const struct ls_net *net, bool planned)
{
    if (net->residents == NULL)
        return NULL;
    return planned ? net->residents->planned : net->residents->hashes;
}

const struct ls_sample_making *const *ls_residents_making(const struct ls_net *net)
{
    return net->residents != NULL && net->residents->any ? net->residents->making : NULL;
}
