/* What a page shows beside the log. See cli/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/net_picture.h"
#include "cli/report.h"

/* A whole text file, of at most 16 MiB; it ends before a NUL. */
static int read_text(const char *path, char **text)
{
    enum { LIMIT = 16 << 20 };
    FILE *file = fopen(path, "re");
    char *read = file != NULL ? malloc((size_t)LIMIT + 1) : NULL;
    *text = NULL;
    if (file == NULL)
        return ls_cli_error(LOCKSTEP_USAGE, "%s: cannot open: %s", path, strerror(errno));
    const size_t length = read != NULL ? fread(read, 1, LIMIT, file) : 0;
    const bool failed = ferror(file) != 0, more = length == LIMIT;
    fclose(file);
    if (read == NULL || failed || more) {
        free(read);
        return more ? ls_cli_error(LOCKSTEP_USAGE, "%s: is larger than 16 MiB", path)
                    : ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot be read", path);
    }
    read[length] = '\0';
    char *small = realloc(read, length + 1);
    *text = small != NULL ? small : read;
    return 0;
}

bool ls_cli_page_draw(struct ls_cli_page *page, const char *model,
                      const struct lockstep_dummy_options *dummy, struct lockstep_error *error)
{
    struct lockstep_net_options options;
    struct lockstep_net *net;
    size_t size;
    lockstep_net_options_init(&options);
    options.phase = "TRAIN";
    options.dummy = dummy;
    int status = lockstep_net_load(model, &options, &net, error);
    if (status != 0) { /* a net without a training phase */
        options.phase = NULL;
        status = lockstep_net_load(model, &options, &net, error);
    }
    if (status != 0)
        return false;
    FILE *out = open_memstream(&page->net, &size);
    bool drawn = out != NULL && ls_cli_draw_net(net, "auto", out);
    if (out != NULL)
        drawn = fclose(out) == 0 && drawn;
    lockstep_net_free(net);
    if (!drawn) {
        free(page->net);
        page->net = NULL;
    }
    return drawn;
}

/* The text of a solver with its net; else that of the file, which is a net's. */
static int read_definition(struct ls_cli_page *page, const char *model)
{
    struct lockstep_solver *solver;
    if (lockstep_solver_load(model, NULL, 0, &solver, NULL) == 0) {
        const char *text = lockstep_solver_text(solver, NULL);
        page->definition = text != NULL ? strdup(text) : NULL;
        lockstep_solver_free(solver);
    }
    return page->definition != NULL ? 0 : read_text(model, &page->definition);
}

int ls_cli_page_read(struct ls_cli_page *page, const char *model, const char *times)
{
    int status = 0;
    *page = (struct ls_cli_page){.net = NULL};
    if (model != NULL)
        status = read_definition(page, model);
    if (status == 0 && model != NULL) {
        struct lockstep_error *error = lockstep_error_new();
        if (!ls_cli_page_draw(page, model, NULL, error)) {
            ls_cli_put_lines(lockstep_error_text(error));
            ls_cli_put_lines("the page goes without the net's graph");
        }
        lockstep_error_free(error);
    }
    if (status == 0 && times != NULL)
        status = read_text(times, &page->times);
    return status;
}

void ls_cli_page_free(struct ls_cli_page *page)
{
    free(page->definition);
    free(page->net);
    free(page->times);
}
