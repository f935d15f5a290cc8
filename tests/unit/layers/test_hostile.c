/* Definitions at random: small numbers, zeros, and numbers as large as a field holds, on small and
 * huge bottoms. Whatever comes, a layer is refused with a place, or its tops are possible, it
 * differentiates, and its cost is a number. Run under sanitizers, this finds overflows.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/random.h"
#include "one_layer.h"

enum { ROUNDS = 20000, TYPES_MAX = 256 };

static uint64_t drawn;

static int64_t below(int64_t n)
{
    return ls_random_below(LS_RANDOM_TEST, 0, drawn++, (uint32_t)n);
}

/* Mostly a small number. */
static int64_t number(int64_t largest)
{
    return below(12) == 0 ? (below(3) == 0 ? 0 : largest) : below(5) + (below(8) == 0 ? 0 : 1);
}

static void add_number(struct ls_text *text, const ProtobufCFieldDescriptor *field)
{
    static const char *const floats[] = {"0", "0.5", "1", "-2", "nan", "inf", "1e38"};
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        ls_text_add(text, floats[below(7)]);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        ls_text_add(text, below(2) == 0 ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_INT32:
        ls_text_format(text, "%lld",
                       (long long)(below(3) == 0 ? -number(INT32_MAX) : number(INT32_MAX)));
        break;
    case PROTOBUF_C_TYPE_INT64:
        ls_text_format(text, "%lld", (long long)number(INT64_MAX));
        break;
    default:
        ls_text_format(text, "%lld", (long long)number(UINT32_MAX));
    }
}

/* Fields of a message by its descriptor, each with a chance of one in `rarity`. */
static void add_fields(struct ls_text *text, const ProtobufCMessageDescriptor *type, int rarity)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool main_field =
            strcmp(field->name, "num_output") == 0 || strcmp(field->name, "kernel_size") == 0 ||
            strcmp(field->name, "shape") == 0 || strcmp(field->name, "dim") == 0 ||
            strstr(field->name, "pooled_") != NULL || strcmp(field->name, "spatial_scale") == 0 ||
            strcmp(field->name, "output_dim") == 0 || strcmp(field->name, "group_size") == 0;
        bool needed = field->label == PROTOBUF_C_LABEL_REQUIRED;
        if (field->id >= 10000 || field->type == PROTOBUF_C_TYPE_STRING ||
            (!needed &&
             below(main_field ? 2 * rarity : rarity) >= (main_field ? 2 * rarity - 1 : 1)))
            continue;
        int64_t count = field->label == PROTOBUF_C_LABEL_REPEATED ? 1 + below(3) : 1;
        for (int64_t k = 0; k < count; k++) {
            const ProtobufCEnumDescriptor *names = field->descriptor;
            ls_text_format(text, "%s ", field->name);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                ls_text_add(text, "{ ");
                add_fields(text, field->descriptor, rarity);
                ls_text_add(text, "} ");
                continue;
            }
            ls_text_add(text, ": ");
            if (field->type == PROTOBUF_C_TYPE_ENUM)
                ls_text_add(text, names->values[below(names->n_values)].name);
            else
                add_number(text, field);
            ls_text_add(text, " ");
        }
    }
}

/* A bottom of rank 1 to 5; sometimes huge, but never more than a tensor may be. */
static void add_shape(struct ls_text *text, int64_t samples, int64_t rank)
{
    ls_text_format(text, "%lld", (long long)samples);
    int64_t room = below(10) == 0 ? INT64_C(1) << 38 : 2000;
    for (int64_t i = 1; i < rank; i++) {
        int64_t dim = room > 2000 && below(2) == 0 ? room / 3 : 1 + below(9);
        dim = dim > room ? 1 : dim;
        room /= dim;
        ls_text_format(text, "x%lld", (long long)dim);
    }
    ls_text_add(text, below(2) == 0 ? "!" : "");
}

static bool reads_data(const struct ls_layer_type *type)
{
    Lockstep__LayerParameter layer = LOCKSTEP__LAYER_PARAMETER__INIT;
    char name[64];
    snprintf(name, sizeof name, "%s", type->type);
    layer.type = name;
    return ls_data_layer_reads(&layer);
}

