/* Data sets: from a Data layer's parameters to a source with its split, order and transformation.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/bad_records.h"
#include "data/dataset_inner.h"
#include "data/oddities.h"
#include "data/fingerprint.h"
#include "data/order.h"
#include "data/samples.h"

/* What opening needs to know, in one place. */
struct opening {
    const Lockstep__LayerParameter *layer;
    const Lockstep__DataParameter *data;
    const struct ls_definition *definition;
    Lockstep__Phase phase;
    const struct ls_dataset_wishes *wishes;
    struct ls_source_options options;
    struct ls_error *error;
};

/* ---- Fields that all sources have ---- */

enum { PREFETCH_MOST = 1024 }; /* batches; their memory is limited besides (data/prefetcher.c) */

static int check_fields(const struct opening *o)
{
    const Lockstep__DataParameter *d = o->data;
    int status = 0;
    if (d->has_cache_mb && !d->cache)
        status = ls_option_fail(&o->options, "cache_mb", "cache: true", o->error,
                                "cache_mb is for cache: true");
    if (d->prefetch < 1 || d->prefetch > PREFETCH_MOST)
        status = ls_option_fail(&o->options, "prefetch", "leave it out: 4 batches", o->error,
                                "prefetch is %u; it must lie in 1 .. %d", (unsigned)d->prefetch,
                                PREFETCH_MOST);
    return status;
}

/* ---- Source, split, transformation ---- */

/* To look for bad records is to find them, not to skip them. */
static bool skips(const struct opening *o)
{
    return !o->wishes->forgiving &&
           o->data->on_bad_record == LOCKSTEP__DATA_PARAMETER__BAD_RECORD__SKIP;
}

/* Not even the head of a record makes sense: says what is wrong with the first. */
static int none_is_good(const struct opening *o, const struct ls_dataset *dataset)
{
    struct ls_source_reader *reader;
    struct ls_record record;
    LS_TRY(ls_source_reader_open(dataset->source, &reader, o->error));
    (void)ls_source_read(reader, 0, LS_ALL_TENSORS, &record, o->error);
    ls_source_reader_close(reader);
    return ls_fail(o->error, LOCKSTEP_DATA, dataset->name, NULL,
                   "none of its %" PRId64 " records is good", dataset->source->count);
}

/* What the layer says of a split: to a source that cuts itself, or for open_split. */
static int read_split(struct opening *o, struct ls_split *split)
{
    char place[LS_PLACE_MAX];
    ls_place(o->definition, o->data, "split", place, sizeof place);
    LS_TRY(ls_split_parse(o->data->split, place, split, o->error));
    if (o->options.type->splits)
        o->options.split = *split;
    return 0;
}

static int open_source(struct opening *o, struct ls_dataset *dataset)
{
    o->options.forgiving = o->wishes->forgiving;
    o->options.skipping = skips(o);
    o->options.known = o->wishes->known;
    LS_TRY(ls_source_open(&o->options, &dataset->source, o->error));
    if (dataset->source->type->splits || ls_class_names_matter(&o->options))
        LS_TRY(ls_dataset_check_names(dataset, o->options.known, o->error));
    const struct ls_source *source = dataset->source;
    if (source->forgiving && ls_source_has_image(source) && ls_source_image(source)[0] == 0)
        return none_is_good(o, dataset);
    return 0;
}

/* ---- Which tensor goes to which top ---- */

/* "x, y" */
static void list_tensors(const struct ls_source *source, struct ls_text *text)
{
    for (int k = 0; k < source->tensors; k++)
        ls_text_format(text, "%s%s", k > 0 ? ", " : "", source->tensor[k].name);
}

