/* Sequences for small random networks: data of windows, documents and records, attention, gated
 * units, tied tables, losses over many classes. See random_net.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_SEQUENCES_H
#define LS_TESTS_RANDOM_SEQUENCES_H

#include "trainings/random_layers.h"

/* Files of a stream of ids, a text, and records of two lengths. */
void write_random_sequences(void);

/* The layers of a net, from its data to its losses. */
void emit_sequences(struct random_net *net);

#endif
