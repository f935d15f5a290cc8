/* Inputs of predictions: arrays, lists and folders, in their order; what cannot be read.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/npy_files.h"
#include "support/support.h"

enum { SAMPLES = 300, SIZE = 12 };

/* Twice the input. The convolution is there to have weights. */
static const char net[] =
    "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [1, 3, 2, 2] } } }\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
    "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
    "layer { name: 's' type: 'Silence' bottom: 'c' }\n"
    "layer { name: 'y' type: 'Power' bottom: 'data' top: 'y' power_param { scale: 2 } }\n";

/* What was told of the inputs. */
struct told {
    int64_t count, bad, stop_behind;
    char names[8][64], problem[512];
    int labels[8];
    bool wrong;
};

static int take(void *user, const struct lockstep_predicted *predicted)
{
    struct told *told = user;
    const int64_t i = told->count++;
    told->wrong = told->wrong || predicted->index != i || predicted->computed <= i;
    if (i < 8) {
        snprintf(told->names[i], sizeof told->names[i], "%s", predicted->name);
        told->labels[i] = predicted->has_label ? predicted->label : -1;
    }
    if (predicted->output == NULL) {
        told->wrong = told->wrong || predicted->status != LOCKSTEP_DATA;
        snprintf(told->problem, sizeof told->problem, "%s", predicted->problem);
        told->bad++;
    } else {
        for (int k = 0; k < SIZE; k++)
            told->wrong = told->wrong || predicted->output[k] != 2 * (float)(i * SIZE + k);
    }
    return told->count == told->stop_behind;
}

