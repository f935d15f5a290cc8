/* The public interface: which classes a net takes for which. See include/lockstep/model.h.
 *
 * Samples are fetched in blocks, and each block is predicted by all workers; what is counted are
 * whole numbers, so that the result depends on nothing else than the predictions.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/confusion.h"

#include <math.h>
#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "api/model_test.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/reader.h"
#include "data/samples.h"
#include "engine/prediction.h"

enum { CLASSES_MOST = 4096, BLOCK_SAMPLES = 64, WORST_MOST = 1000 };
static const size_t BLOCK_BYTES = (size_t)64 << 20; /* of a block's samples and predictions */

struct ls_confusion {
    struct lockstep_confusion shown;
    struct lockstep_class_figures *figures;
    int64_t *matrix;
    struct lockstep_worst_sample *worst;
    size_t room; /* for worst samples */
};

/* A block of samples on its way. */
struct block {
    size_t size; /* samples at most */
    float *input, *output;
    void **labels;                /* of each sample: the tensor as it is fetched */
    int32_t *classes, *predicted; /* of one sample */
    const struct ls_sample_tensor *tensor;
};

void ls_confusion_free(struct ls_confusion *confusion)
{
    if (confusion == NULL)
        return;
    for (size_t i = 0; confusion->worst != NULL && i < confusion->shown.worst_count; i++) {
        ls_free((void *)confusion->worst[i].labels);
        ls_free((void *)confusion->worst[i].predicted);
    }
    ls_free(confusion->worst);
    ls_free(confusion->figures);
    ls_free(confusion->matrix);
    ls_free(confusion);
}

/* ---- Whether there is something to count ----------------------------------------------------- */

static int fail(const struct lockstep_model *model, struct ls_error *error, const char *hint,
                const char *problem)
{
    return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, hint, "%s",
                   problem);
}

static int check(const struct lockstep_model *model, struct ls_error *error)
{
    const size_t positions = lockstep_model_output_positions(model);
    const size_t classes = model->output_size / (positions > 0 ? positions : 1);
    if (model->reader == NULL)
        return fail(model, error, "use the definition that has the Data layers",
                    "the net has no data whose classes could be compared");
    if (ls_net_graph(model->net)->ranking_count > 0)
        return fail(model, error,
                    "leave --per-class and --confusion out: the AP of each class is an output of "
                    "the test; 'lockstep report --model' draws right and wrong boxes",
                    "the net finds boxes, of which there is no confusion matrix");
    if (ls_prediction_input(model->prediction) == NULL ||
        ls_prediction_other_input(model->prediction) != NULL || model->net->varying >= 0 ||
        ls_prediction_output(model->prediction) == NULL ||
        ls_prediction_output(model->prediction)->selected != NULL ||
        ls_prediction_input(model->prediction)->type != LS_F32)
        return fail(model, error, "'lockstep test' measures such a net",
                    "classes are compared where a net predicts from pictures of one size, or from "
                    "one other input of F32");
    if (classes < 2 || classes > CLASSES_MOST)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, NULL,
                       "the net gives %zu scores, and a confusion matrix has 2 to %d classes",
                       classes, CLASSES_MOST);
    const struct ls_dataset *dataset = model->net->datasets[0];
    if (ls_dataset_tensors(dataset) < 2)
        return fail(model, error, NULL, "the data have no labels");
    const struct ls_sample_tensor *label = ls_dataset_tensor(dataset, 1);
    if ((size_t)ls_shape_size(&label->shape) != positions)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "'lockstep test' measures such a net",
                       "a sample has %lld labels, but the net classifies %zu position%s of it",
                       (long long)ls_shape_size(&label->shape), positions,
                       positions == 1 ? "" : "s");
    return 0;
}

/* ---- Room ------------------------------------------------------------------------------------ */

static struct ls_confusion *make(const struct lockstep_model *model, size_t worst)
{
    struct ls_confusion *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    struct lockstep_confusion *shown = &made->shown;
    shown->positions = lockstep_model_output_positions(model);
    shown->classes = model->output_size / shown->positions;
    made->room = worst;
    made->figures = ls_alloc(shown->classes, sizeof *made->figures);
    made->matrix = ls_alloc(shown->classes * shown->classes, sizeof *made->matrix);
    made->worst = ls_alloc(worst + 1, sizeof *made->worst);
    if (made->figures == NULL || made->matrix == NULL || made->worst == NULL) {
        ls_confusion_free(made);
        return NULL;
    }
    shown->figures = made->figures;
    shown->matrix = made->matrix;
    shown->worst = made->worst;
    return made;
}

