/* Boxes that a net finds in pictures: what a model keeps of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_BOXES_H
#define LS_API_BOXES_H

struct ls_found_boxes;

void ls_found_boxes_free(struct ls_found_boxes *found); /* NULL: nothing */

#endif
