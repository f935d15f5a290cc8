/* Every number of a definition, with values that make no sense there: 0, -1, huge ones, NaN.
 *
 * The fields come from the schema's own descriptors, so that none is forgotten: in each message of
 * a few small solvers (their nets are inside) every scalar field is set to every hostile value, as
 * an only value and as a list. Each of these definitions must either train, or fail with a status
 * that fits and with a message that names its place; it must not crash, hang, or leak (the
 * sanitizers look at that).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "schema/fields.h"
#include "schema/text_format.h"
#include "support/support.h"

/* Definitions that ask for all memory must get an error, not the machine. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1500";
}

enum { SECONDS_MAX = 120, MEMORY_MAX = 3 }; /* of a case; in GiB */

#define SOLVER                                                                                     \
    "base_lr: 0.01 lr_policy: 'inv' gamma: 0.1 power: 0.75 weight_decay: 0.001 "                   \
    "max_iter: 4 random_seed: 3 solver_mode: CPU "

static const char *const solvers[] = {
    /* What most nets are made of. */
    SOLVER "momentum: 0.9 net_param { layer { name: 'd' type: 'Data' top: 'data' top: 'label' "
           "transform_param { scale: 0.01 crop_size: 8 } data_param { backend: SYNTHETIC "
           "synthetic_param { count: 40 height: 10 width: 10 } batch_size: 8 } } "
           "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' param { lr_mult: 1 } "
           "param { lr_mult: 2 } convolution_param { num_output: 4 kernel_size: 3 "
           "weight_filler { type: 'gaussian' std: 0.1 } bias_filler { type: 'constant' } } } "
           "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' relu_param { } } "
           "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' "
           "pooling_param { kernel_size: 2 stride: 2 } } "
           "layer { name: 'i' type: 'InnerProduct' bottom: 'p' top: 'i' inner_product_param { "
           "num_output: 10 weight_filler { type: 'xavier' } bias_filler { type: 'uniform' } } } "
           "layer { name: 'o' type: 'Dropout' bottom: 'i' top: 'i' dropout_param { } } "
           "layer { name: 'a' type: 'Accuracy' bottom: 'i' bottom: 'label' top: 'a' "
           "accuracy_param { } } "
           "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'label' top: 'l' "
           "loss_weight: 1 loss_param { } softmax_param { } } }",
    /* Normalisation, the other losses, joins. */
    SOLVER "type: 'Adam' momentum: 0.9 weight_average { } net_param { "
           "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { "
           "shape { dim: 8 dim: 3 dim: 6 dim: 6 } shape { dim: 8 dim: 4 } "
           "data_filler { type: 'uniform' } data_filler { type: 'constant' value: 1 } } } "
           "layer { name: 'n' type: 'LRN' bottom: 'x' top: 'n' lrn_param { } } "
           "layer { name: 'w' type: 'LRN' bottom: 'n' top: 'w' "
           "lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 } } "
           "layer { name: 'e' type: 'Eltwise' bottom: 'n' bottom: 'w' top: 'e' "
           "eltwise_param { coeff: 1 coeff: 0.5 } } "
           "layer { name: 'v' type: 'Concat' bottom: 'e' bottom: 'w' top: 'v' concat_param { } } "
           "layer { name: 'p' type: 'Pooling' bottom: 'v' top: 'p' "
           "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } } "
           "layer { name: 'f' type: 'Flatten' bottom: 'p' top: 'f' flatten_param { } } "
           "layer { name: 'i' type: 'InnerProduct' bottom: 'f' top: 'i' inner_product_param { "
           "num_output: 4 weight_filler { type: 'msra' } } } "
           "layer { name: 's' type: 'Sigmoid' bottom: 'i' top: 's' sigmoid_param { } } "
           "layer { name: 't' type: 'TanH' bottom: 'i' top: 't' tanh_param { } } "
           "layer { name: 'k' type: 'SigmoidCrossEntropyLoss' bottom: 't' bottom: 'y' top: 'k' "
           "loss_param { } } "
           "layer { name: 'l' type: 'EuclideanLoss' bottom: 's' bottom: 'y' top: 'l' "
           "loss_weight: 0.5 } }",
    /* A softmax apart from its loss; augmentation; a test net's worth of solver fields. */
    SOLVER "type: 'RMSProp' iter_size: 2 net_param { "
           "layer { name: 'd' type: 'Data' top: 'data' top: 'label' transform_param { "
           "mirror: true pad: 1 crop_size: 6 mean_value: 20 brightness: 3 contrast_lower: 0.9 "
           "contrast_upper: 1.1 } data_param { backend: SYNTHETIC shuffle: true "
           "synthetic_param { count: 40 height: 8 width: 8 } batch_size: 8 } } "
           "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { "
           "num_output: 4 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 "
           "weight_filler { type: 'positive_unitball' } } } "
           "layer { name: 'i' type: 'InnerProduct' bottom: 'c' top: 'i' inner_product_param { "
           "num_output: 10 weight_filler { type: 'gaussian' std: 0.1 sparse: 3 } } } "
           "layer { name: 's' type: 'Softmax' bottom: 'i' top: 's' softmax_param { } } "
           "layer { name: 'l' type: 'MultinomialLogisticLoss' bottom: 's' bottom: 'label' "
           "top: 'l' } }",
    /* Batch statistics, in the forms that there are, and those of samples. */
    SOLVER "momentum: 0.9 net_param { "
           "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { "
           "shape { dim: 8 dim: 4 dim: 4 dim: 4 } shape { dim: 8 } "
           "data_filler { type: 'uniform' } data_filler { value: 1 } } } "
           "layer { name: 'b' type: 'BatchNorm' bottom: 'x' top: 'b' param { name: 'm' } "
           "param { name: 'v' } param { name: 'f' } batch_norm_param { scale_bias: true "
           "scale_filler { value: 1 } bias_filler { } } } "
           "layer { name: 'n' type: 'BN' bottom: 'b' top: 'n' bn_param { slope_filler { value: 1 } "
           "bias_filler { } } } "
           "layer { name: 'e' type: 'BN' bottom: 'n' top: 'e' bn_param { scale_filler { value: 1 } "
           "shift_filler { } } } "
           "layer { name: 'c' type: 'Scale' bottom: 'e' top: 'e' scale_param { bias_term: true "
           "filler { value: 1 } bias_filler { } } } "
           "layer { name: 's' type: 'Bias' bottom: 'e' top: 's' bias_param { filler { } } } "
           "layer { name: 'g' type: 'GroupNorm' bottom: 's' top: 'g' group_norm_param { groups: 2 "
           "scale_filler { value: 1 } bias_filler { } } } "
           "layer { name: 'h' type: 'LayerNorm' bottom: 'g' top: 'h' layer_norm_param { "
           "scale_filler { value: 1 } bias_filler { } } } "
           "layer { name: 'j' type: 'InstanceNorm' bottom: 'h' top: 'j' instance_norm_param { "
           "affine: true scale_filler { value: 1 } bias_filler { } } } "
           "layer { name: 'k' type: 'MVN' bottom: 'j' top: 'k' mvn_param { } } "
           "layer { name: 'i' type: 'InnerProduct' bottom: 'k' top: 'i' inner_product_param { "
           "num_output: 4 weight_filler { type: 'msra' } } } "
           "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'y' top: 'l' "
           "loss_param { class_weight: 1 class_weight: 1 class_weight: 2 class_weight: 1 "
           "label_smoothing: 0.1 normalization: WEIGHTS } } }",
    /* Shapes, planes of other sizes, functions. */
    SOLVER "micro_batch: 2 net_param { "
           "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { "
           "shape { dim: 8 dim: 4 dim: 4 dim: 4 } shape { dim: 8 dim: 5 dim: 5 } "
           "data_filler { type: 'uniform' min: 1 max: 2 } data_filler { value: 1 } } } "
           "layer { name: 'u' type: 'Deconvolution' bottom: 'x' top: 'u' convolution_param { "
           "num_output: 4 kernel_size: 4 stride: 2 pad: 1 weight_filler { type: 'bilinear' } "
           "bias_filler { } } } "
           "layer { name: 'z' type: 'Interp' bottom: 'u' top: 'z' interp_param { height: 6 "
           "width: 6 } } "
           "layer { name: 'w' type: 'Interp' bottom: 'z' top: 'w' interp_param { zoom_factor: 2 "
           "shrink_factor: 2 pad_end: -1 } } "
           "layer { name: 'q' type: 'Interp' bottom: 'w' bottom: 'z' top: 'q' } "
           "layer { name: 'v' type: 'Interp' bottom: 'q' top: 'v' interp_param { height: 5 "
           "width: 5 } } "
           "layer { name: 'c' type: 'Crop' bottom: 'q' bottom: 'v' top: 'c' crop_param { "
           "offset: 1 offset: 0 } } "
           "layer { name: 'p' type: 'PReLU' bottom: 'c' top: 'p' prelu_param { filler { "
           "value: 0.25 } } } "
           "layer { name: 'o' type: 'Power' bottom: 'p' top: 'o' power_param { shift: 0.5 } } "
           "layer { name: 'e' type: 'ELU' bottom: 'o' top: 'e' elu_param { } } "
           "layer { name: 'f' type: 'Swish' bottom: 'e' top: 'f' swish_param { } } "
           "layer { name: 'g' type: 'Clip' bottom: 'f' top: 'g' clip_param { min: -5 max: 5 } } "
           "layer { name: 'h' type: 'Exp' bottom: 'g' top: 'h' exp_param { scale: 0.1 } } "
           "layer { name: 'i' type: 'Log' bottom: 'h' top: 'i' log_param { shift: 1 } } "
           "layer { name: 't' type: 'Tile' bottom: 'i' top: 't' tile_param { tiles: 2 } } "
           "layer { name: 's' type: 'Slice' bottom: 't' top: 's' top: 'r' slice_param { "
           "slice_point: 4 } } "
           "layer { name: 'j' type: 'Reshape' bottom: 's' top: 'j' reshape_param { "
           "shape { dim: 0 dim: 4 dim: -1 } } } "
           "layer { name: 'k' type: 'Reshape' bottom: 'j' top: 'k' reshape_param { axis: 1 "
           "num_axes: 2 shape { dim: 4 dim: 5 dim: 5 } } } "
           "layer { name: 'm' type: 'Reduction' bottom: 'r' top: 'm' loss_weight: 0.1 "
           "reduction_param { operation: MEAN coeff: 0.5 } } "
           "layer { name: 'n' type: 'ArgMax' bottom: 'k' top: 'n' propagate_down: false "
           "argmax_param { axis: 1 } } "
           "layer { name: 'b' type: 'Threshold' bottom: 'n' top: 'b' threshold_param { } } "
           "layer { name: 'a' type: 'MeanIoU' bottom: 'k' bottom: 'y' top: 'a' mean_iou_param { } }"
           "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'k' bottom: 'y' top: 'l' "
           "loss_param { ignore_label: 3 } } }",
};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

