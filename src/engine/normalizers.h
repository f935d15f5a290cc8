/* The divisors of losses: true counts over all micro-batches of an update.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_NORMALIZERS_H
#define LS_ENGINE_NORMALIZERS_H

#include "engine/pass.h"

int ls_normalizers_create(struct ls_pass *pass, struct ls_error *error);
void ls_normalizers_free(struct ls_pass *pass);
/* The divisors for the listed units; where labels must be counted, a pass of its own. */
int ls_normalizers_find(struct ls_pass *pass, struct ls_error *error);
/* Of one whose labels are counted at a sync point of the pass: other ranks' counts, then the sum.
 */
int ls_normalizers_share_count(struct ls_pass *pass, int sync, struct ls_error *error);
void ls_normalizers_merge_count(struct ls_pass *pass, int sync);

#endif
