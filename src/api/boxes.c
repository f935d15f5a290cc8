/* The public interface: boxes that a net finds in pictures. See include/lockstep/model.h.
 *
 * Samples are fetched in blocks, and each block is predicted by all workers. Rows of found boxes
 * are as DetectionOutput has them, true boxes as data/annotation.h says.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "api/model_test.h"
#include "api/predict.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/annotation.h"
#include "data/reader.h"
#include "data/samples.h"
#include "device/boxes.h"
#include "engine/prediction.h"
#include "ir/graph.h"

enum { FOUND_NUMBERS = 7, CLASSES_MOST = 4096, BLOCK_SAMPLES = 16, WORST_MOST = 1000 };
#define OVERLAP 0.5 /* of a true box that makes a found one right */

struct ls_found_boxes {
    struct lockstep_found_boxes shown;
    struct lockstep_class_figures figures[CLASSES_MOST];
    struct lockstep_boxed_sample *worst;
    size_t room;
};

/* A block of samples on its way. */
struct block {
    int64_t found_rows, true_rows; /* of a sample; true_rows 0: the data have no true boxes */
    size_t input, output;          /* numbers of a sample */
    float *inputs, *outputs, *truth;
    struct lockstep_box *boxes; /* of one sample: those found, then those missed */
    bool *taken;                /* by true box */
};

void ls_found_boxes_free(struct ls_found_boxes *found)
{
    if (found == NULL)
        return;
    for (size_t i = 0; found->worst != NULL && i < found->shown.worst_count; i++)
        ls_free((void *)found->worst[i].boxes);
    ls_free(found->worst);
    ls_free(found);
}

int lockstep_model_finds_boxes(const struct lockstep_model *model)
{
    if (ls_prediction_output(model->prediction) == NULL)
        return 0;
    const struct ls_graph *graph = ls_net_graph(model->net);
    const struct ls_value *output = ls_model_output(graph, model->blob);
    for (size_t i = 0; i < graph->op_count; i++)
        if ((graph->ops[i]->kind == LS_OP_DETECTION_OUTPUT ||
             graph->ops[i]->kind == LS_OP_YOLO_OUTPUT) &&
            graph->ops[i]->output[0] == output)
            return 1;
    return 0;
}

/* Rows of true boxes that a sample has; 0: it has none. */
static int64_t rows_of_truth(const struct lockstep_model *model)
{
    const struct ls_dataset *dataset = model->net->datasets[0];
    if (ls_dataset_tensors(dataset) < 2)
        return 0;
    const struct ls_sample_tensor *tensor = ls_dataset_tensor(dataset, 1);
    const int rank = tensor->shape.rank;
    return rank >= 2 && tensor->type == LS_F32 && tensor->shape.dim[rank - 1] == LS_BOX_NUMBERS
               ? ls_shape_size(&tensor->shape) / LS_BOX_NUMBERS
               : 0;
}

static int check(const struct lockstep_model *model, struct ls_error *error)
{
    const char *file = model->definition.definition->file;
    if (!lockstep_model_finds_boxes(model))
        return ls_fail(error, LOCKSTEP_DEFINITION, file,
                       "name the blob of a DetectionOutput layer with --output",
                       "the net predicts no boxes");
    if (model->reader == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, file,
                       "use the definition that has the Data layers",
                       "the net has no data in which boxes could be found");
    const struct ls_value *input = ls_prediction_input(model->prediction);
    if (input == NULL || input->type != LS_F32 || model->net->varying >= 0 ||
        ls_prediction_other_input(model->prediction) != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, "'lockstep test' measures such a net",
                       "boxes are looked for where a net predicts from pictures of one size");
    return 0;
}

static void free_block(struct block *block)
{
    ls_free_aligned(block->inputs);
    ls_free_aligned(block->outputs);
    ls_free_aligned(block->truth);
    ls_free(block->boxes);
    ls_free(block->taken);
}

static int make_block(const struct lockstep_model *model, struct block *block,
                      struct ls_error *error)
{
    *block = (struct block){.true_rows = rows_of_truth(model),
                            .found_rows = (int64_t)(model->output_size / FOUND_NUMBERS),
                            .input = (size_t)model->input_size,
                            .output = model->output_size};
    const size_t truth = (size_t)block->true_rows * LS_BOX_NUMBERS;
    block->inputs = ls_alloc_aligned(BLOCK_SAMPLES * block->input * sizeof *block->inputs);
    block->outputs = ls_alloc_aligned(BLOCK_SAMPLES * block->output * sizeof *block->outputs);
    block->truth = ls_alloc_aligned((BLOCK_SAMPLES * truth + 1) * sizeof *block->truth);
    block->boxes =
        ls_alloc((size_t)(block->found_rows + block->true_rows) + 1, sizeof *block->boxes);
    block->taken = ls_alloc((size_t)block->true_rows + 1, sizeof *block->taken);
    return block->inputs != NULL && block->outputs != NULL && block->truth != NULL &&
                   block->boxes != NULL && block->taken != NULL
               ? 0
               : ls_fail_memory(error, "boxes");
}

