/* What several ranks will do, as tables or as one JSON object. See cli/scaling_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/scaling_table.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/column.h"
#include "cli/rate.h"
#include "cli/size.h"
#include "monitor/json.h"

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_head(const struct lockstep_scaling_total *total)
{
    char rate[LS_CLI_RATE_ROOM], latency[LS_CLI_RATE_ROOM], message[LS_CLI_RATE_ROOM];
    char summed[LS_CLI_SIZE_ROOM], factored[LS_CLI_SIZE_ROOM];
    printf("Ranks of %d worker%s each, with links of %s, %s, and %s a message\n", total->workers,
           plural(total->workers), ls_cli_format_rate(total->bandwidth, rate),
           ls_cli_format_time(total->latency, latency),
           ls_cli_format_time(total->message, message));
    printf("An update: %" PRId64 " samples in %" PRId64 " micro-batch%s of at most %" PRId64
           ", %d sync point%s a batch\n",
           total->samples, total->micro_batches, total->micro_batches == 1 ? "" : "es",
           total->micro_batch, total->sync_points, plural(total->sync_points));
    printf("Parameters: %s whose gradients are reduced as sums, %s as factors\n",
           ls_cli_format_size(total->summed, summed),
           ls_cli_format_size(total->factored, factored));
    if (total->iterations > 0)
        printf("Seconds of computing are those of %" PRId64 " updates that were timed here.\n",
               total->iterations);
    else
        puts("Seconds of computing are estimates, from those that were given.");
}

static void put_times(const struct lockstep_scaling_total *total,
                      const struct lockstep_scaling_row *rows, size_t count)
{
    printf("\n%39s milliseconds of an update\n%5s %10s %10s %9s %9s %8s %8s %9s %9s %9s\n", "",
           "ranks", "samples/s", "efficiency", "update", "compute", "weights", "small", "wait sums",
           "wait w.", "transfer");
    for (size_t i = 0; i < count; i++) {
        const struct lockstep_scaling_row *row = &rows[i];
        printf("%5d %10.4g %8.1f %% %9.3f %9.3f %8.3f %8.3f %9.3f %9.3f %9.3f\n", row->ranks,
               (double)total->samples / row->seconds, 100 * row->efficiency, row->seconds * 1e3,
               (row->pass + row->rest) * 1e3, row->update * 1e3, row->small * 1e3,
               row->wait_sums * 1e3, row->wait_weights * 1e3, row->transfer * 1e3);
    }
    puts(
        "(compute: of the rank with the most micro-batches; weights: their update; transfer: under "
        "way, hidden or waited for)");
}

static void put_sizes(const struct lockstep_scaling_row *rows, size_t count)
{
    printf("\n%5s %13s %43s %21s\n%5s %13s %10s %10s %10s %10s %10s %10s\n", "", "",
           "sent by a rank in an update", "memory of a rank", "ranks", "micro-batches", "sums",
           "weights", "factors", "small", "in all", "state");
    for (size_t i = 0; i < count; i++) {
        const struct lockstep_scaling_row *row = &rows[i];
        printf("%5d %13" PRId64, row->ranks, row->micro_batches);
        ls_cli_put_size(row->sent.sums);
        ls_cli_put_size(row->sent.weights);
        ls_cli_put_size(row->sent.factors);
        ls_cli_put_size(row->sent.small);
        ls_cli_put_size(row->memory);
        ls_cli_put_size(row->state);
        putchar('\n');
    }
}

static void put_limits(const struct lockstep_scaling_total *total,
                       const struct lockstep_scaling_row *rows, size_t count)
{
    putchar('\n');
    for (size_t i = 0; i < count; i++) {
        const struct lockstep_scaling_row *row = &rows[i];
        if (row->idle > 0)
            printf("%d ranks: %d of them have no micro-batch.", row->ranks, row->idle);
        else if (row->micro_batch > 0)
            printf("%d ranks: there are fewer micro-batches than workers.", row->ranks);
        if (row->micro_batch > 0)
            printf(" micro_batch: %" PRId64 " would use all (and is another training).",
                   row->micro_batch);
        else if (row->idle > 0)
            printf(" A larger batch would use more (and is another training).");
        if (row->idle > 0 || row->micro_batch > 0)
            putchar('\n');
    }
    printf("Up to %d rank%s have something to do; of 1, 2, 4 ... the shortest update is that of %d "
           "rank%s, %.3f ms.\n",
           total->useful, plural(total->useful), total->fastest, plural(total->fastest),
           total->fastest_seconds * 1e3);
}

void ls_cli_put_scaling(const struct lockstep_scaling *scaling)
{
    const struct lockstep_scaling_total *total = lockstep_scaling_total(scaling);
    size_t count;
    const struct lockstep_scaling_row *rows = lockstep_scaling_rows(scaling, &count);
    put_head(total);
    put_times(total, rows, count);
    put_sizes(rows, count);
    put_limits(total, rows, count);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_row(struct ls_json_writer *json, const struct lockstep_scaling_row *row)
{
    ls_json_open(json, NULL, '{');
    ls_json_integer(json, "ranks", row->ranks);
    ls_json_number(json, "seconds", row->seconds);
    ls_json_number(json, "pass", row->pass);
    ls_json_number(json, "update", row->update);
    ls_json_number(json, "rest", row->rest);
    ls_json_number(json, "small", row->small);
    ls_json_number(json, "wait_sums", row->wait_sums);
    ls_json_number(json, "wait_weights", row->wait_weights);
    ls_json_number(json, "transfer", row->transfer);
    ls_json_number(json, "efficiency", row->efficiency);
    ls_json_integer(json, "micro_batches", row->micro_batches);
    ls_json_integer(json, "idle", row->idle);
    ls_json_integer(json, "micro_batch", row->micro_batch);
    ls_json_open(json, "sent", '{');
    ls_json_bytes(json, "sums", row->sent.sums);
    ls_json_bytes(json, "weights", row->sent.weights);
    ls_json_bytes(json, "factors", row->sent.factors);
    ls_json_bytes(json, "small", row->sent.small);
    ls_json_close(json, '}');
    ls_json_bytes(json, "memory", row->memory);
    ls_json_bytes(json, "state", row->state);
    ls_json_close(json, '}');
}

void ls_cli_put_scaling_json(const struct lockstep_scaling *scaling)
{
    struct ls_json_writer json = {.stream = stdout};
    const struct lockstep_scaling_total *total = lockstep_scaling_total(scaling);
    size_t count;
    const struct lockstep_scaling_row *rows = lockstep_scaling_rows(scaling, &count);
    ls_json_open(&json, NULL, '{');
    ls_json_integer(&json, "workers", total->workers);
    ls_json_integer(&json, "batch", total->batch);
    ls_json_integer(&json, "micro_batch", total->micro_batch);
    ls_json_integer(&json, "micro_batches", total->micro_batches);
    ls_json_integer(&json, "samples", total->samples);
    ls_json_integer(&json, "iterations", total->iterations);
    ls_json_integer(&json, "sync_points", total->sync_points);
    ls_json_integer(&json, "useful", total->useful);
    ls_json_integer(&json, "fastest", total->fastest);
    ls_json_number(&json, "fastest_seconds", total->fastest_seconds);
    ls_json_bytes(&json, "summed", total->summed);
    ls_json_bytes(&json, "factored", total->factored);
    ls_json_open(&json, "link", '{');
    ls_json_number(&json, "bandwidth", total->bandwidth);
    ls_json_number(&json, "latency", total->latency);
    ls_json_number(&json, "message", total->message);
    ls_json_close(&json, '}');
    ls_json_open(&json, "rows", '[');
    for (size_t i = 0; i < count; i++)
        put_row(&json, &rows[i]);
    ls_json_close(&json, ']');
    ls_json_close(&json, '}');
    putchar('\n');
}
