/* The public interface: what is in files. See include/lockstep/files.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "inspect/diff.h"
#include "inspect/list.h"

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
