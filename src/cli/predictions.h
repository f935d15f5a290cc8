/* Predictions as text, JSON or CSV.
 *
 *   text   the input's name, then a line for each of the best classes
 *   JSON   one array of {"input": ..., "label": ..., "predictions": [{"class": 3, "name": ...,
 *          "value": 0.98}, ...]}
 *   JSONL  these objects without the array, each on a line
 *   CSV    input,label,rank,class,name,value: a line for each of the best classes
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_PREDICTIONS_H
#define LS_CLI_PREDICTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lockstep/lockstep.h"
#include "monitor/json.h"

enum ls_cli_format {
    LS_CLI_FORMAT_TEXT,
    LS_CLI_FORMAT_JSON,
    LS_CLI_FORMAT_JSONL,
    LS_CLI_FORMAT_CSV
};

struct ls_cli_predictions {
    FILE *out;
    enum ls_cli_format format;
    const struct lockstep_model *model; /* knows the classes' names */
    size_t size;                        /* numbers of a prediction */
    size_t top;                         /* how many of them are printed */
    size_t *order;                      /* indices, the largest value first; see ls_cli_rank */
    bool warned;                        /* of a number that is not finite */
    struct ls_json_writer json;
};

/* `top` is cut to the size of a prediction. LOCKSTEP_RESOURCE after a message. */
int ls_cli_predictions_begin(struct ls_cli_predictions *predictions, FILE *out,
                             enum ls_cli_format format, const struct lockstep_model *model,
                             size_t top);
/* One input's; label < 0: not known. */
void ls_cli_predictions_put(struct ls_cli_predictions *predictions, const char *input, int label,
                            const float *values);
void ls_cli_predictions_end(struct ls_cli_predictions *predictions);

/* Puts the indices of the `top` largest values first in predictions->order; of equal values the
 * first one first, and what is not a number last. */
void ls_cli_rank(struct ls_cli_predictions *predictions, const float *values);

/* The name of a class, or its number where it has no name, in `buffer` of at least 24 bytes. */
const char *ls_cli_class_name(const struct lockstep_model *model, size_t index, char *buffer);

#endif
