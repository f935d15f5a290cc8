/* A net as a picture in SVG, which browsers show: by itself, or as a part of a page.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_NET_PICTURE_H
#define LS_CLI_NET_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include "lockstep/lockstep.h"

/* Writes an <svg> element whose styles are for it alone. `theme`: "light", "dark", or "auto" (also
 * NULL), which follows the browser. False: no memory. */
bool ls_cli_draw_net(const struct lockstep_net *net, const char *theme, FILE *out);

#endif
