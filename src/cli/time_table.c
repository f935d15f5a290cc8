/* Where the time of a training went. See cli/time_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/time_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/column.h"
#include "monitor/json.h"

enum { NAME = 22, TYPE = 16, KIND = 17 };

static const char *const kinds[LOCKSTEP_TIME_KINDS] = {
    "forward", "forward again", "backward data", "backward weights", "reduction", "update"};

/* What the machine can do, from both probes; 0 where a card computed. */
struct limit {
    double flops, bytes;
};

static bool is_measured(const struct lockstep_time_total *total)
{
    return total->before.cores > 0;
}

static struct limit limit_of(const struct lockstep_time_total *total)
{
    return (struct limit){(total->before.flops + total->after.flops) / 2,
                          (total->before.bytes + total->after.bytes) / 2};
}

static struct lockstep_time_part sum_of(const struct lockstep_time_layer *layers, size_t count,
                                        int kind)
{
    struct lockstep_time_part sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.seconds += layers[i].part[kind].seconds;
        sum.flops += layers[i].part[kind].flops;
        sum.bytes += layers[i].part[kind].bytes;
    }
    return sum;
}

/* ---- Text ------------------------------------------------------------------------------------ */

/* What takes less than the table shows, or than clocks tell apart, has no speed. */
static const double least_seconds = 0.5e-6;

static void put_rate(double amount, double seconds, double limit)
{
    if (amount > 0 && seconds >= least_seconds && limit > 0)
        printf(" %9.1f %6.1f %%", amount / seconds * 1e-9, 100 * amount / seconds / limit);
    else
        printf(" %9s %8s", "-", "-");
}

/* Without a limit. */
static void put_rate_alone(double amount, double seconds)
{
    if (amount > 0 && seconds >= least_seconds)
        printf(" %9.1f", amount / seconds * 1e-9);
    else
        printf(" %9s", "-");
}

/* `limit` is NULL where none is measured. */
static void put_part(const char *kind, const struct lockstep_time_part *part, double seconds,
                     const struct limit *limit)
{
    printf("%-*s %10.3f %5.1f %%", KIND, kind, part->seconds * 1e3, 100 * part->seconds / seconds);
    if (limit != NULL) {
        put_rate(part->flops, part->seconds, limit->flops);
        put_rate(part->bytes, part->seconds, limit->bytes);
    } else {
        put_rate_alone(part->flops, part->seconds);
        put_rate_alone(part->bytes, part->seconds);
    }
    putchar('\n');
}

static void put_layer(const struct lockstep_time_layer *layer, double seconds,
                      const struct limit *limit)
{
    bool named = false;
    for (int kind = 0; kind < LOCKSTEP_TIME_KINDS; kind++) {
        if (!(layer->part[kind].seconds > 0))
            continue;
        ls_cli_put_name(named ? "" : layer->name, NAME);
        ls_cli_put_name(named ? "" : layer->type, TYPE);
        put_part(kinds[kind], &layer->part[kind], seconds, limit);
        named = true;
    }
    if (named)
        return;
    ls_cli_put_name(layer->name, NAME);
    ls_cli_put_name(layer->type, TYPE);
    puts("no steps of its own");
}

static void put_heading(bool measured)
{
    printf("%-*s %-*s %-*s %10s %7s", NAME, "layer", TYPE, "type", KIND, "part", "ms", "of all");
    if (measured)
        printf(" %9s %8s %9s %8s\n", "GFLOP/s", "of peak", "GB/s", "of peak");
    else
        printf(" %9s %9s\n", "GFLOP/s", "GB/s");
}

static void put_rest(const char *what, double seconds, double all)
{
    printf("%-*s %10.3f %5.1f %%\n", NAME + TYPE + KIND + 2, what, seconds * 1e3,
           100 * seconds / all);
}

static void put_sums(const struct lockstep_time_total *total,
                     const struct lockstep_time_layer *layers, size_t count,
                     const struct limit *limit)
{
    struct lockstep_time_part step = {.seconds = total->seconds};
    putchar('\n');
    for (int kind = 0; kind < LOCKSTEP_TIME_KINDS; kind++) {
        struct lockstep_time_part sum = sum_of(layers, count, kind);
        step.flops += sum.flops;
        step.bytes += sum.bytes;
        if (!(sum.seconds > 0) && kind == LOCKSTEP_TIME_REPLAY)
            continue;
        ls_cli_put_name("all layers", NAME);
        ls_cli_put_name("", TYPE);
        put_part(kinds[kind], &sum, total->seconds, limit);
    }
    put_rest("waiting for data", total->data, total->seconds);
    put_rest("waiting for other workers", total->barriers, total->seconds);
    put_rest("merging across micro-batches", total->merging, total->seconds);
    put_rest("one worker works alone, the others wait", total->serial, total->seconds);
    put_rest("overhead: taking work, norms of gradients", total->overhead, total->seconds);
    ls_cli_put_name("an iteration", NAME);
    ls_cli_put_name("", TYPE);
    put_part("", &step, total->seconds, limit);
    if (limit == NULL)
        return;
    printf("\nThe step reaches %.1f %% of the limit: the multiply-adds that this machine can do in "
           "the\ntime, against those that the definition asks for (a convolution counts as direct, "
           "so that\nWinograd's can pass 100 %%). GB/s are what steps read and write: what lies in "
           "caches moves\nfaster than memory, over 100 %%.\n",
           limit->flops > 0 ? 100 * step.flops / total->seconds / limit->flops : 0);
}

