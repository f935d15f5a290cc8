/* Predictions for files, folders, lists and arrays, with progress and a summary.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_PREDICT_EACH_H
#define LS_CLI_PREDICT_EACH_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/options.h"
#include "cli/predictions.h"
#include "lockstep/lockstep.h"

struct ls_cli_predict_each {
    const struct ls_cli_list *inputs, *lists; /* in this order */
    struct ls_cli_predictions *predictions;   /* gets them */
    bool skip_damaged;                        /* an input that cannot be read is no failure */
    const char *output_file;                  /* where predictions go; NULL: stdout */
};

/* Reads what there is to predict for. 0, or the status after a message. */
int ls_cli_read_inputs(const struct ls_cli_predict_each *each, struct lockstep_inputs **inputs);
/* Predicts for it. What cannot be read is told at once, and the others go on. 0, or the first
 * failure after a message. *whole: all that can be read was predicted, and that is something. */
int ls_cli_predict_each(const struct ls_cli_predict_each *each, struct lockstep_model *model,
                        const struct lockstep_inputs *inputs, bool *whole);

#endif
