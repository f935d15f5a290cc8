/* Outputs of a net as text.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_OUTPUTS_H
#define LS_MONITOR_OUTPUTS_H

#include <stdio.h>

#include "lockstep/lockstep.h"

/* One line for each figure, numbered through, as Caffe prints them; `what` is "Train net":
 *     Train net output #0: loss = 0.21 (* 1 = 0.21 loss) */
void ls_put_outputs(FILE *out, const char *what, const struct lockstep_output *outputs,
                    size_t count);

/* All in one line: " accuracy = 0.98, loss = 0.05"; of many figures the first ones. */
void ls_put_outputs_in_line(FILE *out, const struct lockstep_output *outputs, size_t count);

#endif
