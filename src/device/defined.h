/* Ops that every device whose memory is the host's computes with the same C: what they give is
 * defined by it, to the bit, on every processor (docs/numerics.md, section 20).
 *
 * All values are plain (row-major) and fp32, but for what the op's record says. An element of a
 * result is computed in double, in the order in which it stands here, and rounded once; logarithms
 * and exponentials are those of SLEEF, which rounds alike everywhere.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_DEFINED_H
#define LS_DEVICE_DEFINED_H

#include "ir/kernel.h"

/* What an op is carried out with; pointers of absent optional values are NULL. */
struct ls_defined_call {
    const struct ls_op *op;
    void *const *in, *const *out;
    void *scratch;
    const struct ls_context *context;
};

struct ls_defined {
    void (*run)(const struct ls_defined_call *call); /* NULL: the kind has other kernels */
    bool (*accepts)(const struct ls_op *op);         /* (optional) of a kind, these ops alone */
    size_t (*scratch)(const struct ls_op *op);       /* (optional) bytes */
    bool moves; /* numbers are moved, compared or counted, never rounded */
};

/* What carries an op out; NULL: the device has kernels of its own for it. */
const struct ls_defined *ls_defined_find(const struct ls_op *op);

/* What carries out ops of a kind, all that it accepts; NULL: nothing here does. */
const struct ls_defined *ls_defined_of(enum ls_op_kind kind);

/* By kind; ls_defined_of looks them up. */
extern const struct ls_defined ls_defined_losses[LS_OP_KINDS], ls_defined_moves[LS_OP_KINDS],
    ls_defined_multibox[LS_OP_KINDS], ls_defined_detections[LS_OP_KINDS],
    ls_defined_regions[LS_OP_KINDS], ls_defined_yolo[LS_OP_KINDS],
    ls_defined_yolo_output[LS_OP_KINDS], ls_defined_proposal[LS_OP_KINDS],
    ls_defined_evaluation[LS_OP_KINDS], ls_defined_hardest[LS_OP_KINDS],
    ls_defined_linear_loss[LS_OP_KINDS], ls_defined_sequences[LS_OP_KINDS];

#endif
