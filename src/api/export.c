/* The public interface: export to ONNX.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/export.h"

#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "api/options.h"
#include "api/picture_rule.h"
#include "api/predict.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "engine/copies.h"
#include "engine/plans.h"
#include "ir/layer.h"
#include "schema/language_net.h"

void lockstep_onnx_options_init(struct lockstep_onnx_options *options)
{
    *options = (struct lockstep_onnx_options){.struct_size = sizeof *options};
}

enum { CHANNELS_MAX = 16 }; /* of a picture, whose means are told */

/* What an export needs while it lasts. */
struct export
{
    struct lockstep_model *model;
    const struct lockstep_onnx_options *options;
    struct ls_net_definition definition; /* with logits where the model's has none */
    struct ls_graph *graph; /* as it is built; the net's own has what its plan put in */
    struct ls_value **outputs;
    size_t output_count;
    float **copies;    /* by parameter: weights that do not lie in Caffe's order; NULL: not yet */
    float *mean;       /* of pictures */
    bool mean_picture; /* training subtracted one */
    struct ls_picture_rule rule; /* borrowed; of its transformation nothing is read */
    struct ls_onnx_preprocessing preprocessing;
};

static int fetch_weights(void *user, const struct ls_parameter *parameter, const float **numbers,
                         struct ls_error *error)
{
    const struct export *export = user;
    const int index = parameter->index;
    *numbers = ls_copies_plain(export->model->engine, index, LS_WEIGHTS);
    if (*numbers == NULL && export->copies[index] == NULL) {
        float *copy = ls_alloc((size_t)ls_shape_size(&parameter->shape) + 1, sizeof *copy);
        if (copy == NULL)
            return ls_fail_memory(error, "weights");
        export->copies[index] = copy;
        LS_TRY(ls_copies_read(export->model->engine, index, LS_WEIGHTS, copy, error));
    }
    if (*numbers == NULL)
        *numbers = export->copies[index];
    return 0;
}

static void tell(void *user, const char *sentence)
{
    const struct export *export = user;
    if (export->options->tell != NULL)
        export->options->tell(export->options->user, sentence);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static bool is_output(const struct export *export, const struct ls_value *value)
{
    for (size_t i = 0; i < export->output_count; i++)
        if (export->outputs[i] == value)
            return true;
    return false;
}

/* The prediction, then what else the net ends with. */
static int find_outputs(struct export *export, struct ls_error *error)
{
    const struct lockstep_model *model = export->model;
    const struct ls_graph *graph = export->graph;
    struct ls_value *first = ls_model_output(graph, model->blob);
    export->outputs = ls_alloc(graph->value_count + 1, sizeof *export->outputs);
    if (export->outputs == NULL)
        return ls_fail_memory(error, "a model");
    if (first != NULL)
        export->outputs[export->output_count++] = first;
    for (size_t i = 0; i < graph->layer_count && model->blob == NULL; i++) {
        const struct ls_layer *layer = graph->layers[i];
        for (int t = 0; t < layer->tops; t++) {
            struct ls_value *top = layer->top[t];
            if (!layer->top_used[t] && top != NULL && top->storage == LS_STORE_ARENA &&
                ls_dtype_is_float(top->type) && layer->bottoms > 0 && !is_output(export, top))
                export->outputs[export->output_count++] = top;
        }
    }
    if (export->output_count > 0)
        return 0;
    return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                   "name a blob: --blob; or use the deploy form of the net",
                   "the net ends with losses and metrics alone, and so has no output");
}

/* ---- What is said of the model --------------------------------------------------------------- */

/* What becomes of pictures, which must be known. */
static int find_transform(struct export *export, const struct ls_transform **transform,
                          struct ls_error *error)
{
    LS_TRY(ls_picture_rule_find(export->model, transform, &export->rule, error));
    if (export->rule.known)
        return 0;
    return ls_fail(error, LOCKSTEP_DEFINITION, export->model->definition.definition->file,
                   "--mean and --scale say it; or leave --with-preprocessing out",
                   "neither the weights nor the definition say what training did with pictures");
}

