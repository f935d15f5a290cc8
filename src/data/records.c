/* Source RECORDS: NumPy's arrays, of which some have records of different lengths.
 *
 * x.npy alone has its records along axis 0. With x.offsets.npy beside it, n + 1 whole numbers that
 * begin with 0 and end with the extent of axis 0, record i is x[offsets[i]:offsets[i + 1]], a
 * sequence. Both are what numpy.save writes, so that two lines of Python make a tensor, files are
 * views, and a record is found without reading those before it.
 *
 * All sequences of a record are filled up to one number of steps. Their numbers become int32 or
 * fp32, exactly, because what fills them up (-1 for a label) need not be of the file's type.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/records_inner.h"

struct records_options {
    struct ls_option_files files;
    int lengths; /* of TokensParameter */
    int64_t window, bucket;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct records_options, files),
     .least = 1,
     .most = 2 * LS_RECORD_TENSORS,
     .help = "x.npy, and x.offsets.npy where its records differ in length; repeat it"},
    {.name = "records_param.lengths",
     .kind = LS_OPTION_CHOICE,
     .offset = offsetof(struct records_options, lengths),
     .help = "what is done where records are shorter than a window"},
    {.name = "records_param.window",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct records_options, window),
     .most = LS_RECORD_STEPS,
     .help = "steps of the longest record; 0: as many as that has"},
    {.name = "records_param.bucket",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct records_options, bucket),
     .most = LS_RECORD_STEPS,
     .help = "lengths BUCKET: records are filled up to a multiple of it"},
    {.name = NULL}};

enum {
    PAD = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PAD,
    BUCKET = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__BUCKET,
    PACK = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PACK
};

/* ---- Tensors --------------------------------------------------------------------------------- */

/* The longest sequence of a record. */
static int64_t longest_of(const struct ls_records *records, int64_t record)
{
    int64_t longest = 0;
    for (int i = 0; i < records->arrays.count; i++)
        if (records->arrays.item[i].ragged) {
            const int64_t steps = ls_records_steps(records, record, i);
            longest = steps > longest ? steps : longest;
        }
    return longest;
}

static struct ls_tensor_info *add_tensor(struct ls_source *source, enum ls_record_part part,
                                         int array, const char *name, enum ls_tensor_role role,
                                         enum ls_dtype type)
{
    struct ls_records *records = source->state;
    records->tensor[source->tensors] = (struct ls_records_tensor){.part = part, .array = array};
    struct ls_tensor_info *info = ls_source_add_tensor(source, name, role, type);
    if (role == LS_TENSOR_SEQUENCE)
        info->shape = (struct ls_shape){.rank = 1, .dim = {source->steps}};
    return info;
}

static enum ls_dtype widened(enum ls_dtype type)
{
    return ls_dtype_is_float(type) ? LS_F32 : LS_I32;
}

static void add_numbers(struct ls_source *source, int array)
{
    const struct ls_records *records = source->state;
    const struct ls_record_array *a = &records->arrays.item[array];
    if (!a->ragged) {
        add_tensor(source, LS_PART_NUMBERS, array, a->name, LS_TENSOR_PLAIN, a->type)->shape =
            a->sample;
        return;
    }
    struct ls_tensor_info *info =
        add_tensor(source, LS_PART_NUMBERS, array, a->name, LS_TENSOR_SEQUENCE, widened(a->type));
    info->shape.rank = a->sample.rank + 1;
    memcpy(info->shape.dim + 1, a->sample.dim, (size_t)a->sample.rank * sizeof *a->sample.dim);
}

/* First all arrays, then what follows from lengths: of each sequence, or of a window that several
 * records share. */
static int add_tensors(const struct ls_source_options *options, struct ls_source *source,
                       bool packed, struct ls_error *error)
{
    const struct ls_record_arrays *arrays = &((struct ls_records *)source->state)->arrays;
    int ragged = 0;
    for (int i = 0; i < arrays->count; i++)
        ragged += arrays->item[i].ragged;
    if (arrays->count + (packed ? 4 : 2 * ragged) > LS_RECORD_TENSORS)
        return ls_option_fail(options, "source", "the mask and the length of a sequence are two",
                              error, "a record can have at most %d tensors", LS_RECORD_TENSORS);
    for (int i = 0; i < arrays->count; i++)
        add_numbers(source, i);
    for (int i = 0; i < arrays->count && !packed; i++) {
        char name[sizeof arrays->item[i].name + 8];
        if (!arrays->item[i].ragged)
            continue;
        snprintf(name, sizeof name, "%s.mask", arrays->item[i].name);
        add_tensor(source, LS_PART_MASK, i, name, LS_TENSOR_SEQUENCE, LS_I32);
        snprintf(name, sizeof name, "%s.length", arrays->item[i].name);
        add_tensor(source, LS_PART_LENGTH, i, name, LS_TENSOR_PLAIN, LS_I32);
    }
    static const struct {
        enum ls_record_part part;
        const char *name;
    } of_windows[] = {{LS_PART_POSITION, "position"},
                      {LS_PART_SEGMENT, "segment"},
                      {LS_PART_CONT, "cont"},
                      {LS_PART_MASK, "mask"}};
    for (size_t i = 0; packed && i < sizeof of_windows / sizeof of_windows[0]; i++)
        add_tensor(source, of_windows[i].part, 0, of_windows[i].name, LS_TENSOR_SEQUENCE, LS_I32);
    return 0;
}

