/* The public interface: blobs of the train net, and gradients without an update.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/blobs.h"

#include "api/api.h"
#include "base/thread.h"
#include "solver/trainer.h"

int lockstep_trainer_gradients(struct lockstep_trainer *trainer, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(trainer->card);
    return ls_trainer_gradients(trainer->inner, ls_api_error(error));
}

size_t lockstep_trainer_blob_count(const struct lockstep_trainer *trainer)
{
    return ls_blobs_count(trainer->inner->blobs);
}

const char *lockstep_trainer_blob_name(const struct lockstep_trainer *trainer, size_t index)
{
    const struct ls_blob *blob = ls_blobs_at(trainer->inner->blobs, index);
    return blob != NULL ? blob->name : NULL;
}

int lockstep_trainer_blob_shape(const struct lockstep_trainer *trainer, size_t index,
                                int64_t extent[LOCKSTEP_AXES_MAX])
{
    const struct ls_blob *blob = ls_blobs_at(trainer->inner->blobs, index);
    for (int i = 0; blob != NULL && i < blob->shape.rank; i++)
        extent[i] = blob->shape.dim[i];
    return blob != NULL ? blob->shape.rank : 0;
}

int lockstep_trainer_blob_has_gradient(const struct lockstep_trainer *trainer, size_t index)
{
    const struct ls_blob *blob = ls_blobs_at(trainer->inner->blobs, index);
    return blob != NULL && blob->kept[1] >= 0;
}

int lockstep_trainer_read_blob(const struct lockstep_trainer *trainer, size_t index, int gradient,
                               float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(trainer->card);
    struct ls_error *inner = ls_api_error(error);
    const struct ls_blob *blob = ls_blobs_at(trainer->inner->blobs, index);
    if (blob == NULL)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "set `blobs` in the options of the trainer",
                       "there is no blob %zu", index);
    const size_t elements = (size_t)ls_shape_size(&blob->shape);
    if (size != elements)
        return ls_fail(inner, LOCKSTEP_USAGE, blob->name, NULL, "has %zu elements, not %zu",
                       elements, size);
    return ls_blobs_read(trainer->inner->blobs, index, gradient != 0, data, inner);
}
