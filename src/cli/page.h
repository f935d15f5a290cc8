/* What a page of a training shows beside its log: the definition, the net, times.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_PAGE_H
#define LS_CLI_PAGE_H

#include <stdbool.h>

#include "lockstep/lockstep.h"

/* Texts, each NULL where there is none. */
struct ls_cli_page {
    char *definition, *net, *times;
};

/* Reads what files there are; `model` and `times` may be NULL. 0, or a status after a message. A
 * net that cannot be loaded, because its data are not there for example, is a warning, and the page
 * goes without its graph. */
int ls_cli_page_read(struct ls_cli_page *page, const char *model, const char *times);
/* Draws the net alone; `dummy` and `error` may be NULL. False: it cannot be loaded. */
bool ls_cli_page_draw(struct ls_cli_page *page, const char *model,
                      const struct lockstep_dummy_options *dummy, struct lockstep_error *error);
void ls_cli_page_free(struct ls_cli_page *page);

#endif
