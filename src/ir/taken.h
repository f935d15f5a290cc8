/* What ops take the numbers of an input for: which of them they cannot take, and which cannot be
 * meant. The former make figures NaN, the latter are computed with, to no use.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_TAKEN_H
#define LS_IR_TAKEN_H

#include <stddef.h>

#include "ir/op.h"

enum ls_taken_kind {
    LS_TAKEN_CLASSES, /* labels: whole numbers from 0 to count - 1 */
    LS_TAKEN_ROWS,    /* the same, of the rows of a table */
    LS_TAKEN_BOXES,   /* rows of true boxes, whose classes are from `first` to first + count - 1 */
    LS_TAKEN_SHARES,  /* targets from 0 to 1 */
    LS_TAKEN_FLAGS    /* 0 or 1 */
};

struct ls_taken {
    enum ls_taken_kind kind;
    int input; /* of the op */
    int64_t first, count;
    bool has_ignore;
    int ignore_label;
    int background; /* BOXES: the class that no box has; -1: there is none */
};

/* What an op takes one of its inputs for; false: it takes any numbers. */
bool ls_taken_by(const struct ls_op *op, struct ls_taken *taken);

/* The first of `count` numbers (of boxes: the first number of a row; `count` is that of whole rows)
 * that the op cannot take, or that it takes although it cannot be meant; -1: there is none. Any
 * thread. */
int64_t ls_taken_find_bad(const struct ls_taken *taken, const float *numbers, int64_t count);
int64_t ls_taken_find_odd(const struct ls_taken *taken, const float *numbers, int64_t count);

/* Whether there are numbers that the op takes although they cannot be meant. */
bool ls_taken_may_be_odd(const struct ls_taken *taken);
/* Whether a label or target counts nowhere. */
bool ls_taken_ignores(const struct ls_taken *taken, float number);

/* What is wrong with the number that was found, at `numbers`, in place `index` of the tensor, as
 * layer `layer` takes it: "label 7 is none of the 3 classes of layer 'loss'". Behind that may stand
 * where the layer is. */
void ls_taken_tell(const struct ls_taken *taken, const float *numbers, int64_t index,
                   const char *layer, char *text, size_t size);

#endif
