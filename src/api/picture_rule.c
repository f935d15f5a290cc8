/* What becomes of pictures for a net without a data layer. See api/picture_rule.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/picture_rule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/model.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/mean_file.h"
#include "schema/data_layers.h"

enum { CHANNELS_MAX = 16 };

static const char size_hint[] = "--resize N: the side that pictures get before the centre of the "
                                "net's input is cut out";
static const char mean_hint[] = "--mean FILE gives it ('lockstep mean' makes one of the training "
                                "data)";

/* What is said of pictures, put together. */
struct said {
    const char *file; /* whose definition it is */
    Lockstep__TransformationParameter param;
    const struct ls_definition *definition;
    const char *layer; /* NULL: nothing is said */
    int64_t record[3]; /* the size of pictures before `param`; [1] is 0: not known */
    bool varies, interpolates, rgb;
    bool has_mean;     /* a mean picture was subtracted */
    const float *mean; /* it; NULL: it is param's file, or not known */
    int64_t mean_shape[3];
    float *owned; /* `mean`, where it was read or cut here */
    float values[CHANNELS_MAX];
    /* Where windows were cut out with their surroundings, the field that says it. */
    const char *surroundings;
};

/* ---- Who says it ----------------------------------------------------------------------------- */

/* The Input layer of the net's input, where it has a transformation. */
static const Lockstep__LayerParameter *input_layer(const struct lockstep_model *model)
{
    const Lockstep__NetParameter *net = model->definition.net;
    const char *name = model->prediction != NULL ? lockstep_model_input_name(model, 0) : NULL;
    for (size_t i = 0; name != NULL && i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        if (ls_data_layer_takes_input(layer) && layer->transform_param != NULL &&
            layer->n_top > 0 && strcmp(layer->top[0], name) == 0)
            return layer;
    }
    return NULL;
}

/* Of arrays and texts nothing says what pictures would have to become. */
static bool reads_pictures(const Lockstep__LayerParameter *layer)
{
    const Lockstep__DataParameter *data = layer->data_param;
    const struct ls_source_type *type = data != NULL ? ls_source_type_of((int)data->backend) : NULL;
    return ls_data_layer_reads(layer) && type != NULL && (type->bgr || type->unconvertible == NULL);
}

/* The first data layer of pictures of any phase. */
static const Lockstep__LayerParameter *other_layer(const struct lockstep_model *model)
{
    const Lockstep__NetParameter *net = model->definition.all;
    for (size_t i = 0; net != NULL && i < net->n_layer; i++)
        if (reads_pictures(net->layer[i]))
            return net->layer[i];
    return NULL;
}

/* What says it: a layer and its definition; NULL: nothing. */
static const Lockstep__LayerParameter *find_layer(const struct lockstep_model *model,
                                                  const struct ls_definition **definition)
{
    const Lockstep__LayerParameter *layer = input_layer(model);
    *definition = model->definition.definition;
    if (layer == NULL && model->trained.layer != NULL) {
        *definition = model->trained.definition;
        return model->trained.layer;
    }
    return layer != NULL ? layer : other_layer(model);
}

/* WindowData has crop and mean in a message of its own (ls_data_layer_complete). */
static const Lockstep__WindowDataParameter *windows_of(const Lockstep__LayerParameter *layer)
{
    return layer->data_param != NULL &&
                   layer->data_param->backend == LOCKSTEP__DATA_PARAMETER__DB__WINDOWS
               ? layer->window_data_param
               : NULL;
}

static bool names_mean(const Lockstep__LayerParameter *layer)
{
    const Lockstep__WindowDataParameter *windows = windows_of(layer);
    return (layer->transform_param != NULL && layer->transform_param->mean_file != NULL) ||
           (windows != NULL && windows->mean_file != NULL);
}

const Lockstep__TransformationParameter *ls_picture_rule_param(const struct lockstep_model *model,
                                                               bool *has_mean)
{
    const struct ls_definition *definition;
    const Lockstep__LayerParameter *layer = find_layer(model, &definition);
    *has_mean = layer != NULL &&
                (names_mean(layer) || (layer == model->trained.layer && model->trained.has_mean));
    return layer != NULL ? layer->transform_param : NULL;
}

/* ---- What a layer says ----------------------------------------------------------------------- */