/* The tensor of a record that a name means. */
static int find_tensor(const struct opening *o, const struct ls_source *source, const char *name,
                       int *found)
{
    *found = -1;
    for (int k = 0; k < source->tensors; k++) {
        if (strcmp(source->tensor[k].name, name) != 0)
            continue;
        if (*found >= 0)
            return ls_option_fail(&o->options, "tensor", "give the files different names", o->error,
                                  "there are several tensors '%.60s'", name);
        *found = k;
    }
    if (*found >= 0)
        return 0;
    struct ls_text hint = {0};
    ls_text_add(&hint, "the records have: ");
    list_tensors(source, &hint);
    int status = ls_option_fail(&o->options, "tensor", hint.data, o->error,
                                "there is no tensor '%.60s'", name);
    ls_text_free(&hint);
    return status;
}

static int open_tensor(const struct opening *o, struct ls_dataset *dataset, int k)
{
    const struct ls_source *source = dataset->source;
    const Lockstep__DataTensor *wish = (size_t)k < o->data->n_tensor ? o->data->tensor[k] : NULL;
    struct ls_sample_tensor *tensor = &dataset->tensor[k];
    tensor->source = k;
    tensor->type = LS_F32;
    if (wish == NULL)
        return 0;
    if (wish->has_pad && !source->type->pads)
        return ls_option_fail(&o->options, "tensor", NULL, o->error,
                              "tensor { pad } is for backend RECORDS");
    if (wish->name != NULL)
        LS_TRY(find_tensor(o, source, wish->name, &tensor->source));
    if (tensor->source >= source->tensors)
        return ls_option_fail(&o->options, "tensor", NULL, o->error,
                              "there is no tensor number %d: the records have %d", k + 1,
                              source->tensors);
    if (wish->type == LOCKSTEP__DATA_TENSOR__TYPE__I32)
        tensor->type = LS_I32;
    const enum ls_tensor_role role = source->tensor[tensor->source].role;
    if (tensor->type != LS_F32 && role != LS_TENSOR_PLAIN && role != LS_TENSOR_SEQUENCE)
        return ls_option_fail(&o->options, "tensor", NULL, o->error,
                              "type: I32 is for tensors that transform_param does not change");
    return 0;
}

static int open_tensors(const struct opening *o, struct ls_dataset *dataset)
{
    const struct ls_source *source = dataset->source;
    size_t given = o->data->n_tensor, tops = o->layer->n_top;
    if (given > 0 && given != tops)
        return ls_option_fail(&o->options, "tensor", "one for each top, in their order", o->error,
                              "tensor is given %zu times, but the layer has %zu tops", given, tops);
    dataset->tensors = given > 0 ? (int)given : source->tensors;
    if (tops > (size_t)source->tensors && given == 0) {
        if (source->tensors == 1 && ls_source_has_image(source))
            return ls_option_fail(&o->options, "source",
                                  "give label_source, or leave the second top out", o->error,
                                  "the layer has a top for labels, and the source has none");
        struct ls_text hint = {0};
        list_tensors(source, &hint);
        int status = ls_option_fail(&o->options, "source", hint.data, o->error,
                                    "the layer has %zu tops, but the records have %d tensors", tops,
                                    source->tensors);
        ls_text_free(&hint);
        return status;
    }
    if (dataset->tensors > LS_RECORD_TENSORS)
        return ls_option_fail(&o->options, "tensor", NULL, o->error,
                              "a layer can have at most %d tops", LS_RECORD_TENSORS);
    for (int k = 0; k < dataset->tensors; k++) {
        LS_TRY(open_tensor(o, dataset, k));
        dataset->tops |= (size_t)k < tops ? LS_TENSOR(k) : 0;
    }
    return 0;
}

