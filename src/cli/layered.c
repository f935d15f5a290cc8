/* A drawing of a directed graph in layers. See cli/layered.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/layered.h"

#include <stdlib.h>

enum { SWEEPS = 24, ROUNDS = 300 };
static const double bend_width = 10, straight = 16; /* edges want to be straight where they bend */

/* A node, or a bend of an edge. */
struct spot {
    double width, x, wish;
    size_t first, count; /* its neighbours */
    int row;
    bool bend;
};

/* A line between spots of neighbouring rows. */
struct line {
    size_t above, below;
};

struct work {
    struct spot *spot;
    size_t spots;
    struct line *line;
    size_t lines;
    size_t *neighbour;    /* of all spots: numbers of lines */
    size_t *order;        /* spots row by row, from left to right */
    size_t *row_begin;    /* by row, and behind the last */
    double *sum, *weight; /* for `place_row` */
    size_t *block;
    int rows;
    double gap;
};

/* ---- Rows ------------------------------------------------------------------------------------ */

static void find_rows(struct ls_layered *drawing)
{
    drawing->rows = 0;
    for (size_t i = 0; i < drawing->nodes; i++)
        drawing->node[i].row = 0;
    for (size_t i = 0; i < drawing->nodes; i++) /* edges lead to later nodes */
        for (size_t e = 0; e < drawing->edges; e++) {
            const struct ls_layered_edge *edge = &drawing->edge[e];
            if (edge->from == i && drawing->node[edge->to].row <= drawing->node[i].row)
                drawing->node[edge->to].row = drawing->node[i].row + 1;
        }
    for (size_t i = 0; i < drawing->nodes; i++) { /* sources go down to what reads them */
        int nearest = -1;
        bool source = true;
        for (size_t e = 0; e < drawing->edges; e++) {
            const struct ls_layered_edge *edge = &drawing->edge[e];
            const int row = drawing->node[edge->to].row;
            source = source && edge->to != i;
            if (edge->from == i && (nearest < 0 || row < nearest))
                nearest = row;
        }
        if (source && nearest > 0)
            drawing->node[i].row = nearest - 1;
        if (drawing->node[i].row >= drawing->rows)
            drawing->rows = drawing->node[i].row + 1;
    }
}

/* ---- Spots and lines ------------------------------------------------------------------------- */

/* Gives the edges their bends: all that leave a node share theirs, one in each row that they cross.
 * Returns how many there are. */
static size_t count_bends(struct ls_layered *drawing)
{
    size_t bends = 0;
    for (size_t i = 0; i < drawing->nodes; i++) {
        size_t most = 0;
        for (size_t e = 0; e < drawing->edges; e++) {
            struct ls_layered_edge *edge = &drawing->edge[e];
            if (edge->from != i)
                continue;
            edge->bend = bends;
            edge->bends = (size_t)(drawing->node[edge->to].row - drawing->node[i].row - 1);
            most = edge->bends > most ? edge->bends : most;
        }
        bends += most;
    }
    return bends;
}

/* The spot in front of the end of an edge. */
static size_t spot_before(const struct ls_layered *drawing, const struct ls_layered_edge *edge,
                          size_t bends)
{
    return bends > 0 ? drawing->nodes + edge->bend + bends - 1 : edge->from;
}

static void make_spots(const struct ls_layered *drawing, struct work *work)
{
    for (size_t i = 0; i < drawing->nodes; i++)
        work->spot[i] = (struct spot){.width = drawing->node[i].width, .row = drawing->node[i].row};
    for (size_t e = 0; e < drawing->edges; e++) {
        const struct ls_layered_edge *edge = &drawing->edge[e];
        for (size_t b = 0; b < edge->bends; b++) {
            struct spot *spot = &work->spot[drawing->nodes + edge->bend + b];
            if (spot->bend) /* another edge's, too */
                continue;
            *spot = (struct spot){.width = bend_width,
                                  .row = drawing->node[edge->from].row + 1 + (int)b,
                                  .bend = true};
            work->line[work->lines++] =
                (struct line){spot_before(drawing, edge, b), drawing->nodes + edge->bend + b};
        }
        work->line[work->lines++] =
            (struct line){spot_before(drawing, edge, edge->bends), edge->to};
    }
}

