/* Small random networks: text of a solver with its net, valid by construction, a function of a
 * seed. Every kind of layer, odd extents, branches, shared parameters, several losses.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_NET_H
#define LS_TESTS_RANDOM_NET_H

#include "base/text.h"
#include "trainings/training.h"

/* Files that random nets read: write them once. */
void write_random_net_data(void);

/* Text of a solver; free it with ls_text_free. An update has at least 7 micro-batches. */
struct ls_text make_random_net(uint64_t seed);

/* The same of layers that Caffe and its forks have beside the usual ones; in some nets they mix the
 * samples of a batch. */
struct ls_text make_random_caffe_net(uint64_t seed);

/* The same of layers of sequences, over windows of texts, documents or records, whose lengths may
 * differ. */
struct ls_text make_random_sequence_net(uint64_t seed);

/* The net of make_random_net with layers in FP32, in BF16, and in the precision of the solver,
 * drawn too. */
struct ls_text make_random_mixed_net(uint64_t seed);

#endif
