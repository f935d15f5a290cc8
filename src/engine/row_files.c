/* Files that a test writes rows to. See engine/row_files.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/row_files.h"

#include <string.h>

#include "base/hdf5_write.h"
#include "base/memory.h"
#include "engine/sample_states.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum { CAFFE_AXES = 4 }; /* of every data set that Caffe writes, unless it has more */

static const struct ls_graph *row_files_graph(const struct ls_row_files *files)
{
    return ls_net_graph(files->pass->net);
}

void ls_row_files_begin(struct ls_row_files *files, const struct ls_pass *pass,
                        struct ls_error *error)
{
    *files = (struct ls_row_files){.pass = pass};
    const size_t count = row_files_graph(files)->row_file_count;
    if (count == 0 || pass->engine->comm->rank != 0)
        return;
    files->tensors = ls_alloc(count * LS_ROW_FILE_TENSORS, sizeof *files->tensors);
    if (files->tensors == NULL)
        files->status = ls_fail_memory(error, "the rows of a test");
}

static bool row_files_make_room(struct ls_row_tensor *tensor, size_t more)
{
    const size_t wanted = tensor->count + more;
    if (wanted <= tensor->capacity)
        return true;
    const size_t capacity = wanted < 2 * tensor->capacity ? 2 * tensor->capacity : wanted;
    float *longer = ls_resize(tensor->numbers, capacity, sizeof *longer);
    if (longer == NULL)
        return false;
    tensor->numbers = longer;
    tensor->capacity = capacity;
    return true;
}

/* Appends those of `rows` rows that are selected. */
static int row_files_append(struct ls_row_tensor *tensor, const float *from, int64_t rows,
                            size_t each, const float *selected, struct ls_error *error)
{
    if (!row_files_make_room(tensor, (size_t)rows * each))
        return ls_fail_memory(error, "the rows of a test");
    for (int64_t row = 0; row < rows; row++, from += each) {
        if (selected != NULL && selected[row] == 0)
            continue;
        memcpy(tensor->numbers + tensor->count, from, each * sizeof *from);
        tensor->count += each;
        tensor->rows++;
    }
    return 0;
}

/* What a state holds of the samples of a micro-batch. */
static int row_files_state(const struct ls_sample_states *states, int state,
                           const struct ls_unit *unit, const float **numbers,
                           struct ls_error *error)
{
    const struct ls_state_tensor *tensor = &states->tensors[state];
    const void *data;
    LS_TRY(ls_sample_states_read(states, (size_t)state, &data, error));
    *numbers = (const float *)((const char *)data + (size_t)unit->row * tensor->run);
    return 0;
}

/* Appends what a file takes of a micro-batch. */
static int row_files_add_unit(struct ls_row_files *files, size_t file, const struct ls_unit *unit,
                              struct ls_error *error)
{
    const struct ls_sample_states *states = files->pass->states;
    const struct ls_graph *graph = unit->plan->plan->graph;
    const struct ls_row_file *what = &graph->row_files[file];
    const float *selected = NULL, *from;
    if (what->selected >= 0)
        LS_TRY(row_files_state(states, what->selected, unit, &selected, error));
    for (int t = 0; t < LS_ROW_FILE_TENSORS; t++) {
        const struct ls_shape *shape = &graph->sample_states[what->state[t]].value->shape;
        LS_TRY(row_files_state(states, what->state[t], unit, &from, error));
        LS_TRY(row_files_append(&files->tensors[file * LS_ROW_FILE_TENSORS + (size_t)t], from,
                                shape->dim[0], (size_t)ls_shape_count(shape, 1, shape->rank),
                                selected, error));
    }
    return 0;
}

void ls_row_files_add(struct ls_row_files *files, struct ls_error *error)
{
    const size_t count = row_files_graph(files)->row_file_count;
    for (size_t unit = 0; unit < files->pass->unit_count; unit++)
        for (size_t file = 0; file < count && files->tensors != NULL && files->status == 0; file++)
            files->status = row_files_add_unit(files, file, &files->pass->units[unit], error);
}

static int row_files_write_one(const struct ls_row_files *files, size_t file,
                               struct ls_error *error)
{
    const struct ls_graph *graph = row_files_graph(files);
    const struct ls_row_file *what = &graph->row_files[file];
    struct ls_hdf5 *target;
    LS_TRY(ls_hdf5_create(what->path, &target, error));
    int status = 0;
    for (int t = 0; t < LS_ROW_FILE_TENSORS && status == 0; t++) {
        const struct ls_row_tensor *tensor =
            &files->tensors[file * LS_ROW_FILE_TENSORS + (size_t)t];
        const struct ls_shape *shape = &graph->sample_states[what->state[t]].value->shape;
        int64_t dim[LS_RANK_MAX] = {tensor->rows, 1, 1, 1};
        for (int i = 1; i < shape->rank; i++)
            dim[i] = shape->dim[i];
        status = ls_hdf5_add_floats(target, what->dataset[t],
                                    shape->rank < CAFFE_AXES ? CAFFE_AXES : shape->rank, dim,
                                    tensor->numbers, error);
    }
    if (status == 0)
        return ls_hdf5_commit(target, error);
    ls_hdf5_abandon(target);
    return status;
}

int ls_row_files_write(struct ls_row_files *files, struct ls_error *error)
{
    const size_t count = row_files_graph(files)->row_file_count;
    if (count == 0)
        return 0;
    for (size_t file = 0; file < count && files->tensors != NULL && files->status == 0; file++)
        files->status = row_files_write_one(files, file, error);
    return ls_comm_agree(files->pass->engine->comm, files->status, error);
}

void ls_row_files_free(struct ls_row_files *files)
{
    const size_t count = row_files_graph(files)->row_file_count;
    for (size_t i = 0; i < count * LS_ROW_FILE_TENSORS && files->tensors != NULL; i++)
        ls_free(files->tensors[i].numbers);
    ls_free(files->tensors);
}
