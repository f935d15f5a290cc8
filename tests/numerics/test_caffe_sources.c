/* Training on the data layers of Caffe that have a message of their own: the same bits on any
 * number of workers and ranks, and from a snapshot; and those of a Data layer that says the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <hdf5.h>

#include "data/datum.h"
#include "support/leveldb_files.h"
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

/* 31 records of 7 numbers in two files, one of them compressed; labels 0 to 2. */
static void write_arrays(void)
{
    for (int part = 0; part < 2; part++) {
        hsize_t dim[] = {part == 0 ? 20 : 11, 7}, chunk[] = {5, 7};
        hid_t file = H5Fcreate(ls_test_path(part == 0 ? "part0.h5" : "part1.h5"), H5F_ACC_TRUNC,
                               H5P_DEFAULT, H5P_DEFAULT);
        for (int array = 0; array < 2; array++) {
            float numbers[20 * 7];
            for (int i = 0; i < (int)dim[0] * (array == 0 ? 7 : 1); i++)
                numbers[i] = array == 1 ? (float)(i % 3) : (float)((i / 7 % 3 + i % 7) % 3) - 1;
            hid_t made = H5Pcreate(H5P_DATASET_CREATE);
            hid_t space = H5Screate_simple(array == 0 ? 2 : 1, dim, NULL);
            if (part == 1)
                H5Pset_chunk(made, array == 0 ? 2 : 1, chunk);
            if (part == 1)
                H5Pset_deflate(made, 4);
            hid_t set = H5Dcreate2(file, array == 0 ? "data" : "label",
                                   part == 0 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE, space, H5P_DEFAULT,
                                   made, H5P_DEFAULT);
            assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >=
                        0);
            H5Dclose(set);
            H5Sclose(space);
            H5Pclose(made);
        }
        H5Fclose(file);
    }
    ls_test_write_text(ls_test_path("arrays.txt"), "part0.h5\npart1.h5\n");
}

/* Windows of the pictures: those on their left are background. */
static void write_windows(void)
{
    struct ls_text text = {0};
    for (int i = 0; i < PICTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "w%d.png", i);
        write_picture(file_at("pictures", name), 20, 30 + i, 3, 60 * (i % 3));
        ls_text_format(&text, "# %d\n%s\n3\n20\n%d\n3\n", i, file_at("pictures", name), 30 + i);
        ls_text_format(&text, "%d 0.8 12 2 25 17\n%d 0.6 14 0 29 12\n2 0.1 0 0 9 12\n",
                       1 + (i % 3 == 0), 1 + (i % 3 == 0));
    }
    ls_test_write_text(ls_test_path("windows.txt"), text.data);
    ls_text_free(&text);
}

static void write_database(void)
{
    enum { SIDE = 10 };
    struct leveldb_writer writer;
    struct ls_buffer room = {0};
    leveldb_begin(&writer, ls_test_path("pictures_db"), true, 65536);
    for (int i = 0; i < PICTURES; i++) {
        uint8_t pixels[SIDE * SIDE];
        char key[16];
        const int32_t label = i % 3;
        static const int64_t shape[3] = {1, SIDE, SIDE};
        struct ls_record made = {.count = 2};
        size_t size;
        for (int k = 0; k < SIDE * SIDE; k++)
            pixels[k] = picture_pixel(k / SIDE, k % SIDE, label, i);
        ls_record_set_image(&made, LS_U8, shape, pixels);
        made.tensor[1].data = &label;
        const uint8_t *datum = ls_datum_write(&made, true, &room, &size);
        snprintf(key, sizeof key, "%08d", i);
        leveldb_add(&writer, key, datum, size);
    }
    leveldb_end(&writer);
    ls_buffer_free(&room);
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

static void arrays_of_hdf5_files(void **state)
{
    (void)state;
    check_training(ls_test_net("caffe_arrays", NULL), 0.9);
}

/* As in Caffe, where each data layer begins again when it comes to its end. */
static void data_layers_of_different_sizes(void **state)
{
    (void)state;
    check_training(ls_test_net("caffe_two_arrays", NULL), 0.9);
}

static void databases_of_leveldb(void **state)
{
    (void)state;
    check_training(ls_test_net("caffe_database", NULL), 0.9);
}

static void windows_of_pictures(void **state)
{
    (void)state;
    check_training(ls_test_net("caffe_windows", NULL), 0.9);
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
    write_arrays();
    write_database();
    write_windows();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_files_of_pictures),
        cmocka_unit_test(arrays_of_hdf5_files),
        cmocka_unit_test(data_layers_of_different_sizes),
        cmocka_unit_test(databases_of_leveldb),
        cmocka_unit_test(windows_of_pictures),
        cmocka_unit_test(image_data_is_data_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
