/* Moving averages of batch statistics: one set, advanced once for each group of an update, in the
 * order of batches and groups, from partial results that were kept. See struct ls_averages.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_AVERAGES_H
#define LS_ENGINE_AVERAGES_H

#include "engine/pass.h"

int ls_averages_create(struct ls_pass *pass, struct ls_error *error);
void ls_averages_free(struct ls_pass *pass);
/* What the averages become is found before the weights change, and written afterwards. */
int ls_averages_find(struct ls_pass *pass, int64_t iteration, struct ls_error *error);
int ls_averages_publish(struct ls_pass *pass, struct ls_error *error);

#endif
