/* A drawing of a directed graph in layers. See cli/layered.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/layered.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX
enum { SWEEPS = 24, ROUNDS = 60 };
static const double bend_width = 10;

/* A node, or a bend of an edge. */
struct spot {
    double width, x, wish;
    size_t first, count; /* its neighbours */
    size_t place;        /* in its row */
    size_t line;         /* the spots that stand straight below each other, by the first of them */
    size_t above, below; /* the neighbours that it stands straight below and above; NONE */
    size_t length;       /* how many spots of the line are above it */
    size_t depth;        /* nodes on the longest way down */
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
    size_t *neighbour; /* of all spots: numbers of lines */
    size_t *order;     /* spots row by row, from left to right */
    size_t *row_begin; /* by row, and behind the last */
    size_t *next;      /* by row, for `fill_rows` */
    size_t *best;      /* the order with the fewest crossings so far */
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
    size_t *next = work->next;
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

/* Where a spot wants to be: at the mean of its neighbours above or below. */
static double wish_of(const struct work *work, size_t index, bool above)
{
    const struct spot *spot = &work->spot[index];
    double sum = 0;
    size_t count = 0;
    for (size_t n = 0; n < spot->count; n++) {
        const struct line *line = &work->line[work->neighbour[spot->first + n]];
        const bool up = line->below == index;
        if (up != above)
            continue;
        sum += work->spot[up ? line->above : line->below].x;
        count++;
    }
    return count > 0 ? sum / (double)count : spot->x;
}

/* A stable sort of a row by its wishes. */
static void sort_row(struct work *work, int row, bool above)
{
    const size_t begin = work->row_begin[row], end = work->row_begin[row + 1];
    for (size_t i = begin; i < end; i++)
        work->spot[work->order[i]].wish = wish_of(work, work->order[i], above);
    for (size_t i = begin + 1; i < end; i++) {
        const size_t spot = work->order[i];
        size_t at = i;
        for (; at > begin && work->spot[work->order[at - 1]].wish > work->spot[spot].wish; at--)
            work->order[at] = work->order[at - 1];
        work->order[at] = spot;
    }
    spread_row(work, row);
}

/* Lines of `left` and `right`, neighbours in a row, that cross each other in this order. */
static size_t count_crossings(const struct work *work, size_t left, size_t right)
{
    const struct spot *a = &work->spot[left], *b = &work->spot[right];
    size_t crossings = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++) {
            const struct line *first = &work->line[work->neighbour[a->first + i]],
                              *second = &work->line[work->neighbour[b->first + k]];
            const bool up = first->below == left;
            if (up != (second->below == right))
                continue;
            const size_t one = work->spot[up ? first->above : first->below].place,
                         two = work->spot[up ? second->above : second->below].place;
            crossings += one > two;
        }
    return crossings;
}

/* Swaps neighbours as long as fewer lines cross each other. */
static void swap_neighbours(struct work *work)
{
    bool swapped = true;
    for (size_t i = 0; i < work->spots; i++)
        work->spot[work->order[i]].place = i;
    for (int round = 0; swapped && round < SWEEPS; round++) {
        swapped = false;
        for (size_t i = 1; i < work->spots; i++) {
            const size_t left = work->order[i - 1], right = work->order[i];
            if (work->spot[left].row != work->spot[right].row ||
                count_crossings(work, left, right) <= count_crossings(work, right, left))
                continue;
            work->order[i - 1] = right;
            work->order[i] = left;
            work->spot[right].place = i - 1;
            work->spot[left].place = i;
            swapped = true;
        }
    }
}

static size_t count_all_crossings(const struct work *work)
{
    size_t crossings = 0;
    for (int row = 0; row < work->rows; row++)
        for (size_t i = work->row_begin[row]; i < work->row_begin[row + 1]; i++)
            for (size_t k = i + 1; k < work->row_begin[row + 1]; k++)
                crossings += count_crossings(work, work->order[i], work->order[k]);
    return crossings;
}

