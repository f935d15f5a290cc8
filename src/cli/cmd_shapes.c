/* lockstep shapes: the shapes of all that a net's layers make and learn.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/column.h"
#include "cli/commands.h"
#include "cli/net.h"
#include "monitor/json.h"
#include "monitor/terminal.h"

struct values {
    struct ls_cli_net_values net;
    int json;
};

enum { NAME = 28, TYPE = 18, TOP = 24, SHAPE = 24 };

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_parameters(const struct lockstep_net_layer *layer)
{
    char text[LS_CLI_SHAPE_ROOM];
    for (size_t i = 0; i < layer->parameter_count; i++)
        printf("%s%s %s", i > 0 ? ", " : "", layer->parameters[i].name,
               ls_cli_format_shape(&layer->parameters[i], text));
    if (layer->shares)
        fputs(" (shared)", stdout);
}

static void put_layer(const struct lockstep_net_layer *layer)
{
    char text[LS_CLI_SHAPE_ROOM];
    ls_cli_put_name(layer->name, NAME);
    ls_cli_put_name(layer->type, TYPE);
    for (size_t i = 0; i < layer->top_count; i++) {
        if (i > 0)
            printf("%*s", NAME + TYPE + 2, "");
        ls_cli_put_name(layer->tops[i].name, TOP);
        ls_cli_format_shape(&layer->tops[i], text);
        if (i > 0 || layer->parameter_count == 0)
            puts(text[0] != '\0' ? text : "scalar");
        else
            printf("%-*s ", SHAPE, text);
    }
    if (layer->parameter_count > 0)
        put_parameters(layer);
    if (layer->parameter_count > 0 || layer->top_count == 0)
        putchar('\n');
}

static void put_text(const struct lockstep_net *net)
{
    size_t count;
    const struct lockstep_net_layer *layers = lockstep_net_layers(net, &count);
    double parameters = 0, flops = 0;
    fputs("Net \"", stdout);
    ls_put_clean(stdout, lockstep_net_name(net));
    printf("\", phase %s, batch %" PRId64 "\n\n", lockstep_net_phase(net), lockstep_net_batch(net));
    printf("%-*s %-*s %-*s %-*s %s\n", NAME, "layer", TYPE, "type", TOP, "top", SHAPE, "shape",
           "parameters");
    for (size_t i = 0; i < count; i++) {
        put_layer(&layers[i]);
        flops += layers[i].flops;
        for (size_t p = 0; p < layers[i].parameter_count && !layers[i].shares; p++)
            parameters += ls_cli_blob_size(&layers[i].parameters[p]);
    }
    printf("\n%.0f parameters; %.4g million multiply-adds a sample, forward\n", parameters,
           flops / 2e6);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_blobs(struct ls_json_writer *json, const char *key,
                      const struct lockstep_blob *blobs, size_t count)
{
    ls_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        ls_json_open(json, NULL, '{');
        ls_json_string(json, "name", blobs[i].name);
        ls_json_open(json, "shape", '[');
        for (int axis = 0; axis < blobs[i].rank; axis++)
            ls_json_integer(json, NULL, blobs[i].extent[axis]);
        ls_json_close(json, ']');
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
}

static void put_json(const struct lockstep_net *net)
{
    struct ls_json_writer json = {.stream = stdout};
    size_t count;
    const struct lockstep_net_layer *layers = lockstep_net_layers(net, &count);
    ls_json_open(&json, NULL, '{');
    ls_json_string(&json, "name", lockstep_net_name(net));
    ls_json_string(&json, "phase", lockstep_net_phase(net));
    ls_json_integer(&json, "batch", lockstep_net_batch(net));
    ls_json_open(&json, "layers", '[');
    for (size_t i = 0; i < count; i++) {
        ls_json_open(&json, NULL, '{');
        ls_json_string(&json, "name", layers[i].name);
        ls_json_string(&json, "type", layers[i].type);
        ls_json_open(&json, "bottoms", '[');
        for (size_t b = 0; b < layers[i].bottom_count; b++)
            ls_json_string(&json, NULL, layers[i].bottoms[b]);
        ls_json_close(&json, ']');
        put_blobs(&json, "tops", layers[i].tops, layers[i].top_count);
        put_blobs(&json, "parameters", layers[i].parameters, layers[i].parameter_count);
        ls_json_integer(&json, "shares", layers[i].shares);
        ls_json_number(&json, "flops", layers[i].flops);
        ls_json_bytes(&json, "bytes", layers[i].bytes);
        ls_json_close(&json, '}');
    }
    ls_json_close(&json, ']');
    ls_json_close(&json, '}');
    putchar('\n');
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_net *net;
    int status = ls_cli_load_net("shapes", &values->net, &net);
    if (status == 0 && values->json)
        put_json(net);
    else if (status == 0)
        put_text(net);
    lockstep_net_free(net);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_NET_OPTIONS(struct values, net), LS_CLI_JSON(struct values, json), {.name = NULL}};

const struct ls_cli_command ls_cli_command_shapes = {
    .name = "shapes",
    .summary = "lists a net's layers with the shapes of tops and parameters",
    .usage = "--model FILE [OPTIONS]",
    .options = options,
    .example = "lockstep shapes --model train_val.prototxt\n"
               "lockstep shapes --model deploy.prototxt --input data=1,3,300,300 --json",
    .run = run,
    .values_size = sizeof(struct values),
};