/* What a data layer does besides its transformation. */
static void take_data(const Lockstep__LayerParameter *layer, struct said *said)
{
    const Lockstep__DataParameter *data = layer->data_param;
    const Lockstep__WindowDataParameter *windows = windows_of(layer);
    const struct ls_source_type *type = data != NULL ? ls_source_type_of((int)data->backend) : NULL;
    if (type == NULL)
        return;
    said->rgb = !type->bgr;
    said->interpolates = !data->antialias || windows != NULL;
    if (windows != NULL) {
        said->record[1] = said->record[2] = windows->crop_size;
        said->surroundings =
            windows->context_pad > 0 ? "context_pad"
            : windows->crop_mode != NULL && strcmp(windows->crop_mode, "square") == 0 ? "crop_mode"
                                                                                      : NULL;
    } else if (said->record[1] == 0 && data->new_height > 0 && data->new_width > 0) {
        said->record[1] = data->new_height;
        said->record[2] = data->new_width;
    }
}

/* A layer's transformation without what is random. */
static void take_param(const Lockstep__LayerParameter *layer, struct said *said)
{
    const Lockstep__WindowDataParameter *windows = windows_of(layer);
    Lockstep__TransformationParameter *param = &said->param;
    if (layer->transform_param != NULL)
        *param = *layer->transform_param;
    if (windows != NULL) {
        param->mean_file = windows->mean_file;
        param->mean_value = windows->mean_value;
        param->n_mean_value = windows->n_mean_value;
    }
    param->distort_param = NULL;
    param->expand_param = NULL;
    param->emit_constraint = NULL;
}

/* What the snapshot knows of the records. */
static void take_records(const struct ls_trained *trained, struct said *said)
{
    if (trained->source != NULL) {
        memcpy(said->record, trained->record, sizeof said->record);
        said->varies = trained->varies;
    }
    take_data(trained->layer, said);
}

static void take_said(const struct lockstep_model *model, struct said *said)
{
    const struct ls_definition *definition;
    const struct ls_trained *trained = &model->trained;
    const Lockstep__LayerParameter *layer = find_layer(model, &definition);
    *said = (struct said){.file = model->definition.definition->file,
                          .param = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT,
                          .definition = definition};
    if (layer == NULL)
        return;
    said->layer = layer->name != NULL ? layer->name : "";
    if (trained->layer != NULL) /* also where an Input layer has a transformation of its own */
        take_records(trained, said);
    else
        take_data(layer, said);
    take_param(layer, said);
    said->has_mean = said->param.mean_file != NULL;
    if (layer == trained->layer) {
        said->has_mean = trained->has_mean;
        said->mean = trained->mean;
        memcpy(said->mean_shape, trained->mean_shape, sizeof said->mean_shape);
    }
}

/* Whether numbers become others than in the training. */
static bool differs(const struct ls_trained *trained, const struct said *said)
{
    struct said other = {.param = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT};
    const Lockstep__TransformationParameter *a = &said->param, *b = &other.param;
    take_param(trained->layer, &other);
    return a->scale != b->scale || a->standardize != b->standardize ||
           said->has_mean != trained->has_mean || a->n_mean_value != b->n_mean_value ||
           (a->n_mean_value > 0 &&
            memcmp(a->mean_value, b->mean_value, a->n_mean_value * sizeof *a->mean_value) != 0) ||
           (said->mean != NULL && trained->mean != NULL &&
            memcmp(said->mean_shape, trained->mean_shape, sizeof said->mean_shape) == 0 &&
            memcmp(said->mean, trained->mean,
                   (size_t)ls_record_size(said->mean_shape) * sizeof *said->mean) != 0);
}

static void warn_of_others(struct lockstep_model *model, const Lockstep__LayerParameter *layer,
                           const struct said *said)
{
    char place[LS_PLACE_MAX];
    struct ls_text text = {0};
    if (layer == NULL || model->trained.layer == NULL || !differs(&model->trained, said))
        return;
    ls_place(model->definition.definition, layer,
             layer->transform_param != NULL ? "transform_param" : NULL, place, sizeof place);
    ls_text_format(&text,
                   "%s: mean, scale or standardize of layer '%.100s' are others than in the "
                   "training, as the snapshot has it; they are what pictures get",
                   place, layer->name != NULL ? layer->name : "");
    if (!text.failed)
        ls_model_warn(model, text.data);
    ls_text_free(&text);
}

void ls_picture_rule_compare(struct lockstep_model *model)
{
    struct said said = {.param = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT};
    struct ls_picture_rule rest;
    if (model->net->dataset_count == 0 ||
        ls_dataset_transform(model->net->datasets[0], &rest.interpolates, &rest.rgb) == NULL)
        return;
    take_param(model->net->data_layers[0], &said);
    said.mean = ls_dataset_mean_picture(model->net->datasets[0], said.mean_shape);
    said.has_mean = said.mean != NULL;
    warn_of_others(model, model->net->data_layers[0], &said);
}

