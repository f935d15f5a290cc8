/* How a net does class by class, or box by box, and its worst samples as pictures for a page.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_WORST_H
#define LS_CLI_WORST_H

#include "cli/model.h"
#include "lockstep/lockstep.h"

struct ls_cli_worst {
    struct lockstep_model *model;               /* has the confusion */
    const struct lockstep_confusion *confusion; /* NULL for a net that finds boxes */
    const struct lockstep_found_boxes *found;   /* NULL for one that classifies */
    struct lockstep_page_picture *pictures;     /* with planes and captions of their own */
    size_t count;
    const char *title;
    char *weights; /* whose these are; NULL: not known */
};

/* Loads the model, compares its first `samples` samples (0: all) with their labels and draws the
 * `count` worst of them; boxes count from a score of `score` on. 0, or a status after a message. */
int ls_cli_worst_find(struct ls_cli_worst *worst, const struct ls_cli_model_values *values,
                      int64_t samples, size_t count, double score);
void ls_cli_worst_free(struct ls_cli_worst *worst);

#endif
