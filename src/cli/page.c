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

/* The net as a drawing; without one where it cannot be loaded. */
static int draw(struct ls_cli_page *page, const char *model, struct lockstep_error *error)
{
    struct lockstep_net_options options;
    struct lockstep_net *net;
    size_t size;
    lockstep_net_options_init(&options);
    options.phase = "TRAIN";
    int status = lockstep_net_load(model, &options, &net, error);
    if (status != 0) {
        lockstep_net_options_init(&options);
        status = lockstep_net_load(model, &options, &net, error);
    }
    if (status != 0) {
        ls_cli_report(status, error);
        ls_cli_put_lines("the page goes without the net's graph\n");
        return 0;
    }
    FILE *out = open_memstream(&page->net, &size);
    bool drawn = out != NULL && ls_cli_draw_net(net, "auto", out);
    if (out != NULL)
        drawn = fclose(out) == 0 && drawn;
    lockstep_net_free(net);
    return drawn ? 0 : ls_cli_error(LOCKSTEP_RESOURCE, "out of memory");
}

int ls_cli_page_read(struct ls_cli_page *page, const char *model, const char *times)
{
    int status = 0;
    *page = (struct ls_cli_page){.net = NULL};
    if (model != NULL)
        status = read_text(model, &page->definition);
    if (status == 0 && model != NULL) {
        struct lockstep_error *error = lockstep_error_new();
        status = draw(page, model, error);
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
