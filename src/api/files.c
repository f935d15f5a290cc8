/* The public interface: what is in files. See include/lockstep/files.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/options.h"
#include "inspect/diff.h"
#include "inspect/list.h"
#include "inspect/show.h"

int lockstep_diff(const char *first, const char *second, void (*tell)(void *user, const char *line),
                  void *user, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_diff(first, second, tell, user, ls_api_error(error));
}

int lockstep_list_snapshots(const char *prefix,
                            void (*tell)(void *user, const struct lockstep_listed_snapshot *),
                            void *user, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_list_snapshots(prefix, tell, user, ls_api_error(error));
}

void lockstep_show_options_init(struct lockstep_show_options *options)
{
    *options = (struct lockstep_show_options){.struct_size = sizeof *options, .records = -1};
}

int lockstep_show(const char *path, const struct lockstep_show_options *options,
                  struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_show_options mine;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_show_options_init", inner));
    return ls_show(path, &mine, inner);
}
