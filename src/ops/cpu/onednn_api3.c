/* oneDNN 3.x: descriptors of memory are the library's own, primitives are described in one step.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn_api.h"

#if DNNL_VERSION_MAJOR == 3

#include "base/memory.h"

struct ls_md {
    dnnl_memory_desc_t md;
};

/* Takes over `md` if it was made. */
static dnnl_status_t keep(struct ls_md **result, dnnl_status_t status, dnnl_memory_desc_t md)
{
    *result = NULL;
    if (status != dnnl_success)
        return status;
    *result = ls_alloc(1, sizeof **result);
    if (*result == NULL) {
        dnnl_memory_desc_destroy(md);
        return dnnl_out_of_memory;
    }
    (*result)->md = md;
    return dnnl_success;
}

dnnl_status_t ls_md_strided(struct ls_md **md, int rank, const dnnl_dims_t dims,
                            dnnl_data_type_t type, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t own = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_strides(&own, rank, dims, type, strides);
    return keep(md, status, own);
}

dnnl_status_t ls_md_tagged(struct ls_md **md, int rank, const dnnl_dims_t dims,
                           dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t own = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&own, rank, dims, type, tag);
    return keep(md, status, own);
}

static dnnl_status_t clone(struct ls_md **md, const_dnnl_memory_desc_t original)
{
    dnnl_memory_desc_t own = NULL;
    dnnl_status_t status = dnnl_memory_desc_clone(&own, original);
    return keep(md, status, own);
}

dnnl_status_t ls_md_copy(struct ls_md **md, const struct ls_md *original)
{
    return clone(md, original->md);
}

dnnl_status_t ls_md_of(struct ls_md **md, const_dnnl_primitive_desc_t description,
                       dnnl_query_t what, int index)
{
    const_dnnl_memory_desc_t own = dnnl_primitive_desc_query_md(description, what, index);
    *md = NULL;
    return own != NULL ? clone(md, own) : dnnl_invalid_arguments;
}

void ls_md_free(struct ls_md *md)
{
    if (md != NULL)
        dnnl_memory_desc_destroy(md->md);
    ls_free(md);
}

bool ls_md_equal(const struct ls_md *a, const struct ls_md *b)
{
    return dnnl_memory_desc_equal(a->md, b->md) != 0;
}

size_t ls_md_bytes(const struct ls_md *md)
{
    return dnnl_memory_desc_get_size(md->md);
}

static bool query(const struct ls_md *md, dnnl_query_t what, void *result)
{
    return dnnl_memory_desc_query(md->md, what, result) == dnnl_success;
}

/* What is packed in a way of its own beside strides and blocks (compensations, say) cannot be asked
 * for; who reads a form compares the descriptor with one that has the form and nothing else. */
void ls_md_form(const struct ls_md *md, struct ls_form *form)
{
    dnnl_format_kind_t kind;
    dnnl_dim_t offset = 0, *list[5] = {NULL};
    *form = (struct ls_form){0};
    if (!query(md, dnnl_query_format_kind, &kind) || kind != dnnl_blocked ||
        !query(md, dnnl_query_submemory_offset_s64, &offset) || offset != 0 ||
        !query(md, dnnl_query_ndims_s32, &form->rank) || !query(md, dnnl_query_dims, &list[0]) ||
        !query(md, dnnl_query_padded_dims, &list[1]) || !query(md, dnnl_query_strides, &list[2]) ||
        !query(md, dnnl_query_inner_nblks_s32, &form->blocks) ||
        form->blocks > LS_FORM_BLOCKS_MAX ||
        (form->blocks > 0 && (!query(md, dnnl_query_inner_blks, &list[3]) ||
                              !query(md, dnnl_query_inner_idxs, &list[4]))))
        return;
    form->blocked = true;
    for (int i = 0; i < form->rank; i++) {
        form->dim[i] = list[0][i];
        form->padded[i] = list[1][i];
        form->stride[i] = list[2][i];
    }
    for (int i = 0; i < form->blocks; i++) {
        form->block[i] = list[3][i];
        form->axis[i] = (int)list[4][i];
    }
}

dnnl_status_t ls_md_memory(const struct ls_md *md, dnnl_engine_t engine, dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, md->md, engine, DNNL_MEMORY_NONE);
}

static const_dnnl_memory_desc_t slot(const struct ls_request *request, enum ls_tensor_slot which)
{
    return request->md[which] != NULL ? request->md[which]->md : NULL;
}

static dnnl_status_t describe_convolution(const struct ls_request *r,
                                          dnnl_primitive_desc_t *description)
{
    const_dnnl_memory_desc_t x = slot(r, LS_SOURCE), w = slot(r, LS_WEIGHTS);
    const_dnnl_memory_desc_t b = slot(r, LS_BIAS), y = slot(r, LS_TARGET);
    switch (r->pass) {
    case LS_PASS_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(
            description, r->engine, dnnl_forward_training, r->algorithm, x, w, b, y, r->stride,
            r->dilation, r->pad, r->pad, r->attributes);
    case LS_PASS_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            description, r->engine, r->algorithm, x, w, y, r->stride, r->dilation, r->pad, r->pad,
            r->forward, r->attributes);
    default:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            description, r->engine, r->algorithm, x, w, b, y, r->stride, r->dilation, r->pad,
            r->pad, r->forward, r->attributes);
    }
}

static dnnl_status_t describe_inner_product(const struct ls_request *r,
                                            dnnl_primitive_desc_t *description)
{
    const_dnnl_memory_desc_t x = slot(r, LS_SOURCE), w = slot(r, LS_WEIGHTS);
    const_dnnl_memory_desc_t b = slot(r, LS_BIAS), y = slot(r, LS_TARGET);
    switch (r->pass) {
    case LS_PASS_FORWARD:
        return dnnl_inner_product_forward_primitive_desc_create(
            description, r->engine, dnnl_forward_training, x, w, b, y, r->attributes);
    case LS_PASS_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(description, r->engine, x, w,
                                                                      y, r->forward, r->attributes);
    default:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            description, r->engine, x, w, b, y, r->forward, r->attributes);
    }
}

dnnl_status_t ls_request_describe(const struct ls_request *request,
                                  dnnl_primitive_desc_t *description)
{
    switch (request->kind) {
    case LS_PRIMITIVE_REORDER:
        return dnnl_reorder_primitive_desc_create(description, slot(request, LS_SOURCE),
                                                  request->engine, slot(request, LS_TARGET),
                                                  request->engine, request->attributes);
    case LS_PRIMITIVE_CONVOLUTION:
        return describe_convolution(request, description);
    default:
        return describe_inner_product(request, description);
    }
}

dnnl_status_t ls_post_ops_relu(dnnl_post_ops_t post_ops, float slope)
{
    return dnnl_post_ops_append_eltwise(post_ops, dnnl_eltwise_relu, slope, 0.0f);
}

#endif
