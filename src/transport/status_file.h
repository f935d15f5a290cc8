/* status.json: how a training stands or ended, for scripts that start it again or look after it.
 *
 *   {"status": "failed", "code": 9, "rank": 2, "host": "node7", "iteration": 410, "layer": "conv2",
 *    "message": "rank 2 (node7) died: ...", "warning": null, "ranks": 8,
 *    "time": "2026-01-31T12:00:00Z"}
 *
 * `status` is "running", "finished", "stopped" (by request, with a snapshot) or "failed"; `code`
 * the exit code, null while it runs; `rank` and `host` are those that the message is about.
 * Where audits have found that a core computes wrongly, there is "wrong": how often, and
 * "last_wrong": what, where and when.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_STATUS_FILE_H
#define LS_TRANSPORT_STATUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_STATUS_INTERVAL = 5 /* seconds at most between two files while a training runs */ };

struct ls_job_state {
    bool running;
    int code; /* enum lockstep_status */
    int rank, ranks;
    int64_t iteration;
    const char *host, *layer, *message; /* layer: NULL or "": none */
    int64_t wrong;                      /* computations, as audits have found; */
    const char *last_wrong;             /* where there are some */
    const char *warning;                /* the last one; NULL or "": there was none */
};

/* "status.json" in the folder of snapshots with this prefix, owned by the caller; NULL: no memory.
 */
char *ls_status_file_beside(const char *prefix);

/* Writes it so that a reader sees the old file or the new one, never half. */
int ls_status_file_write(const char *path, const struct ls_job_state *state,
                         struct ls_error *error);

#endif