static void free_block(struct block *block)
{
    for (size_t i = 0; block->labels != NULL && i < block->size; i++)
        ls_free_aligned(block->labels[i]);
    ls_free(block->labels);
    ls_free_aligned(block->input);
    ls_free_aligned(block->output);
    ls_free(block->classes);
    ls_free(block->predicted);
}

static int make_block(const struct lockstep_model *model, struct block *block,
                      struct ls_error *error)
{
    const size_t input = (size_t)model->input_size, output = model->output_size;
    const size_t fit = BLOCK_BYTES / (4 * (input + output));
    const size_t positions = lockstep_model_output_positions(model);
    *block = (struct block){.size = fit < 1               ? 1
                                    : fit < BLOCK_SAMPLES ? fit
                                                          : BLOCK_SAMPLES,
                            .tensor = ls_dataset_tensor(model->net->datasets[0], 1)};
    block->input = ls_alloc_aligned(block->size * input * sizeof *block->input);
    block->output = ls_alloc_aligned(block->size * output * sizeof *block->output);
    block->labels = ls_alloc(block->size, sizeof *block->labels);
    block->classes = ls_alloc(positions, sizeof *block->classes);
    block->predicted = ls_alloc(positions, sizeof *block->predicted);
    bool made = block->input != NULL && block->output != NULL && block->labels != NULL &&
                block->classes != NULL && block->predicted != NULL;
    for (size_t i = 0; i < block->size && made; i++)
        made = (block->labels[i] = ls_alloc_aligned(positions * 4)) != NULL;
    return made ? 0 : ls_fail_memory(error, "predictions");
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* The class that a label names; -1: none. */
static int32_t class_of(const struct block *block, const void *labels, size_t position,
                        size_t classes)
{
    if (block->tensor->type == LS_I32) {
        const int32_t label = ((const int32_t *)labels)[position];
        return label >= 0 && (size_t)label < classes ? label : -1;
    }
    const float label = ((const float *)labels)[position];
    return label >= 0 && label < (float)classes && floorf(label) == label ? (int32_t)label : -1;
}

/* The class with the highest score, of equal ones the first; -1: one is not a number. */
static int32_t best_of(const float *scores, size_t classes, size_t positions, size_t position)
{
    int32_t best = 0;
    for (size_t c = 0; c < classes; c++) {
        if (isnan(scores[c * positions + position]))
            return -1;
        if (scores[c * positions + position] > scores[(size_t)best * positions + position])
            best = (int32_t)c;
    }
    return best;
}

static void *copy(const int32_t *numbers, size_t count)
{
    int32_t *made = ls_alloc(count, sizeof *made);
    if (made != NULL)
        memcpy(made, numbers, count * sizeof *made);
    return made;
}

/* Keeps a sample among the worst if it is one of them; of equal ones the first stay. */
static int keep(struct ls_confusion *confusion, int64_t index, double score,
                const struct block *block, struct ls_error *error)
{
    struct lockstep_confusion *shown = &confusion->shown;
    size_t place = shown->worst_count;
    while (place > 0 && confusion->worst[place - 1].score > score)
        place--;
    if (place >= confusion->room)
        return 0;
    struct lockstep_worst_sample sample = {.index = index, .score = score};
    sample.labels = copy(block->classes, shown->positions);
    sample.predicted = copy(block->predicted, shown->positions);
    if (sample.labels == NULL || sample.predicted == NULL) {
        ls_free((void *)sample.labels);
        ls_free((void *)sample.predicted);
        return ls_fail_memory(error, "the worst samples");
    }
    if (shown->worst_count == confusion->room) {
        shown->worst_count--;
        ls_free((void *)confusion->worst[shown->worst_count].labels);
        ls_free((void *)confusion->worst[shown->worst_count].predicted);
    }
    memmove(&confusion->worst[place + 1], &confusion->worst[place],
            (shown->worst_count - place) * sizeof *confusion->worst);
    confusion->worst[place] = sample;
    shown->worst_count++;
    return 0;
}

static int count_sample(struct ls_confusion *confusion, const struct block *block, size_t at,
                        int64_t index, struct ls_error *error)
{
    struct lockstep_confusion *shown = &confusion->shown;
    const size_t classes = shown->classes, positions = shown->positions;
    const float *scores = block->output + at * classes * positions;
    int64_t counted = 0, right = 0;
    for (size_t p = 0; p < positions; p++) {
        const int32_t label = class_of(block, block->labels[at], p, classes),
                      best = best_of(scores, classes, positions, p);
        block->classes[p] = label;
        block->predicted[p] = best;
        if (best < 0)
            return ls_fail(error, LOCKSTEP_DIVERGED, NULL,
                           "do the weights come from a training that diverged?",
                           "the prediction of sample %lld is not a number", (long long)index);
        if (label < 0) {
            shown->left_out++;
            continue;
        }
        confusion->matrix[(size_t)label * classes + (size_t)best]++;
        counted++;
        right += label == best;
    }
    shown->counted += counted;
    if (counted == 0)
        return 0;
    const double score =
        positions == 1 ? (double)scores[block->classes[0]] : (double)right / (double)counted;
    return keep(confusion, index, score, block, error);
}

static int run(struct lockstep_model *model, int64_t samples, struct ls_confusion *confusion,
               struct block *block, struct ls_error *error)
{
    for (int64_t begin = 0; begin < samples; begin += (int64_t)block->size) {
        const int64_t left = samples - begin;
        const size_t count = left < (int64_t)block->size ? (size_t)left : block->size;
        if (ls_model_stop_asked(model))
            return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "stopped");
        for (size_t i = 0; i < count; i++) {
            void *out[LS_RECORD_TENSORS] = {block->input + i * (size_t)model->input_size,
                                            block->labels[i]};
            LS_TRY(ls_reader_fetch(model->reader, begin + (int64_t)i, out, error));
        }
        LS_TRY(ls_prediction_run(model->prediction, block->input, count, block->output, error));
        for (size_t i = 0; i < count; i++)
            LS_TRY(count_sample(confusion, block, i, begin + (int64_t)i, error));
        confusion->shown.samples += (int64_t)count;
    }
    return 0;
}