static struct lockstep_model *load(int workers)
{
    static const char header[] =
        "{\"c.weight\":{\"dtype\":\"F32\",\"shape\":[1,3,1,1],\"data_offsets\":[0,12]}}";
    char bytes[8 + sizeof header - 1 + 12] = {(char)(sizeof header - 1)};
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    memcpy(bytes + 8, header, sizeof header - 1);
    ls_test_write(ls_test_path("net.safetensors"), bytes, sizeof bytes);
    ls_test_write_text(ls_test_path("net.prototxt"), net);
    lockstep_model_options_init(&options);
    options.workers = workers;
    if (lockstep_model_load(ls_test_path("net.prototxt"), ls_test_path("net.safetensors"), &options,
                            &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

static void write_samples(const char *name, int64_t first, int64_t count)
{
    static float numbers[SAMPLES * SIZE];
    char shape[64];
    for (int64_t i = 0; i < count * SIZE; i++)
        numbers[i] = (float)(first * SIZE + i);
    snprintf(shape, sizeof shape, "(%lld, 3, 2, 2)", (long long)count);
    write_npy(ls_test_path(name), "<f4", shape, numbers, (size_t)(count * SIZE) * sizeof *numbers);
}

/* Several arrays and several groups, on few workers and on many. */
static void samples_come_in_their_order(void **state)
{
    (void)state;
    write_samples("a.npy", 0, 7);
    write_samples("b.npy", 7, SAMPLES - 8);
    write_samples("c.npy", SAMPLES - 1, 1);
    for (int workers = 1; workers <= 5; workers += 2) {
        struct lockstep_error *error = lockstep_error_new();
        struct lockstep_inputs *inputs = lockstep_inputs_new();
        struct lockstep_model *model = load(workers);
        struct told told = {.count = 0};
        assert_int_equal(lockstep_inputs_add(inputs, ls_test_path("a.npy"), error), 0);
        assert_int_equal(lockstep_inputs_add(inputs, ls_test_path("b.npy"), error), 0);
        assert_int_equal(lockstep_inputs_add(inputs, ls_test_path("c.npy"), error), 0);
        assert_int_equal(lockstep_inputs_count(inputs), SAMPLES);
        assert_int_equal(lockstep_model_predict_each(model, inputs, take, &told, error), 0);
        assert_true(told.count == SAMPLES && told.bad == 0 && !told.wrong);
        told = (struct told){.stop_behind = 3};
        assert_int_equal(lockstep_model_predict_each(model, inputs, take, &told, error),
                         LOCKSTEP_STOPPED);
        assert_int_equal(told.count, 3);
        assert_string_equal(lockstep_error_text(error), "stopped after 3 inputs");
        lockstep_model_free(model);
        lockstep_inputs_free(inputs);
        lockstep_error_free(error);
    }
}

static void refuses(const char *file, const char *expect)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_inputs *inputs = lockstep_inputs_new();
    struct lockstep_model *model = load(2);
    struct told told = {.count = 0};
    int status = lockstep_inputs_add(inputs, ls_test_path(file), error);
    if (status == 0)
        status = lockstep_model_predict_each(model, inputs, take, &told, error);
    assert_int_equal(status, LOCKSTEP_DATA);
    assert_int_equal(told.count, 0);
    if (strstr(lockstep_error_text(error), expect) == NULL)
        fail_msg("%s: %s", file, lockstep_error_text(error));
    lockstep_model_free(model);
    lockstep_inputs_free(inputs);
    lockstep_error_free(error);
}

static void arrays_that_do_not_fit(void **state)
{
    (void)state;
    double numbers[2 * SIZE] = {0.1};
    write_npy(ls_test_path("double.npy"), "<f8", "(2, 3, 2, 2)", numbers, sizeof numbers);
    refuses("double.npy", "which fp32 does not have. hint: save the array as float32");
    write_npy(ls_test_path("cut.npy"), "<f4", "(9, 3, 2, 2)", numbers, sizeof numbers);
    refuses("cut.npy", "is cut off: 192 bytes of numbers where 432 should be");
    write_npy(ls_test_path("shape.npy"), "<f4", "(2, 2, 3, 2)", numbers, 96);
    refuses("shape.npy", "but the net's input has");
    write_npy(ls_test_path("none.npy"), "<f4", "(0, 3, 2, 2)", numbers, 0);
    refuses("none.npy", "has no samples");
    write_npy(ls_test_path("huge.npy"), "<f4", "(4611686018427387904, 3, 2, 2)", numbers, 96);
    refuses("huge.npy", "has impossible extents");
    ls_test_write_text(ls_test_path("text.npy"), "no array at all");
    refuses("text.npy", "is no .npy file");
}

/* Lines of a list, with labels and without; a file whose name looks like a label's line. */
static void lists_have_paths_and_labels(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_inputs *inputs = lockstep_inputs_new();
    struct lockstep_model *model = load(2);
    struct told told = {.count = 0};
    ls_test_write_text(ls_test_path("no picture 7"), "nothing");
    ls_test_write_text(ls_test_path("list.txt"),
                       "\xEF\xBB\xBFone.png 3\r\n\n  \ntwo.png\t-1\nno picture 7\n"
                       "far off.png 99999999999\nlast.png");
    assert_int_equal(lockstep_inputs_add_list(inputs, ls_test_path("list.txt"), error), 0);
    assert_int_equal(lockstep_inputs_count(inputs), 5);
    assert_int_equal(lockstep_model_predict_each(model, inputs, take, &told, error), 0);
    assert_true(told.count == 5 && told.bad == 5 && !told.wrong);
    static const char *const names[] = {"one.png", "two.png", "no picture 7",
                                        "far off.png 99999999999", "last.png"};
    static const int labels[] = {3, -1, -1, -1, -1};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(told.names[i], names[i]);
        assert_int_equal(told.labels[i], labels[i]);
    }
    assert_non_null(strstr(told.problem, "last.png: cannot open: No such file"));
    for (int i = 0; i < 2; i++) {
        ls_test_write_text(ls_test_path("bad.txt"), i == 0 ? "" : "\n \n");
        assert_int_equal(lockstep_inputs_add_list(inputs, ls_test_path("bad.txt"), error),
                         LOCKSTEP_DATA);
        assert_non_null(strstr(lockstep_error_text(error), "lists no pictures"));
    }
    ls_test_write(ls_test_path("bad.txt"), "a.png\nb\0c\n", 10);
    assert_int_equal(lockstep_inputs_add_list(inputs, ls_test_path("bad.txt"), error),
                     LOCKSTEP_DATA);
    assert_non_null(strstr(lockstep_error_text(error), "bad.txt:2: is not a text"));
    assert_int_equal(lockstep_inputs_add_list(inputs, "/dev/zero", error), LOCKSTEP_DATA);
    assert_int_equal(lockstep_inputs_add_list(inputs, "/", error), LOCKSTEP_DATA);
    assert_non_null(strstr(lockstep_error_text(error), "/: is a folder"));
    assert_int_equal(lockstep_inputs_add_list(inputs, "/no/such", error), LOCKSTEP_DATA);
    assert_int_equal(lockstep_inputs_add(inputs, "", error), LOCKSTEP_USAGE);
    lockstep_model_free(model);
    lockstep_inputs_free(inputs);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_in_their_order),
        cmocka_unit_test(arrays_that_do_not_fit),
        cmocka_unit_test(lists_have_paths_and_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
