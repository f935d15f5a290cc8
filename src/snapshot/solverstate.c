/* Caffe's solver states. See snapshot/solverstate.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/solverstate.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hdf5_arrays.h"
#include "base/hdf5_write.h"
#include "base/memory.h"
#include "base/wire.h"
#include "snapshot/blob_output.h"
#include "snapshot/weights_build.h"

/* Field numbers of Caffe's schema. */
enum { STATE_ITER = 1, STATE_LEARNED_NET = 2, STATE_HISTORY = 3, STATE_CURRENT_STEP = 4 };

enum { HISTORY_MAX = 20000 }; /* blobs: more are an attack */

static const char group[] = "/history";

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);
    return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

bool ls_solverstate_named(const char *path)
{
    return ends_with(path, ".solverstate") || ends_with(path, ".solverstate.h5");
}

void ls_solverstate_free(struct ls_solverstate *state)
{
    ls_weights_free(&state->history);
    ls_free(state->learned_net);
    *state = (struct ls_solverstate){0};
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Makes room for the next blob of the history. */
static int add_entry(struct ls_solverstate *state, struct ls_error *error)
{
    char name[32];
    if (state->history.layer_count == HISTORY_MAX)
        return ls_fail(error, LOCKSTEP_WEIGHTS, state->history.path, NULL,
                       "has more than %d blobs of history", HISTORY_MAX);
    snprintf(name, sizeof name, "%zu", state->history.layer_count);
    char *copy = ls_copy_string(name);
    return copy == NULL ? ls_fail_memory(error, state->history.path)
                        : ls_weights_add_layer(&state->history, copy, error);
}

static int fail_damaged(const struct ls_solverstate *state, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_WEIGHTS, state->history.path,
                   "the file is damaged, or was cut off", "is no solver state of Caffe's");
}

static int parse(struct ls_solverstate *state, const struct ls_mapping *file,
                 struct ls_error *error)
{
    struct ls_wire message = ls_wire_open(file->data, file->size);
    struct ls_wire_field field;
    bool has_iteration = false;
    while (ls_wire_next(&message, &field)) {
        bool text = field.number == STATE_LEARNED_NET || field.number == STATE_HISTORY;
        bool known = field.number >= STATE_ITER && field.number <= STATE_CURRENT_STEP;
        if (!known)
            continue;
        if (field.type != (text ? LS_WIRE_BYTES : LS_WIRE_VARINT))
            return fail_damaged(state, error);
        if (field.number == STATE_HISTORY) {
            LS_TRY(add_entry(state, error));
            LS_TRY(ls_caffemodel_add_blob(&state->history, 0, &field, error));
        } else if (field.number == STATE_LEARNED_NET) {
            if (field.size == 0 || memchr(field.bytes, '\0', field.size) != NULL)
                return fail_damaged(state, error);
            ls_free(state->learned_net);
            state->learned_net = ls_copy_bytes((const char *)field.bytes, field.size);
            if (state->learned_net == NULL)
                return ls_fail_memory(error, state->history.path);
        } else if (field.number == STATE_ITER) {
            state->iteration = (int64_t)field.value;
            has_iteration = true;
        } else {
            state->current_step = (int64_t)field.value;
        }
    }
    return message.damaged || !has_iteration ? fail_damaged(state, error) : 0;
}

/* Blob `index` of an HDF5 file's history. */
static int take_array(struct ls_solverstate *state, struct ls_hdf5 *file, size_t index,
                      struct ls_error *error)
{
    char path[64];
    struct ls_hdf5_shape found;
    struct ls_shape shape = {0};
    struct ls_weight_blob *blob;
    snprintf(path, sizeof path, "%s/%zu", group, index);
    LS_TRY(ls_hdf5_shape(file, path, &found, error));
    for (int i = 0; i < found.rank && i < LS_RANK_MAX; i++)
        shape.dim[i] = found.dim[i];
    shape.rank = found.rank;
    if (found.rank > LS_RANK_MAX || !ls_shape_valid(&shape, true))
        return ls_fail(error, LOCKSTEP_WEIGHTS, state->history.path, NULL,
                       "blob %zu of the history has an impossible shape", index);
    LS_TRY(add_entry(state, error));
    LS_TRY(ls_weights_add_blob(&state->history, &state->history.layers[index], 0, &shape, &blob,
                               error));
    LS_TRY(ls_weights_make_copy(&state->history, blob, error));
    return found.count > 0 ? ls_hdf5_read(file, path, blob->copy, error) : 0;
}

