/* The public interface: pruning.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/options.h"
#include "snapshot/prune.h"

void lockstep_prune_options_init(struct lockstep_prune_options *options)
{
    *options = (struct lockstep_prune_options){.struct_size = sizeof *options};
}

int lockstep_prune(const char *weights, const char *path,
                   const struct lockstep_prune_options *options, int64_t *size, int64_t *masked,
                   struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_prune_options mine;
    LS_TRY(ls_api_require(weights, "weights", inner));
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_prune_options_init", inner));
    const struct ls_prune_request request = {.sparsity = mine.sparsity,
                                             .layers = mine.layers,
                                             .layer_count = mine.layer_count,
                                             .global = mine.global != 0,
                                             .tell = mine.tell,
                                             .user = mine.user};
    return ls_prune(weights, path, &request, size, masked, inner);
}