/* ---- Running a definition -------------------------------------------------------------------- */

/* The current case, so that the log of a crash names it. */
static char current[300];
static long cases, trained, silent;

static void too_long(int number)
{
    static const char text[] = "a definition took too long: ";
    (void)number;
    ssize_t ignored = write(2, text, sizeof text - 1);
    ignored = write(2, current, strlen(current));
    (void)ignored;
    abort();
}

/* Every problem of a definition says where it is. All that do not are listed. */
static void check_text(const char *text, int status)
{
    if (text[0] == '\0')
        fail_msg("%s: status %d without a word", current, status);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        size_t length = strcspn(line, "\n");
        if (status != LOCKSTEP_DEFINITION ||
            memmem(line, length, "solver.prototxt", strlen("solver.prototxt")) != NULL)
            continue;
        silent++;
        printf("%s: no place in: %s\n", current, text);
    }
}

static int train(const char *path, struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = 2;
    options.snapshot_prefix = ls_test_path("s");
    int status = lockstep_solver_load(path, NULL, 0, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0)
        status = lockstep_trainer_step(trainer, 2, error);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    return status;
}

static void run(const ProtobufCMessage *solver)
{
    struct ls_text text = {0};
    ls_text_write(solver, &text);
    assert_false(text.failed);
    const char *path = ls_test_path("solver.prototxt");
    ls_test_write(path, text.data, text.length);
    ls_text_free(&text);
    struct lockstep_error *error = lockstep_error_new();
    alarm(SECONDS_MAX);
    int status = train(path, error);
    alarm(0);
    cases++;
    trained += status == 0;
    if (getenv("LOCKSTEP_VERBOSE") != NULL)
        printf("%s: %d %s\n", current, status, lockstep_error_text(error));
    if (status != 0 && status != LOCKSTEP_DEFINITION && status != LOCKSTEP_DATA &&
        status != LOCKSTEP_DIVERGED && status != LOCKSTEP_RESOURCE)
        fail_msg("%s: status %d: %s", current, status, lockstep_error_text(error));
    if (status != 0)
        check_text(lockstep_error_text(error), status);
    lockstep_error_free(error);
}

