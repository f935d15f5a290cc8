/* Which classes a net takes for which: what a model keeps of it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_CONFUSION_H
#define LS_API_CONFUSION_H

struct ls_confusion;

void ls_confusion_free(struct ls_confusion *confusion); /* NULL: nothing */

#endif