/* Orders the rows: as the layers stand in the definition, with passing edges beside them, or by the
 * means of neighbours, whichever has fewer crossings. */
static void order_rows(struct work *work)
{
    swap_neighbours(work);
    const size_t plain = count_all_crossings(work);
    memcpy(work->best, work->order, work->spots * sizeof *work->order);
    for (int r = 0; r < work->rows; r++)
        spread_row(work, r);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int r = 1; r < work->rows; r++)
            sweep % 2 == 0 ? sort_row(work, r, true) : sort_row(work, work->rows - 1 - r, false);
    swap_neighbours(work);
    if (plain <= count_all_crossings(work))
        memcpy(work->order, work->best, work->spots * sizeof *work->order);
    for (size_t i = 0; i < work->spots; i++)
        work->spot[work->order[i]].place = i;
}

/* ---- Straight lines -------------------------------------------------------------------------- */

/* Whether a line between these neighbours would cross one that is straight already. */
static bool crosses(const struct work *work, size_t above, size_t below)
{
    const int row = work->spot[below].row;
    for (size_t i = work->row_begin[row]; i < work->row_begin[row + 1]; i++) {
        const struct spot *other = &work->spot[work->order[i]];
        if (other->above == NONE)
            continue;
        const size_t place = work->spot[other->above].place;
        if ((place < work->spot[above].place) != (other->place < work->spot[below].place))
            return true;
    }
    return false;
}

/* The neighbour above or below that a spot should be in one straight line with: the one that ends
 * the longest line, or from which the longest way goes down, so that a net has a spine; of several
 * such the one in the middle. */
static size_t choose(const struct work *work, size_t index, bool up, bool bends)
{
    enum { MOST = 64 };
    const struct spot *spot = &work->spot[index];
    size_t found[MOST], count = 0, longest = 0;
    for (size_t n = 0; n < spot->count; n++) {
        const struct line *line = &work->line[work->neighbour[spot->first + n]];
        const size_t near = up ? line->above : line->below;
        const struct spot *other = &work->spot[near];
        const size_t long_as = up ? other->length : other->depth;
        if (near == index || other->bend != bends || (up ? other->below : other->above) != NONE ||
            crosses(work, line->above, line->below) || long_as < longest)
            continue;
        if (long_as > longest) {
            longest = long_as;
            count = 0;
        }
        size_t at = count < MOST ? count++ : MOST - 1;
        for (; at > 0 && work->spot[found[at - 1]].place > other->place; at--)
            found[at] = found[at - 1];
        found[at] = near;
    }
    return count > 0 ? found[(count - 1) / 2] : NONE;
}

static void stand_below(struct work *work, size_t above, size_t below)
{
    work->spot[below].above = above;
    work->spot[above].below = below;
    for (size_t s = below; s != NONE; s = work->spot[s].below)
        work->spot[s].length = work->spot[work->spot[s].above].length + 1;
}

static void find_depths(struct work *work)
{
    for (size_t i = work->spots; i-- > 0;) { /* rows from below to above */
        struct spot *spot = &work->spot[work->order[i]];
        spot->depth = 0;
        for (size_t n = 0; n < spot->count; n++) {
            const struct line *line = &work->line[work->neighbour[spot->first + n]];
            const struct spot *below = &work->spot[line->below];
            if (line->above == work->order[i] && below->depth + !below->bend > spot->depth)
                spot->depth = below->depth + !below->bend;
        }
    }
}

