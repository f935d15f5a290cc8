/* Rows that are left out: what a Filter layer does not select.
 *
 * How many rows a Filter layer selects is known when it runs, shapes before. So all rows stay, and
 * `selected` of a value says which are there. What a layer computes from each row by itself it
 * computes from all of them; a Filter layer makes those that are left out zeros, so that this goes
 * well. Nothing counts them: a loss takes them for labels that are ignored, or for distances of 0,
 * and divides by the number of the others. Their gradients are 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_FILTER_H
#define LS_IR_FILTER_H

#include "ir/layer.h"

/* What COUNT_LABELS takes to count the rows that are selected. */
extern const struct ls_loss_attr ls_selected_rows;

/* Emits FILTER; `selected` may be NULL. */
void ls_filter_emit(struct ls_graph *graph, struct ls_value *x, struct ls_value *selected,
                    float left_out, struct ls_value *y);

/* A new value: `value` with rows that are left out made `left_out`, for an op that would count
 * them; the value itself where all rows are there. */
struct ls_value *ls_filter_fill(struct ls_graph *graph, struct ls_value *value, float left_out);

/* What hands `gradient`, one of `value`, on without the rows of `value` that are left out. */
struct ls_value *ls_filter_fill_gradient(struct ls_graph *graph, const struct ls_value *value,
                                         struct ls_value *gradient);

/* The same as ls_filter_fill for labels, whose rows become labels that are ignored:
 * *ignore_label, which is set where there was none. */
struct ls_value *ls_filter_fill_labels(struct ls_graph *graph, struct ls_value *label,
                                       bool *has_ignore, int *ignore_label);

/* Counts the selected rows of a value with some left out, while the pass runs: where in the record.
 */
int ls_filter_count(struct ls_graph *graph, const struct ls_value *value);

/* What selects the rows of the layer's bottoms; NULL: all rows are there. */
struct ls_value *ls_filter_of(const struct ls_layer *layer);

/* Before a layer is set up: refuses bottoms with rows left out that it cannot take, or that are not
 * the same rows. */
int ls_filter_check(const struct ls_layer *layer, struct ls_error *error);
/* For a layer that hands them on, but not with these parameters. */
int ls_filter_refuse(const struct ls_layer *layer, struct ls_error *error, const char *because);
/* When it is set up: its values, from number `first` of the graph on, have the same rows left out.
 */
int ls_filter_hand_on(struct ls_layer *layer, size_t first, struct ls_error *error);

#endif