/* ---- What the caller says -------------------------------------------------------------------- */

/* Means of channels, "104,117,123", into `values`; how many, 0 where the text is no such list. */
static size_t read_means(const char *text, float values[CHANNELS_MAX])
{
    size_t count = 0;
    for (char *end; count < CHANNELS_MAX; text = end + 1) {
        double value = ls_parse_double(text);
        strtod(text, &end); /* where it ends; the value is read by no locale */
        if (end == text || !isfinite(value) || (*end != ',' && *end != '\0'))
            return 0;
        values[count++] = (float)value;
        if (*end == '\0')
            return count;
    }
    return 0;
}

static void take_callers(const struct lockstep_model *model, struct said *said)
{
    if (model->scale != 0)
        said->param.scale = (float)model->scale;
    if (model->mean == NULL)
        return;
    said->mean = NULL;
    said->param.mean_file = NULL;
    said->param.mean_value = said->values;
    said->param.n_mean_value = read_means(model->mean, said->values);
    said->has_mean = said->param.n_mean_value == 0;
    if (said->has_mean) {
        said->param.mean_file = model->mean;
        said->definition = NULL; /* the path is the caller's */
    }
}

/* ---- The mean picture ------------------------------------------------------------------------ */

/* Reads that of a file, so that it is known how large pictures were. */
static int read_mean(struct said *said, struct ls_error *error)
{
    if (said->param.mean_file == NULL)
        return 0;
    char *path = ls_resolve_path(said->param.mean_file,
                                 said->definition != NULL ? said->definition->file : NULL);
    int status = path == NULL ? ls_fail_memory(error, "a path")
                              : ls_mean_shape(path, said->mean_shape, error);
    if (status == 0)
        status = ls_mean_read(path, said->mean_shape, &said->owned, error);
    ls_free(path);
    said->mean = said->owned;
    said->param.mean_file = NULL;
    return status;
}

/* The centre of a mean picture, as large as `shape`. */
static int cut_mean(struct said *said, const int64_t shape[3], struct ls_error *error)
{
    const int64_t *has = said->mean_shape;
    const int64_t top = (has[1] - shape[1]) / 2, left = (has[2] - shape[2]) / 2;
    if (has[0] != shape[0] || has[1] < shape[1] || has[2] < shape[2])
        return 0; /* the transformation says what is wrong */
    float *cut = ls_alloc((size_t)ls_record_size(shape), sizeof *cut);
    if (cut == NULL)
        return ls_fail_memory(error, "a mean picture");
    for (int64_t c = 0; c < shape[0]; c++)
        for (int64_t h = 0; h < shape[1]; h++)
            memcpy(cut + (c * shape[1] + h) * shape[2],
                   said->mean + (c * has[1] + top + h) * has[2] + left,
                   (size_t)shape[2] * sizeof *cut);
    ls_free(said->owned);
    said->mean = said->owned = cut;
    memcpy(said->mean_shape, shape, sizeof said->mean_shape);
    return 0;
}

/* ---- The size of pictures -------------------------------------------------------------------- */

/* The caller's: the centre of the net's size is cut out of pictures of that side. */
static int resize_by_caller(const struct lockstep_model *model, const int64_t input[3],
                            struct said *said, struct ls_error *error)
{
    if (input[1] != input[2])
        return ls_fail(error, LOCKSTEP_USAGE, said->file, "leave the size out",
                       "the net's input has %" PRId64 " x %" PRId64 " pixels, and what is cut out "
                       "of pictures of %d x %d is a square",
                       input[1], input[2], model->resize, model->resize);
    if (model->resize < input[1])
        return ls_fail(error, LOCKSTEP_USAGE, said->file, size_hint,
                       "pictures of %d x %d are smaller than the net's input, which has %" PRId64
                       " x %" PRId64 " pixels",
                       model->resize, model->resize, input[1], input[2]);
    said->record[0] = input[0];
    said->record[1] = said->record[2] = model->resize;
    said->varies = false;
    said->param.resize_param = NULL;
    said->param.pad = 0;
    said->param.crop_size = (uint32_t)input[1];
    return 0;
}