/* Whether the records have the shape that the definition says. */
static int check_shape(const struct opening *o, const struct ls_dataset *dataset, int k)
{
    const Lockstep__BlobShape *said =
        (size_t)k < o->data->n_tensor ? o->data->tensor[k]->shape : NULL;
    const struct ls_shape *shape = &dataset->tensor[k].shape;
    struct ls_shape wanted = {0};
    char is[128], says[128];
    for (size_t i = 0; said != NULL && i < said->n_dim && i < LS_RANK_MAX; i++)
        wanted.dim[wanted.rank++] = said->dim[i];
    if (said == NULL || ls_shape_equal(shape, &wanted))
        return 0;
    return ls_option_fail(&o->options, "tensor", "tensor { shape } is that of a sample", o->error,
                          "tensor '%.60s' of the records is %s, not %s",
                          dataset->source->tensor[dataset->tensor[k].source].name,
                          ls_shape_text(shape, is, sizeof is),
                          ls_shape_text(&wanted, says, sizeof says));
}

/* The shapes of samples, when the transformation is known. */
static int shape_tensors(const struct opening *o, struct ls_dataset *dataset)
{
    for (int k = 0; k < dataset->tensors; k++) {
        ls_dataset_tensor_shape(dataset, k, dataset->transform.output, &dataset->tensor[k].shape);
        LS_TRY(check_shape(o, dataset, k));
    }
    return 0;
}

static int open_split(const struct opening *o, const struct ls_split *split,
                      struct ls_dataset *dataset)
{
    dataset->size = dataset->source->count;
    if (split->all || dataset->source->type->splits)
        return 0;
    uint32_t kept;
    if (dataset->source->period > 0)
        return ls_option_fail(&o->options, "split", "make two files of it", o->error,
                              "data of backend %s cannot be split: its batches are made of two "
                              "kinds of records",
                              dataset->source->type->name);
    dataset->records = ls_split_records(split, (uint32_t)dataset->source->count, &kept);
    if (dataset->records == NULL)
        return ls_fail_memory(o->error, "the records of a split");
    if (kept == 0) {
        char place[LS_PLACE_MAX];
        ls_place(o->definition, o->data, "split", place, sizeof place);
        return ls_fail(o->error, LOCKSTEP_DATA, place, NULL,
                       "layer '%.100s': split \"%.100s\" has none of the %" PRId64 " records",
                       o->layer->name != NULL ? o->layer->name : "", o->data->split,
                       dataset->source->count);
    }
    dataset->size = kept;
    return 0;
}

static int open_bad_records(const struct opening *o, struct ls_dataset *dataset)
{
    if (!skips(o))
        return 0;
    LS_TRY(ls_bad_records_open(dataset, &dataset->bad, o->error));
    return ls_bad_records_look(dataset, o->options.crop > 0, o->error);
}

static int open_transform(const struct opening *o, uint64_t seed, struct ls_dataset *dataset)
{
    struct ls_transform_options options = {
        .param = o->layer->transform_param,
        .definition = o->definition,
        .layer = o->layer->name != NULL ? o->layer->name : "",
        .seed = seed,
        .augment = o->wishes->augment && o->phase == LOCKSTEP__PHASE__TRAIN,
        .varies = dataset->source->varies,
        .label_pad = dataset->source->label_pad,
        .annotated = o->layer->annotated_data_param,
        .boxes = ls_source_has_boxes(dataset->source),
        .maps = dataset->source->tensors > 1 && dataset->source->tensor[1].role == LS_TENSOR_MAP,
        .floats = dataset->source->tensor[0].type != LS_U8,
    };
    if (!ls_source_has_image(dataset->source)) {
        if (dataset->source->steps > 0)
            ls_source_shape_of(dataset->source, 0, dataset->transform.output);
        if (options.param == NULL)
            return 0;
        return ls_option_fail(&o->options, "transform_param.scale", "prepare the arrays themselves",
                              o->error, "transform_param is for images, and %s has none",
                              dataset->source->type->name);
    }
    memcpy(options.record, ls_source_image(dataset->source), sizeof options.record);
    return ls_transform_open(&options, &dataset->transform, o->error);
}

