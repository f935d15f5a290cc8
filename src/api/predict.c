/* Predictions, behind the public interface: what is predicted, and from what. Pictures are in
 * api/predict_pictures.c.
 *
 * The value that counts is the softmax inside a SoftmaxWithLoss layer; without one, the last top
 * that no layer reads (a deploy net's "prob"), else the input of an accuracy or a loss, or the
 * boxes that a DetectionEvaluate layer judges.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/predict.h"

#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "api/predict_pictures.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/reader.h"
#include "ir/layer.h"
#include "ir/op_type.h"

/* ---- Which value is the prediction ----------------------------------------------------------- */

static bool usable(const struct ls_value *value)
{
    return value != NULL && value->storage == LS_STORE_ARENA && value->sample_axis >= 0 &&
           ls_dtype_is_float(value->type);
}

/* Output 0 (rank 0), or input 0 of the last op whose type has this rank among predictions. */
static struct ls_value *of_last_op(const struct ls_graph *graph, int rank)
{
    for (size_t i = graph->op_count; i-- > 0;) {
        const struct ls_op *op = graph->ops[i];
        const struct ls_op_type *type = ls_op_type(op->kind);
        if (rank == 0 ? !type->predicts_output : type->predicts_input != rank)
            continue;
        struct ls_value *value = rank == 0 ? op->output[0] : op->input[0];
        if (usable(value))
            return value;
    }
    return NULL;
}

/* The boxes that a layer judges; NULL: there is none. */
static struct ls_value *of_evaluation(const struct ls_graph *graph)
{
    for (size_t i = graph->op_count; i-- > 0;)
        if (graph->ops[i]->kind == LS_OP_DETECTION_EVALUATE && usable(graph->ops[i]->input[0]))
            return graph->ops[i]->input[0];
    return NULL;
}

/* What a blob holds in the end; NULL: it is no value that belongs to samples. */
static struct ls_value *of_blob(const struct ls_graph *graph, const char *blob)
{
    for (size_t i = graph->layer_count; i-- > 0;) {
        const struct ls_layer *layer = graph->layers[i];
        for (int t = 0; t < layer->tops && t < (int)layer->definition->n_top; t++)
            if (strcmp(layer->definition->top[t], blob) == 0)
                return usable(layer->top[t]) ? layer->top[t] : NULL;
    }
    return NULL;
}

struct ls_value *ls_model_output(const struct ls_graph *graph, const char *blob)
{
    if (blob != NULL)
        return of_blob(graph, blob);
    struct ls_value *value = of_last_op(graph, 0);
    for (size_t i = graph->layer_count; i-- > 0 && value == NULL;) {
        const struct ls_layer *layer = graph->layers[i];
        for (int t = layer->tops; t-- > 0 && value == NULL;)
            if (!layer->top_used[t] && usable(layer->top[t]))
                value = layer->top[t];
    }
    for (int rank = 1; rank <= LS_PREDICTS_INPUT_MAX && value == NULL; rank++)
        value = of_last_op(graph, rank);
    return value != NULL ? value : of_evaluation(graph);
}

/* ---- Preparation ----------------------------------------------------------------------------- */

/* Whether a blob is a top of a data layer, which no plan keeps. */
static bool is_given(const struct lockstep_model *model, const char *blob)
{
    bool found = false;
    for (int d = 0; d < model->net->dataset_count; d++)
        for (size_t t = 0; t < model->net->data_layers[d]->n_top; t++)
            found = found || strcmp(model->net->data_layers[d]->top[t], blob) == 0;
    return found;
}

int ls_model_init_predictions(struct lockstep_model *model, struct ls_error *error)
{
    LS_TRY(ls_prediction_create(model->engine, model->net, &model->prediction, error));
    const struct ls_value *input = ls_prediction_input(model->prediction);
    const struct ls_value *output = ls_prediction_output(model->prediction);
    model->input_size = input != NULL ? ls_shape_size(&input->shape) : 0;
    model->output_size = output != NULL ? (size_t)ls_shape_size(&output->shape) : 0;
    if (model->blob != NULL && output == NULL && !is_given(model, model->blob))
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "losses and accuracies are results of a test ('lockstep test')",
                       "blob '%.200s' does not belong to samples", model->blob);
    return model->net->dataset_count > 0
               ? ls_reader_open(model->net->datasets[0], &model->reader, error)
               : 0;
}

void ls_model_free_predictions(struct lockstep_model *model)
{
    ls_model_free_pictures(model);
    ls_prediction_free(model->prediction);
    ls_reader_close(model->reader);
    ls_picture_rule_close(&model->rule);
}

void lockstep_model_input_shape(const struct lockstep_model *model, int64_t shape[3])
{
    const struct ls_value *input = ls_prediction_input(model->prediction);
    shape[0] = shape[1] = shape[2] = input != NULL ? 1 : 0;
    for (int i = 0, at = 0; input != NULL && i < input->shape.rank; i++)
        if (i != input->sample_axis)
            shape[at < 2 ? at++ : 2] *= input->shape.dim[i];
}

static int extents_of(const struct ls_value *value, int64_t extent[LOCKSTEP_AXES_MAX], int *axis)
{
    if (value == NULL)
        return 0;
    for (int i = 0; i < value->shape.rank; i++)
        extent[i] = value->shape.dim[i];
    if (axis != NULL)
        *axis = value->sample_axis;
    return value->shape.rank;
}

int lockstep_model_input_extents(const struct lockstep_model *model, size_t index,
                                 int64_t extent[LOCKSTEP_AXES_MAX], int *axis)
{
    return index < lockstep_model_input_count(model)
               ? extents_of(ls_prediction_input_at(model->prediction, index), extent, axis)
               : 0;
}