/* How large pictures are before the transformation, where no snapshot tells it. */
static int guess_record(const int64_t input[3], struct said *said, struct ls_error *error)
{
    Lockstep__TransformationParameter *param = &said->param;
    memcpy(said->record, input, sizeof said->record);
    if (said->mean != NULL && said->mean_shape[0] == input[0]) {
        /* A mean picture is of the size that records had before they were cropped. */
        memcpy(said->record, said->mean_shape, sizeof said->record);
        if (param->crop_size == 0 && input[1] == input[2])
            param->crop_size = (uint32_t)input[1];
        return 0;
    }
    if (param->resize_param != NULL) {
        said->varies = true;
        return 0;
    }
    if (param->crop_size > 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, said->file, size_hint,
                       "layer '%.100s': crop_size %u cuts the centre out of larger pictures, and "
                       "nothing says how large they are",
                       said->layer, (unsigned)param->crop_size);
    said->record[1] -= 2 * (int64_t)param->pad;
    said->record[2] -= 2 * (int64_t)param->pad;
    return 0;
}

static int choose_record(const struct lockstep_model *model, const int64_t input[3],
                         struct said *said, struct ls_error *error)
{
    if (model->resize > 0)
        return resize_by_caller(model, input, said, error);
    if (said->record[1] == 0 || (model->mean != NULL && said->mean != NULL &&
                                 memcmp(said->mean_shape, said->record, sizeof said->record) != 0))
        return guess_record(input, said, error);
    if (said->record[0] == 0)
        said->record[0] = input[0];
    return 0;
}

/* "resize_param, pad 4, crop_size 28" */
static void name_geometry(const struct said *said, struct ls_text *text)
{
    const Lockstep__TransformationParameter *param = &said->param;
    if (param->resize_param != NULL)
        ls_text_add(text, ", resize_param");
    if (param->pad > 0)
        ls_text_format(text, ", pad %u", (unsigned)param->pad);
    if (param->crop_size > 0)
        ls_text_format(text, ", crop_size %u", (unsigned)param->crop_size);
    if (said->mean != NULL)
        ls_text_add(text, ", a mean picture");
}

/* The net's input is of another size than training made of pictures. */
static int check_size(const struct said *said, const int64_t made[3], const int64_t input[3],
                      struct ls_error *error)
{
    struct ls_text geometry = {0};
    name_geometry(said, &geometry);
    int status =
        ls_fail(error, LOCKSTEP_DEFINITION, said->file,
                made[0] == input[0] ? size_hint : "it takes pictures as they were for the training",
                "the net's input has %" PRId64 " x %" PRId64 " x %" PRId64
                " numbers, but pictures become %" PRId64 " x %" PRId64 " x %" PRId64
                " as layer '%.100s' has it (of %" PRId64 " x %" PRId64 "%s)",
                input[0], input[1], input[2], made[0], made[1], made[2], said->layer,
                said->record[1], said->record[2], geometry.data != NULL ? geometry.data : "");
    ls_text_free(&geometry);
    return status;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_transform(const struct said *said, struct ls_transform *transform,
                          struct ls_error *error)
{
    struct ls_transform_options options = {.param = &said->param,
                                           .definition = said->definition,
                                           .layer = said->layer != NULL ? said->layer : "input",
                                           .varies = said->varies,
                                           .mean = said->mean};
    memcpy(options.record, said->record, sizeof options.record);
    memcpy(options.mean_shape, said->mean_shape, sizeof options.mean_shape);
    int status = ls_transform_open(&options, transform, error);
    if (status != 0) {
        ls_transform_free(transform);
        *transform = (struct ls_transform){0};
    }
    return status;
}

/* Opens it for the net's input. Where sizes differ and training did nothing about sizes, pictures
 * are resized to that. */
static int open_for(const int64_t input[3], struct said *said, struct ls_transform *transform,
                    struct ls_error *error)
{
    const bool sized = said->param.resize_param != NULL || said->param.pad > 0 ||
                       said->param.crop_size > 0 || said->mean != NULL;
    if (!sized && said->record[0] == input[0]) {
        memcpy(said->record, input, sizeof said->record);
        said->varies = false;
    }
    LS_TRY(open_transform(said, transform, error));
    if (memcmp(transform->output, input, sizeof transform->output) == 0)
        return 0;
    int status = check_size(said, transform->output, input, error);
    ls_transform_free(transform);
    *transform = (struct ls_transform){0};
    return status;
}

/* Whether there is room for crops at the corners. */
static int check_views(const struct lockstep_model *model, const struct ls_picture_rule *rule,
                       struct ls_error *error)
{
    const struct ls_transform *t = &rule->transform;
    const bool room =
        t->crop > 0 && (rule->whole || t->input[1] > t->crop || t->input[2] > t->crop);
    if (!model->oversample || room)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, model->definition.definition->file,
                   "--resize 256, for example: the side that pictures get before that",
                   "the pictures are as large as the net's input, or that is no square, so that "
                   "there are no corners to cut out");
}

