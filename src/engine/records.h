/* Records of a pass in the memory of a device that has memory of its own: what micro-batches have
 * measured stays there, and is read in one go when all of them are done.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_RECORDS_H
#define LS_ENGINE_RECORDS_H

#include "engine/pass.h"

/* For all units of a pass; nothing to do where the device's memory is the host's. */
int ls_records_create(struct ls_pass *pass, struct ls_error *error);
void ls_records_free(struct ls_pass *pass);
/* What that takes there. */
size_t ls_records_bytes(const struct ls_net *net);

/* Where the device keeps the record of a unit. */
double *ls_records_place(const struct ls_pass *pass, size_t unit);
/* Brings the records of all units that were run to the host. Their streams have been waited for. */
int ls_records_fetch(struct ls_pass *pass, struct ls_error *error);
/* That of one unit. */
int ls_records_fetch_unit(struct ls_pass *pass, size_t unit, struct ls_error *error);

#endif