/* Makes lines straight: first those of edges that pass rows, then those between nodes. */
static void straighten(struct work *work)
{
    find_depths(work);
    for (size_t s = 0; s < work->spots; s++)
        work->spot[s].above = work->spot[s].below = NONE, work->spot[s].length = 0;
    static const struct {
        bool below, above; /* whether these are bends */
        bool mutual;       /* each has chosen the other */
    } turns[] = {{true, true, false},
                 {false, false, true},
                 {false, false, false},
                 {false, true, false},
                 {true, false, false}};
    for (size_t t = 0; t < sizeof turns / sizeof *turns; t++)
        for (size_t i = 0; i < work->spots; i++) {
            const size_t s = work->order[i];
            if (work->spot[s].above != NONE || work->spot[s].bend != turns[t].below)
                continue;
            const size_t above = choose(work, s, true, turns[t].above);
            if (above != NONE &&
                (!turns[t].mutual || choose(work, above, false, turns[t].below) == s))
                stand_below(work, above, s);
        }
    for (size_t i = 0; i < work->spots; i++) { /* rows from above to below */
        struct spot *spot = &work->spot[work->order[i]];
        spot->line = spot->above != NONE ? work->spot[spot->above].line : work->order[i];
    }
}

/* As far to the left as the distances allow. The x of a line is that of its first spot. */
static void pack(struct work *work)
{
    for (size_t s = 0; s < work->spots; s++)
        work->spot[s].x = 0;
    bool moved = true;
    for (size_t round = 0; moved && round <= work->spots; round++) {
        moved = false;
        for (size_t i = 1; i < work->spots; i++) {
            const size_t left = work->order[i - 1], right = work->order[i];
            struct spot *line = &work->spot[work->spot[right].line];
            if (work->spot[left].row != work->spot[right].row)
                continue;
            const double x = work->spot[work->spot[left].line].x + distance(work, left, right);
            if (x > line->x + 1e-6) {
                line->x = x;
                moved = true;
            }
        }
    }
}

/* Moves a line to the middle of what its spots are joined with, as far as its neighbours let it. */
static void centre_line(struct work *work, size_t line)
{
    double sum = 0, low = -1e300, high = 1e300;
    size_t count = 0;
    for (size_t s = line; s != NONE; s = work->spot[s].below) {
        const struct spot *spot = &work->spot[s];
        for (size_t n = 0; n < spot->count; n++) {
            const struct line *joined = &work->line[work->neighbour[spot->first + n]];
            const size_t other = joined->below == s ? joined->above : joined->below;
            if (work->spot[other].line == line)
                continue;
            sum += work->spot[work->spot[other].line].x;
            count++;
        }
        const size_t begin = work->row_begin[spot->row], end = work->row_begin[spot->row + 1];
        if (spot->place > begin) {
            const size_t left = work->order[spot->place - 1];
            const double x = work->spot[work->spot[left].line].x + distance(work, left, s);
            low = x > low ? x : low;
        }
        if (spot->place + 1 < end) {
            const size_t right = work->order[spot->place + 1];
            const double x = work->spot[work->spot[right].line].x - distance(work, s, right);
            high = x < high ? x : high;
        }
    }
    if (count == 0 || low > high)
        return;
    const double wish = sum / (double)count;
    work->spot[line].x = wish < low ? low : wish > high ? high : wish;
}

static void arrange(struct work *work)
{
    order_rows(work);
    straighten(work);
    pack(work);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t s = 0; s < work->spots; s++)
            if (work->spot[s].line == s)
                centre_line(work, s);
    for (size_t s = 0; s < work->spots; s++)
        work->spot[s].x = work->spot[work->spot[s].line].x;
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
    work.best = calloc(work.spots + 1, sizeof *work.best);
    work.next = calloc((size_t)work.rows + 1, sizeof *work.next);
    const bool there = drawing->bend != NULL && work.spot != NULL && work.line != NULL &&
                       work.neighbour != NULL && work.order != NULL && work.row_begin != NULL &&
                       work.next != NULL && work.best != NULL;
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
    free(work.next);
    free(work.best);
    return there;
}

void ls_layered_free(struct ls_layered *drawing)
{
    free(drawing->bend);
    drawing->bend = NULL;
}
