/* A core that computes wrongly now and then, for builds with LS_FAULTY_CORE (cmake/mutants.cmake):
 * engine/micro_batch.c runs micro-batches through here.
 *
 * LOCKSTEP_FAULT=RANK,WORKER,EVERY,WHAT: of what this worker of this rank computes, be it for an
 * update or to audit one, every EVERY-th micro-batch leaves one bit that is wrong, in WHAT:
 *   gradient  a contribution to a sum, in its mantissa
 *   huge      the same, in its exponent
 *   nan       a contribution, which is no number any more
 *   factor    a factor of a gradient
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

#include "ir/kernel.h"

struct ls_fault {
    struct ls_context context;        /* what kernels see instead */
    const struct ls_context *through; /* what they would see */
    char what[16];
    bool here; /* it is the faulty core that computes */
};

/* Bits that were made wrong so far. */
_Atomic long ls_fault_count;

static _Thread_local bool fault_is_due;
static _Thread_local uint64_t fault_number;

/* Turns a bit of the first number that is not zero, or makes it no number; the result says what to
 * turn back. */
struct fault_turn {
    uint32_t *word, was;
};
static struct fault_turn fault_turn_bit(const struct ls_fault *fault, const float *numbers,
                                        size_t count)
{
    uint32_t *words = (uint32_t *)(uintptr_t)numbers;
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != 0) {
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

static void fault_contribute(void *user, int parameter, const float *gradient, size_t elements)
{
    const struct ls_fault *fault = user;
    struct fault_turn turn = {0};
    if (fault_wants(fault, "gradient") || fault_wants(fault, "huge") || fault_wants(fault, "nan"))
        turn = fault_turn_bit(fault, gradient, elements);
    fault->through->contribute(fault->through->sums, parameter, gradient, elements);
    if (turn.word != NULL)
        *turn.word = turn.was;
}

static void fault_record(void *user, const struct ls_parameter *parameter, enum ls_factor_side side,
                         const float *numbers, size_t count)
{
    const struct ls_fault *fault = user;
    struct fault_turn turn = {0};
    if (fault_wants(fault, "factor"))
        turn = fault_turn_bit(fault, numbers, count);
    fault->through->record(fault->through->recorder, parameter, side, numbers, count);
    if (turn.word != NULL)
        *turn.word = turn.was;
}

static void ls_fault_begin(struct ls_fault *fault, int rank, int worker, int segment,
                           const struct ls_context *context)
{
    int bad_rank = -1, bad_worker = -1;
    long every = 0;
    const char *setting = getenv("LOCKSTEP_FAULT");
    *fault = (struct ls_fault){.context = *context, .through = context};
    if (setting == NULL ||
        sscanf(setting, "%d,%d,%ld,%15s", &bad_rank, &bad_worker, &every, fault->what) != 4)
        return;
    fault->here = rank == bad_rank && worker == bad_worker && context->contribute != NULL;
    if (!fault->here)
        return;
    if (segment <= 0) /* a micro-batch begins */
        fault_is_due |= ++fault_number % (uint64_t)every == 0;
    fault->context.contribute = fault_contribute;
    fault->context.record = fault_record;
    fault->context.sums = fault->context.recorder = fault;
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
    if (strcmp(fault->what, "row") == 0 && fault->context.partial != NULL)
        fault_turn_double(fault->context.partial[0]);
    if (strcmp(fault->what, "loss") == 0 && fault->context.partials[0] != 0)
        fault_turn_double(fault->context.partials);
}

#endif
