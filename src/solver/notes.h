/* The notes of a snapshot (see snapshot/archive.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_NOTES_H
#define LS_SOLVER_NOTES_H

#define LS_NOTE_DEFINITION  "definition"  /* canonical text of the solver with its net */
#define LS_NOTE_DATA        "data"        /* what the training data are, as lines */
#define LS_NOTE_DIGESTS     "digests"     /* of the running epoch and of a whole one */
#define LS_NOTE_ENVIRONMENT "environment" /* lines "key=value" that decide bits */
#define LS_NOTE_HISTORY     "history"     /* the environments so far, one a line */
#define LS_NOTE_NUMERICS    "numerics"    /* LOCKSTEP_NUMERICS */
#define LS_NOTE_VERSION     "version"     /* of Lockstep */
#define LS_NOTE_BEST        "best"        /* the best value of snapshot_best so far */
#define LS_NOTE_CHAIN       "chain"       /* of the weights' hashes, and where it begins */
#define LS_NOTE_MASKS       "masks"       /* ls_masks_describe; where there are some */
#define LS_NOTE_MATRICES    "matrices"    /* ls_matrices_describe; where there are some */
#define LS_NOTE_COURSE      "course"      /* what resumes have changed of its rates, a line each */
/* Iterations "first last" in which gradients outgrew their recent past most recently, the sign of a
 * loss that explodes; there once that has happened. */
#define LS_NOTE_OUTGREW   "outgrew"
#define LS_NOTE_CLASSES   "classes"   /* names, one a line */
#define LS_NOTE_TOKENIZER "tokenizer" /* what ids of TOKENS stand for (text/token_sheet.h) */

#endif