/* ---- Figures --------------------------------------------------------------------------------- */

static double part(int64_t of, int64_t all)
{
    return all > 0 ? (double)of / (double)all : NAN;
}

static void find_figures(const struct lockstep_model *model, struct ls_confusion *confusion)
{
    struct lockstep_confusion *shown = &confusion->shown;
    const size_t classes = shown->classes;
    int64_t right = 0, occur = 0;
    double sum = 0;
    for (size_t i = 0; i < classes; i++) {
        struct lockstep_class_figures *figures = &confusion->figures[i];
        figures->name = lockstep_model_class_name(model, i);
        figures->right = confusion->matrix[i * classes + i];
        for (size_t j = 0; j < classes; j++) {
            figures->count += confusion->matrix[i * classes + j];
            figures->predicted += confusion->matrix[j * classes + i];
        }
        const int64_t both = figures->count + figures->predicted;
        figures->precision = part(figures->right, figures->predicted);
        figures->recall = part(figures->right, figures->count);
        figures->f1 = part(2 * figures->right, both);
        figures->iou = part(figures->right, both - figures->right);
        right += figures->right;
        if (both > 0) {
            sum += figures->iou;
            occur++;
        }
    }
    shown->accuracy = part(right, shown->counted);
    shown->mean_iou = occur > 0 ? sum / (double)occur : NAN;
}

int lockstep_model_confusion(struct lockstep_model *model, int64_t samples, size_t worst,
                             const struct lockstep_confusion **confusion,
                             struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    struct block block = {.size = 0};
    *confusion = NULL;
    if (samples < 0 || worst > WORST_MOST)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                       "%lld samples cannot be compared, or %zu of the worst be kept: at most %d",
                       (long long)samples, worst, WORST_MOST);
    LS_TRY(check(model, inner));
    const int64_t all = lockstep_model_sample_count(model);
    struct ls_confusion *made = make(model, worst);
    if (made == NULL)
        return ls_fail_memory(inner, "a confusion matrix");
    int status = make_block(model, &block, inner);
    if (status == 0)
        status = run(model, samples > 0 && samples < all ? samples : all, made, &block, inner);
    free_block(&block);
    if (status != 0) {
        ls_confusion_free(made);
        return status;
    }
    find_figures(model, made);
    ls_confusion_free(model->confusion);
    model->confusion = made;
    *confusion = &made->shown;
    return 0;
}
