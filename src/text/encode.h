/* What an encoder is made of.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_ENCODE_H
#define LS_TEXT_ENCODE_H

#include "text/model.h"
#include "text/normal.h"

struct ls_encoder {
    const struct ls_tokenizer *tokenizer;
    struct ls_matcher *matcher;
    struct ls_pattern *word; /* a character of a word */
    struct ls_normal_room normal;
    struct ls_text pieces[LS_STAGES_MAX]; /* what a stage makes of a piece */
    struct ls_model_room model;
    struct ls_ids ids[2];        /* of the two texts */
    struct ls_ids out, segments; /* with the template */
};

/* Makes tokens of a piece behind the normalizers, from a stage on. */
enum ls_found ls_stages_run(struct ls_encoder *encoder, size_t stage, const char *piece,
                            size_t length, struct ls_ids *ids);

#endif
