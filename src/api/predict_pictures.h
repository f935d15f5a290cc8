/* What reading pictures for predictions takes. See struct lockstep_model.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PREDICT_PICTURES_H
#define LS_API_PREDICT_PICTURES_H

#include "api/model.h"

void ls_model_free_pictures(struct lockstep_model *model);

#endif
