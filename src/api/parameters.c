/* The public interface: parameters of trainers and models, and gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/model.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/copies.h"
#include "engine/store_views.h"
#include "solver/trainer.h"

_Static_assert((int)LOCKSTEP_AXES_MAX >= (int)LS_RANK_MAX, "all axes have room");

/* What both have. */

static const char *name_of(const struct ls_parameter_set *set, size_t index)
{
    return index < set->count ? set->items[index]->name : NULL;
}

static size_t size_of(const struct ls_parameter_set *set, size_t index)
{
    return index < set->count ? (size_t)ls_shape_size(&set->items[index]->shape) : 0;
}

static int shape_of(const struct ls_parameter_set *set, size_t index,
                    int64_t extent[LOCKSTEP_AXES_MAX])
{
    if (index >= set->count)
        return 0;
    const struct ls_shape *shape = &set->items[index]->shape;
    for (int i = 0; i < shape->rank; i++)
        extent[i] = shape->dim[i];
    return shape->rank;
}

static int check_parameter(const struct ls_parameter_set *set, size_t index, size_t size,
                           struct ls_error *error)
{
    if (index >= set->count)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "there is no parameter %zu", index);
    size_t elements = size_of(set, index);
    if (size != elements)
        return ls_fail(error, LOCKSTEP_USAGE, name_of(set, index), NULL,
                       "has %zu elements, not %zu", elements, size);
    return 0;
}

static int write_parameter(const struct ls_engine *engine, struct ls_store *store, size_t index,
                           const float *data, struct ls_error *error)
{
    LS_TRY(ls_store_write(store, (int)index, LS_WEIGHTS, data, error));
    ls_thread_pool_enter(engine->pool);
    int status = ls_store_refresh_views(store, engine->pool, error);
    ls_thread_pool_leave(engine->pool);
    return status;
}

/* ---- Trainers -------------------------------------------------------------------------------- */

size_t lockstep_trainer_parameter_count(const struct lockstep_trainer *trainer)
{
    return trainer->inner->parameters->count;
}

const char *lockstep_trainer_parameter_name(const struct lockstep_trainer *trainer, size_t index)
{
    return name_of(trainer->inner->parameters, index);
}

size_t lockstep_trainer_parameter_size(const struct lockstep_trainer *trainer, size_t index)
{
    return size_of(trainer->inner->parameters, index);
}

int lockstep_trainer_parameter_shape(const struct lockstep_trainer *trainer, size_t index,
                                     int64_t extent[LOCKSTEP_AXES_MAX])
{
    return shape_of(trainer->inner->parameters, index, extent);
}

int lockstep_trainer_read_parameter(const struct lockstep_trainer *trainer, size_t index,
                                    float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(trainer->card);
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check_parameter(trainer->inner->parameters, index, size, inner));
    return ls_copies_read(trainer->inner->engine, (int)index, LS_WEIGHTS, data, inner);
}

/* Numbers of one parameter, for all ranks. */
struct numbers {
    struct lockstep_trainer *trainer;
    size_t index;
    const float *source;  /* what all write */
    float *const *target; /* by rank: where it reads */
};

static int write_rank(void *user, int rank, struct ls_error *error)
{
    const struct numbers *numbers = user;
    struct ls_trainer *what = numbers->trainer->ranks[rank];
    int status = write_parameter(what->engine, what->store, numbers->index, numbers->source, error);
    what->snapshot_at = -1;
    return status;
}

int lockstep_trainer_write_parameter(struct lockstep_trainer *trainer, size_t index,
                                     const float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(trainer->card);
    struct ls_error *inner = ls_api_error(error);
    struct numbers numbers = {.trainer = trainer, .index = index, .source = data};
    LS_TRY(check_parameter(trainer->inner->parameters, index, size, inner));
    return ls_api_all_ranks(trainer, write_rank, &numbers, inner);
}

static int read_gradient_rank(void *user, int rank, struct ls_error *error)
{
    const struct numbers *numbers = user;
    const struct ls_engine *engine = numbers->trainer->ranks[rank]->engine;
    return ls_copies_read_gradient(engine, (int)numbers->index, numbers->target[rank], error);
}

int lockstep_trainer_read_gradient(const struct lockstep_trainer *trainer, size_t index,
                                   float *data, size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(trainer->card);
    struct ls_error *inner = ls_api_error(error);
    float *target[LS_RANK_THREADS_MAX] = {data};
    struct numbers numbers = {
        .trainer = (struct lockstep_trainer *)trainer, .index = index, .target = target};
    LS_TRY(check_parameter(trainer->inner->parameters, index, size, inner));
    const size_t others = (size_t)ls_rank_threads_size(trainer->threads) - 1;
    float *unused = ls_alloc(others * size + 1, sizeof *unused); /* ranks have it all */
    if (unused == NULL)
        return ls_fail_memory(inner, "a gradient");
    for (size_t r = 0; r < others; r++)
        target[r + 1] = unused + r * size;
    const int status = ls_api_all_ranks(numbers.trainer, read_gradient_rank, &numbers, inner);
    ls_free(unused);
    return status;
}

/* ---- Models ---------------------------------------------------------------------------------- */

size_t lockstep_model_parameter_count(const struct lockstep_model *model)
{
    return model->parameters->count;
}

const char *lockstep_model_parameter_name(const struct lockstep_model *model, size_t index)
{
    return name_of(model->parameters, index);
}

int lockstep_model_parameter_shape(const struct lockstep_model *model, size_t index,
                                   int64_t extent[LOCKSTEP_AXES_MAX])
{
    return shape_of(model->parameters, index, extent);
}

int lockstep_model_read_parameter(const struct lockstep_model *model, size_t index, float *data,
                                  size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check_parameter(model->parameters, index, size, inner));
    return ls_copies_read(model->engine, (int)index, LS_WEIGHTS, data, inner);
}

int lockstep_model_write_parameter(struct lockstep_model *model, size_t index, const float *data,
                                   size_t size, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check_parameter(model->parameters, index, size, inner));
    return write_parameter(model->engine, model->store, index, data, inner);
}
