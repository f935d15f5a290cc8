/* Nets over volumes (three spatial axes): the bytes of a training do not depend on the number of
 * workers, on any instruction set, with micro-batches that leave a smaller one at the end, batch
 * norm over the whole batch, and a small last batch; and its weights go through files of
 * both kinds.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sys/wait.h>
#include <unistd.h>

#include "numerics/training.h"
#include "ops/cpu/isa.h"

enum { SAMPLES = 69 }; /* two batches of 32 and one of 5 */

/* A U-Net of two levels over volumes of 4 x 8 x 8: a picture of 16 x 16 each. */
static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 5\n"
        "iter_size: 2 micro_batch: 5 test_interval: 100 test_initialization: false\n"
        "net_param {\n"
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 32\n"
        "    last_batch: PARTIAL shuffle: true } }\n"
        "layer { name: 'volume' type: 'Reshape' bottom: 'data' top: 'volume'\n"
        "  reshape_param { shape { dim: [0, 1, 4, 8, 8] } } }\n"
        "layer { name: 'c1' type: 'Convolution' bottom: 'volume' top: 'c1' convolution_param {\n"
        "  num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'norm' type: 'BatchNorm' bottom: 'c1' top: 'c1' }\n"
        "layer { name: 'scale' type: 'Scale' bottom: 'c1' top: 'c1'\n"
        "  scale_param { bias_term: true } }\n"
        "layer { name: 'relu' type: 'ReLU' bottom: 'c1' top: 'c1' }\n"
        "layer { name: 'deep' type: 'Convolution' bottom: 'c1' top: 'deep' convolution_param {\n"
        "  num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'pool' type: 'Pooling' bottom: 'deep' top: 'pool'\n"
        "  pooling_param { pool: MAX kernel_size: [2, 3, 2] stride: 2 } }\n"
        "layer { name: 'c2' type: 'Convolution' bottom: 'pool' top: 'c2' convolution_param {\n"
        "  num_output: 20 kernel_size: [1, 3, 3] pad: [0, 1, 1] group: 4\n"
        "  weight_filler { type: 'msra' } } }\n"
        "layer { name: 'norm2' type: 'BatchNorm' bottom: 'c2' top: 'norm2' }\n"
        "layer { name: 'prelu' type: 'PReLU' bottom: 'norm2' top: 'norm2' }\n"
        "layer { name: 'drop' type: 'Dropout' bottom: 'norm2' top: 'drop' }\n"
        "layer { name: 'up' type: 'Deconvolution' bottom: 'drop' top: 'up' convolution_param {\n"
        "  num_output: 16 kernel_size: 2 stride: 2 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'up_relu' type: 'ReLU' bottom: 'up' top: 'up' }\n"
        "layer { name: 'cut' type: 'Crop' bottom: 'c1' bottom: 'up' top: 'cut' }\n"
        "layer { name: 'sum' type: 'Eltwise' bottom: 'up' bottom: 'cut' top: 'sum' }\n"
        "layer { name: 'join' type: 'Concat' bottom: 'sum' bottom: 'up' top: 'join' }\n"
        "layer { name: 'mean' type: 'Pooling' bottom: 'join' top: 'mean'\n"
        "  pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }\n"
        "layer { name: 'score' type: 'InnerProduct' bottom: 'mean' top: 'score'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label'\n"
        "  top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"));
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
