/* Boxes of an image: SSD's loss, which matches boxes to priors, and what a net has found. (Liu et
 * al.: SSD, Single Shot MultiBox Detector; 2016.) See device/defined.h.
 *
 * A prior is a box and four variances, prior [1, 2, P 4]. True boxes are rows [item, label,
 * instance, xmin, ymin, xmax, ymax, difficult], a fixed number of rows a sample; a row whose item
 * or label is below 0 is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/defined.h"
#include "device/label.h"

enum { TRUE_BOX = 8 }; /* numbers of a row */

struct box {
    double xmin, ymin, xmax, ymax;
};

static struct box read_box(const float *numbers)
{
    return (struct box){(double)numbers[0], (double)numbers[1], (double)numbers[2],
                        (double)numbers[3]};
}

static double area_of(const struct box *box)
{
    if (box->xmax < box->xmin || box->ymax < box->ymin)
        return 0;
    return (box->xmax - box->xmin) * (box->ymax - box->ymin);
}

/* Intersection over union. */
static double overlap_of(const struct box *a, const struct box *b)
{
    const double width = fmin(a->xmax, b->xmax) - fmax(a->xmin, b->xmin);
    const double height = fmin(a->ymax, b->ymax) - fmax(a->ymin, b->ymin);
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (area_of(a) + area_of(b) - width * height);
}

/* ---- Codes ----------------------------------------------------------------------------------- */

/* How `box` differs from the prior: what a net learns to predict. */
static void encode(enum ls_box_code code, const struct box *prior, const struct box *box,
                   double target[4])
{
    const double w = prior->xmax - prior->xmin, h = prior->ymax - prior->ymin;
    if (code == LS_BOX_CENTER_SIZE) {
        target[0] = ((box->xmin + box->xmax) - (prior->xmin + prior->xmax)) / 2 / w;
        target[1] = ((box->ymin + box->ymax) - (prior->ymin + prior->ymax)) / 2 / h;
        target[2] = Sleef_cinz_logd1_u10purec((box->xmax - box->xmin) / w);
        target[3] = Sleef_cinz_logd1_u10purec((box->ymax - box->ymin) / h);
        return;
    }
    const bool by_size = code == LS_BOX_CORNER_SIZE;
    target[0] = (box->xmin - prior->xmin) / (by_size ? w : 1);
    target[1] = (box->ymin - prior->ymin) / (by_size ? h : 1);
    target[2] = (box->xmax - prior->xmax) / (by_size ? w : 1);
    target[3] = (box->ymax - prior->ymax) / (by_size ? h : 1);
}

/* The box that `code` says of the prior; `v` are its variances, or ones. */
static struct box decode(enum ls_box_code code, const struct box *prior, const double v[4],
                         const float *difference)
{
    const double w = prior->xmax - prior->xmin, h = prior->ymax - prior->ymin;
    double d[4];
    for (int k = 0; k < 4; k++)
        d[k] = v[k] * (double)difference[k];
    if (code == LS_BOX_CENTER_SIZE) {
        const double x = d[0] * w + (prior->xmin + prior->xmax) / 2;
        const double y = d[1] * h + (prior->ymin + prior->ymax) / 2;
        const double half_w = Sleef_cinz_expd1_u10purec(d[2]) * w / 2;
        const double half_h = Sleef_cinz_expd1_u10purec(d[3]) * h / 2;
        return (struct box){x - half_w, y - half_h, x + half_w, y + half_h};
    }
    const double sx = code == LS_BOX_CORNER_SIZE ? w : 1, sy = code == LS_BOX_CORNER_SIZE ? h : 1;
    return (struct box){prior->xmin + d[0] * sx, prior->ymin + d[1] * sy, prior->xmax + d[2] * sx,
                        prior->ymax + d[3] * sy};
}

/* ---- Matching -------------------------------------------------------------------------------- */

/* What is known of the priors of a sample. */
struct matches {
    int32_t *object; /* by prior: the row of the true box, or -1 */
    double *overlap; /* by prior: the largest with any true box */
    int64_t count;
};

/* Scratch memory of one sample. */
struct room {
    struct matches matches;
    bool *taken;      /* by row */
    double *loss;     /* by prior */
    int32_t *ordered; /* by prior */
};

static size_t room_bytes(const struct ls_multibox_attr *attr)
{
    const size_t priors = (size_t)attr->priors, objects = (size_t)attr->objects;
    return 2 * priors * sizeof(double) + 2 * priors * sizeof(int32_t) + objects * sizeof(bool);
}

