/* Winograd's algorithm against PyTorch: losses, gradients and weights of every case of
 * tests/compat/cases/winograd.cases, on one worker, two and three. Where oneDNN lacks it, each case
 * is an error of the definition that says so.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/case_data.h"
#include "support/case_file.h"
#include "support/support.h"
#include "support/winograd.h"

static void as_pytorch(void **state)
{
    case_run(*state, 2, NULL, NULL);
}

static void must_be_refused(void **state)
{
    const struct case_item *item = *state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    const char *folder = ls_test_path(item->name);
    if (mkdir(folder, 0700) != 0 || chdir(folder) != 0)
        fail_msg("cannot make %s", folder);
    case_write_files(item->text);
    ls_test_write_text("solver.prototxt", item->text);
    assert_int_equal(lockstep_solver_load("solver.prototxt", NULL, 0, &solver, error), 0);
    lockstep_train_options_init(&options);
    options.workers = 1;
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                     LOCKSTEP_DEFINITION);
    assert_null(trainer);
    assert_non_null(strstr(lockstep_error_text(error), "does not have Winograd's algorithm"));
    assert_non_null(strstr(lockstep_error_text(error), "algorithm"));
    assert_non_null(strstr(lockstep_error_text(error), "AUTO"));
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    struct case_list list;
    case_list_read("winograd", &list);
    struct CMUnitTest *tests = calloc(list.count, sizeof *tests);
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < list.count; i++)
        tests[i] =
            (struct CMUnitTest){.name = list.items[i].name,
                                .test_func = winograd_is_there() ? as_pytorch : must_be_refused,
                                .initial_state = &list.items[i]};
    int failed = _cmocka_run_group_tests("winograd", tests, list.count, NULL, NULL);
    case_list_free(&list);
    free(tests);
    return failed;
}