/* Sequences, mostly: x and cont of recurrent layers; c, gates and cont of LSTMUnit. */
static void add_sequences(struct ls_text *bottoms, bool unit)
{
    const int64_t steps = unit ? 1 : 1 + below(4), samples = 1 + below(4), size = 1 + below(5);
    const char *axis = below(6) > 0 ? "@1" : "";
    if (unit)
        ls_text_format(bottoms, "1x%lldx%lld%s ", (long long)samples, (long long)size, axis);
    ls_text_format(bottoms, "%lldx%lldx%lld%s%s", (long long)steps, (long long)samples,
                   (long long)(unit ? 4 * size : size), axis, below(2) == 0 ? "!" : "");
    ls_text_format(bottoms, " %lldx%lld%s", (long long)steps, (long long)samples, axis);
}

static void describe(struct ls_text *text, struct ls_text *bottoms,
                     const struct ls_layer_type *type)
{
    int64_t samples = 1 + below(4), n = type->bottoms_min;
    int64_t rank = below(3) > 0 ? 4 : 1 + below(5);
    if (type->bottoms_max < 0)
        n += below(3);
    const bool unit = strcmp(type->type, "LSTMUnit") == 0;
    const bool recurrent = unit || (type->parameter != NULL && n == 2 &&
                                    strcmp(type->parameter, "recurrent_param") == 0);
    const bool filter = strcmp(type->type, "Filter") == 0;
    ls_text_format(text, "name: 'l' type: '%s' ", type->type);
    if (recurrent)
        add_sequences(bottoms, unit);
    for (int64_t i = 0; i < n; i++) {
        bool size = strcmp(type->type, "Crop") == 0 || strcmp(type->type, "Interp") == 0;
        bool label =
            (i == 1 && type->bottoms_max == 2 && !size && strcmp(type->type, "MatMul") != 0) ||
            (filter && i == n - 1);
        const int64_t axes = strcmp(type->type, "Gather") == 0 ? 2 : 1;
        bool regions = i == 1 && strstr(type->type, "ROIPooling") != NULL && below(4) > 0;
        ls_text_format(text, "bottom: 'b%lld' ", (long long)i);
        if (recurrent)
            continue;
        ls_text_add(bottoms, i > 0 ? " " : "");
        /* Equal shapes now and then: otherwise few pairs would fit. */
        size_t first = bottoms->length;
        if (i > 0 && below(2) == 0 && !label) {
            struct ls_text copy = {0};
            ls_text_add_bytes(&copy, bottoms->data, strcspn(bottoms->data, " "));
            ls_text_add(bottoms, copy.data);
            ls_text_free(&copy);
        } else if (regions) {
            ls_text_format(bottoms, "%lldx5", (long long)samples);
        } else {
            add_shape(bottoms, samples, label ? axes : rank);
        }
        assert_true(bottoms->length > first);
    }
    int64_t tops = type->tops_max < 0 ? (n > 0 ? n : 1) : type->tops_min + below(2);
    tops -= filter ? 1 : 0;
    for (int64_t i = 0; i < tops && (type->tops_max < 0 || i < type->tops_max); i++)
        ls_text_format(text, "top: 't%lld' ", (long long)i);
    if (type->parameter == NULL || reads_data(type))
        return;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
        &lockstep__layer_parameter__descriptor, type->parameter);
    ls_text_format(text, "%s { ", type->parameter);
    const ProtobufCMessageDescriptor *message = field->descriptor;
    bool all = strcmp(type->type, "MemoryData") == 0; /* it needs them */
    /* fewer of many, or all is refused */
    add_fields(text, message, all ? 1 : message->n_fields > 8 ? 12 : 4);
    ls_text_add(text, "}");
}

/* What is drawn hardly ever fits these: an infogain loss wants a file, or a matrix without samples,
 * a loss of regions as many planes as its fields say, and attention channels for all heads. */
