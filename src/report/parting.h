/* Where two trainings part. See include/lockstep/log.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_PARTING_H
#define LS_REPORT_PARTING_H

#include "report/log.h"

void ls_log_compare(const struct lockstep_log *a, const struct lockstep_log *b,
                    struct lockstep_parting *parting);

#endif
