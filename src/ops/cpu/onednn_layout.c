/* Tensors as oneDNN's memory descriptors, and the table of the layouts that oneDNN chose.
 *
 * Plain and channel-blocked layouts are known to everybody (ir/layout.h). Weights lie as a
 * primitive wants them, "OIhw16i16o" say: an opaque layout, which keeps the descriptor. Equal
 * descriptors get the same layout, so that layouts can be compared by their pointers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn_layout.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

struct interned {
    struct ls_layout layout; /* first, so that a layout leads back here */
    struct ls_tensor tensor;
    dnnl_memory_desc_t md;
    char name[64];
    struct interned *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct interned *table; /* guarded by table_lock; entries never change */

static dnnl_data_type_t data_type(enum ls_type type)
{
    return type == LS_I32 ? dnnl_s32 : dnnl_f32;
}

/* oneDNN computes offsets with 32-bit integers in places. */
static int check_size(const struct ls_tensor *tensor, struct ls_error *error)
{
    int64_t size = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (!ls_multiply(size, tensor->dim[i], &size) || size > INT32_MAX)
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL,
                           "a smaller micro_batch makes the tensors of a kernel smaller",
                           "a tensor of more than 2^31 elements is too large for one kernel");
    return 0;
}

static void plain_strides(const struct ls_tensor *tensor, dnnl_dims_t strides)
{
    if (tensor->transposed) {
        strides[0] = 1;
        strides[1] = tensor->dim[0];
        return;
    }
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= tensor->dim[i];
    }
}

static dnnl_format_tag_t blocked_tag(int block, int rank)
{
    static const dnnl_format_tag_t tags[2][3] = {{dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b},
                                                 {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b}};
    return rank < 3 || rank > 5 ? dnnl_format_tag_undef : tags[block == 16][rank - 3];
}

static bool same_dims(const struct ls_tensor *a, const struct ls_tensor *b)
{
    return a->rank == b->rank && a->transposed == b->transposed && a->grouped == b->grouped &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

int ls_onednn_describe(const struct ls_tensor *tensor, dnnl_memory_desc_t *md,
                       struct ls_error *error)
{
    LS_TRY(check_size(tensor, error));
    const struct ls_layout *layout = tensor->layout;
    dnnl_data_type_t type = data_type(tensor->type);
    dnnl_dims_t dims = {0};
    dnnl_status_t status;
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = i == 1 && tensor->widened > 0 ? tensor->widened : tensor->dim[i];
    if (layout == NULL) {
        status = dnnl_memory_desc_init_by_tag(md, tensor->rank, dims, type, dnnl_format_tag_any);
    } else if (layout->block == 1) {
        dnnl_dims_t strides;
        plain_strides(tensor, strides);
        status = dnnl_memory_desc_init_by_strides(md, tensor->rank, dims, type, strides);
    } else if (layout->block > 1) {
        status = dnnl_memory_desc_init_by_tag(md, tensor->rank, dims, type,
                                              blocked_tag(layout->block, tensor->rank));
    } else {
        const struct interned *own = layout->detail;
        *md = own->md;
        memcpy(md->dims, dims, sizeof dims);
        status = same_dims(&own->tensor, tensor) ? dnnl_success : dnnl_invalid_arguments;
    }
    if (status != dnnl_success)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "oneDNN cannot describe a tensor of rank %d in layout %s", tensor->rank,
                       layout != NULL ? layout->name : "any");
    return 0;
}

const struct ls_tensor *ls_layout_tensor(const struct ls_layout *layout)
{
    return &((const struct interned *)layout->detail)->tensor;
}

/* Strides of axes of length 1 mean nothing. */
static bool is_plain(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md)
{
    dnnl_dims_t strides = {0};
    plain_strides(tensor, strides);
    if (md->format_desc.blocking.inner_nblks != 0)
        return false;
    for (int i = 0; i < tensor->rank; i++)
        if (md->padded_dims[i] != md->dims[i] ||
            (md->dims[i] != 1 && md->format_desc.blocking.strides[i] != strides[i]))
            return false;
    return true;
}

static bool is_blocked(const dnnl_memory_desc_t *md, int axis)
{
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    for (int i = 0; i < blocking->inner_nblks; i++)
        if (blocking->inner_idxs[i] == axis)
            return true;
    return false;
}

/* Axes from the outermost to the innermost, capitals where inner blocks follow: "OIhw16i16o". */
static void name_layout(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md, char *name,
                        size_t size)
{
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    int spatial = tensor->rank - 2 - (tensor->grouped ? 1 : 0);
    char letters[LS_TENSOR_RANK_MAX + 1];
    snprintf(letters, sizeof letters, "%soi%s", tensor->grouped ? "g" : "", &"dhw"[3 - spatial]);
    bool used[LS_TENSOR_RANK_MAX] = {false};
    size_t length = 0;
    for (int place = 0; place < tensor->rank; place++) {
        int outer = -1;
        for (int i = 0; i < tensor->rank; i++)
            if (!used[i] && (outer < 0 || blocking->strides[i] > blocking->strides[outer]))
                outer = i;
        used[outer] = true;
        name[length++] = (char)(letters[outer] - (is_blocked(md, outer) ? 'a' - 'A' : 0));
    }
    name[length] = '\0';
    for (int i = 0; i < blocking->inner_nblks && length < size - 8; i++)
        length += (size_t)snprintf(name + length, size - length, "%d%c",
                                   (int)blocking->inner_blks[i], letters[blocking->inner_idxs[i]]);
}

static struct interned *find(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md)
{
    for (struct interned *own = table; own != NULL; own = own->next)
        if (same_dims(&own->tensor, tensor) && dnnl_memory_desc_equal(&own->md, md))
            return own;
    return NULL;
}

static struct interned *insert(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md)
{
    struct interned *own = ls_alloc(1, sizeof *own);
    if (own == NULL)
        return NULL;
    name_layout(tensor, md, own->name, sizeof own->name);
    own->md = *md;
    own->layout.name = own->name;
    own->layout.block = 0;
    own->layout.elements = dnnl_memory_desc_get_size(md) / sizeof(float);
    own->layout.detail = own;
    own->tensor = *tensor;
    own->tensor.widened = 0;
    own->tensor.layout = &own->layout;
    own->next = table;
    table = own;
    return own;
}

int ls_onednn_intern(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md,
                     const struct ls_layout **layout, struct ls_error *error)
{
    if (md->format_kind != dnnl_blocked || md->extra.flags != 0 || md->offset0 != 0)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "oneDNN chose a layout of weights that Lockstep does not know");
    if (tensor->widened == 0 && is_plain(tensor, md)) {
        *layout = &ls_layout_plain;
        return 0;
    }
    /* The lanes that widening added are padding of a block, or there is no way to leave them out.
     */
    dnnl_memory_desc_t narrow = *md;
    if (tensor->widened > 0 && !is_blocked(md, 1))
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "oneDNN does not block these weights");
    if (tensor->widened > 0)
        narrow.dims[1] = tensor->dim[1];
    pthread_mutex_lock(&table_lock);
    struct interned *own = find(tensor, &narrow);
    if (own == NULL)
        own = insert(tensor, &narrow);
    pthread_mutex_unlock(&table_lock);
    if (own == NULL)
        return ls_fail_memory(error, "a layout");
    *layout = &own->layout;
    return 0;
}