/* Streams go on from batch to batch, as they lie in the source. */
static int check_order(const struct opening *o, const struct ls_dataset *dataset)
{
    const char *hint = "order: FORWARD reads windows that do not follow each other";
    if (dataset->source->streams == 0)
        return 0;
    if (o->data->shuffle)
        return ls_option_fail(&o->options, "shuffle", hint, o->error,
                              "order: STREAMS cannot be shuffled: each window goes on where the "
                              "one before ends");
    if (o->data->rand_skip > 0)
        return ls_option_fail(&o->options, "rand_skip", hint, o->error,
                              "rand_skip is not for order: STREAMS, which begins with the streams");
    if (skips(o))
        return ls_option_fail(&o->options, "on_bad_record", hint, o->error,
                              "on_bad_record: SKIP is not for order: STREAMS: a window of "
                              "another place would stand in a stream");
    return 0;
}

/* Where epochs begin. */
static int open_skip(const struct opening *o, uint64_t seed, struct ls_dataset *dataset)
{
    const uint32_t most = o->data->rand_skip;
    if (most == 0)
        return 0;
    if (dataset->source->period > 0)
        return ls_option_fail(&o->options, "rand_skip", NULL, o->error,
                              "rand_skip is not for backend %s, whose batches are made of two "
                              "kinds of records",
                              dataset->source->type->name);
    if (dataset->source->steps > 0 && dataset->source->varies)
        return ls_option_fail(
            &o->options, "rand_skip", NULL, o->error,
            "rand_skip is not for lengths: BUCKET, which has an order of its own");
    if ((int64_t)most > dataset->size)
        return ls_option_fail(&o->options, "rand_skip", NULL, o->error,
                              "rand_skip is %u, but there are only %" PRId64 " samples",
                              (unsigned)most, dataset->size);
    uint64_t key = ls_random_key(seed, LS_RANDOM_SHUFFLE, "rand_skip");
    dataset->skip = ls_random_below(key, 0, 0, most);
    return 0;
}

static int64_t length_at(const void *user, int64_t place)
{
    const struct ls_dataset *dataset = user;
    int64_t shape[3];
    ls_source_shape_of(dataset->source, ls_dataset_place(dataset, place), shape);
    return shape[1];
}

/* Sequences of different lengths come in the order of buckets. */
static int open_buckets(const struct opening *o, struct ls_dataset *dataset)
{
    const struct ls_buckets_options options = {.size = dataset->size,
                                               .batch = dataset->batch > 0 ? dataset->batch : 1,
                                               .wraps = dataset->last_batch == LS_LAST_WRAP,
                                               .shuffle = dataset->shuffle,
                                               .key = dataset->shuffle_key,
                                               .length = length_at,
                                               .user = dataset};
    if (dataset->source->steps == 0 || !dataset->source->varies)
        return 0;
    return ls_buckets_make(&options, &dataset->buckets, o->error);
}

static enum ls_last_batch last_batch_of(const struct opening *o)
{
    if (!o->data->has_last_batch)
        return o->phase == LOCKSTEP__PHASE__TRAIN ? LS_LAST_WRAP : LS_LAST_PARTIAL;
    switch (o->data->last_batch) {
    case LOCKSTEP__DATA_PARAMETER__LAST_BATCH__PARTIAL:
        return LS_LAST_PARTIAL;
    case LOCKSTEP__DATA_PARAMETER__LAST_BATCH__DROP:
        return LS_LAST_DROP;
    default:
        return LS_LAST_WRAP;
    }
}

/* ---- The cache ---- */

/* Everything that decides what the records of a source are, as text. */
static void describe_records(const struct opening *o, const struct ls_dataset *dataset,
                             struct ls_text *key)
{
    const struct ls_source *source = dataset->source;
    uint64_t sizes = source->sizes == NULL
                         ? 0
                         : ls_hash(source->sizes, (size_t)source->count * sizeof *source->sizes, 0);
    ls_text_format(key, "%s %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", source->type->name,
                   dataset->ends[0], dataset->ends[1], sizes, source->labels_hash);
    /* Files that were written to since another data set opened them are other files. */
    ls_text_format(key, "stamp %" PRIx64 "\n",
                   source->type->stamp != NULL ? source->type->stamp(source) : 0);
    ls_source_options_describe(&o->options, key);
    for (int k = 0; k < source->tensors; k++) {
        const struct ls_shape *shape = &source->tensor[k].shape;
        ls_text_format(key, " %s", ls_dtype_name(source->tensor[k].type));
        for (int i = 0; i < shape->rank; i++)
            ls_text_format(key, " %" PRId64, shape->dim[i]);
    }
}