/* ---- One sample ------------------------------------------------------------------------------ */

/* Whether a row of found boxes is one that counts: rows that are left over hold -1. */
static bool counts(const float *row, double least)
{
    for (int i = 0; i < FOUND_NUMBERS; i++)
        if (!isfinite(row[i]))
            return false;
    return row[0] >= 0 && row[1] >= 0 && row[1] < CLASSES_MOST && (double)row[2] >= least;
}

static int by_score(const void *a, const void *b)
{
    const struct lockstep_box *one = a, *other = b;
    return one->score > other->score ? -1 : one->score < other->score;
}

static struct lockstep_box box_of(const struct lockstep_model *model, const float *corners,
                                  int label, double score, enum lockstep_box_kind kind)
{
    return (struct lockstep_box){.kind = kind,
                                 .label = label,
                                 .name = lockstep_model_class_name(model, (size_t)label),
                                 .score = score,
                                 .xmin = (double)corners[0],
                                 .ymin = (double)corners[1],
                                 .xmax = (double)corners[2],
                                 .ymax = (double)corners[3]};
}

static double overlap_of(const struct lockstep_box *box, const float *truth)
{
    const struct ls_box one = {box->xmin, box->ymin, box->xmax, box->ymax};
    const struct ls_box other = {(double)truth[3], (double)truth[4], (double)truth[5],
                                 (double)truth[6]};
    return ls_box_overlap(&one, &other, 0);
}

/* Whether a found box is right; that of a difficult true box stays open. */
static enum lockstep_box_kind judge(const struct block *block, const struct lockstep_box *box,
                                    const float *truth)
{
    int64_t best = -1;
    double most = OVERLAP;
    for (int64_t t = 0; t < block->true_rows; t++) {
        const float *row = truth + t * LS_BOX_NUMBERS;
        if (!ls_is_true_box(row) || (double)row[1] != box->label)
            continue;
        const double overlap = overlap_of(box, row);
        if (overlap > most || (best < 0 && overlap >= most)) {
            best = t;
            most = overlap;
        }
    }
    if (best < 0)
        return LOCKSTEP_BOX_WRONG;
    const bool taken = block->taken[best];
    block->taken[best] = true;
    if (truth[best * LS_BOX_NUMBERS + 7] > 0)
        return LOCKSTEP_BOX_OPEN;
    return taken ? LOCKSTEP_BOX_WRONG : LOCKSTEP_BOX_RIGHT;
}

/* The boxes of a sample to block->boxes; how many. */
static size_t list_boxes(const struct lockstep_model *model, const struct block *block, size_t at,
                         double least)
{
    const float *found = block->outputs + at * block->output;
    const float *truth = block->truth + at * (size_t)block->true_rows * LS_BOX_NUMBERS;
    size_t count = 0;
    for (int64_t r = 0; r < block->found_rows; r++) {
        const float *row = found + r * FOUND_NUMBERS;
        if (counts(row, least))
            block->boxes[count++] =
                box_of(model, row + 3, (int)row[1], (double)row[2], LOCKSTEP_BOX_OPEN);
    }
    qsort(block->boxes, count, sizeof *block->boxes, by_score);
    memset(block->taken, 0, (size_t)block->true_rows);
    for (size_t i = 0; i < count && block->true_rows > 0; i++)
        block->boxes[i].kind = judge(block, &block->boxes[i], truth);
    for (int64_t t = 0; t < block->true_rows; t++) {
        const float *row = truth + t * LS_BOX_NUMBERS;
        if (ls_is_true_box(row) && row[1] < CLASSES_MOST && !block->taken[t] && !(row[7] > 0))
            block->boxes[count++] =
                box_of(model, row + 3, (int)row[1], (double)NAN, LOCKSTEP_BOX_MISSED);
    }
    return count;
}

/* ---- All samples ----------------------------------------------------------------------------- */

/* Keeps a sample among the worst if it is one of them; of equal ones the first stay. */
static int keep(struct ls_found_boxes *found, const struct lockstep_boxed_sample *sample,
                struct ls_error *error)
{
    struct lockstep_found_boxes *shown = &found->shown;
    size_t place = shown->worst_count;
    while (place > 0 && found->worst[place - 1].score > sample->score)
        place--;
    if (place >= found->room)
        return 0;
    struct lockstep_box *boxes = ls_alloc(sample->box_count + 1, sizeof *boxes);
    if (boxes == NULL)
        return ls_fail_memory(error, "boxes");
    memcpy(boxes, sample->boxes, sample->box_count * sizeof *boxes);
    if (shown->worst_count == found->room)
        ls_free((void *)found->worst[--shown->worst_count].boxes);
    memmove(&found->worst[place + 1], &found->worst[place],
            (shown->worst_count - place) * sizeof *found->worst);
    found->worst[place] = *sample;
    found->worst[place].boxes = boxes;
    shown->worst_count++;
    return 0;
}

