/* Nets as they are built: upgraded, and filtered for a state (phase, level, stages).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_NET_H
#define LS_SCHEMA_NET_H

#include <stdint.h>

#include "schema/definition.h"

/* How the precision of what is found, the best first, is averaged over the recall. */
enum ls_average_precision {
    LS_PRECISION_INTEGRAL,     /* each step of the recall times the precision there */
    LS_PRECISION_MAX_INTEGRAL, /* times the best precision at that recall or a higher one */
    LS_PRECISION_11_POINT      /* the mean of the best precisions at recalls 0, 0.1, ... 1 */
};

/* A net for one state. */
struct ls_net_definition {
    /* `layer` holds the layers of this state in order, each with `phase` set; include and exclude
     * rules are left in place and have done their work; `state` is the complete state. Owned by
     * `definition`. */
    const Lockstep__NetParameter *net;
    /* Where it was read: for places, and for ls_resolve_path(path, definition->file). Owned by
     * the code that read it. */
    struct ls_definition *definition;
    Lockstep__Precision precision; /* the solver's: of layers that do not say their own */
    bool portable;                 /* the same: the solver's algorithm is PORTABLE */
    bool debug_info;               /* the same: blobs and gradients are measured */
    bool data_gradients; /* in training the first tops of data layers have gradients, too */
    enum ls_average_precision average_precision; /* the same, of ap_version */
    bool class_figures;                          /* the same: show_per_class_result */
    /* Its data are dummy data: without weights, layers that normalise by saved averages find a mean
     * of 0 and a variance of 1. */
    bool dummy;
    /* Of a net that computes some tokens of a text at a time: of how many its attention keeps keys
     * and values; 0: it keeps none. */
    int64_t cached;
    int32_t test_iter; /* of a solver's test net: batches to test; 0: every sample once */
    const Lockstep__NetParameter *all; /* with the layers of all states */
    /* Not 0: problems of reading it, which have been reported. Layers are damaged then
     * (ls_definition_is_damaged); the net can be looked at for more problems, and what is built of
     * it fails with this status. */
    int status;
};

/* What a solver says of all of its nets: of precision, products and what tests show. */
void ls_net_take_solver(struct ls_net_definition *net, const Lockstep__SolverParameter *solver);

/* What include and exclude rules are held against. */
struct ls_net_state {
    Lockstep__Phase phase;
    int level;
    const char *const *stages;
    size_t stage_count;
};

/* Filters a net of `definition` (already upgraded) by Caffe's rules: a layer with include rules is
 * there if any of them holds, one with exclude rules unless any of them holds; both together are
 * an error, and so are a layer's `phase` that is not the net's. A rule holds if
 * everything that it says does. The result shares its parts with the original. */
int ls_net_filter(struct ls_definition *definition, const Lockstep__NetParameter *net,
                  const struct ls_net_state *state, struct ls_net_definition *out,
                  struct ls_error *error);

/* Reads, upgrades and filters a net for use without a solver. What could be read in spite of
 * problems is there, with out->status, so that what is built of it tells of all in one go. `path`
 * is a net in text or binary form, or a solver: then the net is its first test net, with that net's
 * state, or else the net that it trains. `state` adds to what the file says: its phase, its level
 * unless 0, its stages. Free with ls_definition_free(out->definition). */
int ls_net_read(const char *path, const struct ls_net_state *state, struct ls_net_definition *out,
                struct ls_error *error);

#endif
