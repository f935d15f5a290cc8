/* A plan as text. See cli/plan_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/plan_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/column.h"
#include "cli/size.h"
#include "monitor/terminal.h"

enum { NAME = 24, TYPE = 18, NAMES = 8 };

/* Sizes of a layer, in the order of the table. */
enum { OUTPUT, KEPT, SCRATCH, PARAMETERS, GRADIENTS, STATE, SIZES };
static const struct {
    const char *name;
    size_t offset;
    bool training; /* of a net that is trained alone */
} sizes[SIZES] = {
    {"output", offsetof(struct lockstep_plan_layer, output), false},
    {"kept", offsetof(struct lockstep_plan_layer, kept), true},
    {"scratch", offsetof(struct lockstep_plan_layer, scratch), false},
    {"parameters", offsetof(struct lockstep_plan_layer, parameters), false},
    {"gradients", offsetof(struct lockstep_plan_layer, gradients), true},
    {"optimizer", offsetof(struct lockstep_plan_layer, state), true},
};

/* What a terminal has room for. */
struct layers_table {
    int name, type; /* columns; 0: it is left out */
    bool size[SIZES];
};

/* Narrow terminals get shorter names and the sizes that matter most. */
static struct layers_table fit_layers(bool training)
{
    enum { COLUMN = 11, NARROW = 70 };
    static const int ranks[SIZES] = {OUTPUT, PARAMETERS, KEPT, GRADIENTS, STATE, SCRATCH};
    struct layers_table table = {.name = NAME, .type = TYPE - 1};
    int width = ls_cli_table_width(), count = 0;
    for (int i = 0; i < SIZES; i++)
        count += training || !sizes[i].training;
    if (width < NAME + TYPE + 1 + count * COLUMN) {
        table.name = width < NARROW ? 16 : 18;
        table.type = width < NARROW ? 0 : 15;
    }
    int used = table.name + 1 + (table.type > 0 ? table.type + 1 : 0);
    for (int i = 0; i < SIZES; i++) {
        if ((!training && sizes[ranks[i]].training) || used + COLUMN > width)
            continue;
        table.size[ranks[i]] = true;
        used += COLUMN;
    }
    return table;
}

static void put_left_out(const struct layers_table *table, bool training)
{
    bool any = false;
    for (int i = 0; i < SIZES; i++) {
        if (table->size[i] || (!training && sizes[i].training))
            continue;
        printf("%s%s", any ? ", " : "(a wider terminal or a file also gets: ", sizes[i].name);
        any = true;
    }
    fputs(any ? ")\n" : "", stdout);
}

static void put_layers(const struct lockstep_plan_net *net)
{
    const bool training = net->training != 0;
    const struct layers_table table = fit_layers(training);
    putchar('\n');
    ls_cli_put_name("layer", table.name);
    if (table.type > 0)
        ls_cli_put_name("type", table.type);
    for (int i = 0; i < SIZES; i++)
        if (table.size[i])
            printf(" %10s", sizes[i].name);
    putchar('\n');
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct lockstep_plan_layer *layer = &net->layers[i];
        ls_cli_put_name(layer->name, table.name);
        if (table.type > 0)
            ls_cli_put_name(layer->type, table.type);
        for (int s = 0; s < SIZES; s++)
            if (table.size[s])
                ls_cli_put_size(
                    *(const uint64_t *)(const void *)((const char *)layer + sizes[s].offset));
        putchar('\n');
    }
    put_left_out(&table, training);
}

/* Columns of the table of steps; 0: what is left out, and the layout with it. */
struct steps_table {
    int name, op, implementation;
};

static struct steps_table fit_steps(void)
{
    enum { LAYOUT = 8 };
    static const struct steps_table forms[] = {{NAME, 36, 26}, {16, 24, 20}, {14, 22, 0}};
    size_t i = 0;
    while (i < 2 && forms[i].name + forms[i].op + forms[i].implementation + 3 + LAYOUT >
                        ls_cli_table_width())
        i++;
    return forms[i];
}

