/* Nets with state per sample, for tests (trainings/state_layers.h): one whose state is known
 * without it, and some that train.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_STATE_NETS_H
#define LS_TESTS_STATE_NETS_H

#include "engine/sample_states.h"
#include "trainings/training.h"

enum { RECORDS = 23, STEPS = 3, FEATURES = 2, SAMPLE = STEPS * FEATURES };

/* For each case: writes the data of all nets to the test's folder, and lets definitions name the
 * layers. */
int set_up_states(void **state);

/* Number i of a record of NumPy's data: a whole one, so that sums are exact. */
float number_of(int64_t record, int i);
/* A net whose state is the sum over windows of what the data have, with samples along `axis`. */
struct lockstep_solver *make_counting(int axis, const char *batch, const char *settings);
const struct ls_sample_states *states_of(const struct training *training);
/* Adds to sums [row][step][feature] what the update's rows have of the data; rows beyond a batch's
 * samples have nothing. */
void add_update(const struct ls_batching *batching, int64_t update, float *sums);
/* Fails unless the state is `sums`. */
void check_sums(const struct training *training, int axis, const float *sums, const char *what);

/* Nets on pictures, with tests. */
struct state_net {
    const char *name, *settings, *data, *between;
};
enum { STATE_NETS = 4, GATHERED = STATE_NETS - 1 /* the one with gathered products */ };
extern const struct state_net state_nets[STATE_NETS];
struct lockstep_solver *solver_of(const struct state_net *net);
/* A Data layer of pictures for a phase, from the files that begin with `prefix`. */
const char *data_of(const char *phase, const char *prefix, const char *fields);

#endif