static int count_sample(const struct lockstep_model *model, struct ls_found_boxes *found,
                        const struct block *block, size_t at, int64_t index, double least,
                        struct ls_error *error)
{
    struct lockstep_boxed_sample sample = {.index = index, .boxes = block->boxes};
    int64_t right = 0, all = 0;
    sample.box_count = list_boxes(model, block, at, least);
    for (size_t i = 0; i < sample.box_count; i++) {
        const struct lockstep_box *box = &block->boxes[i];
        struct lockstep_class_figures *figures = &found->figures[box->label];
        const bool is_right = box->kind == LOCKSTEP_BOX_RIGHT;
        if ((size_t)box->label >= found->shown.classes)
            found->shown.classes = (size_t)box->label + 1;
        if (box->kind == LOCKSTEP_BOX_OPEN)
            continue;
        figures->right += is_right;
        figures->predicted += box->kind != LOCKSTEP_BOX_MISSED;
        figures->count += box->kind != LOCKSTEP_BOX_WRONG;
        right += is_right;
        all++;
    }
    sample.score = all > 0 ? (double)right / (double)all : 1;
    return keep(found, &sample, error);
}

static int run(struct lockstep_model *model, int64_t samples, double least,
               struct ls_found_boxes *found, const struct block *block, struct ls_error *error)
{
    const size_t truth = (size_t)block->true_rows * LS_BOX_NUMBERS;
    for (int64_t begin = 0; begin < samples; begin += BLOCK_SAMPLES) {
        const size_t count =
            samples - begin < BLOCK_SAMPLES ? (size_t)(samples - begin) : BLOCK_SAMPLES;
        if (ls_model_stop_asked(model))
            return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "stopped");
        for (size_t i = 0; i < count; i++) {
            void *out[LS_RECORD_TENSORS] = {block->inputs + i * block->input,
                                            truth > 0 ? block->truth + i * truth : NULL};
            LS_TRY(ls_reader_fetch(model->reader, begin + (int64_t)i, out, error));
        }
        LS_TRY(ls_prediction_run(model->prediction, block->inputs, count, block->outputs, error));
        for (size_t i = 0; i < count; i++)
            LS_TRY(count_sample(model, found, block, i, begin + (int64_t)i, least, error));
        found->shown.samples += (int64_t)count;
    }
    return 0;
}

static double part(int64_t of, int64_t all)
{
    return all > 0 ? (double)of / (double)all : (double)NAN;
}

static void find_figures(const struct lockstep_model *model, struct ls_found_boxes *found)
{
    for (size_t c = 0; c < found->shown.classes; c++) {
        struct lockstep_class_figures *figures = &found->figures[c];
        figures->name = lockstep_model_class_name(model, c);
        figures->precision = part(figures->right, figures->predicted);
        figures->recall = part(figures->right, figures->count);
        figures->f1 = part(2 * figures->right, figures->count + figures->predicted);
        figures->iou = (double)NAN;
    }
}

int lockstep_model_find_boxes(struct lockstep_model *model, int64_t samples, size_t worst,
                              double score, const struct lockstep_found_boxes **found,
                              struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    struct block block;
    *found = NULL;
    if (samples < 0 || worst > WORST_MOST || isnan(score))
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                       "boxes are looked for in 0 (all) or more samples, not %lld; of the worst at "
                       "most %d are kept, not %zu; and the score is a number",
                       (long long)samples, WORST_MOST, worst);
    LS_TRY(check(model, inner));
    const int64_t all = lockstep_model_sample_count(model);
    struct ls_found_boxes *made = ls_alloc(1, sizeof *made);
    int status = make_block(model, &block, inner);
    if (made != NULL)
        made->worst = ls_alloc(worst + 1, sizeof *made->worst);
    if (status == 0 && (made == NULL || made->worst == NULL))
        status = ls_fail_memory(inner, "boxes");
    if (status == 0 && made != NULL) {
        made->room = worst;
        made->shown = (struct lockstep_found_boxes){
            .figures = made->figures, .worst = made->worst, .judged = block.true_rows > 0};
        status =
            run(model, samples > 0 && samples < all ? samples : all, score, made, &block, inner);
    }
    free_block(&block);
    if (status != 0 || made == NULL) {
        ls_found_boxes_free(made);
        return status;
    }
    find_figures(model, made);
    ls_found_boxes_free(model->found);
    model->found = made;
    *found = &made->shown;
    return 0;
}

int lockstep_model_sample_picture(struct lockstep_model *model, int64_t index, int64_t shape[3],
                                  float *pixels, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    if (model->reader == NULL)
        return ls_fail(inner, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "use the definition that has the Data layers", "the net has no data layer");
    if (index < 0 || index >= model->net->batching.samples)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                       "there is no sample %lld; the data have %lld", (long long)index,
                       (long long)model->net->batching.samples);
    return ls_reader_fetch_shown(model->reader, index, shape, pixels, inner);
}