static int join_cache(struct opening *o, struct ls_dataset *dataset)
{
    struct ls_text key = {0};
    describe_records(o, dataset, &key);
    struct ls_cache_options options = {.source = dataset->source,
                                       .key = key.data,
                                       .limit = (size_t)o->data->cache_mb << 20,
                                       .records = dataset->records,
                                       .count = dataset->size};
    int status = key.failed ? ls_fail_memory(o->error, "the cache of a data set")
                            : ls_cache_join(&options, &dataset->cache, o->error);
    ls_text_free(&key);
    return status;
}

static int open_all(struct opening *o, uint64_t seed, struct ls_dataset *dataset)
{
    const Lockstep__DataParameter *d = o->data;
    int status = ls_source_options_read(o->layer, o->definition, o->phase, &o->options, o->error);
    int others = check_fields(o);
    LS_TRY(status != 0 ? status : others);
    dataset->name = ls_copy_string(ls_source_options_name(&o->options));
    if (dataset->name == NULL)
        return ls_fail_memory(o->error, "a data set");
    struct ls_split split;
    LS_TRY(read_split(o, &split));
    LS_TRY(open_source(o, dataset));
    LS_TRY(open_tensors(o, dataset));
    LS_TRY(open_split(o, &split, dataset));
    LS_TRY(check_order(o, dataset));
    LS_TRY(open_skip(o, seed, dataset));
    LS_TRY(open_bad_records(o, dataset));
    LS_TRY(open_transform(o, seed, dataset));
    LS_TRY(shape_tensors(o, dataset));
    LS_TRY(ls_dataset_measure(dataset, o->error));
    dataset->shuffle = d->shuffle;
    dataset->shuffle_key = ls_random_key(seed, LS_RANDOM_SHUFFLE, NULL);
    dataset->last_batch = last_batch_of(o);
    dataset->prefetch = (int)d->prefetch;
    dataset->batch = d->batch_size;
    LS_TRY(open_buckets(o, dataset));
    LS_TRY(ls_dataset_take_ends(dataset, o->error));
    return d->cache ? join_cache(o, dataset) : 0;
}

int ls_dataset_open(const Lockstep__LayerParameter *layer, const struct ls_definition *definition,
                    Lockstep__Phase phase, uint64_t seed, const struct ls_dataset_wishes *wishes,
                    struct ls_dataset **dataset, struct ls_error *error)
{
    static const Lockstep__DataParameter nothing = LOCKSTEP__DATA_PARAMETER__INIT;
    *dataset = NULL;
    struct ls_dataset *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a data set");
    struct opening o = {.layer = layer,
                        .data = layer->data_param != NULL ? layer->data_param : &nothing,
                        .definition = definition,
                        .phase = phase,
                        .wishes = wishes,
                        .error = error};
    int status = open_all(&o, seed, made);
    ls_source_options_free(&o.options);
    if (status != 0) {
        ls_dataset_close(made);
        return status;
    }
    *dataset = made;
    return 0;
}

void ls_dataset_close(struct ls_dataset *dataset)
{
    if (dataset == NULL)
        return;
    ls_cache_leave(dataset->cache);
    ls_bad_records_free(dataset->bad);
    ls_oddities_free(dataset->oddities);
    ls_buckets_free(dataset->buckets);
    ls_source_close(dataset->source);
    ls_transform_free(&dataset->transform);
    ls_free(dataset->records);
    ls_free(dataset->name);
    ls_free(dataset);
}
