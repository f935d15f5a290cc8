/* Data sets: from a Data layer's parameters to a source with its split, order and transformation.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/dataset_inner.h"

/* Synthetic samples of the test phase begin this far behind those of the train phase. */
static const uint64_t TEST_OFFSET = UINT64_C(1) << 40;
enum { PATHS_MAX = 4096 };

/* What opening needs to know, in one place. */
struct opening {
    const Lockstep__LayerParameter *layer;
    const Lockstep__DataParameter *data;
    const struct ls_definition *definition;
    Lockstep__Phase phase;
    bool forgiving;
    const struct ls_source_type *type;
    char *path[PATHS_MAX]; /* resolved */
    size_t paths;
    char *label_path, *root_folder;
    char place[LS_PLACE_MAX];
    struct ls_error *error;
};

static int bad_field(const struct opening *o, const void *message, const char *field,
                     const char *hint, const char *what)
{
    char place[LS_PLACE_MAX];
    ls_place(o->definition, message, field, place, sizeof place);
    return ls_fail(o->error, LOCKSTEP_DEFINITION, place, hint, "layer '%.100s': %s",
                   o->layer->name != NULL ? o->layer->name : "", what);
}

/* ---- Fields that do not fit the backend are refused, not ignored ---- */

static int check_fit(const struct opening *o)
{
    const Lockstep__DataParameter *d = o->data;
    const struct {
        bool given;
        const struct ls_source_type *type, *other; /* which have it */
        const char *field;
    } field[] = {
        {d->label_source != NULL, &ls_source_idx, &ls_source_pairs, "label_source"},
        {d->root_folder != NULL && d->root_folder[0] != '\0', &ls_source_images, &ls_source_pairs,
         "root_folder"},
        {d->new_height != 0, &ls_source_images, &ls_source_pairs, "new_height"},
        {d->new_width != 0, &ls_source_images, &ls_source_pairs, "new_width"},
        {d->has_is_color, &ls_source_images, &ls_source_pairs, "is_color"},
        {d->has_label_clip, &ls_source_pairs, NULL, "label_clip"},
        {d->has_label_pad, &ls_source_pairs, NULL, "label_pad"},
        {d->synthetic_param != NULL, &ls_source_synthetic, NULL, "synthetic_param"},
        {d->force_encoded_color, &ls_source_lmdb, NULL, "force_encoded_color"},
    };
    int status = 0;
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
        char what[120];
        if (!field[i].given || field[i].type == o->type || field[i].other == o->type)
            continue;
        bool two = field[i].other != NULL;
        snprintf(what, sizeof what, "%s is for %s%s%s", field[i].field, field[i].type->name,
                 two ? " and " : "", two ? field[i].other->name : "");
        status = bad_field(o, d, field[i].field, NULL, what);
    }
    const Lockstep__TransformationParameter *t = o->layer->transform_param;
    bool forced = t != NULL && (t->force_color || t->force_gray);
    bool pictures = o->type == &ls_source_images || o->type == &ls_source_pairs;
    if (forced && o->type != &ls_source_lmdb)
        status = bad_field(o, t, t->force_color ? "force_color" : "force_gray",
                           pictures ? "use is_color" : NULL,
                           "force_color and force_gray are for encoded records of LMDB");
    if (d->rand_skip != 0)
        status = bad_field(o, d, "rand_skip", "use shuffle: true", "rand_skip is not supported");
    if (d->new_height > 65536 || d->new_width > 65536)
        status = bad_field(o, d, "new_height", NULL, "new_height or new_width is too large");
    if (d->has_cache_mb && !d->cache)
        status = bad_field(o, d, "cache_mb", "cache: true", "cache_mb is for cache: true");
    if (d->label_pad > 65535)
        status = bad_field(o, d, "label_pad", NULL, "label_pad is larger than 65535");
    return status;
}

