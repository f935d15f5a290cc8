/* Nets over volumes (three spatial axes). The bytes of a training do not depend on the number of
 * workers, on any instruction set, with uneven micro-batches, batch norm over the whole batch,
 * and a small last batch. The weights survive both file formats.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sys/wait.h>
#include <unistd.h>

#include "trainings/training.h"
#include "ops/cpu/isa.h"

enum { SAMPLES = 69 }; /* two batches of 32 and one of 5 */

static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 5\n"
        "iter_size: 2 micro_batch: 5 test_interval: 100 test_initialization: false\n"
        "net_param { %s }\n",
        ls_test_net("volumes", NULL));
}

static const char *isa; /* that this process is pinned to */

static void any_workers_give_same_bits_over_volumes(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver();
    check_workers(solver, isa, 4);
    lockstep_solver_free(solver);
}

/* The weights in `from`, saved as `name`. */
static struct bytes save_again(const char *from, const char *name)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    const char *path = ls_test_path(name);
    lockstep_model_options_init(&options);
    options.isa = isa;
    if (lockstep_model_load(ls_test_path("solver.prototxt"), from, &options, &model, error) != 0 ||
        lockstep_model_save(model, path, error) != 0)
        fail_msg("%s from %s: %s", name, from, lockstep_error_text(error));
    lockstep_model_free(model);
    lockstep_error_free(error);
    return read_bytes(path);
}

static void weights_of_volumes_survive_both_file_formats(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver();
    struct training *training = start_on(solver, 1, isa, NULL, NULL);
    step(training, 2);
    struct bytes whole = snapshot(training);
    finish(training);
    lockstep_solver_free(solver);
    free(whole.data);
    struct bytes caffe = save_again(ls_test_path("snapshot.safetensors"), "a.caffemodel");
    struct bytes own = save_again(ls_test_path("a.caffemodel"), "b.safetensors");
    check_same(caffe, save_again(ls_test_path("b.safetensors"), "c.caffemodel"),
               "a caffemodel through safetensors");
    check_same(own, save_again(ls_test_path("c.caffemodel"), "d.safetensors"),
               "safetensors through a caffemodel");
    free(caffe.data);
    free(own.data);
}

static int set_up(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    return 0;
}

/* A process computes with one instruction set: each one has a process. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_over_volumes),
        cmocka_unit_test(weights_of_volumes_survive_both_file_formats),
    };
    int failed = 0;
    for (int i = LS_ISA_SSE41; i < LS_ISAS; i++) {
        if (!ls_cpu_isa_supported((enum ls_isa)i))
            continue;
        isa = ls_cpu_isa_name((enum ls_isa)i);
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            exit(cmocka_run_group_tests_name(isa, tests, set_up, NULL));
        failed |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    return failed;
}