static void index_lines(struct work *work)
{
    size_t at = 0;
    for (size_t l = 0; l < work->lines; l++) {
        work->spot[work->line[l].above].count++;
        work->spot[work->line[l].below].count++;
    }
    for (size_t s = 0; s < work->spots; s++) {
        work->spot[s].first = at;
        at += work->spot[s].count;
        work->spot[s].count = 0;
    }
    for (size_t l = 0; l < work->lines; l++) {
        struct spot *ends[2] = {&work->spot[work->line[l].above], &work->spot[work->line[l].below]};
        for (int i = 0; i < 2; i++)
            work->neighbour[ends[i]->first + ends[i]->count++] = l;
    }
}

static void fill_rows(struct work *work)
{
    for (size_t s = 0; s < work->spots; s++)
        work->row_begin[work->spot[s].row + 1]++;
    for (int r = 0; r < work->rows; r++)
        work->row_begin[r + 1] += work->row_begin[r];
    size_t *next = work->block; /* room for a number a spot, and there are fewer rows */
    for (int r = 0; r < work->rows; r++)
        next[r] = work->row_begin[r];
    for (size_t s = 0; s < work->spots; s++)
        work->order[next[work->spot[s].row]++] = s;
}

/* ---- Order and places ------------------------------------------------------------------------ */

static double distance(const struct work *work, size_t left, size_t right)
{
    return (work->spot[left].width + work->spot[right].width) / 2 + work->gap;
}

/* Puts the spots of a row side by side. */
static void spread_row(struct work *work, int row)
{
    double x = 0;
    for (size_t i = work->row_begin[row]; i < work->row_begin[row + 1]; i++) {
        if (i > work->row_begin[row])
            x += distance(work, work->order[i - 1], work->order[i]);
        work->spot[work->order[i]].x = x;
    }
}

/* Where a spot wants to be: at the mean of its neighbours above, below or both. *pull is how much.
 */
static double wish_of(const struct work *work, size_t index, bool above, bool below, double *pull)
{
    const struct spot *spot = &work->spot[index];
    double sum = 0;
    *pull = 0;
    for (size_t n = 0; n < spot->count; n++) {
        const struct line *line = &work->line[work->neighbour[spot->first + n]];
        const bool up = line->below == index;
        const struct spot *other = &work->spot[up ? line->above : line->below];
        const double weight = spot->bend && other->bend ? straight : 1;
        if (up ? !above : !below)
            continue;
        sum += weight * other->x;
        *pull += weight;
    }
    return *pull > 0 ? sum / *pull : spot->x;
}

/* A stable sort of a row by its wishes. */
static void sort_row(struct work *work, int row, bool above)
{
    double pull;
    const size_t begin = work->row_begin[row], end = work->row_begin[row + 1];
    for (size_t i = begin; i < end; i++)
        work->spot[work->order[i]].wish = wish_of(work, work->order[i], above, !above, &pull);
    for (size_t i = begin + 1; i < end; i++) {
        const size_t spot = work->order[i];
        size_t at = i;
        for (; at > begin && work->spot[work->order[at - 1]].wish > work->spot[spot].wish; at--)
            work->order[at] = work->order[at - 1];
        work->order[at] = spot;
    }
    spread_row(work, row);
}

/* Moves the spots of a row to where they want to be, as nearly as their distances allow: the least
 * sum of squares, by joining neighbours that would come too near to each other. */