static int take_hdf5(struct ls_solverstate *state, struct ls_hdf5 *file, struct ls_error *error)
{
    struct ls_hdf5_names names;
    LS_TRY(ls_hdf5_read_integer(file, "/iter", &state->iteration, error));
    LS_TRY(ls_hdf5_read_integer(file, "/current_step", &state->current_step, error));
    if (ls_hdf5_kind(file, "/learned_net") != LS_HDF5_ABSENT)
        LS_TRY(ls_hdf5_read_string(file, "/learned_net", &state->learned_net, error));
    LS_TRY(ls_hdf5_list(file, group, &names, error));
    size_t count = names.count;
    ls_hdf5_names_free(&names);
    for (size_t i = 0; i < count; i++)
        LS_TRY(take_array(state, file, i, error));
    return 0;
}

static int read_content(const char *path, struct ls_solverstate *state, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(path, LOCKSTEP_WEIGHTS, &file, error));
    int status;
    if (ls_hdf5_begins(file.data, file.size)) {
        struct ls_hdf5 *hdf5;
        status = ls_hdf5_open(path, LOCKSTEP_WEIGHTS, &hdf5, error);
        if (status == 0)
            status = take_hdf5(state, hdf5, error);
        ls_hdf5_close(hdf5);
    } else {
        status = parse(state, &file, error);
    }
    if (status == 0)
        status = ls_file_lost(&file, path, LOCKSTEP_WEIGHTS, error);
    ls_file_unmap(&file);
    if (status == 0 && (state->iteration < 0 || state->iteration > INT32_MAX))
        status = ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL, "is of iteration %lld",
                         (long long)state->iteration);
    return status;
}

int ls_solverstate_read(const char *path, struct ls_solverstate *state, struct ls_error *error)
{
    *state = (struct ls_solverstate){.history = {.path = ls_copy_string(path)}};
    int status = state->history.path == NULL ? ls_fail_memory(error, path)
                                             : read_content(path, state, error);
    if (status != 0)
        ls_solverstate_free(state);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_number(struct ls_text *text, uint32_t number, int64_t value)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_VARINT);
    ls_wire_add_varint(text, (uint64_t)value);
}

static int put_state(struct ls_blob_output *output, const void *user)
{
    const struct ls_solverstate_draft *draft = user;
    struct ls_text head = {0}, tail = {0};
    add_number(&head, STATE_ITER, draft->iteration);
    ls_wire_add_bytes(&head, STATE_LEARNED_NET, draft->learned_net, strlen(draft->learned_net));
    LS_TRY(ls_blob_output_text(output, &head));
    for (size_t i = 0; i < draft->count; i++)
        LS_TRY(ls_blob_output_blob(output, STATE_HISTORY, &draft->history[i]));
    add_number(&tail, STATE_CURRENT_STEP, draft->current_step);
    return ls_blob_output_text(output, &tail);
}

static int fill_hdf5(struct ls_hdf5 *file, const struct ls_solverstate_draft *draft,
                     struct ls_error *error)
{
    char path[64];
    LS_TRY(ls_hdf5_add_integer(file, "/iter", (int32_t)draft->iteration, error));
    LS_TRY(ls_hdf5_add_string(file, "/learned_net", draft->learned_net, error));
    LS_TRY(ls_hdf5_add_integer(file, "/current_step", (int32_t)draft->current_step, error));
    LS_TRY(ls_hdf5_add_group(file, group, error));
    for (size_t i = 0; i < draft->count; i++) {
        const struct ls_caffemodel_blob *blob = &draft->history[i];
        snprintf(path, sizeof path, "%s/%zu", group, i);
        LS_TRY(
            ls_hdf5_add_floats(file, path, blob->shape.rank, blob->shape.dim, blob->data, error));
    }
    return 0;
}

int ls_solverstate_write(const char *path, const struct ls_solverstate_draft *draft,
                         struct ls_error *error)
{
    if (!ls_caffemodel_is_hdf5(path))
        return ls_blob_output_write(path, "solver state", put_state, draft, error);
    struct ls_hdf5 *file;
    LS_TRY(ls_hdf5_create(path, &file, error));
    int status = fill_hdf5(file, draft, error);
    if (status == 0)
        return ls_hdf5_commit(file, error);
    ls_hdf5_abandon(file);
    return status;
}
