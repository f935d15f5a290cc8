/* The library's interface, without a library: inputs of predictions.
 *
 * Paths are taken as they are, "list" is a list of three with labels 1, 0 and 7, "folder" two
 * pictures and three files that are none. What begins with "nan" has a prediction with a NaN. With
 * fake.picture_status what begins with "bad" cannot be read. The prediction is 0.2, 0.7 and 0.1 for
 * all others.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fake_inner.h"

enum { INPUTS_MAX = 16 };

struct lockstep_inputs {
    const char *names[INPUTS_MAX];
    int labels[INPUTS_MAX]; /* -1: none */
    int64_t count, left_out;
};

struct lockstep_inputs *lockstep_inputs_new(void)
{
    return fake_make(sizeof(struct lockstep_inputs));
}

void lockstep_inputs_free(struct lockstep_inputs *inputs)
{
    fake_unmake(inputs);
}

static void add(struct lockstep_inputs *inputs, const char *name, int label)
{
    inputs->names[inputs->count] = name;
    inputs->labels[inputs->count++] = label;
}

int lockstep_inputs_add(struct lockstep_inputs *inputs, const char *path,
                        struct lockstep_error *error)
{
    if (strcmp(path, "nothing") == 0)
        return fake_answer(LOCKSTEP_DATA, error);
    if (strcmp(path, "folder") != 0) {
        add(inputs, path, -1);
        return 0;
    }
    add(inputs, "folder/a.png", -1);
    add(inputs, "folder/b.png", -1);
    inputs->left_out += 3;
    return 0;
}

int lockstep_inputs_add_list(struct lockstep_inputs *inputs, const char *path,
                             struct lockstep_error *error)
{
    if (strcmp(path, "list") != 0)
        return fake_answer(LOCKSTEP_DATA, error);
    add(inputs, "x.png", 1);
    add(inputs, "y.png", 0);
    add(inputs, "z.png", 7);
    return 0;
}

int64_t lockstep_inputs_count(const struct lockstep_inputs *inputs)
{
    return inputs->count;
}

int64_t lockstep_inputs_left_out(const struct lockstep_inputs *inputs)
{
    return inputs->left_out;
}

int lockstep_model_predict_each(struct lockstep_model *model, const struct lockstep_inputs *inputs,
                                int (*tell)(void *user, const struct lockstep_predicted *predicted),
                                void *user, struct lockstep_error *error)
{
    static const float output[3] = {0.2f, 0.7f, 0.1f}, odd[3] = {0.2f, NAN, 0.1f};
    (void)model;
    for (int64_t i = 0; i < inputs->count; i++) {
        const bool bad = fake.picture_status != 0 && strncmp(inputs->names[i], "bad", 3) == 0;
        struct lockstep_predicted predicted = {.index = i,
                                               .computed = i + 1,
                                               .name = inputs->names[i],
                                               .has_label = inputs->labels[i] >= 0,
                                               .label = inputs->labels[i],
                                               .output = bad ? NULL
                                                         : strncmp(inputs->names[i], "nan", 3) == 0
                                                             ? odd
                                                             : output,
                                               .status = bad ? fake.picture_status : 0,
                                               .problem = bad ? "bad.png: damaged PNG" : NULL};
        if (tell(user, &predicted) != 0)
            return fake_answer(LOCKSTEP_STOPPED, error);
    }
    return 0;
}
