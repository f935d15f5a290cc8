/* Options of programs that were compiled with an older lockstep.h, with a newer one, or that
 * never set struct_size.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/options.h"

#include <string.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

struct present {
    size_t struct_size;
    double rate;
    const char *name;
    int64_t added, added_later;
};

static void fields_that_an_older_struct_lacks_are_zero(void **state)
{
    (void)state;
    static const size_t ends[] = {offsetof(struct present, added),
                                  offsetof(struct present, added_later), sizeof(struct present)};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const struct present given = {
            .struct_size = ends[i], .rate = 0.5, .name = "a", .added = 7, .added_later = 8};
        struct present mine;
        memset(&mine, 0xff, sizeof mine);
        assert_int_equal(LS_API_OPTIONS(mine, &given, "present_init", NULL), 0);
        assert_int_equal(mine.struct_size, sizeof mine);
        assert_true(mine.rate == 0.5);
        assert_string_equal(mine.name, "a");
        assert_int_equal(mine.added, i > 0 ? 7 : 0);
        assert_int_equal(mine.added_later, i > 1 ? 8 : 0);
    }
}

static void sizes_of_no_struct_fail(void **state)
{
    (void)state;
    static const size_t wrong[] = {0, 1, sizeof(size_t), sizeof(struct present) - 1};
    static struct ls_error error;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct present given = {.struct_size = wrong[i]};
        struct present mine;
        ls_error_clear(&error);
        assert_int_equal(LS_API_OPTIONS(mine, &given, "present_init", &error), LOCKSTEP_USAGE);
        assert_string_equal(error.problems[0].hint, "call present_init first");
    }
}

/* A newer struct may ask for what this version does not know. */
static void larger_sizes_fail(void **state)
{
    (void)state;
    const struct present given = {.struct_size = sizeof given + 8};
    struct present mine;
    static struct ls_error error;
    assert_int_equal(LS_API_OPTIONS(mine, &given, "present_init", &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message, "have a size of 48 bytes"));
    assert_non_null(strstr(error.problems[0].message, "have 40: they are a newer version's"));
}

/* Through the public interface: what lies behind the older struct is not read. */
static void a_job_opens_with_the_options_of_an_older_version(void **state)
{
    (void)state;
    struct lockstep_job_options options;
    struct lockstep_job *job;
    lockstep_job_options_init(&options);
    options.struct_size = offsetof(struct lockstep_job_options, timeout) + sizeof options.timeout;
    memset((char *)&options + options.struct_size, 0xff, sizeof options - options.struct_size);
    assert_int_equal(lockstep_job_open(&options, &job, NULL), 0);
    assert_int_equal(lockstep_job_close(job, 0, NULL), 0);
    lockstep_job_options_init(&options);
    options.struct_size += sizeof(void *);
    assert_int_equal(lockstep_job_open(&options, &job, NULL), LOCKSTEP_USAGE);
}

/* ---- Arguments that are NULL ----------------------------------------------------------------- */

static void names_argument(int status, struct lockstep_error *error, const char *words)
{
    assert_int_equal(status, LOCKSTEP_USAGE);
    if (strstr(lockstep_error_text(error), words) == NULL)
        fail_msg("'%s' does not say '%s'", lockstep_error_text(error), words);
}

static void a_model_needs_its_arguments(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    lockstep_model_options_init(&options);
    names_argument(lockstep_model_load(NULL, "w", &options, &model, error), error,
                   "the argument 'path' is NULL");
    names_argument(lockstep_model_load("net", NULL, &options, &model, error), error,
                   "the argument 'weights' is NULL");
    names_argument(lockstep_model_load("net", "w", NULL, &model, error), error,
                   "the options are NULL: lockstep_model_options_init");
    assert_null(model);
    names_argument(lockstep_model_save(NULL, "w", error), error, "'model' is NULL");
    names_argument(lockstep_convert_weights(NULL, "w", NULL, NULL, error), error, "'from'");
    names_argument(lockstep_convert_weights("w", NULL, NULL, NULL, error), error, "'to'");
    names_argument(lockstep_convert_weight_names("a", "b", NULL, NULL, NULL, error), error,
                   "'map'");
    lockstep_error_free(error);
}

static void models_of_others_need_their_arguments(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_import_options import;
    struct lockstep_onnx_options onnx;
    struct lockstep_prune_options prune;
    int64_t size, masked;
    lockstep_import_options_init(&import);
    lockstep_onnx_options_init(&onnx);
    lockstep_prune_options_init(&prune);
    names_argument(lockstep_import_onnx(NULL, "p", &import, NULL, NULL, error), error, "'path'");
    names_argument(lockstep_import_onnx("m", NULL, &import, NULL, NULL, error), error, "'prefix'");
    names_argument(lockstep_import_onnx("m", "p", NULL, NULL, NULL, error), error,
                   "the options are NULL: lockstep_import_options_init");
    names_argument(lockstep_model_export_onnx(NULL, "m", &onnx, error), error, "'model'");
    names_argument(lockstep_prune(NULL, "p", &prune, &size, &masked, error), error, "'weights'");
    names_argument(lockstep_prune("w", NULL, &prune, &size, &masked, error), error, "'path'");
    assert_int_equal(lockstep_import_onnx(NULL, NULL, NULL, NULL, NULL, NULL), LOCKSTEP_USAGE);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_an_older_struct_lacks_are_zero),
        cmocka_unit_test(sizes_of_no_struct_fail),
        cmocka_unit_test(larger_sizes_fail),
        cmocka_unit_test(a_job_opens_with_the_options_of_an_older_version),
        cmocka_unit_test(a_model_needs_its_arguments),
        cmocka_unit_test(models_of_others_need_their_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
