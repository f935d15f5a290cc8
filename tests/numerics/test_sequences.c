/* Numbers that layers of sequences are told by data: what names nothing ends a training with a
 * message, before weights change, on both devices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "support/nets.h"
#include "trainings/training.h"

/* `numbers` is [3, 5], `one` is [3]; both are filled with `filler`. */
static const struct {
    const char *layer, *filler, *text;
} cases[] = {
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: 4", NULL},
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: 3.5", NULL},
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: 5",
     "entry 0 of 'numbers' names place 5, but there are 5, 0 to 4"},
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: -1", "names place -1"},
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: nan", "names place nan"},
    {"type: 'Gather' bottom: 'x' bottom: 'numbers'", "value: 1e30", "names place 1e+30"},
    {"type: 'EmbeddingBag' bottom: 'ones' bottom: 'one' embedding_bag_param { num_output: 2 "
     "input_dim: 9 }",
     "value: 5", NULL},
    {"type: 'EmbeddingBag' bottom: 'ones' bottom: 'one' embedding_bag_param { num_output: 2 "
     "input_dim: 9 }",
     "value: 6", "entry 0 of 'one' is a length of 6, but a bag has 0 to 5 indices"},
    {"type: 'EmbeddingBag' bottom: 'ones' bottom: 'one' embedding_bag_param { num_output: 2 "
     "input_dim: 9 }",
     "value: nan", "entry 0 of 'one' is a length of nan"},
};

static struct lockstep_solver *make_solver(const char *layer, const char *filler)
{
    return load_solver(
        "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 net_param { layer { name: 'd' type: "
        "'DummyData' top: 'data' top: 'numbers' top: 'one' top: 'ones' dummy_data_param { "
        "shape { dim: [3, 5] } shape { dim: [3, 5] } shape { dim: 3 } shape { dim: [3, 5] } "
        "data_filler { value: 1 } data_filler { %s } data_filler { %s } data_filler { value: 1 } "
        "} } layer { name: 'v' type: 'Embed' bottom: 'data' top: 'x' embed_param { num_output: 4 "
        "input_dim: 2 weight_filler { type: 'xavier' } } } layer { name: 'it' %s top: 'y' } "
        "layer { name: 'mean' type: 'Reduction' bottom: 'y' top: 's' loss_weight: 1 } "
        "layer { name: 'rest' type: 'Reduction' bottom: 'x' top: 'r' loss_weight: 1 } }",
        filler, filler, layer);
}

static void numbers_that_name_nothing_are_told(void **state)
{
    static const char *const devices[] = {"cpu", "reference"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < 2; d++) {
            struct lockstep_solver *solver = make_solver(cases[i].layer, cases[i].filler);
            struct lockstep_error *error = lockstep_error_new();
            struct lockstep_trainer *trainer = NULL;
            struct lockstep_train_options options;
            lockstep_train_options_init(&options);
            options.workers = 2;
            options.device = devices[d];
            assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), 0);
            const int status = lockstep_trainer_step(trainer, 1, error);
            if (status != (cases[i].text != NULL ? LOCKSTEP_DATA : 0) ||
                (cases[i].text != NULL &&
                 strstr(lockstep_error_text(error), cases[i].text) == NULL))
                fail_msg("%s, %s: %s", cases[i].layer, cases[i].filler, lockstep_error_text(error));
            lockstep_trainer_free(trainer);
            lockstep_error_free(error);
            lockstep_solver_free(solver);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_name_nothing_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