/* What the layer says to fill tensors up with. */
static int take_pads(const struct ls_source_options *options, struct ls_source *source,
                     struct ls_error *error)
{
    struct ls_records *records = source->state;
    const Lockstep__DataParameter *data = options->layer->data_param;
    for (size_t i = 0; i < data->n_tensor; i++) {
        const Lockstep__DataTensor *wish = data->tensor[i];
        for (int k = 0; wish->has_pad && k < source->tensors; k++) {
            struct ls_records_tensor *tensor = &records->tensor[k];
            if (wish->name != NULL ? strcmp(wish->name, source->tensor[k].name) != 0 : k != (int)i)
                continue;
            const bool integer = source->tensor[k].type == LS_I32;
            if (tensor->part != LS_PART_NUMBERS || source->tensor[k].role != LS_TENSOR_SEQUENCE)
                return ls_option_fail(options, "tensor", NULL, error,
                                      "pad is for sequences, and '%s' is none",
                                      source->tensor[k].name);
            if (integer && !(wish->pad >= -0x1p24F && wish->pad <= 0x1p24F &&
                             (float)(int32_t)wish->pad == wish->pad))
                return ls_option_fail(options, "tensor", NULL, error,
                                      "pad is %.9g; '%s' has whole numbers", (double)wish->pad,
                                      source->tensor[k].name);
            tensor->pad = wish->pad;
            records->stamp = ls_hash(&tensor->pad, sizeof tensor->pad, records->stamp + (size_t)k);
        }
    }
    return 0;
}

/* Where each tensor lies in a reader's buffer. */
static int place_tensors(struct ls_source *source, struct ls_error *error)
{
    struct ls_records *records = source->state;
    for (int k = 0; k < source->tensors; k++) {
        struct ls_shape shape = source->tensor[k].shape;
        struct ls_records_tensor *tensor = &records->tensor[k];
        if (source->tensor[k].role == LS_TENSOR_SEQUENCE)
            shape.dim[0] = records->window;
        if (!ls_shape_valid(&shape, false))
            return ls_fail(error, LOCKSTEP_DATA, records->arrays.item[tensor->array].path, NULL,
                           "has records of no numbers, or of too many");
        const size_t bytes = (size_t)ls_shape_size(&shape) * ls_dtype_size(source->tensor[k].type);
        tensor->step = bytes / (size_t)(records->window > 0 ? records->window : 1);
        tensor->place = records->bytes;
        records->bytes = ls_align(records->bytes + bytes);
        if (records->arrays.item[tensor->array].ragged)
            records->raw = bytes * 2 > records->raw ? bytes * 2 : records->raw;
    }
    ls_source_note_bytes(source, records->bytes + records->raw);
    return 0;
}

/* ---- Lengths --------------------------------------------------------------------------------- */

static int check_options(const struct ls_source_options *options, const struct ls_records *records,
                         struct ls_error *error)
{
    const struct records_options *own = options->own;
    const bool any = records->sequence >= 0;
    if (!any && (own->lengths != PAD || own->window != 0))
        return ls_option_fail(options,
                              own->window != 0 ? "records_param.window" : "records_param.lengths",
                              "source: \"x.offsets.npy\" says where records of x.npy begin", error,
                              "all records have one length");
    if (own->lengths == PACK && own->window == 0)
        return ls_option_fail(options, "records_param.lengths", "window: 256, for example", error,
                              "lengths: PACK needs a window");
    if ((own->lengths == BUCKET) != (own->bucket != 0))
        return ls_option_fail(options, "records_param.bucket",
                              "lengths: BUCKET bucket: 32 fills records up to a multiple of 32",
                              error, "lengths: BUCKET and bucket belong together");
    for (int i = 0; own->lengths == PACK && i < records->arrays.count; i++)
        if (!records->arrays.item[i].ragged)
            return ls_option_fail(options, "records_param.lengths", "use PAD or BUCKET", error,
                                  "lengths: PACK puts several records into one window, and '%s' "
                                  "has one number for each record, or a fixed shape",
                                  records->arrays.item[i].name);
    return 0;
}

static int64_t record_length(const void *user, size_t index)
{
    const struct ls_records *records = user;
    return ls_records_steps(records, (int64_t)index, records->sequence);
}

