/* lockstep draw: a net as a picture in SVG, which browsers show.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/net.h"
#include "cli/net_picture.h"
#include "cli/output_file.h"
#include "cli/report.h"

struct values {
    struct ls_cli_net_values net;
    const char *output, *theme;
};

static int draw(const struct values *values, const struct lockstep_net *net, FILE *out)
{
    return ls_cli_draw_net(net, values->theme, out) ? 0 : ls_cli_no_memory();
}

/* A device or a pipe is written to; a file is there as a whole. */
static int draw_to_special(const struct values *values, const struct lockstep_net *net)
{
    FILE *out = ls_cli_output_stream(values->output, LOCKSTEP_FILE_ANEW, true);
    if (out == NULL)
        return LOCKSTEP_RESOURCE;
    int status = draw(values, net, out);
    const bool failed = ferror(out) != 0;
    if ((fclose(out) != 0 || failed) && status == 0)
        status = ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot write: %s", values->output,
                              strerror(errno));
    return status;
}

static int draw_to_file(const struct values *values, const struct lockstep_net *net)
{
    struct ls_cli_output_file file;
    struct stat info;
    if (stat(values->output, &info) == 0 && !S_ISREG(info.st_mode))
        return draw_to_special(values, net);
    int status = ls_cli_output_open(values->output, &file);
    if (status != 0)
        return status;
    status = draw(values, net, file.stream);
    if (status == 0)
        return ls_cli_output_commit(&file);
    ls_cli_output_abandon(&file);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_net *net = NULL;
    const char *theme = values->theme;
    if (theme != NULL && strcmp(theme, "light") != 0 && strcmp(theme, "dark") != 0 &&
        strcmp(theme, "auto") != 0)
        return ls_cli_usage_error("draw: --theme '%s' is none of light, dark and auto", theme);
    int status = ls_cli_check_output("draw", values->output, &values->net.model, 1);
    if (status == 0)
        status = ls_cli_load_net("draw", &values->net, &net);
    if (status == 0)
        status = values->output != NULL ? draw_to_file(values, net) : draw(values, net, stdout);
    lockstep_net_free(net);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_NET_OPTIONS(struct values, net),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "FILE", struct values, output, 0,
               "where to write the picture (also -o); default: standard output"),
    LS_CLI_CHOICE("theme", "NAME", struct values, theme, "light dark auto",
                  "light, dark, or auto, which follows the browser; default: auto"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_draw = {
    .name = "draw",
    .summary = "draws a net as SVG: layers, shapes, parameters, cost, memory",
    .usage = "--model FILE [-o FILE.svg] [OPTIONS]",
    .options = options,
    .example = "lockstep draw --model train_val.prototxt -o net.svg",
    .run = run,
    .values_size = sizeof(struct values),
};
