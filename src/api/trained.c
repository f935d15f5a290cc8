/* What a snapshot says of its training. See api/trained.h.
 *
 * The canonical definition has the data layer with its transformation. Paths are left out of it, so
 * the mean picture is a tensor of the snapshot; what the records were like is in the note of the
 * data (data/fingerprint.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/trained.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schema/data_layers.h"
#include "schema/text_format.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "snapshot/weights.h"
#include "solver/notes.h"

enum { SOURCES_MAX = 64 }; /* a note of any length is looked through for each */

const Lockstep__SolverParameter *ls_trained_solver(const struct ls_trained *trained)
{
    return trained->definition != NULL
               ? (const Lockstep__SolverParameter *)trained->definition->message
               : NULL;
}

/* Data layer `number` of the net, from 1; NULL: there are not so many. */
static const Lockstep__LayerParameter *data_layer(const struct ls_trained *trained, int number)
{
    const Lockstep__SolverParameter *solver = ls_trained_solver(trained);
    const Lockstep__NetParameter *net = solver != NULL ? solver->train_net_param : NULL;
    for (size_t i = 0; net != NULL && i < net->n_layer; i++)
        if (ls_data_layer_reads(net->layer[i]) && --number == 0)
            return net->layer[i];
    return NULL;
}

/* The shape of a record of pictures as a line of the note has it; other records have a type in
 * front of it. */
static bool read_shape(const char *line, int64_t shape[3])
{
    return sscanf(line, "shape %" SCNd64 " x %" SCNd64 " x %" SCNd64, shape, shape + 1,
                  shape + 2) == 3 &&
           ls_record_shape_valid(shape);
}

/* Takes the lines of source `number` in the note. */
static void read_lines(const char *note, int number, struct ls_trained *trained)
{
    char prefix[32], kind[32];
    const int length = snprintf(prefix, sizeof prefix, "source %d: ", number);
    trained->source = NULL;
    trained->record[0] = 0;
    trained->varies = trained->has_mean = false;
    for (const char *line = note; line != NULL;
         line = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, prefix, (size_t)length) != 0)
            continue;
        char what[96]; /* sscanf looks at all of its text first */
        snprintf(what, sizeof what, "%.*s", (int)(sizeof what - 1), line + length);
        what[strcspn(what, "\n")] = '\0';
        if (sscanf(what, "kind %31[A-Z0-9_]", kind) == 1)
            trained->source = ls_source_type_named(kind);
        else if (strncmp(what, "shape ", 6) == 0 && trained->record[0] == 0 &&
                 !read_shape(what, trained->record))
            trained->record[0] = -1; /* the first tensor is no picture */
        trained->varies = trained->varies || strncmp(what, "sizes ", 6) == 0;
        trained->has_mean = trained->has_mean || strncmp(what, "mean file ", 10) == 0;
    }
}

/* The first data layer that read pictures. */
static void find_pictures(const char *note, struct ls_trained *trained)
{
    for (int number = 1; note != NULL && number <= SOURCES_MAX; number++) {
        const Lockstep__LayerParameter *layer = data_layer(trained, number);
        if (layer == NULL)
            break;
        read_lines(note, number, trained);
        if (trained->source != NULL && trained->record[0] > 0) {
            trained->layer = layer;
            return;
        }
    }
    trained->source = NULL;
}

/* The number of that layer among the data layers. */
static int number_of(const struct ls_trained *trained)
{
    int number = 1;
    while (data_layer(trained, number) != trained->layer)
        number++;
    return number;
}

static int take_mean(const struct ls_archive *archive, struct ls_trained *trained,
                     struct ls_error *error)
{
    char name[48];
    snprintf(name, sizeof name, LS_PREFIX_MEAN "%d", number_of(trained));
    const struct ls_tensor *tensor = ls_archive_find(archive, name);
    if (tensor == NULL)
        return 0;
    if (tensor->type != LS_F32 || tensor->shape.rank != 3 ||
        !ls_record_shape_valid(tensor->shape.dim))
        return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL, "tensor '%s' is no picture",
                       name);
    memcpy(trained->mean_shape, tensor->shape.dim, sizeof trained->mean_shape);
    const size_t size = (size_t)ls_record_size(trained->mean_shape);
    trained->mean = ls_alloc(size, sizeof *trained->mean);
    if (trained->mean == NULL)
        return ls_fail_memory(error, "a mean picture");
    ls_tensor_copy(tensor, trained->mean);
    for (size_t i = 0; i < size; i++)
        if (!isfinite(trained->mean[i]))
            return ls_fail(error, LOCKSTEP_WEIGHTS, archive->path, NULL,
                           "number %zu of tensor '%s' is not finite", i, name);
    trained->has_mean = true;
    return 0;
}

static int read_archive(const struct ls_archive *archive, const char *path,
                        struct ls_trained *trained, struct ls_error *error)
{
    const char *text = ls_archive_note(archive, LS_NOTE_DEFINITION);
    const char *iteration = ls_archive_note(archive, LS_NOTE_ITERATION);
    if (iteration != NULL && (trained->iteration = ls_copy_string(iteration)) == NULL)
        return ls_fail_memory(error, path);
    if (text != NULL &&
        ls_text_read(path, text, strlen(text), &lockstep__solver_parameter__descriptor,
                     &trained->definition, NULL) == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, path);
    find_pictures(ls_archive_note(archive, LS_NOTE_DATA), trained);
    if (ls_archive_note(archive, LS_NOTE_DATA) == NULL)
        trained->layer =
            data_layer(trained, 1); /* of an older version: of records nothing is known */
    return trained->source != NULL ? take_mean(archive, trained, error) : 0;
}

int ls_trained_read(const char *weights, struct ls_trained *trained, struct ls_error *error)
{
    const char *comma = strrchr(weights, ',');
    const char *path = comma != NULL ? comma + 1 : weights;
    struct ls_archive archive = {0};
    int status = ls_archive_read(path, LS_ARCHIVE_HEADER, &archive, NULL);
    if (status == 0)
        status = read_archive(&archive, path, trained, error);
    else if (status == LOCKSTEP_RESOURCE)
        status = ls_fail_memory(error, path);
    else
        status = 0;
    ls_archive_free(&archive);
    return status;
}

void ls_trained_free(struct ls_trained *trained)
{
    ls_definition_free(trained->definition);
    ls_free(trained->iteration);
    ls_free(trained->mean);
}
