/* What a source has. See lockstep_source_survey of lockstep/data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SURVEY_H
#define LS_DATA_SURVEY_H

#include "base/error.h"
#include "data/class_names.h"
#include "lockstep/lockstep.h"

/* Classes have the numbers that they are known by (NULL: those of the source). */
int ls_survey(const struct lockstep_source_options *options, const struct ls_class_names *known,
              struct lockstep_source_facts *facts, struct ls_error *error);

#endif