/* ---- Hostile values -------------------------------------------------------------------------- */

static const double numbers[] = {0,
                                 -1,
                                 1,
                                 2,
                                 5,
                                 1000,
                                 1e-45,
                                 0.5,
                                 0x1p31 - 1,
                                 -0x1p31,
                                 0x1p32 - 1,
                                 0x1p62,
                                 1e30,
                                 3.4e38,
                                 (double)INFINITY,
                                 (double)-INFINITY,
                                 (double)NAN};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Whether a number is one of the field's type; then it is stored at `value`. */
static bool store(const ProtobufCFieldDescriptor *field, double number, void *value)
{
    bool whole = isfinite(number) && number == rint(number);
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)value = (float)number;
        return true;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)value = number;
        return true;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)value = number == 1;
        return number == 0 || number == 1;
    case PROTOBUF_C_TYPE_INT32:
        if (whole && number >= -0x1p31 && number < 0x1p31)
            *(int32_t *)value = (int32_t)number;
        return whole && number >= -0x1p31 && number < 0x1p31;
    case PROTOBUF_C_TYPE_UINT32:
        if (whole && number >= 0 && number < 0x1p32)
            *(uint32_t *)value = (uint32_t)number;
        return whole && number >= 0 && number < 0x1p32;
    case PROTOBUF_C_TYPE_INT64:
        if (whole && fabs(number) < 0x1p63)
            *(int64_t *)value = (int64_t)number;
        return whole && fabs(number) < 0x1p63;
    case PROTOBUF_C_TYPE_UINT64:
        if (whole && number >= 0 && number < 0x1p63)
            *(uint64_t *)value = (uint64_t)number;
        return whole && number >= 0 && number < 0x1p63;
    default:
        return false;
    }
}

