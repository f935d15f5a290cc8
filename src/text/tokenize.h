/* Files of text become files of ids, or back: what lockstep_tokenize does.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_TOKENIZE_H
#define LS_TEXT_TOKENIZE_H

#include "lockstep/text.h"
#include "text/token_input.h"
#include "text/token_output.h"
#include "text/tokenizer.h"

struct ls_tokenize {
    const struct lockstep_tokenize_options *options;
    struct lockstep_tokenize_counts *counts;
    struct ls_tokenizer *tokenizer;
    struct ls_encoder *encoder;
    struct ls_error *error;
    enum ls_token_format format;
    bool lines; /* each is a document */
    bool has_separator;
    uint32_t separator;
    unsigned char *seen; /* by id: it has occurred */
    uint64_t told;       /* bytes, at the last sign of life */
};

int ls_tokenize(const struct lockstep_tokenize_options *options,
                struct lockstep_tokenize_counts *counts, struct ls_error *error);

/* Counts what was read and made of it, and tells of it now and then. */
int ls_tokenize_note(struct ls_tokenize *work, const char *text, size_t length, const uint32_t *ids,
                     size_t count);

/* The other two things that it does, in files of their own. */
int ls_tokenize_pairs(struct ls_tokenize *work);
int ls_tokenize_decode(struct ls_tokenize *work);

#endif
