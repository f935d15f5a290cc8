/* What a file of weights says of the training that it comes from, where it is a snapshot: above all
 * what became of pictures before the net saw them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_TRAINED_H
#define LS_API_TRAINED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/source.h"
#include "schema/definition.h"

/* All zeros: the file says nothing. */
struct ls_trained {
    struct ls_definition *definition; /* canonical: a solver with its net inside; NULL: none */
    char *iteration;                  /* NULL: none */
    /* The first of its data layers that read pictures; NULL: there is none. */
    const Lockstep__LayerParameter *layer;
    /* The kind of its source, the shape of the first record, and whether others have other sizes;
     * source NULL: that is not known. */
    const struct ls_source_type *source;
    int64_t record[3];
    bool varies;
    bool has_mean; /* a mean picture was subtracted */
    float *mean;   /* it; NULL: there is none, or the file does not have it */
    int64_t mean_shape[3];
};

/* Of several files, separated by commas, the last one counts. A file that is no snapshot, or is
 * none that can be read, is no failure here: loading its weights says what is wrong with it. Free
 * also after a failure. */
int ls_trained_read(const char *weights, struct ls_trained *trained, struct ls_error *error);
void ls_trained_free(struct ls_trained *trained);
/* What it says as a solver; NULL: nothing. */
const Lockstep__SolverParameter *ls_trained_solver(const struct ls_trained *trained);

#endif
