/* Data sets whose records lie in the memory of a device that has memory of its own.
 *
 * They are brought there once, before the first micro-batch is decoded; micro-batches are made
 * there of draws (data/resident.h). Which data sets do so is decided from sizes that are known
 * before anything is allocated: those that may (ls_dataset_stays_away), one after the other as long
 * as all of them are within a part of the device's memory, and none where plans would have to be
 * smaller for it. Where they lie changes no bit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_RESIDENTS_H
#define LS_ENGINE_RESIDENTS_H

#include "device/samples.h"
#include "engine/net.h"

enum { LS_RESIDENT_PARTS = 4 /* one of so many of the device's memory */ };

struct ls_residents;

/* Decides for nets that share the memory of a device; 0 bytes: none lies there. */
int ls_residents_choose(struct ls_net *const *nets, size_t count, size_t memory,
                        struct ls_error *error);
void ls_residents_free(struct ls_net *net);

/* What they take of the device's memory, whether they are there or will be. */
size_t ls_residents_bytes(const struct ls_net *net);
size_t ls_residents_dataset_bytes(const struct ls_net *net, int dataset);
/* Whether a data set's records lie there, or why they do not, in words that follow "because". */
bool ls_residents_has(const struct ls_net *net, int dataset, const char **why);
/* Brings them there. A data set with a record that cannot be read, or that there is no memory for
 * after all, stays where it is: then the reader of that record reports it. */
int ls_residents_load(const struct ls_net *net, struct ls_error *error);

/* As in struct ls_prefetcher_options; `planned`: as if those were there that will be. */
const uint64_t *const *ls_residents_hashes(const struct ls_net *net, bool planned);
/* By input of the net's graphs: how the device makes it; NULL where that is copied, or for all. */
const struct ls_sample_making *const *ls_residents_making(const struct ls_net *net);

#endif
