/* Small trainings on cards of the fake, for tests of many of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_CARD_TRAININGS_H
#define LS_TESTS_CUDA_CARD_TRAININGS_H

#include "trainings/training.h"

enum { CARD_RANKS_MAX = 4, CARD_BYTES = 1 << 26 };

/* How data get to the cards. */
enum card_data { CARD_DATA_MADE, CARD_DATA_PINNED, CARD_DATA_PAGEABLE, CARD_DATA_WAYS };

struct card_net {
    const char *name;
    const char *settings; /* of the solver */
    const char *(*text)(void);
};
extern const struct card_net card_nets[];
extern const int card_net_count;

/* Ranks with a card and so many workers each. */
struct card_run {
    int ranks, cards[CARD_RANKS_MAX], workers;
    enum card_data data;
    const char *prefix, *resume;
    uint64_t memory; /* --memory; 0: no limit */
    uint64_t *hash;  /* of the weights at the end; NULL: it is not wanted */
};

/* Writes what the nets read. */
void card_write_data(void);
struct lockstep_solver *card_solver(const struct card_net *net, const char *settings);
/* Trains to the end of the solver, on cards of the fake, which has begun; the status. */
int card_train(const struct lockstep_solver *solver, const struct card_run *run,
               struct lockstep_error *error);
/* The file of a snapshot in the test's folder. */
const char *card_snapshot(const char *prefix, int64_t iteration);

#endif
