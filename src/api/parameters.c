/* The public interface: a trainer's parameters and their gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "engine/copies.h"
#include "engine/store_views.h"
#include "solver/trainer.h"

_Static_assert((int)LOCKSTEP_AXES_MAX >= (int)LS_RANK_MAX, "all axes have room");

size_t lockstep_trainer_parameter_count(const struct lockstep_trainer *trainer)
{
    return trainer->inner->parameters->count;
}

const char *lockstep_trainer_parameter_name(const struct lockstep_trainer *trainer, size_t index)
{
    const struct ls_parameter_set *set = trainer->inner->parameters;
    return index < set->count ? set->items[index]->name : NULL;
}

size_t lockstep_trainer_parameter_size(const struct lockstep_trainer *trainer, size_t index)
{
    const struct ls_parameter_set *set = trainer->inner->parameters;
    return index < set->count ? (size_t)ls_shape_size(&set->items[index]->shape) : 0;
}

int lockstep_trainer_parameter_shape(const struct lockstep_trainer *trainer, size_t index,
                                     int64_t extent[LOCKSTEP_AXES_MAX])
{
    const struct ls_parameter_set *set = trainer->inner->parameters;
    if (index >= set->count)
        return 0;
    const struct ls_shape *shape = &set->items[index]->shape;
    for (int i = 0; i < shape->rank; i++)
        extent[i] = shape->dim[i];
    return shape->rank;
}

static int check_parameter(const struct lockstep_trainer *trainer, size_t index, size_t size,
                           struct ls_error *error)
{
    if (index >= trainer->inner->parameters->count)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "there is no parameter %zu", index);
    size_t elements = lockstep_trainer_parameter_size(trainer, index);
    if (size != elements)
        return ls_fail(error, LOCKSTEP_USAGE, lockstep_trainer_parameter_name(trainer, index), NULL,
                       "has %zu elements, not %zu", elements, size);
    return 0;
}

int lockstep_trainer_read_parameter(const struct lockstep_trainer *trainer, size_t index,
                                    float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check_parameter(trainer, index, size, inner));
    return ls_copies_read(trainer->inner->engine, (int)index, LS_WEIGHTS, data, inner);
}

int lockstep_trainer_write_parameter(struct lockstep_trainer *trainer, size_t index,
                                     const float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_trainer *what = trainer->inner;
    LS_TRY(check_parameter(trainer, index, size, inner));
    LS_TRY(ls_store_write(what->store, (int)index, LS_WEIGHTS, data, inner));
    ls_thread_pool_enter(what->engine->pool);
    int status = ls_store_refresh_views(what->store, what->engine->pool, inner);
    ls_thread_pool_leave(what->engine->pool);
    what->snapshot_at = -1;
    return status;
}

int lockstep_trainer_read_gradient(const struct lockstep_trainer *trainer, size_t index,
                                   float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check_parameter(trainer, index, size, inner));
    return ls_copies_read_gradient(trainer->inner->engine, (int)index, data, inner);
}
