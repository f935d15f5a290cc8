/* The chain of weight hashes: what a training was, in one number.
 *
 *   chain[n] = hash(chain[n - LS_CHAIN_EVERY], n, hash of all weights and averages after update n)
 *
 * Links lie at multiples of LS_CHAIN_EVERY, whatever is displayed or saved, so that the chain is a
 * function of the training and a resume goes on with it. All workers hash, at the speed of memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "engine/compare.h"
#include "solver/events.h"
#include "solver/trainer.h"

int ls_trainer_link(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_chain *chain = &trainer->chain;
    if (trainer->iteration % LS_CHAIN_EVERY != 0)
        return 0;
    LS_TRY(ls_compare_hash(trainer->engine, &chain->weights, error));
    const uint64_t link[3] = {chain->value, (uint64_t)trainer->iteration, chain->weights};
    chain->value = ls_hash(link, sizeof link, 0);
    chain->linked = trainer->iteration;
    return 0;
}

int ls_trainer_report_chain(struct ls_trainer *trainer, bool end, struct ls_error *error)
{
    const struct ls_chain *chain = &trainer->chain;
    char text[200];
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_HASH,
                                   .weights_hash = chain->weights,
                                   .chain = chain->value,
                                   .chain_begin = chain->begin};
    if (!end && chain->linked != trainer->iteration)
        return 0;
    if (end) {
        LS_TRY(ls_compare_hash(trainer->engine, &event.weights_hash, error));
        int length =
            snprintf(text, sizeof text, "Hash of the weights: %016" PRIx64, event.weights_hash);
        if (chain->linked >= 0 || chain->value != 0)
            snprintf(text + length, sizeof text - (size_t)length,
                     "; chain of the hashes every %d iterations since %" PRId64 ": %016" PRIx64,
                     LS_CHAIN_EVERY, chain->begin, chain->value);
        event.text = text;
    }
    ls_events_send(trainer, &event);
    return 0;
}

void ls_chain_write(const struct ls_chain *chain, char text[LS_CHAIN_TEXT])
{
    snprintf(text, LS_CHAIN_TEXT, "%016" PRIx64 " %" PRId64, chain->value, chain->begin);
}

int ls_chain_read(const char *text, int64_t iteration, struct ls_chain *chain)
{
    char again[LS_CHAIN_TEXT];
    *chain = (struct ls_chain){.begin = iteration, .linked = -1};
    if (text == NULL)
        return 0;
    if (sscanf(text, "%16" SCNx64 " %" SCNd64, &chain->value, &chain->begin) != 2)
        return LOCKSTEP_WEIGHTS;
    ls_chain_write(chain, again);
    bool good = strcmp(text, again) == 0 && chain->begin >= 0 && chain->begin <= iteration;
    return good ? 0 : LOCKSTEP_WEIGHTS;
}
