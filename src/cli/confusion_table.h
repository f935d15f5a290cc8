/* Which classes a net takes for which, as text and as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CONFUSION_TABLE_H
#define LS_CLI_CONFUSION_TABLE_H

#include <stdio.h>

#include "lockstep/lockstep.h"
#include "monitor/json.h"

/* Precision, recall and more of each class, a line each. */
void ls_cli_put_class_figures(FILE *out, const struct lockstep_confusion *confusion);
/* The matrix where it has at most 24 classes, else the 24 cells beside the diagonal with the most
 * samples. */
void ls_cli_put_confusion(FILE *out, const struct lockstep_confusion *confusion);
/* Members "accuracy", "classes" and "confusion" of an object that is open. */
void ls_cli_put_confusion_json(struct ls_json_writer *json,
                               const struct lockstep_confusion *confusion);

#endif