static void place_row(struct work *work, int row)
{
    const size_t begin = work->row_begin[row], end = work->row_begin[row + 1];
    size_t blocks = 0;
    double offset = 0;
    for (size_t i = begin; i < end; i++) {
        double pull, wish = wish_of(work, work->order[i], true, true, &pull);
        if (i > begin)
            offset += distance(work, work->order[i - 1], work->order[i]);
        pull = pull > 0 ? pull : 0.01;
        work->spot[work->order[i]].wish = offset; /* from the left end of the row */
        work->sum[blocks] = (wish - offset) * pull;
        work->weight[blocks] = pull;
        work->block[blocks++] = i;
        while (blocks > 1 && work->sum[blocks - 2] / work->weight[blocks - 2] >
                                 work->sum[blocks - 1] / work->weight[blocks - 1]) {
            work->sum[blocks - 2] += work->sum[blocks - 1];
            work->weight[blocks - 2] += work->weight[blocks - 1];
            blocks--;
        }
    }
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = work->block[b]; i < (b + 1 < blocks ? work->block[b + 1] : end); i++)
            work->spot[work->order[i]].x =
                work->sum[b] / work->weight[b] + work->spot[work->order[i]].wish;
}

static void arrange(struct work *work)
{
    for (int r = 0; r < work->rows; r++)
        spread_row(work, r);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int r = 1; r < work->rows; r++)
            sweep % 2 == 0 ? sort_row(work, r, true) : sort_row(work, work->rows - 1 - r, false);
    for (int round = 0; round < ROUNDS; round++)
        for (int r = 0; r < work->rows; r++)
            place_row(work, round % 2 == 0 ? r : work->rows - 1 - r);
}

/* ---- The drawing ----------------------------------------------------------------------------- */

/* Back to the caller's nodes, from 0 on. */
static void hand_back(const struct work *work, struct ls_layered *drawing)
{
    double left = 0, right = 0;
    for (size_t s = 0; s < work->spots; s++) {
        const struct spot *spot = &work->spot[s];
        if (s == 0 || spot->x - spot->width / 2 < left)
            left = spot->x - spot->width / 2;
        if (s == 0 || spot->x + spot->width / 2 > right)
            right = spot->x + spot->width / 2;
    }
    for (size_t s = 0; s < work->spots; s++) {
        if (s < drawing->nodes)
            drawing->node[s].x = work->spot[s].x - left;
        else
            drawing->bend[s - drawing->nodes] = work->spot[s].x - left;
    }
    drawing->width = right - left;
}

bool ls_layered_run(struct ls_layered *drawing)
{
    find_rows(drawing);
    const size_t bends = count_bends(drawing);
    struct work work = {
        .spots = drawing->nodes + bends, .rows = drawing->rows, .gap = drawing->gap};
    const size_t lines = drawing->edges + bends;
    drawing->bend = calloc(bends > 0 ? bends : 1, sizeof *drawing->bend);
    work.spot = calloc(work.spots + 1, sizeof *work.spot);
    work.line = calloc(lines + 1, sizeof *work.line);
    work.neighbour = calloc(2 * lines + 1, sizeof *work.neighbour);
    work.order = calloc(work.spots + 1, sizeof *work.order);
    work.row_begin = calloc((size_t)work.rows + 2, sizeof *work.row_begin);
    work.sum = calloc(work.spots + 1, sizeof *work.sum);
    work.weight = calloc(work.spots + 1, sizeof *work.weight);
    work.block = calloc(work.spots + (size_t)work.rows + 1, sizeof *work.block);
    const bool there = drawing->bend != NULL && work.spot != NULL && work.line != NULL &&
                       work.neighbour != NULL && work.order != NULL && work.row_begin != NULL &&
                       work.sum != NULL && work.weight != NULL && work.block != NULL;
    if (there) {
        make_spots(drawing, &work);
        index_lines(&work);
        fill_rows(&work);
        arrange(&work);
        hand_back(&work, drawing);
    }
    free(work.spot);
    free(work.line);
    free(work.neighbour);
    free(work.order);
    free(work.row_begin);
    free(work.sum);
    free(work.weight);
    free(work.block);
    return there;
}

void ls_layered_free(struct ls_layered *drawing)
{
    free(drawing->bend);
    drawing->bend = NULL;
}
