/* Options of sources: their tables, and refusals with their hints.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/options_inner.h"
#include "data_trial.h"
#include "schema/fields.h"

/* Fields of data_param that are for any source; all others belong to tables. */
static const char *const common[] = {
    "batch_size", "backend", "prefetch",  "shuffle",       "last_batch",
    "split",      "cache",   "cache_mb",  "scale",         "mean_file",
    "crop_size",  "mirror",  "rand_skip", "on_bad_record", "tensor",
};

static bool is_common(const char *name)
{
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (strcmp(common[i], name) == 0)
            return true;
    return false;
}

/* The field that an option names, in a message of its type in which nothing is set; free it. */
static struct ls_option_field empty_field(const char *name, ProtobufCMessage **message)
{
    Lockstep__DataParameter data = LOCKSTEP__DATA_PARAMETER__INIT;
    Lockstep__LayerParameter layer = LOCKSTEP__LAYER_PARAMETER__INIT;
    layer.data_param = &data;
    struct ls_option_field outer = ls_option_field(&layer, name, true);
    assert_non_null(outer.descriptor);
    const ProtobufCMessageDescriptor *type =
        strchr(name, '.') != NULL ? outer.descriptor->descriptor : data.base.descriptor;
    *message = calloc(1, type->sizeof_message);
    protobuf_c_message_init(type, *message);
    return (struct ls_option_field){*message, ls_option_field(&layer, name, false).descriptor};
}

/* That an option of a kind can be read from a field of a type. */
static bool suits(enum ls_option_kind kind, const ProtobufCFieldDescriptor *field)
{
    switch (kind) {
    case LS_OPTION_FILES:
        return field->type == PROTOBUF_C_TYPE_STRING && ls_field_is_repeated(field);
    case LS_OPTION_FILE:
        return field->type == PROTOBUF_C_TYPE_STRING && !ls_field_is_repeated(field);
    case LS_OPTION_UNSIGNED:
        return field->type == PROTOBUF_C_TYPE_UINT64;
    case LS_OPTION_INTEGER:
        return field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_UINT64 ||
               field->type == PROTOBUF_C_TYPE_INT32;
    case LS_OPTION_NUMBER:
        return field->type == PROTOBUF_C_TYPE_FLOAT;
    case LS_OPTION_FLAG:
        return field->type == PROTOBUF_C_TYPE_BOOL;
    case LS_OPTION_CHOICE:
        return field->type == PROTOBUF_C_TYPE_ENUM;
    }
    return false;
}

static void check_option(const struct ls_source_type *type, const struct ls_option *o)
{
    ProtobufCMessage *message;
    struct ls_option_field field = empty_field(o->name, &message);
    if (field.descriptor == NULL)
        fail_msg("%s: there is no field '%s'", type->name, o->name);
    if (!suits(o->kind, field.descriptor))
        fail_msg("%s: '%s' has another type", type->name, o->name);
    if (o->kind != LS_OPTION_FILES && ls_option_number(field) != o->fallback)
        fail_msg("%s: the default of '%s' is not the schema's", type->name, o->name);
    if (o->kind == LS_OPTION_INTEGER && !(o->most > 0 && o->most < 0x1p53))
        fail_msg("%s: nothing limits '%s' to whole numbers of a double", type->name, o->name);
    assert_true(o->offset < type->options_size);
    assert_true(o->help != NULL && o->help[0] != '\0');
    free(message);
}

static void tables_agree_with_the_schema(void **state)
{
    (void)state;
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        for (const struct ls_option *o = ls_source_types[i]->options; o->name != NULL; o++)
            check_option(ls_source_types[i], o);
}

/* A field that no table has would be ignored. */
static void every_field_belongs_to_a_source_or_to_all(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *type = &lockstep__data_parameter__descriptor;
    for (unsigned f = 0; f < type->n_fields; f++) {
        const char *name = type->fields[f].name;
        bool found = is_common(name);
        for (size_t i = 0; ls_source_types[i] != NULL; i++)
            for (const struct ls_option *o = ls_source_types[i]->options; o->name != NULL; o++)
                found = found || (strncmp(o->name, name, strlen(name)) == 0 &&
                                  (o->name[strlen(name)] == '\0' || o->name[strlen(name)] == '.'));
        if (!found)
            fail_msg("no source reads data_param.%s, and it is not a field of all", name);
    }
}