static struct room divide_room(const struct ls_multibox_attr *attr, void *scratch)
{
    const size_t priors = (size_t)attr->priors;
    struct room room;
    room.matches.count = 0;
    room.loss = scratch;
    room.matches.overlap = room.loss + priors;
    room.ordered = (int32_t *)(void *)(room.matches.overlap + priors);
    room.matches.object = room.ordered + priors;
    room.taken = (bool *)(room.matches.object + priors);
    return room;
}

/* Whether a row holds a box that counts. */
static bool is_object(const struct ls_multibox_attr *attr, const float *row)
{
    return row[0] >= 0 && row[1] >= 0 && (attr->difficult || row[7] == 0);
}

/* Gives each true box in turn the prior that it covers best, of those that are left: the best pair
 * first, of equal ones that of the first prior, then of the first row. */
static void match_pairs(const struct ls_multibox_attr *attr, const float *prior, const float *rows,
                        struct room *room)
{
    struct matches *matches = &room->matches;
    for (int64_t g = 0; g < attr->objects; g++)
        room->taken[g] = !is_object(attr, rows + g * TRUE_BOX);
    for (;;) {
        double best = 1e-6;
        int64_t best_prior = -1, best_row = -1;
        for (int64_t p = 0; p < attr->priors; p++) {
            const struct box box = read_box(prior + 4 * p);
            for (int64_t g = 0; matches->object[p] < 0 && g < attr->objects; g++) {
                const struct box object = read_box(rows + g * TRUE_BOX + 3);
                const double overlap = room->taken[g] ? 0 : overlap_of(&box, &object);
                if (!(overlap > best))
                    continue;
                best = overlap;
                best_prior = p;
                best_row = g;
            }
        }
        if (best_prior < 0)
            return;
        matches->object[best_prior] = (int32_t)best_row;
        matches->count++;
        room->taken[best_row] = true;
    }
}

/* The others get the true box that they overlap most, if that is enough. */
static void match_rest(const struct ls_multibox_attr *attr, const float *prior, const float *rows,
                       struct room *room)
{
    struct matches *matches = &room->matches;
    for (int64_t p = 0; p < attr->priors; p++) {
        const struct box box = read_box(prior + 4 * p);
        int32_t best_row = -1;
        matches->overlap[p] = 0;
        for (int64_t g = 0; g < attr->objects; g++) {
            const struct box object = read_box(rows + g * TRUE_BOX + 3);
            const double overlap =
                is_object(attr, rows + g * TRUE_BOX) ? overlap_of(&box, &object) : 0;
            if (!(overlap > 1e-6 && overlap > matches->overlap[p]))
                continue;
            matches->overlap[p] = overlap;
            best_row = (int32_t)g;
        }
        if (attr->bipartite || matches->object[p] >= 0 || best_row < 0 ||
            matches->overlap[p] < (double)attr->overlap)
            continue;
        matches->object[p] = best_row;
        matches->count++;
    }
}

static void match(const struct ls_multibox_attr *attr, const float *prior, const float *rows,
                  struct room *room)
{
    room->matches.count = 0;
    for (int64_t p = 0; p < attr->priors; p++)
        room->matches.object[p] = -1;
    match_pairs(attr, prior, rows, room);
    match_rest(attr, prior, rows, room);
}

static size_t count_scratch(const struct ls_op *op)
{
    return room_bytes(&op->attr.multibox);
}

static void count_matches(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const float *prior = call->in[0], *rows = call->in[1];
    const int64_t samples = ls_value_sample_rows(call->op->input[1]) / call->op->input[1]->rows;
    struct room room = divide_room(attr, call->scratch);
    for (int64_t n = 0; n < samples; n++, rows += attr->objects * TRUE_BOX) {
        match(attr, prior, rows, &room);
        call->context->partials[attr->metric_offset] += (double)room.matches.count;
    }
}

/* ---- The loss -------------------------------------------------------------------------------- */

/* What the net predicts of one sample, and what is made of it. */
struct sample {
    const float *loc, *conf, *prior, *rows;
    float *dloc, *dconf;
};

/* The class that prior p shall have. */
static int64_t class_of(const struct ls_multibox_attr *attr, const struct sample *sample,
                        const struct room *room, int64_t p)
{
    const int32_t object = room->matches.object[p];
    return object < 0 ? attr->background
                      : ls_label_class(sample->rows[object * TRUE_BOX + 1], attr->classes);
}

