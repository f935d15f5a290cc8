/* The public interface: plugins.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "layers/plugins.h"

int lockstep_plugin_load(const char *path, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_plugin_load(path, ls_api_error(error));
}
