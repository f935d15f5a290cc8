/* What a source has. See lockstep_source_survey of lockstep/data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SURVEY_H
#define LS_DATA_SURVEY_H

#include "base/error.h"
#include "lockstep/lockstep.h"

int ls_survey(const struct lockstep_source_options *options, struct lockstep_source_facts *facts,
              struct ls_error *error);

#endif
