/* Suggestions where a word is unknown.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SUGGEST_H
#define LS_CLI_SUGGEST_H

/* The candidate nearest to `word` if it is near enough to suggest, else NULL; `candidates` ends
 * with NULL. */
const char *ls_cli_suggest(const char *word, const char *const *candidates);

#endif
