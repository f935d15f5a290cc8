/* Predictions for many inputs: files, folders, lists, arrays. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_INPUTS_H
#define LOCKSTEP_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be predicted for, in the order in which it was added. */
struct lockstep_inputs;
/* NULL: there is no memory. */
LOCKSTEP_API struct lockstep_inputs *lockstep_inputs_new(void);
LOCKSTEP_API void lockstep_inputs_free(struct lockstep_inputs *inputs);

/* Adds what a path leads to.
 *   - A folder: its .jpg, .jpeg and .png files and those of the folders within it, in byte order of
 *     their paths. What begins with a dot and what has another ending is left out.
 *   - A .npy file: its samples, along axis 0, as the net takes them (transformed already).
 *   - Any other file: a picture, JPEG or PNG. It is read when it is predicted for.
 * LOCKSTEP_DATA for a folder without pictures and for an array that cannot be read. */
LOCKSTEP_API int lockstep_inputs_add(struct lockstep_inputs *inputs, const char *path,
                                     struct lockstep_error *error);
/* Adds the pictures of a list, a text file with a path on each line, or "path label", where the
 * label is a whole number. Relative paths are looked for from the working directory, then from the
 * folder of the list. "-" is the standard input. */
LOCKSTEP_API int lockstep_inputs_add_list(struct lockstep_inputs *inputs, const char *path,
                                          struct lockstep_error *error);
LOCKSTEP_API int64_t lockstep_inputs_count(const struct lockstep_inputs *inputs);
/* How many entries of folders were left out. */
LOCKSTEP_API int64_t lockstep_inputs_left_out(const struct lockstep_inputs *inputs);

/* The prediction for an input. Pointers are valid during the call of the callback only. */
struct lockstep_predicted {
    int64_t index;       /* of the input */
    int64_t computed;    /* inputs that are computed so far, this one and some behind it */
    const char *name;    /* "photos/cat.jpg", "samples.npy[3]" */
    int has_label;       /* whether its list has one: */
    int label;           /* this */
    const float *output; /* lockstep_model_output_size numbers; NULL: the input cannot be read */
    int status;          /* why not: LOCKSTEP_DATA; and in words, a line with place and hint */
    const char *problem;
};
/* Predicts for all inputs, which the workers read side by side, and tells of each in their order. A
 * prediction does not depend on the inputs around it, nor on the number of workers. `tell` returns
 * 0; anything else, like the model's `poll`, ends the run with LOCKSTEP_STOPPED. An input that
 * cannot be read is told of and no failure. LOCKSTEP_DEFINITION where the net does not predict from
 * one input, or has none of pictures. */
LOCKSTEP_API int
lockstep_model_predict_each(struct lockstep_model *model, const struct lockstep_inputs *inputs,
                            int (*tell)(void *user, const struct lockstep_predicted *predicted),
                            void *user, struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
