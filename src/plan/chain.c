/* Chains: steps that are carried out together, some channels at a time.
 *
 * Batch norm, the sums behind it and their gradients touch each number for a few operations only,
 * so that memory takes most of their time. Where one reads what another wrote, all of them process
 * a few channels before they go on to the next ones, so that shared data stays in L1 and L2.
 * Sync points within the micro-batch are merged on the way; gradients of the chain's parameters are
 * added to the exact sums behind it.
 *
 * No bit depends on it: see run_channels in ir/kernel.h. What a chain reads or writes is alive for
 * all of it (plan/liveness.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "plan/program.h"

enum {
    BYTES_AT_ONCE = 256 << 10, /* of the largest value: several fit the second-level cache */
    BYTES_NEAR = 1024 << 10    /* of values that stay in it all the same */
};

static const struct ls_step *step_of(const struct ls_program *program, int line)
{
    return &program->plan->steps[program->line[line].step];
}

static const struct ls_op *op_of(const struct ls_program *program, int line)
{
    return step_of(program, line)->prepared.op;
}

/* How many channels a line has, of which it can do some by themselves; 0: it cannot. */
static int64_t channels_of(const struct ls_program *program, int line)
{
    const struct ls_step *step = step_of(program, line);
    return step->in_pass && !step->before_pass && !step->gathered ? step->prepared.channels : 0;
}

/* Whether a line may stand between the others of a chain of so many channels. */
static bool may_pass(const struct ls_program *program, int line, int64_t channels)
{
    const struct ls_op *op = op_of(program, line);
    if (op->kind == LS_OP_ACCUMULATE)
        return true;
    if (op->kind != LS_OP_SYNC || step_of(program, line)->cut)
        return false;
    const struct ls_sync *sync = &program->plan->graph->syncs[op->attr.sync];
    return sync->kind != LS_SYNC_COUNT && ls_sync_padded(sync) == channels;
}

static bool names(const struct ls_program *program, int line, int value)
{
    const struct ls_op *op = op_of(program, line);
    const int *operand = program->operand + program->line[line].operands;
    for (int i = 0; i < op->inputs + op->outputs; i++)
        if (operand[i] == value)
            return true;
    return false;
}

/* Whether `line` may join the chain that begins at `first`: it reads what the chain has at hand,
 * and nothing that is added up behind the chain, which it might overwrite. */
static bool belongs(const struct ls_program *program, int first, int line)
{
    const int *in = program->operand + program->line[line].operands;
    bool shares = false;
    for (int l = first; l < line; l++)
        for (int i = 0; i < op_of(program, line)->inputs; i++) {
            if (!ls_program_in_arena(program, in[i]) || !names(program, l, in[i]))
                continue;
            if (op_of(program, l)->kind == LS_OP_ACCUMULATE)
                return false;
            shares = true;
        }
    return shares;
}

/* The last line of the chain that begins at `first`; `first` itself where there is none. */
static int find_end(const struct ls_program *program, int first)
{
    const int64_t channels = channels_of(program, first);
    int end = first;
    for (int l = first + 1; channels > 0 && l < (int)program->line_count; l++) {
        if (program->line[l].segment != program->line[first].segment)
            break;
        if (channels_of(program, l) == channels && belongs(program, first, l))
            end = l;
        else if (!may_pass(program, l, channels))
            break;
    }
    return end;
}

/* Bytes of the largest value of lines [first, last]. */
static size_t find_largest(const struct ls_program *program, int first, int last)
{
    size_t bytes = 0;
    for (int l = first; l <= last; l++) {
        const struct ls_op *op = op_of(program, l);
        const int *operand = program->operand + program->line[l].operands;
        for (int i = 0; i < op->inputs + op->outputs; i++)
            if (ls_program_in_arena(program, operand[i]) &&
                ls_program_bytes(program, operand[i]) > bytes)
                bytes = ls_program_bytes(program, operand[i]);
    }
    return bytes;
}

/* How many channels at a time, for a chain that begins at `first` and has a `largest` value. */
static int64_t find_at_once(const struct ls_program *program, int first, size_t largest)
{
    const size_t blocks = (size_t)(channels_of(program, first) / LS_SYNC_BLOCK);
    int64_t at_once = (int64_t)(BYTES_AT_ONCE / (largest / (blocks > 0 ? blocks : 1) + 1));
    return (at_once > 0 ? at_once : 1) * LS_SYNC_BLOCK;
}

void ls_program_chain(struct ls_program *program)
{
    for (int l = 0; l < (int)program->line_count;) {
        int end = find_end(program, l);
        size_t largest = find_largest(program, l, end);
        int64_t at_once = find_at_once(program, l, largest);
        if (largest < BYTES_NEAR || at_once >= channels_of(program, l))
            end = l; /* it fits the caches as it is */
        for (int first = l; l <= end; l++) {
            program->line[l].chain = first;
            program->line[l].chain_end = end;
            program->line[l].at_once = at_once;
        }
    }
}
