/* What predictions of a model need. See struct lockstep_model.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PREDICT_H
#define LS_API_PREDICT_H

#include "api/model.h"

/* The value that is a net's prediction, or that a blob holds in the end; NULL: there is none, or it
 * does not belong to samples. */
struct ls_value *ls_model_output(const struct ls_graph *graph, const char *blob);
/* Prepares predictions. */
int ls_model_init_predictions(struct lockstep_model *model, struct ls_error *error);
/* Fails where predictions cannot be made from one input; and where samples differ in size, as there
 * is room for those of one only. */
int ls_model_check_predict(const struct lockstep_model *model, struct ls_error *error);
int ls_model_check_one_size(const struct lockstep_model *model, struct ls_error *error);
/* lockstep_model_predict, in our own mode. */
int ls_model_predict(struct lockstep_model *model, const float *input, size_t count, float *output,
                     struct ls_error *error);
void ls_model_free_predictions(struct lockstep_model *model);

#endif
