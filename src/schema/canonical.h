/* The canonical definition: the text that a snapshot carries and a resume is compared with.
 *
 * It is the solver with its train net inside (train_net_param, filtered for its state) in canonical
 * text. What says where and on what a run happens is left out:
 * snapshot_prefix, weights, device_id, layer_wise_reduce, debug_info; and so are the test nets,
 * which do not determine training. The seed is the effective one. Paths (sources, folders, mean
 * files, matrices) are left out: files are known by what is in them, wherever they lie.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_CANONICAL_H
#define LS_SCHEMA_CANONICAL_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "base/text.h"
#include "schema/solver.h"

/* Appends the canonical text. `micro_batch` > 0 stands in for the solver's (for the resolved one,
 * so that the rule and its result compare equal). */
int ls_definition_canonical(const struct ls_solver_definition *solver, int32_t micro_batch,
                            struct ls_text *out, struct ls_error *error);

/* Appends the canonical text of one net, filtered for its state. */
int ls_net_canonical(const struct ls_net_definition *net, struct ls_text *out,
                     struct ls_error *error);
/* Whether a field of a message says where data lie. */
bool ls_canonical_is_path(const ProtobufCMessage *message, const char *field);

/* A field whose effective value differs between two canonical definitions. */
struct ls_change {
    char what[192];  /* "base_lr", "layer 'conv1': convolution_param.num_output" */
    char before[96]; /* values as text, cut where they are long; "unset" */
    char after[96];
    bool allowed; /* a resume may change it: learning rate, schedule, display, tests, snapshots */
    bool course;  /* allowed, and the training takes another course from then on: learning rates */
};

struct ls_changes {
    struct ls_change *change; /* at most 64, those that are not allowed first */
    size_t count;
    size_t forbidden; /* how many are not allowed (all, also beyond the list) */
};

/* Compares the canonical text of a snapshot with that of the definition at hand. Paths do not count
 * (older snapshots have some). Fails (status LOCKSTEP_WEIGHTS) if the first cannot be read, and
 * names the snapshot's `path` (may be NULL). Free with ls_changes_free. */
int ls_canonical_compare(const char *path, const char *before, size_t before_length,
                         const char *after, size_t after_length, struct ls_changes *changes,
                         struct ls_error *error);
void ls_changes_free(struct ls_changes *changes);

#endif