static void put_step(const struct lockstep_plan_step *step, const struct steps_table *table)
{
    ls_cli_put_name(step->layer != NULL ? step->layer : "", table->name);
    ls_cli_put_name(step->op, table->op);
    if (table->implementation > 0) {
        ls_cli_put_name(step->implementation, table->implementation);
        fputs(step->layout != NULL ? step->layout : "", stdout);
    }
    printf("%s%s%s\n", step->recomputed ? "  recomputed" : "", step->gathered ? "  gathered" : "",
           step->slow ? "  SLOW" : "");
}

static void put_steps(const struct lockstep_plan_net *net)
{
    bool backward = false;
    size_t chain_end = 0;
    const struct steps_table table = fit_steps();
    printf("\n%-*s %-*s", table.name, "step of layer", table.op, "what it does");
    if (table.implementation > 0)
        printf(" %-*s layout", table.implementation, "implementation");
    putchar('\n');
    for (size_t i = 0; i < net->step_count; i++) {
        const struct lockstep_plan_step *step = &net->steps[i];
        if (step->backward && !backward)
            puts("backward:");
        backward |= step->backward;
        if (step->chain > 0) {
            printf("-- chain: %zu steps together, %" PRId64 " channels at a time --\n", step->chain,
                   step->channels);
            chain_end = i + step->chain;
        }
        if (step->sync)
            printf("-- sync point of %s: the micro-batches of a batch meet --\n",
                   step->layer != NULL ? step->layer : "the net");
        else
            put_step(step, &table);
        if (i + 1 == chain_end)
            puts("-- end of the chain --");
    }
}

/* Whether processors may differ, and in what. */
static void put_dependence(const struct lockstep_plan_net *net, const char *library)
{
    const bool onednn = library == NULL || strstr(library, "oneDNN") != NULL;
    if (net->any_processor) {
        puts("Bits: any x86-64 computes the same");
        return;
    }
    if (net->library_layer_count == 0 && !onednn) {
        printf("Bits: no step is a library's, so they do not depend on %s\n", library);
        return;
    }
    if (net->library_layer_count == 0) {
        puts("Bits: no step is oneDNN's, so they depend neither on its version nor on the CPU's "
             "type");
        return;
    }
    enum { SHOWN = 4 }; /* as a training shows at its start; --json has all */
    const size_t count = net->library_layer_count;
    printf("Bits: depend on %s%s through %zu layer%s:", library,
           onednn ? " (instruction set, caches)" : "", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        fputs(i > 0 ? ", " : " ", stdout);
        ls_put_clean(stdout, net->library_layers[i]);
    }
    if (count > SHOWN)
        printf(" and %zu more", count - SHOWN);
    putchar('\n');
}

/* FP32 is not worth a line. */
static void put_precision(const struct lockstep_plan_net *net)
{
    if (net->bf16_layers == 0)
        return;
    fputs("Precision: BF16", stdout);
    if (net->bf16_layers < net->computing_layers)
        printf(" in %zu of %zu layers", net->bf16_layers, net->computing_layers);
    putchar('\n');
}

/* The names of layers for which `weights` gives a number, some of them. */
static void put_layers_with(const struct lockstep_plan_net *net,
                            uint64_t (*weights)(const struct lockstep_plan_layer *layer))
{
    size_t count = 0;
    for (size_t i = 0; i < net->layer_count; i++) {
        if (weights(&net->layers[i]) == 0 || ++count > NAMES)
            continue;
        fputs(count > 1 ? ", " : " of ", stdout);
        ls_put_clean(stdout, net->layers[i].name);
    }
    if (count > NAMES)
        printf(" and %zu more", count - NAMES);
}

static uint64_t fixed_of(const struct lockstep_plan_layer *layer)
{
    return layer->fixed;
}

static uint64_t masked_of(const struct lockstep_plan_layer *layer)
{
    return layer->masked;
}