static bool differ(double a, double b)
{
    return a < 0.9 * b || b < 0.9 * a;
}

static void put_card(const struct lockstep_time_total *total)
{
    puts("What the card itself can do is not measured: its speeds stand without a peak");
    if (total->slowest > 1.5 * total->median)
        puts("The iterations differ much: measure again");
}

static void put_machine(const struct lockstep_time_total *total)
{
    printf("The machine, %d core%s: %.1f GFLOP/s and %.1f GB/s before, %.1f GFLOP/s and %.1f GB/s "
           "after\n",
           total->before.cores, total->before.cores == 1 ? "" : "s", total->before.flops * 1e-9,
           total->before.bytes * 1e-9, total->after.flops * 1e-9, total->after.bytes * 1e-9);
    if (differ(total->before.flops, total->after.flops) ||
        differ(total->before.bytes, total->after.bytes) || total->slowest > 1.5 * total->median)
        puts("The machine was not quiet (the two probes or the iterations differ much): measure "
             "again");
}

void ls_cli_put_time(const struct lockstep_timing *timing)
{
    const struct lockstep_time_total *total = lockstep_timing_total(timing);
    size_t count;
    const struct lockstep_time_layer *layers = lockstep_timing_layers(timing, &count);
    struct limit limit = limit_of(total);
    printf("%" PRId64 " iterations with %d worker%s, batch %" PRId64 ", micro_batch %" PRId64
           ": %.3f ms each (median %.3f,\nfastest %.3f, slowest %.3f), %.6g samples/s\n",
           total->iterations, total->workers, total->workers == 1 ? "" : "s", total->batch,
           total->micro_batch, total->seconds * 1e3, total->median * 1e3, total->fastest * 1e3,
           total->slowest * 1e3,
           (double)total->samples / (double)total->iterations / total->seconds);
    if (is_measured(total))
        put_machine(total);
    else
        put_card(total);
    puts("Times are those of an iteration, of all workers divided by their number: they add up\n");
    put_heading(is_measured(total));
    for (size_t i = 0; i < count; i++)
        put_layer(&layers[i], total->seconds, is_measured(total) ? &limit : NULL);
    put_sums(total, layers, count, is_measured(total) ? &limit : NULL);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *const keys[LOCKSTEP_TIME_KINDS] = {
    "forward", "forward_again", "backward_data", "backward_weights", "reduction", "update"};

static void put_json_part(struct ls_json_writer *json, const char *key,
                          const struct lockstep_time_part *part)
{
    ls_json_open(json, key, '{');
    ls_json_number(json, "ms", part->seconds * 1e3);
    ls_json_number(json, "flops", part->flops);
    ls_json_number(json, "bytes", part->bytes);
    ls_json_close(json, '}');
}

static void put_json_probe(struct ls_json_writer *json, const char *key,
                           const struct lockstep_probe *probe)
{
    ls_json_open(json, key, '{');
    ls_json_integer(json, "cores", probe->cores);
    ls_json_number(json, "gflops", probe->flops * 1e-9);
    ls_json_number(json, "gbytes", probe->bytes * 1e-9);
    ls_json_close(json, '}');
}

static void put_json_total(struct ls_json_writer *json, const struct lockstep_time_total *total)
{
    ls_json_integer(json, "workers", total->workers);
    ls_json_integer(json, "iterations", total->iterations);
    ls_json_integer(json, "batch", total->batch);
    ls_json_integer(json, "micro_batch", total->micro_batch);
    ls_json_integer(json, "samples", total->samples);
    ls_json_number(json, "ms", total->seconds * 1e3);
    ls_json_number(json, "fastest_ms", total->fastest * 1e3);
    ls_json_number(json, "median_ms", total->median * 1e3);
    ls_json_number(json, "slowest_ms", total->slowest * 1e3);
    ls_json_number(json, "data_ms", total->data * 1e3);
    ls_json_number(json, "barriers_ms", total->barriers * 1e3);
    ls_json_number(json, "merging_ms", total->merging * 1e3);
    ls_json_number(json, "serial_ms", total->serial * 1e3);
    ls_json_number(json, "overhead_ms", total->overhead * 1e3);
    if (!is_measured(total))
        return;
    put_json_probe(json, "machine_before", &total->before);
    put_json_probe(json, "machine_after", &total->after);
}

void ls_cli_put_time_json(const struct lockstep_timing *timing)
{
    struct ls_json_writer json = {stdout, false};
    const struct lockstep_time_total *total = lockstep_timing_total(timing);
    struct limit limit = limit_of(total);
    size_t count;
    const struct lockstep_time_layer *layers = lockstep_timing_layers(timing, &count);
    double flops = 0;
    ls_json_open(&json, NULL, '{');
    put_json_total(&json, total);
    ls_json_open(&json, "layers", '[');
    for (size_t i = 0; i < count; i++) {
        ls_json_open(&json, NULL, '{');
        ls_json_string(&json, "name", layers[i].name);
        ls_json_string(&json, "type", layers[i].type);
        for (int kind = 0; kind < LOCKSTEP_TIME_KINDS; kind++) {
            put_json_part(&json, keys[kind], &layers[i].part[kind]);
            flops += layers[i].part[kind].flops;
        }
        ls_json_close(&json, '}');
    }
    ls_json_close(&json, ']');
    if (is_measured(total))
        ls_json_number(&json, "share_of_peak",
                       limit.flops > 0 ? flops / total->seconds / limit.flops : 0);
    ls_json_close(&json, '}');
    putchar('\n');
}