struct walk {
    struct ls_definition *definition;
    bool own; /* only what belongs to layer types: the rest has been tried with others */
    char path[200];
};

/* Whether the fields of a message are tried. */
static bool is_tried(const struct walk *walk, const ProtobufCMessage *message)
{
    static const ProtobufCMessageDescriptor *const common[] = {
        &lockstep__solver_parameter__descriptor,     &lockstep__net_parameter__descriptor,
        &lockstep__layer_parameter__descriptor,      &lockstep__dummy_data_parameter__descriptor,
        &lockstep__filler_parameter__descriptor,     &lockstep__param_spec__descriptor,
        &lockstep__convolution_parameter__descriptor};
    for (size_t i = 0; walk->own && i < sizeof common / sizeof *common; i++)
        if (message->descriptor == common[i])
            return false;
    return true;
}

/* Sets the field to `count` copies of *value, runs, and takes it back. */
static void try_value(struct walk *walk, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, const void *value, int count,
                      const char *what)
{
    size_t size = message->descriptor->sizeof_message;
    void *before = malloc(size);
    assert_non_null(before);
    memcpy(before, message, size);
    ls_field_clear(message, field);
    for (int i = 0; i < count; i++)
        assert_true(ls_field_put(walk->definition->arena, message, field, value));
    snprintf(current, sizeof current, "%s.%s = %d x %s", walk->path, field->name, count, what);
    run(walk->definition->message);
    memcpy(message, before, size);
    free(before);
}

