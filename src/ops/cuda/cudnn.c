/* See ops/cuda/cudnn.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cudnn.h"

#include "base/text.h"
#include "ir/layer.h"
#include "ops/cuda/card.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

static bool is_out_of_memory(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

int ls_cudnn_check(cudnnStatus_t status, const struct ls_op *op, const char *what,
                   struct ls_error *error)
{
    char more[256] = "";
    int card = -1;
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    cudnnGetLastErrorString(more, sizeof more);
    (void)cudaGetDevice(&card);
    (void)cudaGetLastError(); /* else the next launch would be blamed */
    const struct ls_layer *layer = op->layer;
    return ls_fail(
        error, is_out_of_memory(status) ? LOCKSTEP_RESOURCE : LOCKSTEP_INTERNAL, NULL,
        is_out_of_memory(status) ? "a smaller micro_batch, or --memory, needs less" : NULL,
        "card %d could not %s %s%s%s%s: cuDNN: %s%s%s", card, what, ls_op_kind_name(op->kind),
        layer != NULL ? " of layer '" : "", layer != NULL ? layer->name : "",
        layer != NULL ? "'" : "", cudnnGetErrorString(status), more[0] != '\0' ? ": " : "", more);
}

/* ---- Handles --------------------------------------------------------------------------------- */

/* A pass that this thread records does not forbid what a new handle allocates. */
static cudnnStatus_t make_handle(cudnnHandle_t *handle)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        return CUDNN_STATUS_EXECUTION_FAILED_CUDART;
    const cudnnStatus_t status = cudnnCreate(handle);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return status;
}

int ls_cudnn_handle(const struct ls_op *op, cudnnHandle_t *handle, struct ls_error *error)
{
    void **place = ls_card_own_library(error);
    *handle = NULL;
    if (place == NULL)
        return LOCKSTEP_RESOURCE;
    if (*place == NULL) {
        LS_TRY(ls_cudnn_check(make_handle(handle), op, "begin to use cuDNN for", error));
        *place = *handle;
    }
    *handle = *place;
    return 0;
}

/* The stream that it worked in last may be gone. */
static void end_handle(void *handle, cudaStream_t stream)
{
    (void)cudnnSetStream(handle, stream);
    (void)cudnnDestroy(handle);
}

void (*const ls_card_end_library)(void *, cudaStream_t) = end_handle;

void ls_cudnn_describe(struct ls_text *text)
{
    ls_text_format(text, "cudnn=%zu\n", cudnnGetVersion());
}
