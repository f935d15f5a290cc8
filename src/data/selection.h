/* The records that a tool goes through: a source opened from public options, its split and order.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SELECTION_H
#define LS_DATA_SELECTION_H

#include "data/class_names.h"
#include "data/order.h"
#include "data/source.h"
#include "lockstep/lockstep.h"

struct ls_selection {
    struct ls_source *source;
    struct ls_source_reader *reader;
    uint32_t *records; /* of the split; NULL: all */
    int64_t count;
    bool shuffle;
    bool any_size; /* records may differ in size */
    struct ls_order order;
    const struct lockstep_callbacks *callbacks;
};

/* Classes get the numbers that they are known by (NULL: those of the source). */
int ls_selection_open(const struct lockstep_source_options *options,
                      const struct ls_class_names *known, struct ls_selection *selection,
                      struct ls_error *error);
/* Fails where the records of a source are none that a database or a mean is made of. */
int ls_selection_check(const struct lockstep_source_options *options, struct ls_error *error);
void ls_selection_close(struct ls_selection *selection);
/* The source's index of the i-th record. */
int64_t ls_selection_index(const struct ls_selection *selection, int64_t i);
/* Reads the i-th record, which must have the shape of the first (unless any will do). */
int ls_selection_read(struct ls_selection *selection, int64_t i, struct ls_record *record,
                      struct ls_error *error);
/* To be called after `done` records: reports every 1000 and at the end, and asks whether to go
 * on. */
int ls_selection_progress(const struct ls_selection *selection, int64_t done,
                          struct ls_error *error);

#endif
