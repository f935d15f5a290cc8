/* Throughput as tables with bars. See cli/tune_table.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/tune_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/size.h"
#include "monitor/json.h"

enum { COLUMNS = 54, BAR_MIN = 10, BAR_MAX = 50 };
static const double least_gain = 0.03; /* less than this is not worth anything */

static const char *const names[LS_CLI_VARIED] = {"micro_batch", "batch", "workers"};

int64_t ls_cli_varied_value(const struct lockstep_tune_point *point, enum ls_cli_varied varied)
{
    switch (varied) {
    case LS_CLI_MICRO_BATCH:
        return point->micro_batch;
    case LS_CLI_BATCH:
        return point->batch;
    default:
        return point->workers;
    }
}

/* The points of a table in the order of what is varied. */
struct table {
    enum ls_cli_varied varied;
    const struct lockstep_tune_point **row;
    size_t count;
    double best;   /* samples a second */
    double spread; /* the largest of a point, as a part of its median */
};

static void insert(struct table *table, const struct lockstep_tune_point *point)
{
    int64_t value = ls_cli_varied_value(point, table->varied);
    size_t at = table->count++;
    for (; at > 0 && ls_cli_varied_value(table->row[at - 1], table->varied) > value; at--)
        table->row[at] = table->row[at - 1];
    table->row[at] = point;
    if (point->status != 0 || !(point->median > 0))
        return;
    double spread = (point->fastest - point->slowest) / point->median;
    table->best = point->median > table->best ? point->median : table->best;
    table->spread = spread > table->spread ? spread : table->spread;
}

/* "=====--|--": up to the slowest turn, the median, up to the fastest. */
static void put_bar(const struct lockstep_tune_point *point, double most, int columns)
{
    int slowest = (int)(point->slowest / most * columns);
    int median = (int)(point->median / most * columns);
    int fastest = (int)(point->fastest / most * columns);
    for (int i = 0; i <= fastest; i++)
        putchar(i == median ? '|' : i < slowest ? '=' : '-');
}

static void put_row(const struct table *table, const struct lockstep_tune_point *point, bool base,
                    double most, int columns)
{
    char memory[LS_CLI_SIZE_ROOM];
    printf("%11" PRId64 "%s", ls_cli_varied_value(point, table->varied), base ? "*" : " ");
    if (point->status != 0) {
        printf(" cannot be: %s\n", point->reason);
        return;
    }
    printf("%12.6g %7.1f %% %5.1f %% %10s  ", point->median, 100 * point->median / table->best,
           100 * (point->fastest - point->slowest) / point->median,
           ls_cli_format_size(point->memory, memory));
    put_bar(point, most, columns);
    putchar('\n');
}

/* The smallest value that is as good as the fastest one, but for what does not count or what the
 * measurement cannot tell: medians of five turns are off by a quarter of the spread at most times.
 */
static void put_verdict(const struct table *table)
{
    const struct lockstep_tune_point *least = NULL, *last = NULL;
    double gain = table->spread / 4 > least_gain ? table->spread / 4 : least_gain;
    for (size_t i = 0; i < table->count; i++) {
        const struct lockstep_tune_point *point = table->row[i];
        if (point->status != 0)
            continue;
        if (least == NULL && point->median >= (1 - gain) * table->best)
            least = point;
        last = point;
    }
    if (least == NULL || last == NULL)
        return;
    const char *name = names[table->varied];
    if (least == last)
        printf(
            "The largest %s that was measured is the fastest: a larger one may be faster still.\n",
            name);
    else
        printf("%s %" PRId64 " is enough: what is larger brings less than %.0f %%%s.\n", name,
               ls_cli_varied_value(least, table->varied), 100 * gain,
               gain > least_gain ? " (the turns differ too much to see less)" : "");
}

/* How well more workers are used. */
static void put_scaling(const struct table *table)
{
    const struct lockstep_tune_point *first = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct lockstep_tune_point *point = table->row[i];
        if (point->status != 0)
            continue;
        if (first == NULL) {
            first = point;
            continue;
        }
        double times = point->median / first->median;
        printf("%d workers are %.2f times as fast as %d: %.0f %% of what they could be.\n",
               point->workers, times, first->workers,
               100 * times * first->workers / point->workers);
    }
}