/* Says what the model's first operators cannot do. */
static void tell_rest(const struct export *export, const struct ls_transform *transform)
{
    const int64_t *in = transform->input, *out = transform->output;
    struct ls_text text = {0};
    ls_text_format(&text, "the model takes pixels, 0 to 255, of %lld x %lld x %lld",
                   (long long)out[0], (long long)out[1], (long long)out[2]);
    if (out[0] == 3)
        ls_text_format(&text, " (%s)", export->rule.rgb ? "red, green, blue" : "blue, green, red");
    if (transform->before.resizes)
        ls_text_add(&text, "; resize_param is left to the caller");
    if (transform->pad > 0)
        ls_text_format(&text, "; so is a border of %d %s pixels", transform->pad,
                       transform->reflect ? "mirrored" : "black");
    if (in[1] > out[1] || in[2] > out[2])
        ls_text_format(&text,
                       "; pictures have %lld x %lld pixels before the centre is cut out, which is "
                       "left to the caller",
                       (long long)in[1], (long long)in[2]);
    if (!text.failed)
        tell((void *)(uintptr_t) export, text.data);
    ls_text_free(&text);
}

/* Mean and scale as the model's first operators. */
static int take_preprocessing(struct export *export, const int64_t input[3], struct ls_error *error)
{
    const struct lockstep_model *model = export->model;
    const struct ls_transform *transform;
    LS_TRY(find_transform(export, &transform, error));
    if (transform->standardize)
        return ls_fail(error, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "leave --with-preprocessing out, and standardize pictures yourself",
                       "standardized pictures are none that mean and scale make");
    export->preprocessing.scale = transform->scale;
    if (transform->mean != NULL) {
        LS_TRY(ls_picture_rule_mean(transform, &export->mean, error));
        export->preprocessing.mean = export->mean;
        export->preprocessing.mean_count = (size_t)ls_record_size(transform->output);
    } else if (transform->channel_mean != NULL) {
        export->preprocessing.mean = transform->channel_mean;
        export->preprocessing.mean_count = (size_t)input[0];
    }
    tell_rest(export, transform);
    return 0;
}

/* What the definition says, without looking at files that it names. */
static int find_definition(struct export *export, struct ls_error *error)
{
    const Lockstep__TransformationParameter *param =
        ls_picture_rule_param(export->model, &export->mean_picture);
    if (param != NULL) {
        export->preprocessing.scale = param->scale;
        export->preprocessing.mean = param->n_mean_value > 0 ? param->mean_value : NULL;
        export->preprocessing.mean_count = param->n_mean_value;
    }
    if (!export->options->preprocessing ||
        (!export->mean_picture && (param == NULL || !param->standardize)))
        return 0;
    return ls_fail(error, LOCKSTEP_DEFINITION, export->model->definition.definition->file,
                   "use the deploy form of the net, or leave --with-preprocessing out",
                   "the mean picture, or standardizing, of these data cannot be part of the model");
}

static int find_preprocessing(struct export *export, struct ls_error *error)
{
    int64_t input[3];
    lockstep_model_input_shape(export->model, input);
    export->preprocessing.scale = 1;
    if (!export->options->preprocessing || input[0] == 0 || input[0] > CHANNELS_MAX)
        return find_definition(export, error);
    return take_preprocessing(export, input, error);
}

/* The means of channels, "104,117,123"; of a mean picture nothing: it has too many. */
static void note_preprocessing(const struct export *export, struct ls_onnx_writer *writer)
{
    const struct ls_onnx_preprocessing *p = &export->preprocessing;
    struct ls_text text = {0};
    char number[32];
    for (size_t i = 0; i < p->mean_count && p->mean_count <= CHANNELS_MAX; i++) {
        ls_format_float(number, p->mean[i]);
        ls_text_format(&text, "%s%s", i > 0 ? "," : "", number);
    }
    ls_onnx_note(writer, "lockstep.preprocessing",
                 export->options->preprocessing ? "part of the model" : "left to the caller");
    if (text.data != NULL)
        ls_onnx_note(writer, "lockstep.mean_value", text.data);
    else if (p->mean != NULL || export->mean_picture)
        ls_onnx_note(writer, "lockstep.mean_value", "a picture");
    ls_format_float(number, p->scale);
    ls_onnx_note(writer, "lockstep.scale", number);
    ls_text_free(&text);
}

static void note_classes(const struct lockstep_model *model, struct ls_onnx_writer *writer)
{
    struct ls_text text = {0};
    for (size_t i = 0; i < model->class_count; i++)
        ls_text_format(&text, "%s%s", i > 0 ? "\n" : "",
                       model->classes[i] != NULL ? model->classes[i] : "");
    writer->failed |= text.failed;
    if (text.data != NULL)
        ls_onnx_note(writer, "lockstep.classes", text.data);
    ls_text_free(&text);
}

