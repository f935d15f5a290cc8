/* A core that computes wrongly now and then, for builds with LS_FAULTY_CORE (cmake/mutants.cmake):
 * engine/micro_batch.c runs micro-batches through here.
 *
 * LOCKSTEP_FAULT=RANK,WORKER,EVERY,WHAT: of what this worker of this rank computes, be it for an
 * update or to audit one, every EVERY-th micro-batch leaves one bit that is wrong, in WHAT:
 *   gradient  a contribution to a sum, in its mantissa
 *   huge      the same, in its exponent
 *   nan       a contribution, which is no number any more
 *   factor    a factor of a gradient
 *   state     a state per sample
 *   row       a row at a sync point
 *   loss      the record
 *   any       gradient or factor
 * EVERY 1 is a core that is always wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SUPPORT_FAULT_H
#define LS_TESTS_SUPPORT_FAULT_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/net.h"

/* A bit that was turned, and what to turn it back to. */
struct fault_turn {
    uint32_t *word, was;
};

struct ls_fault {
    struct ls_run run;          /* what is run instead */
    struct ls_observer through; /* what would observe it */
    struct fault_turn turn;
    char what[16];
    bool here; /* it is the faulty core that computes */
};

/* Bits that were made wrong so far. */
_Atomic long ls_fault_count;

static _Thread_local bool fault_is_due;
static _Thread_local uint64_t fault_number;

/* Turns a bit of the first number that is not zero, or makes it no number; the result says what to
 * turn back. */
static struct fault_turn fault_turn_bit(const struct ls_fault *fault, const void *numbers,
                                        size_t count)
{
    uint32_t *words = (uint32_t *)(uintptr_t)numbers;
    for (size_t i = 0; i < count; i++)
        if (words[i] << 1 != 0) {
            struct fault_turn turn = {&words[i], words[i]};
            if (strcmp(fault->what, "nan") == 0)
                words[i] = UINT32_C(0x7fc00000);
            else
                words[i] ^= UINT32_C(1) << (strcmp(fault->what, "huge") == 0 ? 30 : 22);
            fault_is_due = false;
            atomic_fetch_add(&ls_fault_count, 1);
            return turn;
        }
    return (struct fault_turn){0};
}

static bool fault_wants(const struct ls_fault *fault, const char *what)
{
    return fault->here && fault_is_due &&
           (strcmp(fault->what, what) == 0 || strcmp(fault->what, "any") == 0);
}

static int fault_before(void *user, const struct ls_op *op, const void *numbers,
                        const struct ls_context *context, struct ls_error *error)
{
    struct ls_fault *fault = user;
    const struct ls_observer *through = &fault->through;
    fault->turn = (struct fault_turn){0};
    bool wanted = op->kind == LS_OP_RECORD ? fault_wants(fault, "factor")
                  : op->kind == LS_OP_KEEP
                      ? fault_wants(fault, "state")
                      : fault_wants(fault, "gradient") || fault_wants(fault, "huge") ||
                            fault_wants(fault, "nan");
    if (wanted)
        fault->turn = fault_turn_bit(fault, numbers, ls_value_bytes(op->input[0]) / sizeof(float));
    return through->before != NULL ? through->before(through->user, op, numbers, context, error)
                                   : 0;
}

static int fault_after(void *user, const struct ls_op *op, const struct ls_context *context,
                       struct ls_error *error)
{
    struct ls_fault *fault = user;
    const struct ls_observer *through = &fault->through;
    int status = through->after != NULL ? through->after(through->user, op, context, error) : 0;
    if (fault->turn.word != NULL)
        *fault->turn.word = fault->turn.was;
    return status;
}

static void ls_fault_begin(struct ls_fault *fault, int rank, int segment, const struct ls_run *run)
{
    int bad_rank = -1, bad_worker = -1;
    long every = 0;
    const char *setting = getenv("LOCKSTEP_FAULT");
    *fault = (struct ls_fault){.run = *run, .through = run->observer};
    if (setting == NULL ||
        sscanf(setting, "%d,%d,%ld,%15s", &bad_rank, &bad_worker, &every, fault->what) != 4)
        return;
    /* In a test nothing is handed over, and nothing observed. */
    fault->here = rank == bad_rank && run->context.worker == bad_worker &&
                  (run->context.accumulator != NULL || run->observer.before != NULL);
    if (!fault->here)
        return;
    if (segment <= 0) /* a micro-batch begins */
        fault_is_due |= ++fault_number % (uint64_t)every == 0;
    fault->run.observer =
        (struct ls_observer){.before = fault_before, .after = fault_after, .user = fault};
}

static void fault_turn_double(double *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    bits ^= UINT64_C(1) << 40;
    memcpy(number, &bits, sizeof bits);
    fault_is_due = false;
    atomic_fetch_add(&ls_fault_count, 1);
}

static void ls_fault_end(struct ls_fault *fault)
{
    if (!fault->here || !fault_is_due)
        return;
    if (strcmp(fault->what, "row") == 0 && fault->run.context.partial != NULL)
        fault_turn_double(fault->run.context.partial[0]);
    if (strcmp(fault->what, "loss") == 0 && fault->run.context.partials[0] != 0)
        fault_turn_double(fault->run.context.partials);
}

#endif