/* That the sequences of each record are of one length, and fit into a window. */
static int check_packed(const struct ls_records *records, int64_t count, struct ls_error *error)
{
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < records->arrays.count; k++) {
            const struct ls_record_array *array = &records->arrays.item[k];
            const int64_t steps = ls_records_steps(records, i, k),
                          first = ls_records_steps(records, i, 0);
            if (steps != first)
                return ls_fail(error, LOCKSTEP_DATA, array->path,
                               "lengths: PACK puts all tensors of a record side by side",
                               "record %" PRId64 " has %" PRId64 " steps, and %" PRId64 " in '%s'",
                               i, steps, first, records->arrays.item[0].path);
            if (steps > records->window)
                return ls_fail(
                    error, LOCKSTEP_DATA, array->path, "records_param { window } needs the longest",
                    "record %" PRId64 ": it has %" PRId64 " steps, and a window %" PRId64, i, steps,
                    records->window);
        }
    return 0;
}

static int pack(struct ls_source *source, struct ls_error *error)
{
    struct ls_records *records = source->state;
    if (source->count > UINT32_MAX)
        return ls_fail(error, LOCKSTEP_DATA, records->arrays.item[0].path, NULL,
                       "has more than 2^32 - 1 records");
    LS_TRY(check_packed(records, source->count, error));
    LS_TRY(ls_first_fit_make(record_length, records, (size_t)source->count, records->window,
                             &records->packing, error));
    source->count = records->packing.windows;
    return 0;
}

/* BUCKET: how many steps each record is filled up to. A longer one than a window is a bad record,
 * which is found when it is read. */
static int set_sizes(struct ls_source *source, int64_t bucket, struct ls_error *error)
{
    const struct ls_records *records = source->state;
    source->sizes = ls_alloc((size_t)source->count, sizeof *source->sizes);
    if (source->sizes == NULL)
        return ls_fail_memory(error, "the lengths of records");
    for (int64_t i = 0; i < source->count; i++) {
        const int64_t steps = longest_of(records, i);
        const int64_t full = steps > 0 ? (steps + bucket - 1) / bucket * bucket : bucket;
        source->sizes[i][0] = (int32_t)(full < records->window ? full : records->window);
        source->sizes[i][1] = 1;
        source->varies = source->varies || source->sizes[i][0] != source->sizes[0][0];
    }
    source->steps = source->sizes[0][0];
    return 0;
}

static int cut(const struct ls_source_options *options, struct ls_source *source,
               struct ls_error *error)
{
    const struct records_options *own = options->own;
    struct ls_records *records = source->state;
    records->window = own->window;
    for (int64_t i = 0; own->window == 0 && i < source->count; i++) {
        const int64_t steps = longest_of(records, i);
        records->window = steps > records->window ? steps : records->window;
    }
    if (records->window < 1 || records->window > LS_RECORD_STEPS)
        return ls_fail(error, LOCKSTEP_DATA, records->arrays.item[records->sequence].path, NULL,
                       "its longest record has %" PRId64 " steps; 1 to %d can be", records->window,
                       LS_RECORD_STEPS);
    source->steps = records->window;
    return own->lengths == PACK     ? pack(source, error)
           : own->lengths == BUCKET ? set_sizes(source, own->bucket, error)
                                    : 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_records(const struct ls_source_options *options, struct ls_source *source,
                        struct ls_error *error)
{
    const struct records_options *own = options->own;
    struct ls_records *records = source->state = ls_alloc(1, sizeof *records);
    if (records == NULL)
        return ls_fail_memory(error, "a data source");
    for (size_t i = 0; i < own->files.count; i++)
        records->stamp = ls_mix(records->stamp) + ls_file_stamp(own->files.item[i]);
    LS_TRY(ls_record_arrays_open(options, &own->files, &records->arrays, error));
    source->count = records->arrays.records;
    records->sequence = -1;
    for (int i = records->arrays.count; i-- > 0;)
        if (records->arrays.item[i].ragged)
            records->sequence = i;
    LS_TRY(check_options(options, records, error));
    if (source->count < 1)
        return 0; /* which ls_source_open refuses */
    if (records->sequence >= 0)
        LS_TRY(cut(options, source, error));
    LS_TRY(add_tensors(options, source, own->lengths == PACK, error));
    LS_TRY(take_pads(options, source, error));
    return place_tensors(source, error);
}

static void close_records(struct ls_source *source)
{
    struct ls_records *records = source->state;
    if (records == NULL)
        return;
    ls_record_arrays_close(&records->arrays);
    ls_first_fit_free(&records->packing);
    ls_free(records);
}

static uint64_t stamp_records(const struct ls_source *source)
{
    return ((const struct ls_records *)source->state)->stamp;
}

const struct ls_source_type ls_source_records = {
    .name = "RECORDS",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__RECORDS,
    .summary = "NumPy's arrays with records of different lengths; see records_param",
    .pads = true,
    .unconvertible = "Caffe's records are images with labels; RECORDS has arrays",
    .options = options_table,
    .options_size = sizeof(struct records_options),
    .open = open_records,
    .close = close_records,
    .read = ls_records_read,
    .stamp = stamp_records,
};
