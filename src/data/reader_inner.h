/* A reader of a data set: for src/data/reader*.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_READER_INNER_H
#define LS_DATA_READER_INNER_H

#include "data/dataset_inner.h"
#include "data/order.h"
#include "data/reader.h"

struct ls_reader {
    struct ls_dataset *dataset;
    struct ls_source_reader *source;
    struct ls_order order; /* of the epoch that was read last; count 0: none yet */
    struct ls_augment_room room;
    struct ls_buffer sample; /* tensors of one that do not lie in one piece where they go */
    int64_t last;            /* record that was fetched last */
    uint64_t hash;
    bool replaced;          /* another one was read in its place */
    bool trusts;            /* see ls_reader_trust */
    struct ls_error *aside; /* what is wrong with a bad record; NULL: bad records are errors */
};

/* Reads tensors of the record behind an ordinal, as they are in the data. */
int ls_reader_record(struct ls_reader *reader, int64_t ordinal, uint32_t wanted,
                     struct ls_record *record, struct ls_error *error);
/* The same at a place of the split. */
int ls_reader_place(struct ls_reader *reader, int64_t place, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error);

#endif
