/* What a net of SSD has found: of each class the boxes with the highest scores that do not overlap
 * a better one. See layers/detection_output.c and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/box_codes.h"
#include "device/defined.h"

/* A box that may be reported. */
struct find {
    int32_t class, prior;
    float score;
};

/* Of one sample: candidates of a class, those of all classes that are kept, and boxes. */
struct finds {
    struct find *list;  /* priors of them */
    struct find *kept;  /* as many as a sample can have */
    struct ls_box *box; /* by prior; those of each class where it has its own */
    bool by_class;
    int64_t priors, kept_count;
};

static struct ls_box *box_of(const struct finds *finds, const struct find *find)
{
    return &finds->box[(finds->by_class ? find->class * finds->priors : 0) + find->prior];
}

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
    const size_t boxes = priors * (attr->by_class ? (size_t)attr->classes : 1);
    return boxes * sizeof(struct ls_box) + (priors + all) * sizeof(struct find);
}

/* The higher score first; of equal ones that of the first class, then of the first prior. */
static bool scores_more(const void *first, const void *second, const void *user)
{
    const struct find *a = first, *b = second;
    (void)user;
    if (a->score != b->score)
        return a->score > b->score;
    return a->class != b->class ? a->class < b->class : a->prior < b->prior;
}

/* By class, then as above: as they are reported. */
static bool is_reported_first(const void *first, const void *second, const void *user)
{
    const struct find *a = first, *b = second;
    return a->class != b->class ? a->class < b->class : scores_more(first, second, user);
}

static void sort_finds(struct find *finds, int64_t count, ls_heap_order before)
{
    ls_heap_sort(&(struct ls_heap){finds, sizeof *finds, before, NULL}, count);
}

/* Of the candidates of a class, sorted, those that do not overlap a better one are kept. */
static void keep_class(const struct ls_detection_attr *attr, struct finds *finds, int64_t count)
{
    double threshold = (double)attr->nms_threshold;
    const int64_t first = finds->kept_count;
    for (int64_t i = 0; i < count; i++) {
        bool keep = true;
        for (int64_t k = first; keep && k < finds->kept_count; k++)
            keep = !(ls_box_overlap(box_of(finds, &finds->list[i]), box_of(finds, &finds->kept[k]),
                                    0) > threshold);
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
    sort_finds(finds->list, count, scores_more);
    const int64_t most = most_of_class(attr);
    keep_class(attr, finds, count < most ? count : most);
}

static void write_finds(const struct ls_detection_attr *attr, struct finds *finds, double sample,
                        float *row)
{
    int64_t count = finds->kept_count;
    if (attr->keep_top_k >= 0 && count > attr->keep_top_k) {
        sort_finds(finds->kept, count, scores_more);
        count = attr->keep_top_k;
    }
    sort_finds(finds->kept, count, is_reported_first);
    for (int64_t i = 0; i < attr->keep; i++, row += 7) {
        if (i >= count) {
            for (int k = 0; k < 7; k++)
                row[k] = -1;
            continue;
        }
        const struct find *find = &finds->kept[i];
        const struct ls_box *box = box_of(finds, find);
        row[0] = (float)sample;
        row[1] = (float)find->class;
        row[2] = find->score;
        row[3] = (float)box->xmin;
        row[4] = (float)box->ymin;
        row[5] = (float)box->xmax;
        row[6] = (float)box->ymax;
    }
}

/* Sets the boxes of a sample. */
static void decode_all(const struct ls_detection_attr *attr, const float *prior, const float *place,
                       struct finds *finds)
{
    const int64_t groups = attr->by_class ? attr->classes : 1;
    for (int64_t p = 0; p < attr->priors; p++) {
        const struct ls_box box = ls_box_read(prior + 4 * p);
        const float *variance = attr->variance_in_target ? NULL : prior + 4 * (attr->priors + p);
        for (int64_t c = 0; c < groups; c++)
            finds->box[c * attr->priors + p] =
                ls_box_decode(attr->code, &box, variance, place + 4 * (groups * p + c));
    }
}

static void detect(const struct ls_defined_call *call)
{
    const struct ls_detection_attr *attr = &call->op->attr.detection;
    const struct ls_value *conf = call->op->input[1];
    const float *prior = call->in[2];
    const int64_t samples = ls_value_sample_rows(conf) / conf->rows;
    const int64_t groups = attr->by_class ? attr->classes : 1;
    struct finds finds = {.box = call->scratch, .by_class = attr->by_class, .priors = attr->priors};
    finds.list = (struct find *)(void *)(finds.box + groups * attr->priors);
    finds.kept = finds.list + attr->priors;
    for (int64_t n = 0; n < samples; n++) {
        const float *place = (const float *)call->in[0] + n * attr->priors * groups * 4;
        const float *scores = (const float *)call->in[1] + n * attr->priors * attr->classes;
        finds.kept_count = 0;
        decode_all(attr, prior, place, &finds);
        for (int64_t c = 0; c < attr->classes; c++)
            if (c != attr->background)
                find_class(attr, scores, c, &finds);
        write_finds(attr, &finds, (double)(call->context->first_ordinal + n),
                    (float *)call->out[0] + n * attr->keep * 7);
    }
}

const struct ls_defined ls_defined_detections[LS_OP_KINDS] = {
    [LS_OP_DETECTION_OUTPUT] = {.run = detect, .scratch = detection_scratch},
};