int lockstep_model_output_extents(const struct lockstep_model *model,
                                  int64_t extent[LOCKSTEP_AXES_MAX], int *axis)
{
    return extents_of(ls_prediction_output(model->prediction), extent, axis);
}

const char *lockstep_model_output_name(const struct lockstep_model *model)
{
    const struct ls_value *output = ls_prediction_output(model->prediction);
    return output != NULL ? output->name : NULL;
}

size_t lockstep_model_output_size(const struct lockstep_model *model)
{
    return model->output_size;
}

size_t lockstep_model_output_positions(const struct lockstep_model *model)
{
    const struct ls_value *output = ls_prediction_output(model->prediction);
    if (output == NULL || output->shape.rank < 3 || output->sample_axis != 0)
        return 1;
    return (size_t)ls_shape_count(&output->shape, 2, output->shape.rank);
}

/* ---- Running --------------------------------------------------------------------------------- */

int ls_model_check_one_size(const struct lockstep_model *model, struct ls_error *error)
{
    if (model->net->varying < 0)
        return 0;
    return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                   "give the data layer a crop_size, or new_height and new_width",
                   "predictions need samples of one size");
}

/* Whether predictions can be made from an input at all. */
static int check_predictable(const struct lockstep_model *model, const struct ls_value *from,
                             struct ls_error *error)
{
    if (from->type != LS_F32)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "declare it as F32",
                       "predictions are made from F32, but '%.100s' has elements of type %s",
                       from->name, ls_dtype_name(from->type));
    if (model->output_size == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, NULL,
                       "the net has no output that belongs to a sample");
    if (ls_prediction_output(model->prediction)->selected != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "predict a blob in front of the Filter layer, or test with an HDF5Output "
                       "layer, which writes the samples that are left",
                       "'%.200s' is not there for every sample: a Filter layer leaves some out",
                       ls_prediction_output(model->prediction)->name);
    return ls_model_check_one_size(model, error);
}

int ls_model_check_predict(const struct lockstep_model *model, struct ls_error *error)
{
    if (ls_prediction_input(model->prediction) == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, NULL,
                       "the net has no input to predict from");
    const struct ls_value *other = ls_prediction_other_input(model->prediction);
    if (other != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "lockstep_model_predict_inputs takes all inputs",
                       "predictions take one input, but those of this net also depend on '%.100s'",
                       other->name);
    return check_predictable(model, ls_prediction_input(model->prediction), error);
}

int ls_model_predict(struct lockstep_model *model, const float *input, size_t count, float *output,
                     struct ls_error *error)
{
    LS_TRY(ls_model_check_predict(model, error));
    return ls_prediction_run(model->prediction, input, count, output, error);
}

/* From all inputs, which must be there. */
static int predict_inputs(struct lockstep_model *model, const float *const *inputs, size_t count,
                          float *output, struct ls_error *error)
{
    size_t there = ls_prediction_inputs(model->prediction);
    if (there == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file, NULL,
                       "the net has no input to predict from");
    for (size_t i = 0; i < there; i++) {
        const struct ls_value *input = ls_prediction_input_at(model->prediction, i);
        LS_TRY(check_predictable(model, input, error));
        if (inputs[i] == NULL)
            return ls_fail(error, LOCKSTEP_USAGE, model->definition.definition->file, NULL,
                           "input '%.100s' is missing", input->name);
    }
    return ls_prediction_run_inputs(model->prediction, inputs, count, output, error);
}

int lockstep_model_predict(struct lockstep_model *model, const float *input, size_t count,
                           float *output, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    return ls_model_predict(model, input, count, output, ls_api_error(error));
}

size_t lockstep_model_input_count(const struct lockstep_model *model)
{
    return ls_prediction_inputs(model->prediction);
}

const char *lockstep_model_input_name(const struct lockstep_model *model, size_t index)
{
    return index < lockstep_model_input_count(model)
               ? ls_prediction_input_at(model->prediction, index)->name
               : NULL;
}

size_t lockstep_model_input_size(const struct lockstep_model *model, size_t index)
{
    return index < lockstep_model_input_count(model)
               ? (size_t)ls_shape_size(&ls_prediction_input_at(model->prediction, index)->shape)
               : 0;
}

int lockstep_model_predict_inputs(struct lockstep_model *model, const float *const *inputs,
                                  size_t count, float *output, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    return predict_inputs(model, inputs, count, output, ls_api_error(error));
}

/* ---- Samples of the data ----------------------------------------------------------------------
 */

int lockstep_model_predict_sample(struct lockstep_model *model, int64_t index, int64_t shape[3],
                                  float *pixels, int *label, float *output,
                                  struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    if (model->reader == NULL)
        return ls_fail(inner, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "use the definition that has the Data layers", "the net has no data layer");
    if (index < 0 || index >= model->net->batching.samples)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                       "there is no sample %lld; the data have "
                       "%lld",
                       (long long)index, (long long)model->net->batching.samples);
    LS_TRY(ls_reader_fetch_raw(model->reader, index, shape, pixels, label, inner));
    if (output == NULL)
        return 0;
    LS_TRY(ls_model_check_one_size(model, inner)); /* before anything is decoded into `sample` */
    float *sample = ls_alloc_aligned((size_t)model->input_size * sizeof *sample);
    if (sample == NULL)
        return ls_fail_memory(inner, "a sample");
    void *out[LS_RECORD_TENSORS] = {sample};
    int status = ls_reader_fetch(model->reader, index, out, inner);
    if (status == 0)
        status = ls_model_predict(model, sample, 1, output, inner);
    ls_free_aligned(sample);
    return status;
}
