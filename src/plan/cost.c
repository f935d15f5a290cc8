/* What a step costs, roughly: enough to tell what is cheap to do twice from what is dear.
 *
 * Counted are FLOPs, and memory traffic by what it is worth in FLOPs: a core does about eight while
 * a byte comes from the caches that are shared.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/op_type.h"
#include "plan/program.h"

double ls_step_work(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    const struct ls_op_type *type = ls_op_type(op->kind);
    return type->traffic > 0 ? type->flops(op) + LS_WORK_OF_BYTE * ls_op_operand_bytes(op) : 0;
}