/* The loss of the classes of prior p, and its gradient where `slope` is there. */
static double class_loss(const struct ls_multibox_attr *attr, const float *x, int64_t class,
                         float *slope)
{
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < attr->classes; c++)
        largest = fmax(largest, (double)x[c]);
    for (int64_t c = 0; c < attr->classes; c++)
        sum += Sleef_cinz_expd1_u10purec((double)x[c] - largest);
    for (int64_t c = 0; slope != NULL && c < attr->classes; c++)
        slope[c] =
            (float)(Sleef_cinz_expd1_u10purec((double)x[c] - largest) / sum - (c == class ? 1 : 0));
    return Sleef_cinz_logd1_u10purec(sum) - ((double)x[class] - largest);
}

/* The same of independent yes-or-no predictions. */
static double logistic_loss(const struct ls_multibox_attr *attr, const float *x, int64_t class,
                            float *slope)
{
    double sum = 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        const double number = (double)x[c], wanted = c == class ? 1 : 0;
        sum += Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(number))) -
               number * (wanted - (number >= 0 ? 1 : 0));
        if (slope != NULL)
            slope[c] = (float)(1 / (1 + Sleef_cinz_expd1_u10purec(-number)) - wanted);
    }
    return sum;
}

static double confidence_loss(const struct ls_multibox_attr *attr, const struct sample *sample,
                              int64_t p, int64_t class, bool learn)
{
    const float *x = sample->conf + p * attr->classes;
    float *slope = learn ? sample->dconf + p * attr->classes : NULL;
    return (attr->logistic ? logistic_loss : class_loss)(attr, x, class, slope);
}

/* The loss of where the box of prior p is. */
static double place_loss(const struct ls_multibox_attr *attr, const struct sample *sample,
                         const struct room *room, int64_t p)
{
    const struct box prior = read_box(sample->prior + 4 * p);
    const struct box object = read_box(sample->rows + room->matches.object[p] * TRUE_BOX + 3);
    const float *variance = sample->prior + 4 * (attr->priors + p);
    double target[4], sum = 0;
    encode(attr->code, &prior, &object, target);
    for (int k = 0; k < 4; k++) {
        const double v = (double)variance[k], predicted = (double)sample->loc[4 * p + k];
        /* Else both are divided by the variance. */
        const double by = attr->variance_in_target ? v : 1;
        const double apart =
            (predicted - (attr->variance_in_target ? target[k] : target[k] / v)) / by;
        const bool square = attr->euclidean || fabs(apart) < 1;
        const double slope = square ? apart : apart > 0 ? 1 : -1;
        sum += square ? apart * apart / 2 : fabs(apart) - 0.5;
        sample->dloc[4 * p + k] = (float)((double)attr->loc_weight * slope / by);
    }
    return (double)attr->loc_weight * sum;
}

/* Of those in `ordered`: the one with the larger loss first, then the one in front. */
static bool comes_before(const struct room *room, int32_t a, int32_t b)
{
    return room->loss[a] != room->loss[b] ? room->loss[a] > room->loss[b] : a < b;
}

static void sift(const struct room *room, int32_t *heap, int64_t at, int64_t count)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(room, heap[child], heap[child + 1]))
            child++;
        if (!comes_before(room, heap[at], heap[child]))
            return;
        const int32_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
    }
}

/* Puts the priors in `ordered` in order; a heap sort needs no memory. */
static void sort_priors(const struct room *room, int64_t count)
{
    int32_t *heap = room->ordered;
    for (int64_t i = count / 2; i-- > 0;)
        sift(room, heap, i, count);
    for (int64_t last = count - 1; last > 0; last--) {
        const int32_t kept = heap[0];
        heap[0] = heap[last];
        heap[last] = kept;
        sift(room, heap, 0, last);
    }
}

/* Lists the priors without a match that learn that they show the background; returns their number.
 * Mined: those with the largest losses, at most neg_pos_ratio for each match. */
static int64_t choose_negatives(const struct ls_multibox_attr *attr, const struct sample *sample,
                                struct room *room)
{
    int64_t count = 0;
    for (int64_t p = 0; p < attr->priors; p++) {
        if (room->matches.object[p] >= 0 ||
            (attr->mining && !(room->matches.overlap[p] < (double)attr->neg_overlap)))
            continue;
        room->ordered[count++] = (int32_t)p;
        if (attr->mining)
            room->loss[p] = confidence_loss(attr, sample, p, attr->background, false);
    }
    if (!attr->mining)
        return count;
    const double wanted = floor((double)room->matches.count * (double)attr->neg_pos_ratio);
    const int64_t most = wanted < (double)count ? (int64_t)wanted : count;
    sort_priors(room, count);
    return most;
}