static int find_type(struct opening *o)
{
    const char *hint = "backend: LMDB, IDX, CIFAR, IMAGES, IMAGE_PAIRS or SYNTHETIC";
    if (o->layer->data_param == NULL)
        return bad_field(o, o->layer, NULL, "data_param { source: ... backend: ... }",
                         "a Data layer needs data_param");
    o->type = ls_source_type_of((int)o->data->backend);
    if (o->type == NULL)
        return bad_field(o, o->data, "backend", hint,
                         o->data->has_backend ? "this backend is not supported"
                                              : "no backend is given, and Caffe's default, "
                                                "LEVELDB, is not supported");
    return check_fit(o);
}

/* ---- Paths ---- */

/* The index-th path of a field. What is not there is reported where it was named, which tells more
 * than where it is not. */
static int resolve(struct opening *o, const char *field, size_t index, const char *path, char **out)
{
    char place[LS_PLACE_MAX];
    *out = ls_resolve_path(path, o->definition->file);
    if (*out == NULL)
        return ls_fail_memory(o->error, "a path");
    /* How many sources there may be is for the type to say. */
    bool wrong_number =
        o->type == &ls_source_synthetic || (o->data->n_source != 1 && o->type != &ls_source_cifar);
    if (wrong_number || ls_file_exists(*out))
        return 0;
    ls_place_index(o->definition, o->data, field, index, place, sizeof place);
    return ls_fail(o->error, LOCKSTEP_DATA, place,
                   "a path is tried from the working directory, then from the definition's folder",
                   "layer '%.100s': there is no file or folder '%s'",
                   o->layer->name != NULL ? o->layer->name : "", path);
}

static int resolve_paths(struct opening *o)
{
    const Lockstep__DataParameter *d = o->data;
    int status = 0;
    if (d->n_source > PATHS_MAX)
        return bad_field(o, d, "source", NULL, "there are too many sources");
    for (; o->paths < d->n_source; o->paths++) {
        if (d->source[o->paths][0] == '\0')
            return bad_field(o, d, "source", NULL, "source is empty");
        int found = resolve(o, "source", o->paths, d->source[o->paths], &o->path[o->paths]);
        status = status != 0 ? status : found;
    }
    if (d->label_source != NULL) {
        int found = resolve(o, "label_source", 0, d->label_source, &o->label_path);
        status = status != 0 ? status : found;
    }
    if (d->root_folder != NULL && d->root_folder[0] != '\0') {
        int found = resolve(o, "root_folder", 0, d->root_folder, &o->root_folder);
        status = status != 0 ? status : found;
    }
    return status;
}

static void free_paths(struct opening *o)
{
    for (size_t i = 0; i < o->paths; i++)
        ls_free(o->path[i]);
    ls_free(o->label_path);
    ls_free(o->root_folder);
}

/* ---- Source, split, transformation ---- */

/* To look for bad records is to find them, not to skip them. */
static bool skips(const struct opening *o)
{
    return !o->forgiving && o->data->on_bad_record == LOCKSTEP__DATA_PARAMETER__BAD_RECORD__SKIP;
}

static struct ls_source_options source_options(const struct opening *o)
{
    const Lockstep__DataParameter *d = o->data;
    const Lockstep__TransformationParameter *t = o->layer->transform_param;
    static const Lockstep__SyntheticParameter plain = LOCKSTEP__SYNTHETIC_PARAMETER__INIT;
    const Lockstep__SyntheticParameter *s =
        d->synthetic_param != NULL ? d->synthetic_param : &plain;
    int64_t crop = t == NULL ? 0 : (int64_t)t->crop_size - 2 * (int64_t)t->pad;
    return (struct ls_source_options){
        .path = (const char *const *)o->path,
        .path_count = o->paths,
        .label_path = o->label_path,
        .root_folder = o->root_folder,
        .height = (int)d->new_height,
        .width = (int)d->new_width,
        .gray = !d->is_color,
        .label_clip = d->label_clip,
        .force_color = d->force_encoded_color || (t != NULL && t->force_color),
        .force_gray = t != NULL && t->force_gray,
        .crop = t == NULL || t->crop_size == 0 ? 0
                : crop < 1                     ? 1
                                               : (int)crop,
        .synthetic_first = s->first + (o->phase == LOCKSTEP__PHASE__TEST ? TEST_OFFSET : 0),
        .synthetic_seed = s->seed,
        .synthetic_count = s->count,
        .synthetic_shape = {s->channels, s->height, s->width},
        .synthetic_noise = (double)s->noise,
        .place = o->place,
        .forgiving = o->forgiving,
        .skipping = skips(o),
    };
}

