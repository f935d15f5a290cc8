/* A rank's trace in Chrome's JSON (the "trace event format"), which Perfetto reads.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OBSERVE_TIMELINE_TEXT_H
#define LS_OBSERVE_TIMELINE_TEXT_H

#include "base/text.h"
#include "base/timeline.h"

/* When an exchange begins and ends on a rank, on the clock of all. */
struct ls_timeline_span {
    int64_t begin, end;
};

struct ls_timeline_rank {
    int rank, ranks;
    const char *host;
    int64_t offset;     /* nanoseconds, to be added to this rank's clock */
    int64_t zero;       /* the time that is 0 in the file, on the clock of all */
    uint32_t exchanges; /* those below this number are in the traces of all ranks */
    /* [ranks][exchanges], which all ranks know: arrows lead from one rank to another only where
     * that ends after the other has begun. NULL: no exchange has arrows to other ranks. */
    const struct ls_timeline_span *spans;
};

/* The number of exchanges that are recorded without a gap, from the first one on. */
int ls_timeline_exchanges(const struct ls_timeline *trace, uint32_t *count, struct ls_error *error);
/* Writes the spans of this rank's exchanges to rank->exchanges places. */
void ls_timeline_spans(const struct ls_timeline *trace, const struct ls_timeline_rank *rank,
                       struct ls_timeline_span *spans);
/* Adds an object for each event, with a comma and the end of a line behind it. */
int ls_timeline_write(const struct ls_timeline *trace, const struct ls_timeline_rank *rank,
                      struct ls_text *text, struct ls_error *error);

#endif
