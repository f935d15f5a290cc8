/* Between the files onednn*.c: what oneDNN 2.x and 3.x have different functions and types for.
 *
 * onednn_api2.c and onednn_api3.c implement this for one of them each; the headers that are there
 * when Lockstep is compiled decide which. No other file asks for the version.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ONEDNN_API_H
#define LS_OPS_CPU_ONEDNN_API_H

#include <dnnl.h>

#include "ops/cpu/onednn.h"

enum { LS_FORM_BLOCKS_MAX = 12 };

/* ---- Descriptors of memory ---- */

struct ls_md;

/* Make *md; NULL after a failure: dnnl_out_of_memory, or that there is no such descriptor. */
dnnl_status_t ls_md_strided(struct ls_md **md, int rank, const dnnl_dims_t dims,
                            dnnl_data_type_t type, const dnnl_dims_t strides);
dnnl_status_t ls_md_tagged(struct ls_md **md, int rank, const dnnl_dims_t dims,
                           dnnl_data_type_t type, dnnl_format_tag_t tag);
dnnl_status_t ls_md_copy(struct ls_md **md, const struct ls_md *original);
/* What a primitive wants or gives: `what` is one of dnnl_query_..._md. */
dnnl_status_t ls_md_of(struct ls_md **md, const_dnnl_primitive_desc_t description,
                       dnnl_query_t what, int index);
void ls_md_free(struct ls_md *md); /* NULL: nothing */

bool ls_md_equal(const struct ls_md *a, const struct ls_md *b);
size_t ls_md_bytes(const struct ls_md *md);

/* How elements lie: axes by strides, and within an element of these, blocks. */
struct ls_form {
    bool blocked; /* false: something that strides and blocks do not tell; nothing else is set */
    int rank, blocks;
    dnnl_dims_t dim, padded, stride;
    int64_t block[LS_FORM_BLOCKS_MAX]; /* from the outermost to the innermost */
    int axis[LS_FORM_BLOCKS_MAX];      /* which one a block is cut from */
};
void ls_md_form(const struct ls_md *md, struct ls_form *form);

/* Memory without bytes of its own. */
dnnl_status_t ls_md_memory(const struct ls_md *md, dnnl_engine_t engine, dnnl_memory_t *memory);

/* ---- Descriptions of primitives ---- */

struct ls_request {
    enum ls_primitive_kind kind;
    enum ls_onednn_pass pass;
    struct ls_md *const *md; /* by slot; NULL: absent */
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t forward; /* for a backward pass */
    /* Convolutions: */
    dnnl_alg_kind_t algorithm;
    dnnl_dims_t stride, dilation, pad;
};

dnnl_status_t ls_request_describe(const struct ls_request *request,
                                  dnnl_primitive_desc_t *description);
/* y > 0 ? y : slope y behind the primitive. */
dnnl_status_t ls_post_ops_relu(dnnl_post_ops_t post_ops, float slope);

#endif
