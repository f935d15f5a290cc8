/* Tensors as oneDNN's memory descriptors, and the table of the layouts that oneDNN chose.
 *
 * Plain and channel-blocked layouts are common to all modules (ir/layout.h). Weights lie as a
 * primitive wants them, "OIhw16i16o" say: an opaque layout, which keeps the format tag. Descriptors
 * that no tag describes (compensations, transformed weights) are refused. Equal descriptors get the
 * same layout, so that layouts can be compared by their pointers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn_layout.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

struct interned {
    struct ls_layout layout; /* first, so that a layout leads back here */
    struct ls_onednn_tensor tensor;
    dnnl_format_tag_t tag;
    char name[64];
    struct interned *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct interned *table; /* guarded by table_lock; entries never change */

static dnnl_data_type_t data_type(enum ls_dtype type)
{
    return type == LS_I32 ? dnnl_s32 : dnnl_f32;
}

/* oneDNN computes offsets with 32-bit integers in places. */
static int check_size(const struct ls_onednn_tensor *tensor, struct ls_error *error)
{
    int64_t size = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (!ls_multiply(size, tensor->dim[i], &size) || size > INT32_MAX)
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL,
                           "a smaller micro_batch makes the tensors of a kernel smaller",
                           "a tensor of more than 2^31 elements is too large for one kernel");
    return 0;
}

static void plain_strides(const struct ls_onednn_tensor *tensor, dnnl_dims_t strides)
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

static bool same_dims(const struct ls_onednn_tensor *a, const struct ls_onednn_tensor *b)
{
    return a->rank == b->rank && a->transposed == b->transposed && a->grouped == b->grouped &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

static dnnl_status_t make_md(struct ls_md **md, const struct ls_onednn_tensor *tensor)
{
    const struct ls_layout *layout = tensor->layout;
    const struct interned *own = layout != NULL ? layout->detail : NULL;
    dnnl_data_type_t type = data_type(tensor->type);
    dnnl_dims_t dims = {0}, strides = {0};
    dnnl_format_tag_t tag = dnnl_format_tag_any;
    *md = NULL;
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = i == 1 && tensor->widened > 0 ? tensor->widened : tensor->dim[i];
    if (layout != NULL && layout->block == 1) {
        plain_strides(tensor, strides);
        return ls_md_strided(md, tensor->rank, dims, type, strides);
    }
    if (own != NULL && !same_dims(&own->tensor, tensor))
        return dnnl_invalid_arguments;
    if (own != NULL)
        tag = own->tag;
    else if (layout != NULL)
        tag = blocked_tag(layout->block, tensor->rank);
    return ls_md_tagged(md, tensor->rank, dims, type, tag);
}

int ls_onednn_describe(const struct ls_onednn_tensor *tensor, struct ls_md **md,
                       struct ls_error *error)
{
    LS_TRY(check_size(tensor, error));
    dnnl_status_t status = make_md(md, tensor);
    if (status == dnnl_out_of_memory)
        return ls_fail_memory(error, "a tensor's description");
    if (status != dnnl_success)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "oneDNN cannot describe a tensor of rank %d in layout %s", tensor->rank,
                       tensor->layout != NULL ? tensor->layout->name : "any");
    return 0;
}

const struct ls_onednn_tensor *ls_layout_tensor(const struct ls_layout *layout)
{
    return &((const struct interned *)layout->detail)->tensor;
}

/* Strides of axes of length 1 mean nothing. */
static bool is_plain(const struct ls_onednn_tensor *tensor, const struct ls_form *form)
{
    dnnl_dims_t strides = {0};
    plain_strides(tensor, strides);
    if (form->blocks != 0)
        return false;
    for (int i = 0; i < tensor->rank; i++)
        if (form->padded[i] != form->dim[i] || (form->dim[i] != 1 && form->stride[i] != strides[i]))
            return false;
    return true;
}

static bool is_blocked(const struct ls_form *form, int axis)
{
    for (int i = 0; i < form->blocks; i++)
        if (form->axis[i] == axis)
            return true;
    return false;
}