static bool is_particular(const struct ls_layer_type *type)
{
    return strcmp(type->type, "Attention") == 0 || strcmp(type->type, "InfogainLoss") == 0 ||
           strcmp(type->type, "RegionLoss") == 0 || strcmp(type->type, "PSROIPooling") == 0 ||
           strcmp(type->type, "MultiBoxLoss") == 0 ||
           strcmp(type->type, "DetectionEvaluate") == 0 ||
           strcmp(type->type, "EvalDetection") == 0 || strncmp(type->type, "Yolo", 4) == 0 ||
           strcmp(type->type, "Proposal") == 0 || strcmp(type->type, "DetectionOutput") == 0 ||
           strcmp(type->type, "PriorBox") == 0 || strcmp(type->type, "HDF5Output") == 0 ||
           strcmp(type->type, "BoxAnnotatorOHEM") == 0;
}

static bool is_possible(double number)
{
    return isfinite(number) && number >= 0;
}

static void check_accepted(struct one_layer *one, const char *text)
{
    const struct ls_layer *layer = one->layer;
    for (int i = 0; i < layer->tops; i++) {
        const struct ls_value *top = layer->top[i];
        if (top == NULL || !ls_shape_valid(&top->shape, false))
            fail_msg("%s: top %d is not possible", text, i);
        int axis = top->sample_axis;
        bool has_none = layer->type->mixes_samples || strcmp(layer->type->type, "Parameter") == 0 ||
                        strcmp(layer->type->type, "PriorBox") == 0;
        if (top->storage != LS_STORE_NONE && !has_none &&
            (axis < 0 || axis >= top->shape.rank ||
             top->shape.dim[axis] != one->graph->samples * top->rows))
            fail_msg("%s: top %d has lost its samples", text, i);
    }
    int status = run_backward(one);
    if (status != 0 && strstr(one->error.problems[0].message, "cannot backpropagate") == NULL &&
        strstr(one->error.problems[0].message, "has no gradient") == NULL)
        fail_msg("%s: backward: %s", text, one->error.problems[0].message);
    struct ls_cost cost = {0};
    if (layer->type->cost != NULL)
        layer->type->cost(layer, &cost);
    if (!is_possible(cost.forward_flops) || !is_possible(cost.backward_data_flops) ||
        !is_possible(cost.backward_weights_flops) || !is_possible(cost.forward_bytes) ||
        !is_possible(cost.backward_bytes))
        fail_msg("%s: impossible cost", text);
}

static void anything_goes(void **state)
{
    (void)state;
    size_t types = 0;
    int accepted[TYPES_MAX] = {0}, refused[TYPES_MAX] = {0};
    while (ls_layer_types[types] != NULL)
        types++;
    assert_true(types <= TYPES_MAX);
    for (int round = 0; round < ROUNDS; round++) {
        size_t which = (size_t)round % types;
        struct one_layer one;
        struct ls_text text = {0}, bottoms = {0};
        describe(&text, &bottoms, ls_layer_types[which]);
        open_layer(&one, text.data, bottoms.data != NULL ? bottoms.data : "", true);
        int status = run_forward(&one);
        if (status == 0) {
            accepted[which]++;
            check_accepted(&one, text.data);
        } else {
            refused[which]++;
            if (status != LOCKSTEP_DEFINITION || one.error.count < 1 ||
                strncmp(one.error.problems[0].place, "net.prototxt:1:", 15) != 0)
                fail_msg("%s: status %d at %s", text.data, status, one.error.problems[0].place);
        }
        ls_text_free(&text);
        ls_text_free(&bottoms);
        close_layer(&one);
    }
    /* The numbers are fixed: both ways must have been tried for every type that has two. */
    for (size_t i = 0; i < types; i++) {
        const struct ls_layer_type *type = ls_layer_types[i];
        bool always_fits = type->parameter == NULL &&
                           (type->bottoms_max != 2 || strcmp(type->type, "BatchReindex") == 0);
        if (accepted[i] == 0 && !reads_data(type) && !is_particular(type))
            fail_msg("%s was never accepted", type->type);
        if (refused[i] == 0 && !always_fits && strcmp(type->type, "Sigmoid") != 0 &&
            strcmp(type->type, "TanH") != 0 && strcmp(type->type, "GELU") != 0)
            fail_msg("%s was never refused", type->type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anything_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
