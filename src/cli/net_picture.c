/* A net as a picture in SVG. See cli/net_picture.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/net_picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/layered.h"
#include "cli/net.h"
#include "cli/net_boxes.h"
#include "cli/size.h"

enum { LINES = 7, LINE_ROOM = 256 };
static const double text_width = 7.25, title_width = 7.6, line_height = 15, row_gap = 34,
                    margin = 24, header = 58, least_width = 120, padding = 10, frame_room = 20,
                    frame_side = 12;

/* Around the boxes of a first copy. */
struct frame {
    double left, right, top, bottom;
    int depth; /* how many frames are inside of it, one in the other */
};

/* A box with its text. */
struct box {
    char line[LINES][LINE_ROOM];
    int lines;
    double height, y; /* y: of its top */
    const char *colour;
};

struct picture {
    FILE *out;
    const struct lockstep_net_layer *layers;
    size_t count;
    struct ls_net_boxes net;
    struct box *box;
    struct ls_layered_node *node;
    struct ls_layered_edge *edge;
    struct ls_layered drawing;
    double *row_y;       /* by row: its top; and behind the last */
    struct frame *frame; /* of the copies, in the net's order */
};

/* ---- Text ------------------------------------------------------------------------------------ */

/* Text from outside: what XML would take as its own is written otherwise. */
static void put_escaped(FILE *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '>')
            fputs("&gt;", out);
        else if (*c == '&')
            fputs("&amp;", out);
        else if (*c < 32 || *c > 126)
            putc('?', out);
        else
            putc(*c, out);
    }
}

/* "23.3 K", "1.2 M". */
static const char *format_count(double count, char buffer[32])
{
    static const char *const units[] = {"", " K", " M", " G", " T"};
    size_t unit = 0;
    while (count >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        count /= 1000;
        unit++;
    }
    snprintf(buffer, 32, "%.*f%s", count < 9.95 && unit > 0 ? 1 : 0, count, units[unit]);
    return buffer;
}

/* "50 FLOP", "3.2 MFLOP". */
static const char *format_flops(double flops, char buffer[40])
{
    char number[32];
    format_count(flops, number);
    snprintf(buffer, 40, "%s%sFLOP", number, strchr(number, ' ') == NULL ? " " : "");
    return buffer;
}

static void add_line(struct box *box, const char *text)
{
    if (box->lines < LINES && text[0] != '\0')
        snprintf(box->line[box->lines++], LINE_ROOM, "%s", text);
}

static void describe_types(const struct picture *picture, const struct ls_net_box *net, size_t box,
                           char text[LINE_ROOM])
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = net->first; i <= net->last && length < LINE_ROOM; i++)
        if (picture->net.box_of[i] == box)
            length += (size_t)snprintf(text + length, LINE_ROOM - length, "%s%s",
                                       length > 0 ? " + " : "", picture->layers[i].type);
}

static void describe_cost(const struct ls_net_box *net, char text[LINE_ROOM])
{
    char number[40], size[LS_CLI_SIZE_ROOM];
    size_t length = 0;
    text[0] = '\0';
    if (net->parameters > 0)
        length += (size_t)snprintf(text, LINE_ROOM, "%s parameters",
                                   format_count(net->parameters, number));
    if (net->flops > 0)
        length += (size_t)snprintf(text + length, LINE_ROOM - length, "%s%s",
                                   length > 0 ? ", " : "", format_flops(net->flops, number));
    if (net->bytes > 0)
        snprintf(text + length, LINE_ROOM - length, "%s%s", length > 0 ? ", " : "",
                 ls_cli_format_size((uint64_t)net->bytes, size));
}

