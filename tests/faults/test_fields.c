/* Every number of a definition, with values that make no sense there: 0, -1, huge ones, NaN.
 *
 * The fields come from the schema's own descriptors, so that none is forgotten. In each message
 * of a few small solvers with their nets, every scalar field is set to every hostile value, as a
 * single value and as a list. Each of these definitions must either train, or fail with a status
 * that fits and a message that names its place; it must not crash, hang, or leak (sanitizers
 * check that).
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
#include "support/nets.h"
#include "support/support.h"

/* Definitions that ask for all memory must get an error, not the machine. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1500";
}

enum { SECONDS_MAX = 120, MEMORY_MAX = 3 }; /* of a case; in GiB */

static const struct {
    const char *settings, *net; /* a file of tests/nets */
} solvers[] = {
    {"momentum: 0.9", "fields_common"},
    {"type: 'Adam' momentum: 0.9 weight_average { }", "fields_losses"},
    {"type: 'RMSProp' iter_size: 2", "fields_augmented"},
    {"momentum: 0.9", "fields_norms"},
    {"micro_batch: 2", "fields_shapes"},
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
    const char *solver =
        ls_test_text("base_lr: 0.01 lr_policy: 'inv' gamma: 0.1 power: 0.75 weight_decay: 0.001\n"
                     "max_iter: 4 random_seed: 3 solver_mode: CPU %s net_param { %s }\n",
                     solvers[index].settings, ls_test_net(solvers[index].net, NULL));
    int status = ls_text_read("base", solver, strlen(solver), type, &walk.definition, &error);
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

static void hostile_numbers_in_a_classifier(void **state)
{
    (void)state;
    sweep(0, false);
}

static void hostile_numbers_in_losses_and_joins(void **state)
{
    (void)state;
    sweep(1, false);
}

static void hostile_numbers_in_augmentation(void **state)
{
    (void)state;
    sweep(2, false);
}

static void hostile_numbers_in_norms(void **state)
{
    (void)state;
    sweep(3, true);
}

static void hostile_numbers_in_shapes_and_functions(void **state)
{
    (void)state;
    sweep(4, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_numbers_in_a_classifier),
        cmocka_unit_test(hostile_numbers_in_losses_and_joins),
        cmocka_unit_test(hostile_numbers_in_augmentation),
        cmocka_unit_test(hostile_numbers_in_norms),
        cmocka_unit_test(hostile_numbers_in_shapes_and_functions),
    };
    signal(SIGALRM, too_long);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any limit */
    struct rlimit limit = {(rlim_t)MEMORY_MAX << 30, (rlim_t)MEMORY_MAX << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