/* Axes from the outermost to the innermost, capitals where inner blocks follow: "OIhw16i16o". */
static void name_layout(const struct ls_onednn_tensor *tensor, const struct ls_form *form,
                        char *name, size_t size)
{
    int spatial = tensor->rank - 2 - (tensor->grouped ? 1 : 0);
    char letters[LS_TENSOR_RANK_MAX + 1];
    snprintf(letters, sizeof letters, "%soi%s", tensor->grouped ? "g" : "", &"dhw"[3 - spatial]);
    bool used[LS_TENSOR_RANK_MAX] = {false};
    size_t length = 0;
    for (int place = 0; place < tensor->rank; place++) {
        int outer = -1;
        for (int i = 0; i < tensor->rank; i++)
            if (!used[i] && (outer < 0 || form->stride[i] > form->stride[outer]))
                outer = i;
        used[outer] = true;
        name[length++] = (char)(letters[outer] - (is_blocked(form, outer) ? 'a' - 'A' : 0));
    }
    name[length] = '\0';
    for (int i = 0; i < form->blocks && length < size - 8; i++)
        length += (size_t)snprintf(name + length, size - length, "%d%c", (int)form->block[i],
                                   letters[form->axis[i]]);
}

/* Equal with all strides: oneDNN takes descriptors that differ in strides of axes of length 1 for
 * equal, but its kernels do not. */
static bool is_same(const struct ls_md *a, const struct ls_md *b)
{
    struct ls_form x, y;
    if (!ls_md_equal(a, b))
        return false;
    ls_md_form(a, &x);
    ls_md_form(b, &y);
    return x.blocked && y.blocked &&
           memcmp(x.stride, y.stride, (size_t)x.rank * sizeof x.stride[0]) == 0;
}

static int fail_unknown(struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "oneDNN chose a layout of weights that Lockstep does not know");
}

/* Whether `tag` gives `md`, which has `form`. */
static dnnl_status_t try_tag(const struct ls_md *md, const struct ls_form *form,
                             dnnl_format_tag_t tag, bool *same)
{
    struct ls_md *like;
    dnnl_status_t status = ls_md_tagged(&like, form->rank, form->dim, dnnl_f32, tag);
    *same = status == dnnl_success && is_same(like, md);
    ls_md_free(like);
    return status == dnnl_out_of_memory ? status : dnnl_success;
}

/* The tag that gives `md`; dnnl_format_tag_undef where none does. */
static dnnl_status_t find_tag(const struct ls_md *md, const struct ls_form *form,
                              dnnl_format_tag_t *tag)
{
    for (int i = dnnl_format_tag_any + 1; i < (int)dnnl_format_tag_last; i++) {
        bool same;
        dnnl_status_t status = try_tag(md, form, (dnnl_format_tag_t)i, &same);
        *tag = (dnnl_format_tag_t)i;
        if (status != dnnl_success || same)
            return status;
    }
    *tag = dnnl_format_tag_undef;
    return dnnl_success;
}

/* An entry for a tensor that lies as `tag` says; NULL: memory is short. */
static struct interned *new_interned(const struct ls_onednn_tensor *tensor, dnnl_format_tag_t tag)
{
    struct interned *own = ls_alloc(1, sizeof *own);
    struct ls_md *md = NULL;
    struct ls_form form;
    dnnl_dims_t dims = {0};
    memcpy(dims, tensor->dim, (size_t)tensor->rank * sizeof dims[0]);
    if (own == NULL || ls_md_tagged(&md, tensor->rank, dims, dnnl_f32, tag) != dnnl_success) {
        ls_free(own);
        return NULL;
    }
    ls_md_form(md, &form);
    name_layout(tensor, &form, own->name, sizeof own->name);
    own->layout.name = own->name;
    own->layout.elements = ls_md_bytes(md) / sizeof(float);
    own->layout.detail = own;
    own->tag = tag;
    own->tensor = *tensor;
    own->tensor.widened = 0;
    own->tensor.layout = &own->layout;
    ls_md_free(md);
    return own;
}