static void put_table(const struct table *table, const struct lockstep_tune_point *base, int width)
{
    int columns = width - COLUMNS - 1;
    double most = 0;
    columns = columns < BAR_MIN ? BAR_MIN : columns > BAR_MAX ? BAR_MAX : columns;
    for (size_t i = 0; i < table->count; i++)
        most = table->row[i]->fastest > most ? table->row[i]->fastest : most;
    printf("\n%11s %12s %9s %7s %10s\n", names[table->varied], "samples/s", "of best", "spread",
           "memory");
    for (size_t i = 0; i < table->count; i++)
        put_row(table, table->row[i], table->row[i] == base, most > 0 ? most : 1, columns);
    put_verdict(table);
    if (table->varied == LS_CLI_WORKERS)
        put_scaling(table);
    if (table->spread > 0.1)
        printf("Turns of one point differ by up to %.0f %%: smaller differences say nothing.\n",
               100 * table->spread);
}

static void put_advice(const unsigned *in, size_t count)
{
    unsigned all = 0;
    for (size_t i = 0; i < count; i++)
        all |= in[i];
    puts("\n* as the definition has it, with as many workers as there are. samples/s is the median "
         "of the turns,\n  'of best' its part of the fastest row's, 'spread' the part of it by "
         "which the turns differ. The\n  bars end at the fastest turn, '|' is the median, '=' up "
         "to the "
         "slowest turn.");
    if ((all & (1U << LS_CLI_MICRO_BATCH | 1U << LS_CLI_BATCH)) != 0)
        puts("batch_size and micro_batch are part of the definition: another one trains other "
             "weights (a\nbatch also asks for another learning rate). Choose before the training, "
             "and write it down.");
    puts("Workers change nothing but the speed: the same bits with any number of them.");
}

void ls_cli_put_tune(const struct lockstep_tune_point *points, const unsigned *in, size_t count,
                     int width)
{
    const struct lockstep_tune_point **rows = calloc(count + 1, sizeof *rows);
    printf("Base: %d worker%s, batch %" PRId64 ", micro_batch %" PRId64
           ": %.6g samples/s. One thing is varied at a time.\n",
           points[0].workers, points[0].workers == 1 ? "" : "s", points[0].batch,
           points[0].micro_batch, points[0].median);
    for (int varied = 0; varied < LS_CLI_VARIED && rows != NULL; varied++) {
        struct table table = {.varied = (enum ls_cli_varied)varied, .row = rows};
        for (size_t i = 0; i < count; i++)
            if ((in[i] & 1U << varied) != 0)
                insert(&table, &points[i]);
        if (table.count > 1)
            put_table(&table, &points[0], width);
    }
    put_advice(in, count);
    free((void *)rows);
}

void ls_cli_put_tune_json(const struct lockstep_tune_point *points, size_t count)
{
    struct ls_json_writer json = {stdout, false};
    ls_json_open(&json, NULL, '{');
    ls_json_open(&json, "points", '[');
    for (size_t i = 0; i < count; i++) {
        ls_json_open(&json, NULL, '{');
        ls_json_integer(&json, "workers", points[i].workers);
        ls_json_integer(&json, "batch", points[i].batch);
        ls_json_integer(&json, "micro_batch", points[i].micro_batch);
        ls_json_number(&json, "samples_per_second", points[i].median);
        ls_json_number(&json, "slowest", points[i].slowest);
        ls_json_number(&json, "fastest", points[i].fastest);
        ls_json_integer(&json, "memory", (int64_t)points[i].memory);
        ls_json_integer(&json, "status", points[i].status);
        ls_json_string(&json, "reason", points[i].status != 0 ? points[i].reason : NULL);
        ls_json_close(&json, '}');
    }
    ls_json_close(&json, ']');
    ls_json_close(&json, '}');
    putchar('\n');
}
