/* Scores of GPT-2, BERT and ViT as the transformers package computes them, from weights that it
 * wrote: tools/reference/transformers.py made the files of tests/compat/names. The networks are
 * those of examples/, with small extents.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

enum { SAMPLES = 3, INPUTS_MAX = 3 };

/* The numbers of the next line of a text, of which there are `count`. */
static float *read_line(char **text, size_t count)
{
    float *numbers = calloc(count, sizeof *numbers);
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtof(*text, &end);
        assert_ptr_not_equal(end, *text);
        *text = end;
    }
    assert_int_equal(**text, '\n');
    (*text)++;
    return numbers;
}

static struct lockstep_model *load(const char *name, const char *map, int workers)
{
    char net[80], weights[80];
    struct lockstep_model_options options;
    struct lockstep_model *model;
    struct lockstep_error *error = lockstep_error_new();
    snprintf(net, sizeof net, "tests/compat/names/%s.prototxt", name);
    snprintf(weights, sizeof weights, "tests/compat/names/%s.safetensors", name);
    lockstep_model_options_init(&options);
    options.map = map;
    options.workers = workers;
    if (lockstep_model_load(ls_test_source(net), ls_test_source(weights), &options, &model,
                            error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

static void check_scores(const char *name, int workers)
{
    char path[80];
    struct lockstep_model *model = load(name, name, workers);
    struct lockstep_error *error = lockstep_error_new();
    snprintf(path, sizeof path, "tests/compat/names/%s.txt", name);
    size_t size;
    char *text = ls_test_read(ls_test_source(path), &size), *at = text;
    float *inputs[INPUTS_MAX] = {NULL};
    size_t count = lockstep_model_input_count(model);
    size_t scores = SAMPLES * lockstep_model_output_size(model);
    assert_true(count <= INPUTS_MAX);
    for (size_t i = 0; i < count; i++)
        inputs[i] = read_line(&at, SAMPLES * lockstep_model_input_size(model, i));
    float *wanted = read_line(&at, scores), *found = calloc(scores, sizeof *found), largest = 0;
    assert_int_equal(*at, '\0');
    if (lockstep_model_predict_inputs(model, (const float *const *)inputs, SAMPLES, found, error) !=
        0)
        fail_msg("%s", lockstep_error_text(error));
    for (size_t i = 0; i < scores; i++)
        largest = fmaxf(largest, fabsf(wanted[i]));
    for (size_t i = 0; i < scores; i++)
        if (!(fabsf(found[i] - wanted[i]) <= 1e-4F * largest))
            fail_msg("%s: score %zu is %g, not %g", name, i, (double)found[i], (double)wanted[i]);
    for (size_t i = 0; i < count; i++)
        free(inputs[i]);
    free(wanted);
    free(found);
    free(text);
    lockstep_error_free(error);
    lockstep_model_free(model);
}

static void scores_are_those_of_transformers(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers += 2) {
        check_scores("gpt2", workers);
        check_scores("bert", workers);
        check_scores("vit", workers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scores_are_those_of_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
