/* A page in HTML of one or several logs. See include/lockstep/log.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_PAGE_H
#define LS_REPORT_PAGE_H

#include "report/log.h"

extern const char ls_page_style[], ls_page_script[];

/* What a page is made of. */
struct ls_page {
    struct ls_text *out;
    const struct lockstep_log *const *logs;
    int count; /* at most LS_CHART_RUNS */
    const char *const *names;
    const struct lockstep_page_options *options;
};

/* Sections; each writes nothing where there is nothing to tell. */
void ls_page_curves(const struct ls_page *page);
void ls_page_summary(const struct ls_page *page);
void ls_page_parting(const struct ls_page *page);
void ls_page_parameters(const struct ls_page *page);
void ls_page_spreads(const struct ls_page *page);
void ls_page_facts(const struct ls_page *page);
void ls_page_messages(const struct ls_page *page);
void ls_page_confusion(const struct ls_page *page);
int ls_page_pictures(const struct ls_page *page, struct ls_error *error);
int ls_page_times(const struct ls_page *page, struct ls_error *error);

int ls_page_write(const char *path, const struct lockstep_log *const *logs, size_t count,
                  const struct lockstep_page_options *options, struct ls_error *error);

#endif
