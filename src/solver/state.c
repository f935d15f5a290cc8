/* What belongs to the state of a training, and its way from rank 0 to all. See solver/state.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/state.h"

#include "base/memory.h"
#include "schema/canonical.h"
#include "snapshot/weights.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

const struct ls_state_array ls_state_arrays[LS_STATE_ARRAYS] = {
    {"", LS_WEIGHTS},
    {LS_PREFIX_AVERAGE, LS_AVERAGE},
    {LS_PREFIX_STATE "history0.", LS_HISTORY_0},
    {LS_PREFIX_STATE "history1.", LS_HISTORY_1},
    {LS_PREFIX_STATE "rows.", LS_ROWS},
    {LS_PREFIX_STATE "columns.", LS_COLUMNS}};

bool ls_state_has(const struct ls_trainer *trainer, size_t parameter, enum ls_store_array array)
{
    const struct ls_parameter_state *slot = &trainer->store->slots[parameter];
    switch (array) {
    case LS_WEIGHTS:
        return true;
    case LS_HISTORY_0:
        return slot->history[0] != NULL;
    case LS_HISTORY_1:
        return slot->history[1] != NULL;
    case LS_AVERAGE:
        return slot->average != NULL;
    case LS_ROWS:
    case LS_COLUMNS:
        return slot->rows != NULL;
    case LS_STORE_ARRAYS:
        break;
    }
    return false;
}

/* Elements of the largest parameter. */
static size_t largest(const struct ls_trainer *trainer)
{
    size_t most = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        size_t size = (size_t)ls_shape_size(&trainer->parameters->items[i]->shape);
        most = size > most ? size : most;
    }
    return most;
}

/* One array. *status is how things went here before it, and after it. */
static int hand_out_array(struct ls_trainer *trainer, const struct ls_state_reader *reader,
                          size_t parameter, const struct ls_state_array *array, float *plain,
                          int *status, struct ls_error *error)
{
    const struct ls_shape shape =
        ls_store_array_shape(&trainer->parameters->items[parameter]->shape, array->array);
    const size_t size = (size_t)ls_shape_size(&shape);
    if (*status == 0 && trainer->comm->rank == 0)
        *status = reader->read(reader->user, parameter, array, plain, error);
    LS_TRY(ls_comm_agree(trainer->comm, *status, error));
    LS_TRY(ls_comm_broadcast(trainer->comm, plain, size * sizeof *plain, error));
    *status = ls_store_write(trainer->store, (int)parameter, array->array, plain, error);
    return 0;
}

int ls_state_hand_out(struct ls_trainer *trainer, const struct ls_state_reader *reader,
                      struct ls_error *error)
{
    size_t arrays = reader->fresh ? 2 : LS_STATE_ARRAYS;
    float *plain = ls_alloc_aligned(largest(trainer) * sizeof *plain);
    int status = plain == NULL ? ls_fail_memory(error, "a snapshot") : 0, agreed = 0;
    for (size_t a = 0; a < arrays; a++)
        for (size_t i = 0; i < trainer->parameters->count && agreed == 0; i++)
            if (ls_state_has(trainer, i, ls_state_arrays[a].array))
                agreed =
                    hand_out_array(trainer, reader, i, &ls_state_arrays[a], plain, &status, error);
    ls_free_aligned(plain);
    return agreed != 0 ? agreed : ls_comm_agree(trainer->comm, status, error);
}

int ls_state_definition(const struct ls_trainer *trainer, struct ls_text *text,
                        struct ls_error *error)
{
    return ls_definition_canonical(trainer->definition,
                                   (int32_t)trainer->train->batching.micro_batch, text, error);
}

void ls_state_note_piece(void *user)
{
    struct ls_trainer *trainer = user;
    ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
}