static const char *colour_of(const char *type)
{
    static const struct {
        const char *word, *colour;
    } words[] = {{"Loss", "loss"},        {"Accuracy", "measure"}, {"MeanIou", "measure"},
                 {"Evaluat", "measure"},  {"EvalDet", "measure"},  {"Attention", "ip"},
                 {"Convolution", "conv"}, {"Deconvol", "conv"},    {"InnerProduct", "ip"},
                 {"Embed", "ip"},         {"LSTM", "ip"},          {"RNN", "ip"},
                 {"GRU", "ip"},           {"Pooling", "pool"},     {"SPP", "pool"},
                 {"Concat", "join"},      {"Eltwise", "join"},     {"Slice", "join"},
                 {"Split", "join"},       {"Data", "data"},        {"Input", "data"},
                 {"Parameter", "data"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(type, words[i].word) != NULL)
            return words[i].colour;
    return "other";
}

static void describe(struct picture *picture, size_t index)
{
    const struct ls_net_box *net = &picture->net.box[index];
    const struct lockstep_net_layer *first = &picture->layers[net->first],
                                    *last = &picture->layers[net->last];
    struct box *box = &picture->box[index];
    char text[LINE_ROOM], shape[LS_CLI_SHAPE_ROOM];
    add_line(box, first->name);
    describe_types(picture, net, index, text);
    add_line(box, text);
    for (size_t t = 0; t < last->top_count; t++) {
        if (box->lines + 2 == LINES && t + 1 < last->top_count) { /* and one for the cost */
            snprintf(text, sizeof text, "and %zu more tops", last->top_count - t);
            add_line(box, text);
            break;
        }
        ls_cli_format_shape(&last->tops[t], shape);
        snprintf(text, sizeof text, "%s%s%s", last->top_count > 1 ? last->tops[t].name : "",
                 last->top_count > 1 && shape[0] != '\0' ? " " : "", shape);
        add_line(box, text);
    }
    describe_cost(net, text);
    add_line(box, text);
    box->colour = colour_of(first->type);
    box->height = line_height * box->lines + padding;
    double width = title_width * (double)strlen(box->line[0]);
    for (int i = 1; i < box->lines; i++)
        if (text_width * (double)strlen(box->line[i]) > width)
            width = text_width * (double)strlen(box->line[i]);
    picture->node[index].width =
        width + 2 * padding > least_width ? width + 2 * padding : least_width;
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* The first and the last row of a frame's boxes. */
static void find_frame_rows(const struct picture *picture, const struct ls_net_copies *copies,
                            int *first, int *last)
{
    *first = picture->drawing.rows;
    *last = 0;
    for (size_t i = copies->first; i < copies->first + copies->length; i++) {
        const int row = picture->node[picture->net.box_of[i]].row;
        *first = row < *first ? row : *first;
        *last = row > *last ? row : *last;
    }
}

/* Rows in front of which frames begin are further from those above. Inner frames come behind outer
 * ones, so that their depth is known when they are taken from the end. */
static void make_room_for_frames(struct picture *picture)
{
    const struct ls_net_repeats *repeats = &picture->net.repeats;
    for (size_t i = repeats->count; i-- > 0;) {
        int first, last;
        const struct ls_net_copies *copies = &repeats->copies[i];
        find_frame_rows(picture, copies, &first, &last);
        picture->row_y[first] += frame_room;
        for (size_t k = i + 1; k < repeats->count; k++)
            if (repeats->copies[k].first < copies->first + copies->length &&
                picture->frame[i].depth <= picture->frame[k].depth)
                picture->frame[i].depth = picture->frame[k].depth + 1;
    }
}

static bool is_inside(const struct picture *picture, const struct ls_net_copies *copies, size_t box)
{
    const size_t layer = picture->net.box[box].first;
    return layer >= copies->first && layer < copies->first + copies->length;
}

/* Takes the bends of an edge between two boxes of a frame into it. */
static void widen_frame(const struct picture *picture, const struct ls_net_copies *copies,
                        const struct ls_layered_edge *edge, struct frame *frame)
{
    if (!is_inside(picture, copies, edge->from) || !is_inside(picture, copies, edge->to))
        return;
    for (size_t b = 0; b < edge->bends; b++) {
        const double x = picture->drawing.bend[edge->bend + b];
        frame->left = fmin(frame->left, x);
        frame->right = fmax(frame->right, x);
    }
}

/* Around boxes, their inner lines and the frames inside. */
static void place_frames(struct picture *picture)
{
    const struct ls_net_repeats *repeats = &picture->net.repeats;
    for (size_t i = repeats->count; i-- > 0;) {
        const struct ls_net_copies *copies = &repeats->copies[i];
        struct frame *frame = &picture->frame[i];
        frame->left = frame->top = 1e30;
        frame->right = frame->bottom = -1e30;
        for (size_t l = copies->first; l < copies->first + copies->length; l++) {
            const size_t index = picture->net.box_of[l];
            const struct ls_layered_node *node = &picture->node[index];
            const struct box *box = &picture->box[index];
            frame->left = fmin(frame->left, node->x - node->width / 2);
            frame->right = fmax(frame->right, node->x + node->width / 2);
            frame->top = fmin(frame->top, box->y);
            frame->bottom = fmax(frame->bottom, box->y + box->height);
        }
        for (size_t e = 0; e < picture->net.edges; e++)
            widen_frame(picture, copies, &picture->edge[e], frame);
        frame->left -= frame_side * (1 + frame->depth);
        frame->right += frame_side * (1 + frame->depth);
        frame->top -= frame_room * (1 + frame->depth) - 2;
        frame->bottom += 8 + 4 * frame->depth;
    }
}

static bool place(struct picture *picture)
{
    const size_t boxes = picture->net.boxes;
    picture->drawing = (struct ls_layered){.node = picture->node,
                                           .nodes = boxes,
                                           .edge = picture->edge,
                                           .edges = picture->net.edges,
                                           .gap = 18};
    if (!ls_layered_run(&picture->drawing))
        return false;
    picture->row_y = calloc((size_t)picture->drawing.rows + 2, sizeof *picture->row_y);
    if (picture->row_y == NULL)
        return false;
    for (size_t i = 0; i < boxes; i++) { /* first the heights */
        double *height = &picture->row_y[picture->node[i].row + 1];
        *height =
            picture->box[i].height + row_gap > *height ? picture->box[i].height + row_gap : *height;
    }
    picture->row_y[0] = header + margin;
    make_room_for_frames(picture);
    for (int r = 0; r < picture->drawing.rows; r++)
        picture->row_y[r + 1] += picture->row_y[r];
    for (size_t i = 0; i < boxes; i++) {
        const int row = picture->node[i].row;
        const double room = picture->row_y[row + 1] - picture->row_y[row] - row_gap;
        picture->box[i].y = picture->row_y[row] + (room - picture->box[i].height) / 2;
    }
    place_frames(picture);
    return true;
}

static bool prepare(struct picture *picture)
{
    if (!ls_net_boxes_make(picture->layers, picture->count, &picture->net))
        return false;
    picture->box = calloc(picture->net.boxes + 1, sizeof *picture->box);
    picture->node = calloc(picture->net.boxes + 1, sizeof *picture->node);
    picture->edge = calloc(picture->net.edges + 1, sizeof *picture->edge);
    picture->frame = calloc(picture->net.repeats.count + 1, sizeof *picture->frame);
    if (picture->box == NULL || picture->node == NULL || picture->edge == NULL ||
        picture->frame == NULL)
        return false;
    for (size_t i = 0; i < picture->net.boxes; i++)
        describe(picture, i);
    for (size_t e = 0; e < picture->net.edges; e++)
        picture->edge[e] = (struct ls_layered_edge){.from = picture->net.edge[e][0],
                                                    .to = picture->net.edge[e][1]};
    return place(picture);
}

/* ---- SVG ------------------------------------------------------------------------------------- */

static const char light[] = "--back:#ffffff;--ink:#1c2128;--soft:#59636e;--line:#8c959f;"
                            "--data:#d7e6fb;--conv:#d5f0dd;--ip:#f8e3c4;--pool:#e6ddfa;"
                            "--loss:#fbd7d7;--measure:#d3eef2;--join:#e8ecf0;--other:#f3f3ec";
static const char dark[] = "--back:#14181d;--ink:#e6edf3;--soft:#9aa6b2;--line:#66727e;"
                           "--data:#1d3657;--conv:#17402a;--ip:#4a3516;--pool:#382c5c;"
                           "--loss:#58232a;--measure:#123f4a;--join:#2b333c;--other:#2f302a";

static void put_style(const struct picture *picture, const char *theme)
{
    fputs("<style>\n", picture->out);
    fprintf(picture->out, ".lsnet{%s}\n", strcmp(theme, "dark") == 0 ? dark : light);
    if (strcmp(theme, "auto") == 0)
        fprintf(picture->out, "@media (prefers-color-scheme:dark){.lsnet{%s}}\n", dark);
    fputs(".lsnet text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:var(--soft);"
          "text-anchor:middle}\n"
          ".lsnet .n{font-weight:600;fill:var(--ink)}\n.lsnet "
          ".h{font-size:16px;font-weight:600;fill:var(--ink);"
          "text-anchor:start}\n.lsnet .s{text-anchor:start}\n"
          ".lsnet rect{stroke:var(--line);rx:5px}\n.lsnet .f{fill:none;stroke-dasharray:5 "
          "4;rx:9px}\n.lsnet "
          "path{fill:none;stroke:var(--line);stroke-width:1.3}\n",
          picture->out);
    static const char *const colours[] = {"data", "conv",    "ip",   "pool",
                                          "loss", "measure", "join", "other"};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        fprintf(picture->out, ".lsnet .%s{fill:var(--%s)}\n", colours[i], colours[i]);
    fputs("</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
          "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
          "style=\"fill:var(--line);stroke:none\"/></marker></defs>\n",
          picture->out);
}

/* A curve through the bends of an edge, upright at each of them. */
static void put_edge(const struct picture *picture, const struct ls_layered_edge *edge)
{
    const struct ls_layered_node *from = &picture->node[edge->from], *to = &picture->node[edge->to];
    double x = from->x + margin, y = picture->box[edge->from].y + picture->box[edge->from].height;
    fprintf(picture->out, "<path d=\"M%.1f %.1f", x, y);
    for (size_t b = 0; b <= edge->bends; b++) {
        const int row = from->row + 1 + (int)b;
        const bool last = b == edge->bends;
        const double next_x = (last ? to->x : picture->drawing.bend[edge->bend + b]) + margin;
        const double next_y = last ? picture->box[edge->to].y : picture->row_y[row];
        fprintf(picture->out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, (y + next_y) / 2, next_x,
                (y + next_y) / 2, next_x, next_y);
        x = next_x;
        y = next_y;
        if (!last) { /* straight down beside the boxes of this row */
            y = picture->row_y[row + 1] - row_gap;
            fprintf(picture->out, "L%.1f %.1f", x, y);
        }
    }
    fputs("\" marker-end=\"url(#a)\"/>\n", picture->out);
}

/* What a pointer over a box shows: all its layers with their parameters. */
static void put_tip(const struct picture *picture, size_t index)
{
    const struct ls_net_box *net = &picture->net.box[index];
    char shape[LS_CLI_SHAPE_ROOM];
    fputs("<title>", picture->out);
    for (size_t i = net->first; i <= net->last; i++) {
        const struct lockstep_net_layer *layer = &picture->layers[i];
        if (picture->net.box_of[i] != index)
            continue;
        put_escaped(picture->out, layer->name);
        fputs(" (", picture->out);
        put_escaped(picture->out, layer->type);
        putc(')', picture->out);
        for (size_t p = 0; p < layer->parameter_count; p++) {
            fputs(p > 0 ? ", " : ": ", picture->out);
            put_escaped(picture->out, layer->parameters[p].name);
            fprintf(picture->out, " %s", ls_cli_format_shape(&layer->parameters[p], shape));
        }
        fputs(layer->shares ? " (shared)\n" : "\n", picture->out);
    }
    fputs("</title>", picture->out);
}

static void put_box(const struct picture *picture, size_t index)
{
    const struct box *box = &picture->box[index];
    const struct ls_layered_node *node = &picture->node[index];
    fputs("<g>", picture->out);
    put_tip(picture, index);
    fprintf(picture->out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
            box->colour, node->x + margin - node->width / 2, box->y, node->width, box->height);
    for (int i = 0; i < box->lines; i++) {
        fprintf(picture->out, "<text%s x=\"%.1f\" y=\"%.1f\">", i == 0 ? " class=\"n\"" : "",
                node->x + margin, box->y + padding / 2 + line_height * (i + 0.77));
        put_escaped(picture->out, box->line[i]);
        fputs("</text>", picture->out);
    }
    fputs("</g>\n", picture->out);
}

/* Layers as one number: of all, with their copies. */
static struct ls_net_box sum_layers(const struct picture *picture, size_t first, size_t end)
{
    struct ls_net_box total = {.first = first};
    for (size_t i = first; i < end; i++)
        ls_net_box_add(&total, &picture->layers[i], i);
    return total;
}

/* "h x 12", with what all copies cost. */
static void put_frame(const struct picture *picture, size_t index)
{
    const struct ls_net_copies *copies = &picture->net.repeats.copies[index];
    const struct frame *frame = &picture->frame[index];
    const struct ls_net_box all =
        sum_layers(picture, copies->first, copies->first + copies->times * copies->length);
    char number[40], name[LINE_ROOM];
    snprintf(name, sizeof name, "%.*s", copies->name, picture->layers[copies->first].name);
    fprintf(picture->out,
            "<rect class=\"f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
            "<text class=\"s k\" x=\"%.1f\" y=\"%.1f\"><tspan class=\"n\">",
            frame->left + margin, frame->top, frame->right - frame->left,
            frame->bottom - frame->top, frame->left + margin + 8, frame->top + 14);
    put_escaped(picture->out, name);
    fprintf(picture->out, " x %zu</tspan>", copies->times);
    if (all.parameters > 0)
        fprintf(picture->out, ", %s parameters in all", format_count(all.parameters, number));
    fputs("</text>\n", picture->out);
}

static void describe_net(const struct picture *picture, const struct lockstep_net *net,
                         char text[LINE_ROOM])
{
    char number[2][40], size[LS_CLI_SIZE_ROOM];
    const struct ls_net_box total = sum_layers(picture, 0, picture->count);
    snprintf(text, LINE_ROOM,
             "phase %s, batch %" PRId64 ": %zu layers, %s parameters, %s per sample forward, %s of "
             "activations",
             lockstep_net_phase(net), lockstep_net_batch(net), picture->count,
             format_count(total.parameters, number[0]), format_flops(total.flops, number[1]),
             ls_cli_format_size((uint64_t)total.bytes, size));
}

static void put_header(const struct picture *picture, const struct lockstep_net *net,
                       const char *text)
{
    fprintf(picture->out, "<text class=\"h\" x=\"%.0f\" y=\"%.0f\">", margin, margin + 10);
    put_escaped(picture->out,
                lockstep_net_name(net)[0] != '\0' ? lockstep_net_name(net) : "(a net)");
    fprintf(picture->out, "</text>\n<text class=\"s\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin,
            margin + 30, text);
}

static void put_picture(const struct picture *picture, const struct lockstep_net *net,
                        const char *theme)
{
    char text[LINE_ROOM];
    describe_net(picture, net, text);
    double width = fmax(picture->drawing.width, text_width * (double)strlen(text)), least = 0,
           height = picture->row_y[picture->drawing.rows] - row_gap + margin;
    for (size_t i = 0; i < picture->net.repeats.count; i++) { /* frames may stand out */
        width = fmax(width, picture->frame[i].right);
        least = fmin(least, picture->frame[i].left);
        height = fmax(height, picture->frame[i].bottom + margin);
    }
    width += 2 * margin - least;
    fprintf(
        picture->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lsnet\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n",
        width, height, width, height);
    put_style(picture, theme);
    fprintf(picture->out,
            "<rect width=\"%.0f\" height=\"%.0f\" style=\"fill:var(--back);stroke:none;rx:0\"/>\n",
            width, height);
    put_header(picture, net, text);
    fprintf(picture->out, "<g transform=\"translate(%.1f 0)\">\n", -least);
    for (size_t e = 0; e < picture->net.edges; e++)
        put_edge(picture, &picture->edge[e]);
    for (size_t i = 0; i < picture->net.repeats.count; i++)
        put_frame(picture, i);
    for (size_t i = 0; i < picture->net.boxes; i++)
        put_box(picture, i);
    fputs("</g>\n</svg>\n", picture->out);
}

bool ls_cli_draw_net(const struct lockstep_net *net, const char *theme, FILE *out)
{
    struct picture picture = {.out = out};
    picture.layers = lockstep_net_layers(net, &picture.count);
    const bool there = prepare(&picture);
    if (there)
        put_picture(&picture, net, theme != NULL ? theme : "auto");
    ls_layered_free(&picture.drawing);
    ls_net_boxes_free(&picture.net);
    free(picture.box);
    free(picture.node);
    free(picture.edge);
    free(picture.row_y);
    free(picture.frame);
    return there;
}