/* Adds what one sample has to the sums. */
static void add_sample(const struct ls_multibox_attr *attr, const struct sample *sample,
                       struct room *room, double record[2])
{
    memset(sample->dloc, 0, (size_t)attr->priors * 4 * sizeof *sample->dloc);
    memset(sample->dconf, 0, (size_t)(attr->priors * attr->classes) * sizeof *sample->dconf);
    match(attr, sample->prior, sample->rows, room);
    const int64_t negatives = choose_negatives(attr, sample, room);
    for (int64_t p = 0; p < attr->priors; p++) {
        if (room->matches.object[p] < 0)
            continue;
        const int64_t class = class_of(attr, sample, room, p);
        record[0] += place_loss(attr, sample, room, p);
        record[0] += class < 0 ? (double)NAN : confidence_loss(attr, sample, p, class, true);
    }
    for (int64_t i = 0; i < negatives; i++)
        record[0] += confidence_loss(attr, sample, room->ordered[i], attr->background, true);
    switch (attr->normalization) {
    case LS_NORM_FULL:
        record[1] += (double)attr->priors;
        break;
    case LS_NORM_BATCH_SIZE:
        record[1] += 1;
        break;
    case LS_NORM_NONE:
        break;
    default:
        record[1] += (double)room->matches.count;
    }
}

static void multibox(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const struct ls_value *rows = call->op->input[3];
    const int64_t samples = ls_value_sample_rows(rows) / rows->rows;
    const int64_t places = attr->priors * 4, scores = attr->priors * attr->classes;
    struct room room = divide_room(attr, call->scratch);
    for (int64_t n = 0; n < samples; n++) {
        const struct sample sample = {.loc = (const float *)call->in[0] + n * places,
                                      .conf = (const float *)call->in[1] + n * scores,
                                      .prior = call->in[2],
                                      .rows =
                                          (const float *)call->in[3] + n * attr->objects * TRUE_BOX,
                                      .dloc = (float *)call->out[0] + n * places,
                                      .dconf = (float *)call->out[1] + n * scores};
        add_sample(attr, &sample, &room, call->context->partials + attr->metric_offset);
    }
}

static void multibox_backward(const struct ls_defined_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const double divisor = attr->normalizer < 0 ? 1 : call->context->normalizers[attr->normalizer];
    const double factor = (double)attr->loss_weight / divisor;
    const float *slope = call->in[0];
    float *dx = call->out[0];
    for (int64_t i = 0; i < ls_shape_size(&call->op->output[0]->shape); i++)
        dx[i] = (float)(factor * (double)slope[i]);
}

/* ---- What was found -------------------------------------------------------------------------- */

/* A box that may be reported. */
struct find {
    int32_t class, prior;
    float score;
};

/* Of one sample: candidates of a class, those of all classes that are kept, and boxes. */
struct finds {
    struct find *list; /* priors of them */
    struct find *kept; /* as many as a sample can have */
    struct box *box;   /* by prior */
    int64_t kept_count;
};

/* How many of a class can be kept. */
static int64_t most_of_class(const struct ls_detection_attr *attr)
{
    return attr->top_k >= 0 && attr->top_k < attr->priors ? attr->top_k : attr->priors;
}

static size_t detection_scratch(const struct ls_op *op)
{
    const struct ls_detection_attr *attr = &op->attr.detection;
    const size_t priors = (size_t)attr->priors;
    const size_t all = (size_t)(most_of_class(attr) * attr->classes);
    return priors * sizeof(struct box) + (priors + all) * sizeof(struct find);
}

/* The higher score first; of equal ones that of the first class, then of the first prior. */
static int compare_finds(const void *first, const void *second)
{
    const struct find *a = first, *b = second;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    return a->prior < b->prior ? -1 : a->prior > b->prior;
}

/* By class, then as above: as they are reported. */
static int compare_classes(const void *first, const void *second)
{
    const struct find *a = first, *b = second;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    return compare_finds(first, second);
}

static void sift_finds(struct find *heap, int64_t at, int64_t count,
                       int (*compare)(const void *, const void *))
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(&heap[child], &heap[child + 1]) < 0)
            child++;
        if (compare(&heap[at], &heap[child]) >= 0)
            return;
        const struct find kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
    }
}