/* What is trained, and how far down the backward pass goes. */
static void put_trained(const struct lockstep_plan_net *net)
{
    uint64_t learned = 0, fixed = 0, masked = 0;
    const char *last = NULL;
    if (!net->training)
        return;
    for (size_t i = 0; i < net->layer_count; i++) {
        learned += net->layers[i].learned;
        fixed += net->layers[i].fixed;
        masked += net->layers[i].masked;
    }
    for (size_t i = 0; i < net->step_count; i++)
        if (net->steps[i].backward && net->steps[i].layer != NULL)
            last = net->steps[i].layer;
    printf("Weights: %" PRIu64 " learned", learned);
    if (fixed > 0) {
        printf("; %" PRIu64 " fixed", fixed);
        put_layers_with(net, fixed_of);
    }
    if (masked > 0) {
        printf("; %" PRIu64 " masked (zero)", masked);
        put_layers_with(net, masked_of);
    }
    if (last != NULL) {
        fputs("; the backward pass ends at ", stdout);
        ls_put_clean(stdout, last);
    }
    putchar('\n');
}

/* What "record factor" means, where a step does it. */
static void put_factors(const struct lockstep_plan_net *net)
{
    for (size_t i = 0; i < net->step_count; i++)
        if (strcmp(net->steps[i].op, "record factor") == 0) {
            puts("record factor: the gradient of these weights is a product for all samples of an "
                 "update together;\n  its two factors, of each micro-batch, are kept until then");
            return;
        }
}

static void put_net(const struct lockstep_plan_net *net, const char *library)
{
    char arena[LS_CLI_SIZE_ROOM], held[LS_CLI_SIZE_ROOM];
    size_t recomputations = 0, reorders = 0, chains = 0;
    for (size_t i = 0; i < net->step_count; i++) {
        recomputations += net->steps[i].recomputed != 0;
        reorders += net->steps[i].reorder != 0;
        chains += net->steps[i].chain > 0;
    }
    printf("Net \"%s\": batch %" PRId64 ", %" PRId64 " micro-batches of at most %" PRId64
           " samples. Sizes are those of one.\n",
           net->name, net->batch, net->micro_batches, net->micro_batch);
    if (net->mixer != NULL)
        printf("Layer '%s' (%s) mixes the samples of a batch, so that a batch is one micro-batch, "
               "which one worker computes.\n",
               net->mixer, net->mixer_type);
    put_layers(net);
    put_steps(net);
    printf("\n%zu steps in %zu segment%s, %zu chain%s, %zu reorder%s; arena %s", net->step_count,
           net->segments, net->segments == 1 ? "" : "s", chains, chains == 1 ? "" : "s", reorders,
           reorders == 1 ? "" : "s", ls_cli_format_size(net->arena, arena));
    if (net->stashed > 0)
        printf(", stashed by each micro-batch %s", ls_cli_format_size(net->stashed, held));
    putchar('\n');
    if (recomputations > 0)
        printf("%zu steps are recomputed in the backward pass: about %.1f %% more work\n",
               recomputations, 100 * net->recomputed_part);
    put_factors(net);
    put_trained(net);
    put_precision(net);
    put_dependence(net, library);
    putchar('\n');
}

static void put_total(const char *what, uint64_t bytes)
{
    char text[LS_CLI_SIZE_ROOM];
    int room = ls_cli_table_width() - 13;
    if (bytes > 0)
        printf("  %-*s %10s\n", room < 58 ? room : 58, what, ls_cli_format_size(bytes, text));
}

/* What the host has in any case. */
static void put_host_memory(const struct lockstep_plan_memory *memory)
{
    put_total("data decoded ahead", memory->data);
    put_total("a snapshot while it is written", memory->snapshot);
    put_total("plans and code of kernels", memory->code);
    put_total("libraries and threads", memory->runtime);
}