/* Not even the head of a record makes sense: says what is wrong with the first. */
static int none_is_good(const struct opening *o, const struct ls_dataset *dataset)
{
    struct ls_source_reader *reader;
    struct ls_record record;
    LS_TRY(ls_source_reader_open(dataset->source, &reader, o->error));
    (void)ls_source_read(reader, 0, true, &record, o->error);
    ls_source_reader_close(reader);
    return ls_fail(o->error, LOCKSTEP_DATA, dataset->name, NULL,
                   "none of its %" PRId64 " records is good", dataset->source->count);
}

static int open_source(const struct opening *o, struct ls_dataset *dataset)
{
    struct ls_source_options options = source_options(o);
    LS_TRY(ls_source_open(o->type, &options, &dataset->source, o->error));
    if (dataset->source->forgiving && dataset->source->shape[0] == 0)
        return none_is_good(o, dataset);
    if (o->layer->n_top >= 2 && !dataset->source->has_labels)
        return bad_field(o, o->data, "source", "give label_source, or leave the second top out",
                         "the layer has a top for labels, and the source has none");
    return 0;
}

static int open_split(const struct opening *o, struct ls_dataset *dataset)
{
    char place[LS_PLACE_MAX];
    struct ls_split split;
    ls_place(o->definition, o->data, "split", place, sizeof place);
    LS_TRY(ls_split_parse(o->data->split, place, &split, o->error));
    dataset->size = dataset->source->count;
    if (split.all)
        return 0;
    uint32_t kept;
    dataset->records = ls_split_records(&split, (uint32_t)dataset->source->count, &kept);
    if (dataset->records == NULL)
        return ls_fail_memory(o->error, "the records of a split");
    if (kept == 0)
        return ls_fail(o->error, LOCKSTEP_DATA, place, NULL,
                       "layer '%.100s': split \"%.100s\" has none of the %" PRId64 " records",
                       o->layer->name != NULL ? o->layer->name : "", o->data->split,
                       dataset->source->count);
    dataset->size = kept;
    return 0;
}

static int open_bad_records(const struct opening *o, struct ls_dataset *dataset)
{
    if (!skips(o))
        return 0;
    LS_TRY(ls_bad_records_open(dataset, &dataset->bad, o->error));
    dataset->bad->takes_labels = o->layer->n_top >= 2;
    return ls_bad_records_look(dataset, source_options(o).crop > 0, o->error);
}