/* Each field of each other source is refused, with its place and the sources that read it. */
static void fields_of_other_sources_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"data_param { backend: LMDB source: '.'\nnew_height: 3 }",
         "trial.prototxt:2:1: layer 'd': new_height is for IMAGES and IMAGE_PAIRS"},
        {"data_param { backend: IMAGES source: '.'\nforce_encoded_color: true }",
         "trial.prototxt:2:1: layer 'd': force_encoded_color is for LEVELDB and LMDB. hint: use "
         "is_color"},
        {"data_param { backend: CIFAR source: '.'\nsynthetic_param { } }",
         "trial.prototxt:2:1: layer 'd': synthetic_param is for SYNTHETIC"},
        {"data_param { backend: IMAGES source: '.' }\ntransform_param { force_gray: true }",
         "trial.prototxt:2:19: layer 'd': force_gray is for encoded records of LEVELDB and LMDB. "
         "hint: "
         "use is_color"},
        {"data_param { backend: SYNTHETIC\nsource: '.' }",
         "trial.prototxt:2:1: layer 'd': data of backend SYNTHETIC has no source"},
        {"data_param { backend: SYNTHETIC synthetic_param {\nchannels: 65 } }",
         "trial.prototxt:2:1: layer 'd': channels is 65; it must lie in 1 .. 64"},
        {"data_param { backend: IMAGES source: '.' new_height: 5\nnew_width: 65537 }",
         "trial.prototxt:2:1: layer 'd': new_width is 65537; it must lie in 0 .. 65536"},
    };
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ls_source *source;
        ls_error_clear(error);
        assert_int_equal(trial_source(&source, error, "%s", bad[i].text), LOCKSTEP_DEFINITION);
        assert_null(source);
        assert_says(error, bad[i].words);
        assert_int_equal(error->count, 1);
    }
    free(error);
}

/* What says nothing is no mistake: Caffe's definitions may have it. */
static void zeros_that_are_defaults_are_accepted(void **state)
{
    (void)state;
    struct ls_source *source;
    assert_int_equal(trial_source(&source, NULL,
                                  "data_param { backend: SYNTHETIC force_encoded_color: false "
                                  "new_height: 0 root_folder: '' label_clip: 0 } transform_param "
                                  "{ force_gray: false }"),
                     0);
    ls_source_close(source);
}

/* ---- Help ---- */

static void append_line(void *user, const char *line)
{
    ls_text_add(user, line);
    ls_text_add(user, "\n");
}

static void help_has_every_source_and_option(void **state)
{
    (void)state;
    struct ls_text all = {0};
    assert_int_equal(ls_source_help(NULL, append_line, &all, NULL), 0);
    for (size_t i = 0; ls_source_types[i] != NULL; i++) {
        struct ls_text text = {0};
        assert_non_null(strstr(all.data, ls_source_types[i]->name));
        assert_non_null(strstr(all.data, ls_source_types[i]->summary));
        assert_int_equal(ls_source_help(ls_source_types[i]->name, append_line, &text, NULL), 0);
        for (const struct ls_option *o = ls_source_types[i]->options; o->name != NULL; o++) {
            assert_non_null(strstr(text.data, o->name));
            assert_non_null(strstr(text.data, o->help));
        }
        for (const char *line = text.data; *line != '\0'; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 100);
        ls_text_free(&text);
    }
    ls_text_free(&all);
    assert_int_equal(ls_source_help("BERKELEYDB", append_line, &all, NULL), LOCKSTEP_USAGE);
}

/* docs/data.md has a table of all options; this is what it must be. */
static void documentation_has_the_tables(void **state)
{
    (void)state;
    struct ls_text text = {0};
    ls_text_add(&text, "| source | fields of `data_param` | |\n|---|---|---|\n");
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        for (const struct ls_option *o = ls_source_types[i]->options; o->name != NULL; o++)
            ls_text_format(&text, "| %s | `%s` | %s |\n",
                           o == ls_source_types[i]->options ? ls_source_types[i]->name : "",
                           o->name, o->help);
    size_t size;
    char *docs = ls_test_read(LOCKSTEP_SOURCE_DIR "/docs/data.md", &size);
    if (strstr(docs, text.data) == NULL) {
        fputs(text.data, stdout);
        fail_msg("docs/data.md does not have this table");
    }
    free(docs);
    ls_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_agree_with_the_schema),
        cmocka_unit_test(every_field_belongs_to_a_source_or_to_all),
        cmocka_unit_test(fields_of_other_sources_are_refused),
        cmocka_unit_test(zeros_that_are_defaults_are_accepted),
        cmocka_unit_test(help_has_every_source_and_option),
        cmocka_unit_test(documentation_has_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