static void add_notes(const struct export *export, struct ls_onnx_writer *writer)
{
    ls_onnx_note(writer, "lockstep.version", LOCKSTEP_VERSION);
    if (export->model->trained.iteration != NULL)
        ls_onnx_note(writer, "lockstep.iteration", export->model->trained.iteration);
    note_preprocessing(export, writer);
    note_classes(export->model, writer);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* How many samples a run has: -1 for any number. */
static int find_batch(const struct export *export, int64_t *batch, struct ls_error *error)
{
    const struct ls_net *net = export->model->net;
    const int64_t asked = export->options->batch, whole = export->graph->samples;
    *batch = asked > 0 ? asked : -1;
    if (net->mixer == NULL)
        return 0;
    *batch = whole;
    if (asked > 0 && asked != whole)
        return ls_fail(error, LOCKSTEP_USAGE, export->model->definition.definition->file,
                       "leave --batch out, or change the batch of the definition",
                       "layer '%.100s' mixes the samples of a batch, so that the model is for %lld "
                       "of them, not for %lld",
                       ls_net_mixer_name(net), (long long)whole, (long long)asked);
    tell((void *)(uintptr_t) export,
         "the net mixes the samples of a batch, so that the model is for the definition's batch");
    return 0;
}

static int write_model(struct export *export, const char *path, struct ls_error *error)
{
    struct ls_onnx_writer writer;
    struct ls_onnx_export options = {.graph = export->graph,
                                     .outputs = export->outputs,
                                     .output_count = export->output_count,
                                     .opset = export->options->opset,
                                     .weights = fetch_weights,
                                     .tell = tell,
                                     .user = export};
    options.all = export->model->definition.all;
    if (export->options->preprocessing)
        options.preprocessing = &export->preprocessing;
    LS_TRY(find_batch(export, &options.batch, error));
    int status = ls_onnx_writer_open(&writer, options.opset, error);
    if (status == 0) {
        add_notes(export, &writer);
        status = ls_onnx_export(&writer, &options, error);
    }
    if (status == 0)
        status = ls_onnx_save(&writer, path, export->options->external != 0, error);
    ls_onnx_writer_free(&writer);
    return status;
}

/* The net's graph, in which losses that make logits of their own show them. */
static int build_graph(struct export *export, struct ls_error *error)
{
    const struct ls_net *net = export->model->net;
    struct ls_graph_options options = ls_plans_graph_options(net, ls_net_graph(net)->samples);
    LS_TRY(ls_language_net_with_logits(options.net, &export->definition, error));
    options.net = &export->definition;
    return ls_graph_build(&options, &export->graph, error);
}

static void free_export(struct export *export)
{
    for (size_t i = 0; i < export->model->parameters->count && export->copies != NULL; i++)
        ls_free(export->copies[i]);
    ls_free(export->copies);
    ls_graph_free(export->graph);
    ls_free(export->outputs);
    ls_free(export->mean);
}

int lockstep_model_export_onnx(struct lockstep_model *model, const char *path,
                               const struct lockstep_onnx_options *options,
                               struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_onnx_options mine;
    LS_TRY(ls_api_require(model, "model", inner));
    ls_thread_set_card(model->card);
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_onnx_options_init", inner));
    if (mine.opset == 0)
        mine.opset = LS_ONNX_OPSET_MAX;
    if (mine.opset < LS_ONNX_OPSET_MIN || mine.opset > LS_ONNX_OPSET_MAX)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "13 to 17 are written",
                       "version %d of ONNX's operators is not written", mine.opset);
    if (mine.batch < 0 || mine.batch > INT32_MAX)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "a model cannot be for %lld samples",
                       (long long)mine.batch);
    struct export export = {.model = model,
                            .options = &mine,
                            .copies =
                                ls_alloc(model->parameters->count + 1, sizeof *export.copies)};
    int status =
        export.copies == NULL ? ls_fail_memory(inner, "a model") : build_graph(&export, inner);
    if (status == 0)
        status = find_outputs(&export, inner);
    if (status == 0)
        status = find_preprocessing(&export, inner);
    if (status == 0)
        status = write_model(&export, path, inner);
    free_export(&export);
    return status;
}