static void try_field(struct walk *walk, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
    union {
        double d;
        int64_t i;
    } value;
    char what[40];
    bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
    for (int i = 0; i < NUMBERS; i++) {
        if (!store(field, numbers[i], &value))
            continue;
        snprintf(what, sizeof what, "%.9g", numbers[i]);
        try_value(walk, message, field, &value, 1, what);
        if (list) {
            try_value(walk, message, field, &value, 2, what);
            try_value(walk, message, field, &value, 11, what);
        }
    }
    if (field->type != PROTOBUF_C_TYPE_ENUM)
        return;
    const ProtobufCEnumDescriptor *type = field->descriptor;
    for (unsigned i = 0; i < type->n_values; i++) {
        int number = type->values[i].value;
        try_value(walk, message, field, &number, 1, type->values[i].name);
    }
}

static void visit(struct walk *walk, ProtobufCMessage *message, const char *name)
{
    size_t length = strlen(walk->path);
    bool tried = is_tried(walk, message);
    if (walk->own && message->descriptor == &lockstep__dummy_data_parameter__descriptor)
        return;
    snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length > 0 ? "." : "", name);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES)
            continue;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            if (tried)
                try_field(walk, message, field);
            continue;
        }
        size_t count = ls_field_count(message, field);
        for (size_t k = 0; k < count; k++) {
            char part[100];
            snprintf(part, sizeof part, "%s[%zu]", field->name, k);
            visit(walk, *(ProtobufCMessage *const *)ls_field_at(message, field, k), part);
        }
    }
    walk->path[length] = '\0';
}

static void sweep(int index, bool own)
{
    struct ls_error error = {0};
    struct walk walk = {.own = own};
    const ProtobufCMessageDescriptor *type = &lockstep__solver_parameter__descriptor;
    char text[300];
    int status = ls_text_read("base", solvers[index], strlen(solvers[index]), type,
                              &walk.definition, &error);
    if (status != 0) {
        ls_error_format(&error, text, sizeof text);
        fail_msg("%s", text);
    }
    cases = trained = silent = 0;
    snprintf(current, sizeof current, "as it is");
    run(walk.definition->message);
    assert_int_equal(trained, 1); /* else nothing would be tested */
    visit(&walk, walk.definition->message, "solver");
    ls_definition_free(walk.definition);
    printf("%ld definitions, %ld of them train\n", cases, trained);
    assert_int_equal(silent, 0);
    assert_true(cases > 100 && trained > cases / 10 && trained < cases);
}

static void test_classifier(void **state)
{
    (void)state;
    sweep(0, false);
}

static void test_other_layers(void **state)
{
    (void)state;
    sweep(1, false);
}

static void test_augmentation(void **state)
{
    (void)state;
    sweep(2, false);
}

static void test_statistics(void **state)
{
    (void)state;
    sweep(3, true);
}

static void test_shapes(void **state)
{
    (void)state;
    sweep(4, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classifier),   cmocka_unit_test(test_other_layers),
        cmocka_unit_test(test_augmentation), cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_shapes),
    };
    signal(SIGALRM, too_long);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any limit */
    struct rlimit limit = {(rlim_t)MEMORY_MAX << 30, (rlim_t)MEMORY_MAX << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