/* The entry of a tensor that lies in `md`; *found is NULL where there is none. The lock is held. */
static dnnl_status_t find(const struct ls_onednn_tensor *tensor, const struct ls_md *md,
                          const struct ls_form *form, struct interned **found)
{
    for (*found = table; *found != NULL; *found = (*found)->next) {
        bool same;
        if (!same_dims(&(*found)->tensor, tensor))
            continue;
        dnnl_status_t status = try_tag(md, form, (*found)->tag, &same);
        if (status != dnnl_success || same)
            return status;
    }
    return dnnl_success;
}

/* The lock is held. */
static int find_or_add(const struct ls_onednn_tensor *tensor, const struct ls_md *md,
                       const struct ls_form *form, const struct ls_layout **layout,
                       struct ls_error *error)
{
    struct interned *own;
    dnnl_format_tag_t tag = dnnl_format_tag_undef;
    dnnl_status_t status = find(tensor, md, form, &own);
    if (status == dnnl_success && own == NULL) {
        status = find_tag(md, form, &tag);
        if (status == dnnl_success && tag == dnnl_format_tag_undef)
            return fail_unknown(error);
        own = status == dnnl_success ? new_interned(tensor, tag) : NULL;
        if (own != NULL) {
            own->next = table;
            table = own;
        }
    }
    if (status != dnnl_success || own == NULL)
        return ls_fail_memory(error, "a layout");
    *layout = &own->layout;
    return 0;
}

int ls_onednn_intern(const struct ls_onednn_tensor *tensor, const struct ls_md *md,
                     const struct ls_layout **layout, struct ls_error *error)
{
    struct ls_form form;
    ls_md_form(md, &form);
    if (form.blocked && tensor->widened == 0 && is_plain(tensor, &form)) {
        *layout = &ls_layout_plain;
        return 0;
    }
    /* The lanes that widening added must be padding of a block, or there is no way to leave them
     * out. */
    if (!form.blocked || (tensor->widened > 0 && !is_blocked(&form, 1)))
        return fail_unknown(error);
    pthread_mutex_lock(&table_lock);
    int status = find_or_add(tensor, md, &form, layout, error);
    pthread_mutex_unlock(&table_lock);
    return status;
}

int ls_layout_of_filters(const struct ls_onednn_tensor *tensor, int block, bool outputs_last,
                         const struct ls_layout **layout, struct ls_error *error)
{
    static const dnnl_format_tag_t tags[2][2] = {{dnnl_OIdhw8o8i, dnnl_OIdhw8i8o},
                                                 {dnnl_OIdhw16o16i, dnnl_OIdhw16i16o}};
    struct ls_md *md;
    dnnl_dims_t dims = {0};
    memcpy(dims, tensor->dim, (size_t)tensor->rank * sizeof dims[0]);
    LS_TRY(check_size(tensor, error));
    if (ls_md_tagged(&md, tensor->rank, dims, dnnl_f32, tags[block == 16][outputs_last]) !=
        dnnl_success)
        return ls_fail_memory(error, "a tensor's description");
    int status = ls_onednn_intern(tensor, md, layout, error);
    ls_md_free(md);
    return status;
}

int ls_onednn_channels_last(const struct ls_shape *weights, const struct ls_layout **layout,
                            struct ls_error *error)
{
    static const dnnl_format_tag_t tags[3] = {dnnl_acb, dnnl_acdb, dnnl_acdeb};
    struct ls_onednn_tensor tensor = {.rank = weights->rank};
    struct ls_md *md;
    dnnl_dims_t dims = {0};
    if (weights->rank < 3 || weights->rank > 5) /* windows have 1 to 3 axes */
        return fail_unknown(error);
    for (int i = 0; i < weights->rank; i++)
        dims[i] = tensor.dim[i] = weights->dim[i];
    LS_TRY(check_size(&tensor, error));
    if (ls_md_tagged(&md, tensor.rank, dims, dnnl_f32, tags[weights->rank - 3]) != dnnl_success)
        return ls_fail_memory(error, "a tensor's description");
    int status = ls_onednn_intern(&tensor, md, layout, error);
    ls_md_free(md);
    return status;
}