static void put_memory(const struct lockstep_plan *plan)
{
    const struct lockstep_plan_memory *memory = lockstep_plan_memory(plan);
    const uint64_t host = lockstep_plan_host(plan);
    char line[96], each[LS_CLI_SIZE_ROOM];
    printf("Memory%s with %d worker%s\n", host > 0 ? " of the card" : "", memory->workers,
           memory->workers == 1 ? "" : "s");
    snprintf(line, sizeof line, "activations: %d arena%s of %s", memory->workers,
             memory->workers == 1 ? "" : "s", ls_cli_format_size(memory->arena, each));
    put_total(line, memory->arena * (uint64_t)memory->workers);
    snprintf(line, sizeof line, "stashed across sync points: %d micro-batches, %s each",
             memory->stashes, ls_cli_format_size(memory->stashed, each));
    put_total(line, memory->stashed * (uint64_t)memory->stashes);
    put_total("parameters", memory->parameters);
    put_total("copies of parameters in other layouts", memory->views);
    put_total("gradients", memory->gradients);
    put_total("optimizer", memory->state);
    put_total("moving averages of the weights", memory->averages);
    put_total("sync points and metrics", memory->statistics);
    put_total("state per sample, for the next update", memory->sample_states);
    put_total("data sets in the device's memory", lockstep_plan_device_data(plan));
    put_total("samples and metrics of micro-batches that run", lockstep_plan_staging(plan));
    if (host == 0)
        put_host_memory(memory);
    put_total("total", memory->total);
    put_total("limit", memory->limit);
    if (host > 0) {
        puts("Memory of the host");
        put_host_memory(memory);
        put_total("total of the host", host);
    }
    put_total("kept data (cache), apart from the total", memory->cache);
}

static void put_largest(const struct lockstep_plan *plan, const struct ls_cli_largest *largest)
{
    for (size_t i = 0; i < lockstep_plan_net_count(plan); i++) {
        const struct lockstep_plan_net *net = lockstep_plan_net(plan, i);
        printf("Largest batch that fits, %s (micro-batches of %" PRId64 "): ",
               net->training ? "training" : net->name, net->micro_batch);
        if (largest[i].batch == 0)
            puts("none");
        else if (largest[i].bounded)
            printf("%" PRId64 "\n", largest[i].batch);
        else
            printf("any; memory does not grow with it (looked at up to %" PRId64 ")\n",
                   largest[i].batch);
    }
}

static void put_warnings(const struct lockstep_plan_net *net)
{
    for (size_t i = 0; i < net->step_count; i++) {
        const struct lockstep_plan_step *step = &net->steps[i];
        if (step->slow && !step->recomputed)
            printf("warning: %s of layer '%s' (%s) has only a slow kernel here: %s\n", step->op,
                   step->layer != NULL ? step->layer : "?", net->name, step->implementation);
    }
}

/* Which parameter is of which group, where the solver makes some. */
static void put_groups(const struct lockstep_plan *plan)
{
    if (lockstep_plan_group_count(plan) < 2)
        return;
    printf("%-*s %-*s %-10s %10s %12s\n", 2 * NAME - 12, "parameter", NAME, "group", "type",
           "rate x", "weight decay");
    for (size_t i = 0; i < lockstep_plan_parameter_count(plan); i++) {
        const struct lockstep_plan_parameter *parameter = lockstep_plan_parameter(plan, i);
        ls_cli_put_name(parameter->name, 2 * NAME - 12);
        ls_cli_put_name(parameter->group, NAME);
        printf("%-10s %10.6g %12.6g\n", parameter->type, parameter->rate, parameter->decay);
    }
    putchar('\n');
}

void ls_cli_put_plan(const struct lockstep_plan *plan, const struct ls_cli_largest *largest)
{
    for (size_t i = 0; i < lockstep_plan_net_count(plan); i++)
        put_net(lockstep_plan_net(plan, i), lockstep_plan_library(plan));
    put_groups(plan);
    put_memory(plan);
    if (largest != NULL)
        put_largest(plan, largest);
    for (size_t i = 0; i < lockstep_plan_net_count(plan); i++)
        put_warnings(lockstep_plan_net(plan, i));
}
