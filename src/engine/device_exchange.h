/* The connection between the devices of a job's ranks (device/collectives.h), as the reducer uses
 * it: for the files of the reducer only.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_DEVICE_EXCHANGE_H
#define LS_ENGINE_DEVICE_EXCHANGE_H

#include "device/device.h"
#include "transport/comm.h"

struct ls_device_exchange;

/* All ranks call it. *exchange: NULL, and success, where the device offers none, or ranks share
 * one. LOCKSTEP_EXCHANGE=host in the environment of any rank has the same effect. */
int ls_device_exchange_create(const struct ls_device *device, struct ls_comm *comm,
                              struct ls_device_exchange **exchange, struct ls_error *error);
void ls_device_exchange_free(struct ls_device_exchange *exchange); /* NULL: nothing to free */

/* As in struct ls_collective: `lane` is its own. A failure is told by transport->failure. */
int ls_device_exchange_reduce(struct ls_device_exchange *exchange, int lane, int64_t *sums,
                              const size_t *cut, struct ls_event *const *after, int count,
                              struct ls_transport *transport);
int ls_device_exchange_gather(struct ls_device_exchange *exchange, int lane, float *numbers,
                              const size_t *cut, struct ls_transport *transport);
enum ls_transport_result ls_device_exchange_test(struct ls_device_exchange *exchange, int lane,
                                                 struct ls_transport *transport);

#endif
