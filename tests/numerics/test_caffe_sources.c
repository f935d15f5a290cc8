/* Training on the data layers of Caffe that have a message of their own: the same bits on any
 * number of workers and ranks, and from a snapshot; and those of a Data layer that says the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"
#include "unit/data/picture_files.h"

enum { PICTURES = 23 };

/* Pictures of several sizes, colours and formats, with spaces in their names. */
static void write_pictures(void)
{
    FILE *list = fopen(ls_test_path("pictures.txt"), "w");
    for (int i = 0; i < PICTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "number %d.%s", i, i % 2 == 0 ? "png" : "jpg");
        write_picture(file_at("pictures", name), 13 + i, 40 - i, i % 5 == 0 ? 1 : 3, 60 * (i % 3));
        fprintf(list, "%s %d\n", file_at("pictures", name), i % 3);
    }
    fclose(list);
}

static struct lockstep_solver *make_solver(const char *net, const char *fields)
{
    return load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: "
                       "3 %s\nnet_param { %s }\n",
                       fields, net);
}

/* The bytes of a training on workers, ranks and from a snapshot; its loss goes down. */
static void check_training(const char *net, double part)
{
    struct lockstep_solver *solver = make_solver(net, "micro_batch: 2");
    check_workers(solver, NULL, 9);
    check_resumed(solver, 3, 5);
    struct bytes expected = run_alone(solver, 5);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 2, 1},
                          .updates = 5,
                          .dynamic = dynamic == 1};
        check_job(&job, expected, dynamic ? "work queue" : "static");
    }
    free(expected.data);
    check_learns(solver, 60, part);
    lockstep_solver_free(solver);
}

static void list_files_of_pictures(void **state)
{
    (void)state;
    check_training(ls_test_net("caffe_pictures", NULL), 0.7);
}

/* What ImageData says, in the words of Data. */
static void image_data_is_data_of_images(void **state)
{
    (void)state;
    char *net = strdup(ls_test_net("caffe_pictures", NULL));
    struct lockstep_solver *solver = make_solver(net, "");
    struct bytes own = run_alone(solver, 8);
    lockstep_solver_free(solver);
    struct ls_text other = {0};
    const char *type = strstr(net, "\"ImageData\""), *message = strstr(net, "image_data_param {");
    assert_true(type != NULL && message > type);
    ls_text_add_bytes(&other, net, (size_t)(type - net));
    ls_text_add(&other, "\"Data\"");
    type += strlen("\"ImageData\"");
    ls_text_add_bytes(&other, type, (size_t)(message - type));
    ls_text_add(&other, "data_param { backend: IMAGES antialias: false ");
    ls_text_add(&other, message + strlen("image_data_param {"));
    solver = make_solver(other.data, "");
    struct bytes plain = run_alone(solver, 8);
    check_same(own, plain, "ImageData and Data");
    lockstep_solver_free(solver);
    free(own.data);
    ls_text_free(&other);
    free(net);
}

int main(void)
{
    write_pictures();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_files_of_pictures),
        cmocka_unit_test(image_data_is_data_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
