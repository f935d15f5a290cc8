/* Nets with state per sample, for tests. See trainings/state_nets.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/state_nets.h"

#include "engine/pass.h"
#include "support/npy_files.h"
#include "trainings/data_files.h"
#include "trainings/state_layers.h"

enum { PICTURES = 61 };

float number_of(int64_t record, int i)
{
    return (float)((record * 37 + i * 11) % 101 - 50);
}

int set_up_states(void **state)
{
    (void)state;
    float x[RECORDS * SAMPLE];
    int32_t label[RECORDS];
    use_state_layers();
    for (int r = 0; r < RECORDS; r++) {
        label[r] = r * 7 % 4;
        for (int i = 0; i < SAMPLE; i++)
            x[r * SAMPLE + i] = number_of(r, i);
    }
    write_npy(ls_test_path("x.npy"), "<f4", ls_test_text("(%d, %d, %d)", RECORDS, STEPS, FEATURES),
              x, sizeof x);
    write_npy(ls_test_path("label.npy"), "<i4", ls_test_text("(%d,)", RECORDS), label,
              sizeof label);
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), PICTURES, 12);
    write_idx_pair(ls_test_path("test-images"), ls_test_path("test-labels"), 37, 12);
    return setenv("TMPDIR", ls_test_directory(), 1);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

struct lockstep_solver *make_counting(int axis, const char *batch, const char *settings)
{
    return load_solver(
        "base_lr: 0.0001 lr_policy: 'fixed' max_iter: 90 random_seed: 3 test_iter: 0\n"
        "test_interval: 100 test_initialization: false %s\n"
        "net_param {\n"
        "  layer { name: 'd' type: 'Data' top: 'x' top: 'label' data_param { backend: NPY %s\n"
        "    source: '%s' source: '%s' tensor { sample_axis: %d } tensor { } } }\n"
        "  layer { name: 'sum' type: 'RunningSum' bottom: 'x' top: 'sum' }\n"
        "  layer { name: 'figure' type: 'Power' bottom: 'sum' top: 'figure'\n"
        "    power_param { scale: 2 } loss_weight: 0.5 }\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 'sum' top: 'ip'\n"
        "    inner_product_param { axis: 2 num_output: 2 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'part' type: 'Slice' bottom: 'ip' top: 'a' top: 'b'\n"
        "    slice_param { axis: 2 } }\n"
        "  layer { name: 'loss' type: 'EuclideanLoss' bottom: 'a' bottom: 'b' top: 'loss' }\n"
        "}\n",
        settings, batch, ls_test_path("x.npy"), ls_test_path("label.npy"), axis);
}

const struct state_net state_nets[STATE_NETS] = {
    {"plain", "micro_batch: 4", "batch_size: 24",
     "layer { name: 'm' type: 'ReLU' bottom: 'pool' top: 'middle' }"},
    {"iter_size, data that end", "micro_batch: 4 iter_size: 2",
     "batch_size: 17 last_batch: PARTIAL",
     "layer { name: 'm' type: 'Dropout' bottom: 'pool' top: 'middle' }"},
    {"statistics of the batch", "micro_batch: 4 iter_size: 2", "batch_size: 23",
     "layer { name: 'n' type: 'BatchNorm' bottom: 'pool' top: 'n' }\n"
     "layer { name: 'm' type: 'ReLU' bottom: 'n' top: 'middle' }"},
    {"gathered products", "micro_batch: 3 iter_size: 2", "batch_size: 20",
     "layer { name: 'g' type: 'InnerProduct' bottom: 'pool' top: 'g'\n"
     "  inner_product_param { num_output: 16384 weight_filler { type: 'xavier' } } }\n"
     "layer { name: 'm' type: 'TanH' bottom: 'g' top: 'middle' }"},
};

const char *data_of(const char *phase, const char *prefix, const char *fields)
{
    return ls_test_text(
        "layer { name: '%s' type: 'Data' top: 'data' top: 'label' include { phase: %s }\n"
        "  transform_param { scale: 0.0078 } data_param { backend: IDX source: '%s/%simages'\n"
        "    label_source: '%s/%slabels' %s } }\n",
        phase, phase, ls_test_directory(), prefix, ls_test_directory(), prefix, fields);
}

struct lockstep_solver *solver_of(const struct state_net *net)
{
    const char *data = ls_test_text("%s%s", data_of("TRAIN", "", net->data),
                                    data_of("TEST", "test-", "batch_size: 10"));
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 test_iter: 0\n"
        "test_interval: 2 test_initialization: false %s\n"
        "net_param { %s }\n",
        net->settings,
        ls_test_net("sample_states", LS_TEST_VALUES({"data", data}, {"first", net->between})));
}

const struct ls_sample_states *states_of(const struct training *training)
{
    return training->trainer->inner->train_pass->states;
}

void add_update(const struct ls_batching *batching, int64_t update, float *sums)
{
    struct ls_batch batches[4];
    int count = ls_batching_update(batching, update, batches);
    for (int b = 0; b < count; b++)
        for (int64_t s = 0; s < batches[b].count; s++)
            for (int i = 0; i < SAMPLE; i++)
                sums[(b * batching->batch + s) * SAMPLE + i] +=
                    number_of((batches[b].ordinal + s) % RECORDS, i);
}

void check_sums(const struct training *training, int axis, const float *sums, const char *what)
{
    const struct ls_sample_states *states = states_of(training);
    const void *data;
    assert_int_equal(states->count, 1);
    assert_string_equal(states->tensors[0].name, "sum.sum");
    assert_int_equal(states->tensors[0].shape.dim[axis], states->rows);
    assert_int_equal(ls_sample_states_read(states, 0, &data, NULL), 0);
    const float *found = data;
    for (int64_t row = 0; row < states->rows; row++)
        for (int i = 0; i < SAMPLE; i++) {
            int64_t step = i / FEATURES, feature = i % FEATURES;
            int64_t at =
                axis == 0 ? row * SAMPLE + i : (step * states->rows + row) * FEATURES + feature;
            if (found[at] != sums[row * SAMPLE + i])
                fail_msg("%s: row %lld has %g, not %g", what, (long long)row, (double)found[at],
                         (double)sums[row * SAMPLE + i]);
        }
}
