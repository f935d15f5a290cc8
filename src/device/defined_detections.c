/* What a net of SSD has found: of each class the boxes with the highest scores that do not overlap
 * a better one. See layers/detection_output.c and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/defined.h"
#include "device/detections.h"

/* Of one sample: candidates of a class, those of all classes that are kept, and boxes. */
struct finds {
    struct ls_find *list; /* priors of them */
    struct ls_find *kept; /* as many as a sample can have */
    struct ls_box *box;   /* by prior; those of each class where it has its own */
    bool by_class;
    int64_t priors, kept_count;
};

static struct ls_box *box_of(const struct finds *finds, const struct ls_find *find)
{
    return &finds->box[(finds->by_class ? find->kind * finds->priors : 0) + find->prior];
}

static size_t detection_scratch(const struct ls_op *op)
{
    const struct ls_detection_attr *attr = &op->attr.detection;
    const size_t priors = (size_t)attr->priors;
    const size_t all = (size_t)(ls_detection_most(attr) * attr->classes);
    const size_t boxes = priors * (attr->by_class ? (size_t)attr->classes : 1);
    return boxes * sizeof(struct ls_box) + (priors + all) * sizeof(struct ls_find);
}

static bool scores_more(const void *first, const void *second, const void *user)
{
    (void)user;
    return ls_find_scores_more(first, second);
}

static bool is_reported_first(const void *first, const void *second, const void *user)
{
    (void)user;
    return ls_find_is_reported_first(first, second);
}

static void sort_finds(struct ls_find *finds, int64_t count, ls_heap_order before)
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
        threshold = ls_detection_next_threshold(attr, threshold);
    }
}

static void find_class(const struct ls_detection_attr *attr, const float *conf, int64_t class,
                       struct finds *finds)
{
    int64_t count = 0;
    for (int64_t p = 0; p < attr->priors; p++) {
        const float score = conf[p * attr->classes + class];
        if (ls_detection_counts(attr, score))
            finds->list[count++] = (struct ls_find){(int32_t) class, (int32_t)p, score};
    }
    sort_finds(finds->list, count, scores_more);
    const int64_t most = ls_detection_most(attr);
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
    for (int64_t i = 0; i < attr->keep; i++, row += LS_FOUND_ROW) {
        const struct ls_find *find = i < count ? &finds->kept[i] : NULL;
        ls_detection_write(sample, find, find != NULL ? box_of(finds, find) : NULL, row);
    }
}

/* Sets the boxes of a sample. */
static void decode_all(const struct ls_detection_attr *attr, const float *prior, const float *place,
                       struct finds *finds)
{
    const int64_t groups = attr->by_class ? attr->classes : 1;
    for (int64_t p = 0; p < attr->priors; p++)
        for (int64_t c = 0; c < groups; c++)
            finds->box[c * attr->priors + p] = ls_detection_box(attr, prior, place, p, c);
}

static void detect(const struct ls_defined_call *call)
{
    const struct ls_detection_attr *attr = &call->op->attr.detection;
    const struct ls_value *conf = call->op->input[1];
    const float *prior = call->in[2];
    const int64_t samples = ls_value_sample_rows(conf) / conf->rows;
    const int64_t groups = attr->by_class ? attr->classes : 1;
    struct finds finds = {.box = call->scratch, .by_class = attr->by_class, .priors = attr->priors};
    finds.list = (struct ls_find *)(void *)(finds.box + groups * attr->priors);
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
                    (float *)call->out[0] + n * attr->keep * LS_FOUND_ROW);
    }
}

const struct ls_defined ls_defined_detections[LS_OP_KINDS] = {
    [LS_OP_DETECTION_OUTPUT] = {.run = detect, .scratch = detection_scratch},
};
