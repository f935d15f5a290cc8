/* Models of other programs as nets. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_IMPORT_H
#define LOCKSTEP_IMPORT_H

#include <stddef.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_import_options {
    size_t struct_size;
    /* Shapes of inputs that the model leaves open, or others than it says:
     * "input=1,3,224,224". The first extent is that of the samples. */
    const char *const *shapes;
    size_t shape_count;
    const char *loss; /* "softmax" or "euclidean"; NULL: no definition for training is written */
    int solver;       /* a solver's definition is written, too; needs a loss */
    int tie;          /* layers that begin with the same weights of the model keep them in common */
    /* What the user should know of the net: constants that do not learn, batch norms that may be
     * missing; a sentence at a time, with the `user` of lockstep_import_onnx. May be NULL. */
    void (*note)(void *user, const char *sentence);
};
LOCKSTEP_API void lockstep_import_options_init(struct lockstep_import_options *options);

/* Reads an ONNX model and writes PREFIX_deploy.prototxt and, where it has weights,
 * PREFIX.safetensors, and, where options ask for them, PREFIX_train_test.prototxt and
 * PREFIX_solver.prototxt. None of `path`, `prefix` and `options` may be NULL: that is
 * LOCKSTEP_USAGE. What has no equivalent is LOCKSTEP_DEFINITION, all of it named at once, and a
 * damaged file LOCKSTEP_WEIGHTS; nothing is written then. `tell` (may be NULL) gets the name of
 * each file that was written. */
LOCKSTEP_API int lockstep_import_onnx(const char *path, const char *prefix,
                                      const struct lockstep_import_options *options,
                                      void (*tell)(void *user, const char *line), void *user,
                                      struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
