/* oneDNN 2.x: descriptors of memory are structs, primitives are described in two steps.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/onednn_api.h"

#if DNNL_VERSION_MAJOR == 2

#include "base/memory.h"

struct ls_md {
    dnnl_memory_desc_t md;
};

static dnnl_status_t keep(struct ls_md **result, dnnl_status_t status, const dnnl_memory_desc_t *md)
{
    *result = NULL;
    if (status != dnnl_success)
        return status;
    *result = ls_alloc(1, sizeof **result);
    if (*result == NULL)
        return dnnl_out_of_memory;
    (*result)->md = *md;
    return dnnl_success;
}

dnnl_status_t ls_md_strided(struct ls_md **md, int rank, const dnnl_dims_t dims,
                            dnnl_data_type_t type, const dnnl_dims_t strides)
{
    dnnl_memory_desc_t own;
    return keep(md, dnnl_memory_desc_init_by_strides(&own, rank, dims, type, strides), &own);
}

dnnl_status_t ls_md_tagged(struct ls_md **md, int rank, const dnnl_dims_t dims,
                           dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t own;
    return keep(md, dnnl_memory_desc_init_by_tag(&own, rank, dims, type, tag), &own);
}

dnnl_status_t ls_md_copy(struct ls_md **md, const struct ls_md *original)
{
    return keep(md, dnnl_success, &original->md);
}

dnnl_status_t ls_md_of(struct ls_md **md, const_dnnl_primitive_desc_t description,
                       dnnl_query_t what, int index)
{
    const dnnl_memory_desc_t *own = dnnl_primitive_desc_query_md(description, what, index);
    return keep(md, own != NULL ? dnnl_success : dnnl_invalid_arguments, own);
}

void ls_md_free(struct ls_md *md)
{
    ls_free(md);
}

bool ls_md_equal(const struct ls_md *a, const struct ls_md *b)
{
    return dnnl_memory_desc_equal(&a->md, &b->md) != 0;
}

size_t ls_md_bytes(const struct ls_md *md)
{
    return dnnl_memory_desc_get_size(&md->md);
}

void ls_md_form(const struct ls_md *md, struct ls_form *form)
{
    const dnnl_memory_desc_t *own = &md->md;
    const dnnl_blocking_desc_t *blocking = &own->format_desc.blocking;
    *form = (struct ls_form){0};
    if (own->format_kind != dnnl_blocked || own->extra.flags != 0 || own->offset0 != 0)
        return;
    form->blocked = true;
    form->rank = own->ndims;
    form->blocks = blocking->inner_nblks;
    for (int i = 0; i < own->ndims; i++) {
        form->dim[i] = own->dims[i];
        form->padded[i] = own->padded_dims[i];
        form->stride[i] = blocking->strides[i];
    }
    for (int i = 0; i < form->blocks && i < LS_FORM_BLOCKS_MAX; i++) {
        form->block[i] = blocking->inner_blks[i];
        form->axis[i] = (int)blocking->inner_idxs[i];
    }
}

dnnl_status_t ls_md_memory(const struct ls_md *md, dnnl_engine_t engine, dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, &md->md, engine, DNNL_MEMORY_NONE);
}

static const dnnl_memory_desc_t *slot(const struct ls_request *request, enum ls_tensor_slot which)
{
    return request->md[which] != NULL ? &request->md[which]->md : NULL;
}

static dnnl_status_t start_convolution(const struct ls_request *r, dnnl_convolution_desc_t *desc)
{
    const dnnl_memory_desc_t *x = slot(r, LS_SOURCE), *w = slot(r, LS_WEIGHTS);
    const dnnl_memory_desc_t *b = slot(r, LS_BIAS), *y = slot(r, LS_TARGET);
    switch (r->pass) {
    case LS_PASS_FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(desc, dnnl_forward_training, r->algorithm,
                                                          x, w, b, y, r->stride, r->dilation,
                                                          r->pad, r->pad);
    case LS_PASS_DATA:
        return dnnl_dilated_convolution_backward_data_desc_init(
            desc, r->algorithm, x, w, y, r->stride, r->dilation, r->pad, r->pad);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            desc, r->algorithm, x, w, b, y, r->stride, r->dilation, r->pad, r->pad);
    }
}

static dnnl_status_t start_inner_product(const struct ls_request *r,
                                         dnnl_inner_product_desc_t *desc)
{
    const dnnl_memory_desc_t *x = slot(r, LS_SOURCE), *w = slot(r, LS_WEIGHTS);
    const dnnl_memory_desc_t *b = slot(r, LS_BIAS), *y = slot(r, LS_TARGET);
    switch (r->pass) {
    case LS_PASS_FORWARD:
        return dnnl_inner_product_forward_desc_init(desc, dnnl_forward_training, x, w, b, y);
    case LS_PASS_DATA:
        return dnnl_inner_product_backward_data_desc_init(desc, x, w, y);
    default:
        return dnnl_inner_product_backward_weights_desc_init(desc, x, w, b, y);
    }
}

dnnl_status_t ls_request_describe(const struct ls_request *request,
                                  dnnl_primitive_desc_t *description)
{
    dnnl_convolution_desc_t convolution;
    dnnl_inner_product_desc_t inner_product;
    bool windows = request->kind == LS_PRIMITIVE_CONVOLUTION;
    if (request->kind == LS_PRIMITIVE_REORDER)
        return dnnl_reorder_primitive_desc_create(description, slot(request, LS_SOURCE),
                                                  request->engine, slot(request, LS_TARGET),
                                                  request->engine, request->attributes);
    dnnl_status_t status = windows ? start_convolution(request, &convolution)
                                   : start_inner_product(request, &inner_product);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(description,
                                      windows ? (const_dnnl_op_desc_t)&convolution : &inner_product,
                                      request->attributes, request->engine, request->forward);
}

dnnl_status_t ls_post_ops_relu(dnnl_post_ops_t post_ops, float slope)
{
    return dnnl_post_ops_append_eltwise(post_ops, 1.0f, dnnl_eltwise_relu, slope, 0.0f);
}

#endif