static int open_transform(const struct opening *o, uint64_t seed, bool augment,
                          struct ls_dataset *dataset)
{
    struct ls_transform_options options = {
        .param = o->layer->transform_param,
        .definition = o->definition,
        .layer = o->layer->name != NULL ? o->layer->name : "",
        .seed = seed,
        .augment = augment && o->phase == LOCKSTEP__PHASE__TRAIN,
        .varies = dataset->source->varies,
        .label_pad = o->data->label_pad,
    };
    memcpy(options.record, dataset->source->shape, sizeof options.record);
    return ls_transform_open(&options, &dataset->transform, o->error);
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

static void add_path(struct ls_text *key, const char *name, const char *path)
{
    char *real = path != NULL ? realpath(path, NULL) : NULL; /* one file has many names */
    ls_text_format(key, "%s=%s\n", name, real != NULL ? real : path != NULL ? path : "");
    free(real);
}

/* Everything that decides what the records of a source are, as text. */
static void describe_records(const struct opening *o, const struct ls_dataset *dataset,
                             struct ls_text *key)
{
    const struct ls_source_options s = source_options(o);
    const struct ls_source *source = dataset->source;
    uint64_t sizes = source->sizes == NULL
                         ? 0
                         : ls_hash(source->sizes, (size_t)source->count * sizeof *source->sizes, 0);
    ls_text_format(key, "%s %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", source->type->name,
                   dataset->ends[0], dataset->ends[1], sizes, source->labels_hash);
    /* Files that were written to since another data set opened them are other files. */
    ls_text_format(key, "stamp %" PRIx64 "\n",
                   source->type->stamp != NULL ? source->type->stamp(source) : 0);
    for (size_t i = 0; i < o->paths; i++)
        add_path(key, "source", o->path[i]);
    add_path(key, "labels", o->label_path);
    add_path(key, "root", o->root_folder);
    ls_text_format(key, "%d x %d, gray %d, clip %u, force %d %d, crop %d\n", s.height, s.width,
                   s.gray, (unsigned)s.label_clip, s.force_color, s.force_gray, s.crop);
    if (o->type == &ls_source_synthetic) /* the rest of it is what other sources ignore */
        ls_text_format(key, "first %" PRIu64 ", seed %" PRIu64 ", noise %a,", s.synthetic_first,
                       s.synthetic_seed, s.synthetic_noise);
    for (int i = 0; i < 3; i++)
        ls_text_format(key, " %" PRId64, source->shape[i]);
}

static int join_cache(struct opening *o, struct ls_dataset *dataset, bool floats)
{
    struct ls_text key = {0};
    describe_records(o, dataset, &key);
    struct ls_cache_options options = {.source = dataset->source,
                                       .key = key.data,
                                       .floats = floats,
                                       .limit = (size_t)o->data->cache_mb << 20,
                                       .records = dataset->records,
                                       .count = dataset->size};
    int status = key.failed ? ls_fail_memory(o->error, "the cache of a data set")
                            : ls_cache_join(&options, &dataset->cache, o->error);
    ls_text_free(&key);
    return status;
}

static int open_all(struct opening *o, uint64_t seed, bool augment, struct ls_dataset *dataset)
{
    const Lockstep__DataParameter *d = o->data;
    LS_TRY(find_type(o));
    LS_TRY(resolve_paths(o));
    dataset->name = ls_copy_string(o->paths > 0 ? o->path[0] : o->type->name);
    if (dataset->name == NULL)
        return ls_fail_memory(o->error, "a data set");
    LS_TRY(open_source(o, dataset));
    LS_TRY(open_split(o, dataset));
    LS_TRY(open_bad_records(o, dataset));
    LS_TRY(open_transform(o, seed, augment, dataset));
    LS_TRY(ls_dataset_measure(dataset, o->error));
    dataset->shuffle = d->shuffle;
    dataset->shuffle_key = ls_random_key(seed, LS_RANDOM_SHUFFLE, NULL);
    dataset->last_batch = last_batch_of(o);
    dataset->prefetch = d->prefetch < 1 ? 1 : d->prefetch > 1024 ? 1024 : (int)d->prefetch;
    bool floats = false;
    LS_TRY(ls_dataset_take_ends(dataset, &floats, o->error));
    return d->cache ? join_cache(o, dataset, floats) : 0;
}

static int open_dataset(const Lockstep__LayerParameter *layer,
                        const struct ls_definition *definition, Lockstep__Phase phase,
                        uint64_t seed, bool augment, bool forgiving, struct ls_dataset **dataset,
                        struct ls_error *error)
{
    static const Lockstep__DataParameter nothing = LOCKSTEP__DATA_PARAMETER__INIT;
    *dataset = NULL;
    struct ls_dataset *made = ls_alloc(1, sizeof *made);
    struct opening *o = ls_alloc(1, sizeof *o);
    if (made == NULL || o == NULL) {
        ls_free(made);
        ls_free(o);
        return ls_fail_memory(error, "a data set");
    }
    o->layer = layer;
    o->data = layer->data_param != NULL ? layer->data_param : &nothing;
    o->definition = definition;
    o->phase = phase;
    o->forgiving = forgiving;
    o->error = error;
    ls_place(definition, layer->data_param != NULL ? (const void *)layer->data_param : layer, NULL,
             o->place, sizeof o->place);
    int status = open_all(o, seed, augment, made);
    free_paths(o);
    ls_free(o);
    if (status != 0) {
        ls_dataset_close(made);
        return status;
    }
    *dataset = made;
    return 0;
}

int ls_dataset_open(const Lockstep__LayerParameter *layer, const struct ls_definition *definition,
                    Lockstep__Phase phase, uint64_t seed, bool augment, struct ls_dataset **dataset,
                    struct ls_error *error)
{
    return open_dataset(layer, definition, phase, seed, augment, false, dataset, error);
}

int ls_dataset_open_forgiving(const Lockstep__LayerParameter *layer,
                              const struct ls_definition *definition, Lockstep__Phase phase,
                              uint64_t seed, struct ls_dataset **dataset, struct ls_error *error)
{
    return open_dataset(layer, definition, phase, seed, false, true, dataset, error);
}

void ls_dataset_close(struct ls_dataset *dataset)
{
    if (dataset == NULL)
        return;
    ls_cache_leave(dataset->cache);
    ls_bad_records_free(dataset->bad);
    ls_source_close(dataset->source);
    ls_transform_free(&dataset->transform);
    ls_free(dataset->records);
    ls_free(dataset->name);
    ls_free(dataset);
}

/* ---- What is known about a data set ---- */

const struct ls_cache *ls_dataset_cache(const struct ls_dataset *dataset)
{
    return dataset->cache;
}

int64_t ls_dataset_size(const struct ls_dataset *dataset)
{
    return dataset->size;
}

bool ls_dataset_has_maps(const struct ls_dataset *dataset)
{
    return dataset->source->has_maps;
}

enum ls_last_batch ls_dataset_last_batch(const struct ls_dataset *dataset)
{
    return dataset->last_batch;
}

int ls_dataset_classes(const struct ls_dataset *dataset)
{
    return dataset->source->class_count;
}

const char *ls_dataset_class_name(const struct ls_dataset *dataset, int index)
{
    if (index < 0 || index >= dataset->source->class_count)
        return NULL;
    return dataset->source->class_name[index];
}

int64_t ls_dataset_largest_label(const struct ls_dataset *dataset)
{
    return dataset->source->has_labels ? dataset->source->largest_label : -1;
}

int ls_dataset_prefetch(const struct ls_dataset *dataset)
{
    return dataset->prefetch;
}

bool ls_dataset_encoded(const struct ls_dataset *dataset)
{
    return dataset->source->encoded;
}

size_t ls_dataset_decode_bytes(const struct ls_dataset *dataset)
{
    return dataset->source->decode_bytes;
}

const char *ls_dataset_name(const struct ls_dataset *dataset)
{
    return dataset->name;
}

int64_t ls_dataset_records(const struct ls_dataset *dataset)
{
    return dataset->source->count;
}

void ls_dataset_name_record(const struct ls_dataset *dataset, int64_t record, struct ls_text *text)
{
    const struct ls_source_type *type = dataset->source->type;
    ls_text_format(text, "record %" PRId64, record);
    size_t plain = text->length;
    if (type->name_record == NULL)
        return;
    ls_text_add(text, " (");
    type->name_record(dataset->source, record, text);
    if (text->length == plain + 2 && !text->failed)
        text->data[text->length = plain] = '\0'; /* it has no name */
    else
        ls_text_add(text, ")");
}

uint64_t ls_dataset_reads(const struct ls_dataset *dataset)
{
    return atomic_load_explicit(&dataset->reads, memory_order_relaxed);
}