static int open_rule(struct lockstep_model *model, struct said *said, struct ls_error *error)
{
    struct ls_picture_rule *rule = &model->rule;
    int64_t input[3];
    lockstep_model_input_shape(model, input);
    if (said->has_mean)
        LS_TRY(read_mean(said, error));
    if (said->has_mean && said->mean == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, said->file, mean_hint,
                       "the net was trained on pictures without their mean picture, which the "
                       "weights do not have: they are of an older version");
    if (said->surroundings != NULL && model->resize == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, said->file, size_hint,
                       "layer '%.100s': %s cuts windows out with what is around them, which a "
                       "picture has not",
                       said->layer, said->surroundings);
    LS_TRY(choose_record(model, input, said, error));
    const Lockstep__LayerParameter *trained = model->trained.layer;
    if (said->mean != NULL && model->mean == NULL && trained != NULL && windows_of(trained) != NULL)
        LS_TRY(cut_mean(said, said->record, error));
    LS_TRY(open_for(input, said, &rule->transform, error));
    rule->whole = rule->transform.before.resizes || (said->varies && rule->transform.crop > 0);
    rule->interpolates = said->interpolates;
    rule->rgb = said->rgb;
    rule->known = said->layer != NULL || model->mean != NULL || model->scale != 0;
    return check_views(model, rule, error);
}

int ls_picture_rule_open(struct lockstep_model *model, struct ls_error *error)
{
    struct said said;
    if (model->rule.transform.output[0] > 0)
        return 0;
    take_said(model, &said);
    warn_of_others(model, input_layer(model), &said);
    take_callers(model, &said);
    int status = open_rule(model, &said, error);
    ls_free(said.owned);
    if (status != 0)
        ls_picture_rule_close(&model->rule);
    return status;
}

int ls_picture_rule_find(struct lockstep_model *model, const struct ls_transform **transform,
                         struct ls_picture_rule *rule, struct ls_error *error)
{
    *rule = (struct ls_picture_rule){.known = true};
    *transform = NULL;
    if (model->net->dataset_count > 0)
        *transform = ls_dataset_transform(model->net->datasets[0], &rule->interpolates, &rule->rgb);
    if (*transform != NULL)
        return 0;
    LS_TRY(ls_picture_rule_open(model, error));
    *rule = model->rule;
    *transform = &model->rule.transform;
    return 0;
}

/* What becomes of a black picture, without scale, is less by it. */
int ls_picture_rule_mean(const struct ls_transform *transform, float **mean, struct ls_error *error)
{
    struct ls_transform plain = *transform;
    struct ls_record record = {0};
    struct ls_augment_room room = {0};
    struct ls_problem problem;
    const size_t numbers = (size_t)ls_record_size(plain.output);
    uint8_t *black = ls_alloc((size_t)ls_record_size(plain.input), 1);
    *mean = ls_alloc(numbers, sizeof **mean);
    plain.before = (struct ls_augment){0};
    plain.scale = 1;
    plain.standardize = false;
    int status = LOCKSTEP_RESOURCE;
    if (black != NULL && *mean != NULL) {
        ls_record_set_image(&record, LS_U8, plain.input, black);
        status =
            ls_transform_apply(&plain, &record.tensor[0], NULL, 0, false, &room, *mean, &problem);
    }
    ls_augment_room_free(&room);
    ls_free(black);
    for (size_t i = 0; i < numbers && status == 0; i++)
        (*mean)[i] = 0 - (*mean)[i];
    return status == 0 ? 0 : ls_fail_memory(error, "a mean picture");
}

void ls_picture_rule_close(struct ls_picture_rule *rule)
{
    ls_transform_free(&rule->transform);
    *rule = (struct ls_picture_rule){0};
}

void ls_picture_rule_warn(struct lockstep_model *model)
{
    if (!model->rule.known)
        ls_model_warn(model, "neither the weights nor the definition say what training did with "
                             "pictures: pixels are taken as they are, 0 to 255, blue, green, red "
                             "(mean and scale can be given: --mean, --scale)");
}
