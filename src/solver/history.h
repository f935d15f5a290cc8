/* The environments that a training has had. See solver/environment.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_HISTORY_H
#define LS_SOLVER_HISTORY_H

#include "base/text.h"
#include "snapshot/archive.h"
#include "solver/trainer.h"

/* A resume: compares with the environment of a snapshot of that iteration and takes over its
 * history. Refuses another environment with LOCKSTEP_DIFFERENT, unless the trainer allows it: then
 * that is a line of the history, and a warning. */
int ls_environment_resume(struct ls_trainer *trainer, const struct ls_archive *archive,
                          int64_t iteration, struct ls_error *error);
/* The history in a few words: "isa=avx2 until 20; isa=sse41". Nothing where there is one only, or
 * the text, which may come from any file, is none. */
void ls_environment_say_history(const char *history, struct ls_text *text);
/* The instruction set that the snapshot named by --resume was made with; "" where it does not
 * matter, or no such file can be read (which reading it for good will say). Only the head of a file
 * is read. LOCKSTEP_RESOURCE when memory runs out. */
int ls_environment_isa(const char *prefix, const char *resume, char isa[16],
                       struct ls_error *error);

#endif