/* No two are equal, so that the order is one; qsort may ask for memory. */
static void sort_finds(struct find *finds, int64_t count,
                       int (*compare)(const void *, const void *))
{
    for (int64_t i = count / 2; i-- > 0;)
        sift_finds(finds, i, count, compare);
    for (int64_t last = count - 1; last > 0; last--) {
        const struct find kept = finds[0];
        finds[0] = finds[last];
        finds[last] = kept;
        sift_finds(finds, 0, last, compare);
    }
}

/* Of the candidates of a class, sorted, those that do not overlap a better one are kept. */
static void keep_class(const struct ls_detection_attr *attr, struct finds *finds, int64_t count)
{
    double threshold = (double)attr->nms_threshold;
    const int64_t first = finds->kept_count;
    for (int64_t i = 0; i < count; i++) {
        bool keep = true;
        for (int64_t k = first; keep && k < finds->kept_count; k++)
            keep = !(overlap_of(&finds->box[finds->list[i].prior],
                                &finds->box[finds->kept[k].prior]) > threshold);
        if (!keep)
            continue;
        finds->kept[finds->kept_count++] = finds->list[i];
        if (attr->eta < 1 && threshold > 0.5)
            threshold *= (double)attr->eta;
    }
}

static void find_class(const struct ls_detection_attr *attr, const float *conf, int64_t class,
                       struct finds *finds)
{
    int64_t count = 0;
    for (int64_t p = 0; p < attr->priors; p++) {
        const float score = conf[p * attr->classes + class];
        if (attr->has_threshold ? score > attr->threshold : score == score)
            finds->list[count++] = (struct find){(int32_t) class, (int32_t)p, score};
    }
    sort_finds(finds->list, count, compare_finds);
    const int64_t most = most_of_class(attr);
    keep_class(attr, finds, count < most ? count : most);
}

static void write_finds(const struct ls_detection_attr *attr, struct finds *finds, double sample,
                        float *row)
{
    int64_t count = finds->kept_count;
    if (attr->keep_top_k >= 0 && count > attr->keep_top_k) {
        sort_finds(finds->kept, count, compare_finds);
        count = attr->keep_top_k;
    }
    sort_finds(finds->kept, count, compare_classes);
    for (int64_t i = 0; i < attr->keep; i++, row += 7) {
        if (i >= count) {
            for (int k = 0; k < 7; k++)
                row[k] = -1;
            continue;
        }
        const struct find *find = &finds->kept[i];
        const struct box *box = &finds->box[find->prior];
        row[0] = (float)sample;
        row[1] = (float)find->class;
        row[2] = find->score;
        row[3] = (float)box->xmin;
        row[4] = (float)box->ymin;
        row[5] = (float)box->xmax;
        row[6] = (float)box->ymax;
    }
}

static void detect(const struct ls_defined_call *call)
{
    const struct ls_detection_attr *attr = &call->op->attr.detection;
    const struct ls_value *conf = call->op->input[1];
    const float *prior = call->in[2], *variance = prior + 4 * attr->priors;
    const int64_t samples = ls_value_sample_rows(conf) / conf->rows;
    struct finds finds = {.box = call->scratch};
    finds.list = (struct find *)(void *)(finds.box + attr->priors);
    finds.kept = finds.list + attr->priors;
    for (int64_t n = 0; n < samples; n++) {
        const float *place = (const float *)call->in[0] + n * attr->priors * 4;
        const float *scores = (const float *)call->in[1] + n * attr->priors * attr->classes;
        finds.kept_count = 0;
        for (int64_t p = 0; p < attr->priors; p++) {
            const struct box box = read_box(prior + 4 * p);
            double v[4] = {1, 1, 1, 1};
            for (int k = 0; !attr->variance_in_target && k < 4; k++)
                v[k] = (double)variance[4 * p + k];
            finds.box[p] = decode(attr->code, &box, v, place + 4 * p);
        }
        for (int64_t c = 0; c < attr->classes; c++)
            if (c != attr->background)
                find_class(attr, scores, c, &finds);
        write_finds(attr, &finds, (double)(call->context->first_ordinal + n),
                    (float *)call->out[0] + n * attr->keep * 7);
    }
}

const struct ls_defined ls_defined_boxes[LS_OP_KINDS] = {
    [LS_OP_MULTIBOX_LOSS] = {.run = multibox, .scratch = count_scratch},
    [LS_OP_MULTIBOX_LOSS_BACKWARD] = {.run = multibox_backward},
    [LS_OP_COUNT_MATCHES] = {.run = count_matches, .scratch = count_scratch, .moves = true},
    [LS_OP_DETECTION_OUTPUT] = {.run = detect, .scratch = detection_scratch},
};
