/* Requirements of every transport between ranks. Each function is called by all ranks of a job;
 * it returns 0, or the line of transports.c at which a check failed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_LINKS_H
#define LS_TESTS_LINKS_H

#include "transport/transport.h"

/* Gathers and exchanges, one after the other, of uneven blocks, some of them empty. */
int ls_test_transport_in_turn(struct ls_transport *transport);
/* Several under way on both channels, waited for in another order on each rank. */
int ls_test_transport_at_once(struct ls_transport *transport);
/* Two threads, one for each channel, and messages between. */
int ls_test_transport_two_threads(struct ls_transport *transport);
/* Blocks of `bytes` bytes, a multiple of 4. */
int ls_test_transport_large(struct ls_transport *transport, size_t bytes);
/* Messages between all ranks, each to itself too, which come in order. */
int ls_test_transport_messages(struct ls_transport *transport);

#endif
