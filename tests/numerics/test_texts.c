/* Data of sequences, trained on: windows, documents filled up, in buckets or packed, streams that
 * go on from update to update, records of different lengths. All give the same bits on any number
 * of workers and ranks, and from snapshots; what fills samples up changes no loss.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/npy_files.h"
#include "trainings/ranks.h"

enum { IDS = 7, TEXT = 997, UPDATES = 5 };

/* A net over [N, T] ids with targets of the same shape, and its data. */
struct kind {
    const char *name, *settings, *data;
    bool recurrent;
    const char *tops;
};

static const char three[] = "tensor { name: 'tokens' } tensor { name: 'target' }";
static const char streams[] = "tensor { name: 'tokens' sample_axis: 1 } tensor { name: 'target' "
                              "sample_axis: 1 } tensor { name: 'cont' sample_axis: 1 }";

static const struct kind kinds[] = {
    {"windows in a random order", "micro_batch: 2",
     "backend: TEXT source: '%s/text.txt' split: 'train:0.9' batch_size: 11 shuffle: true "
     "text_param { window: 13 stride: 1 }",
     false, three},
    {"documents filled up", "micro_batch: 2 iter_size: 2",
     "backend: TOKENS source: '%s/ids.raw' batch_size: 9 shuffle: true tokens_param { window: 20 "
     "separator: 0 documents: WHOLE vocab_size: 7 }",
     false, three},
    {"documents in buckets", "micro_batch: 1",
     "backend: TOKENS source: '%s/ids.raw' batch_size: 9 shuffle: true tokens_param { window: 20 "
     "separator: 0 documents: WHOLE lengths: BUCKET bucket: 6 }",
     false, three},
    {"documents in buckets, to the end", "micro_batch: 3 iter_size: 2",
     "backend: TOKENS source: '%s/ids.raw' batch_size: 13 shuffle: true last_batch: PARTIAL "
     "tokens_param { window: 20 separator: 0 documents: WHOLE lengths: BUCKET bucket: 4 }",
     false, three},
    {"documents packed", "micro_batch: 1",
     "backend: TEXT source: '%s/text.txt' batch_size: 8 text_param { window: 30 separator: 97 "
     "documents: WHOLE lengths: PACK }",
     false, three},
    {"streams", "micro_batch: 1",
     "backend: TEXT source: '%s/text.txt' batch_size: 8 text_param { window: 10 separator: 98 "
     "order: STREAMS }",
     true, streams},
    {"streams over several batches", "micro_batch: 2 iter_size: 2",
     "backend: TOKENS source: '%s/ids.raw' batch_size: 6 tokens_param { window: 9 order: STREAMS "
     "streams: 12 }",
     true, streams},
    {"records in buckets", "micro_batch: 1",
     "backend: RECORDS source: '%s/x.npy' source: '%s/x.offsets.npy' source: '%s/y.npy' source: "
     "'%s/y.offsets.npy' batch_size: 10 shuffle: true records_param { lengths: BUCKET bucket: 5 }",
     false, "tensor { name: 'x' } tensor { name: 'y' pad: -1 }"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int number_at(int i)
{
    return (i * i / 5 + i / 3) % IDS;
}

static int set_up(void **state)
{
    (void)state;
    char text[TEXT + 1] = "";
    unsigned char raw[2 * TEXT] = {0};
    uint16_t x[TEXT];
    int32_t y[TEXT], offsets[41] = {0};
    for (int i = 0; i < TEXT; i++) {
        text[i] = (char)('a' + number_at(i));
        raw[2 * i] = (unsigned char)number_at(i);
        x[i] = (uint16_t)number_at(i);
        y[i] = number_at(i + 1);
    }
    for (int i = 0; i < 40; i++)
        offsets[i + 1] = offsets[i] + 1 + i * 7 % 17;
    const int rows = offsets[40];
    ls_test_write(ls_test_path("text.txt"), text, TEXT);
    ls_test_write(ls_test_path("ids.raw"), raw, sizeof raw);
    const char *shape = ls_test_text("(%d,)", rows);
    write_npy(ls_test_path("x.npy"), "<u2", shape, x, (size_t)rows * sizeof *x);
    write_npy(ls_test_path("y.npy"), "<i4", shape, y, (size_t)rows * sizeof *y);
    write_npy(ls_test_path("x.offsets.npy"), "<i4", "(41,)", offsets, sizeof offsets);
    write_npy(ls_test_path("y.offsets.npy"), "<i4", "(41,)", offsets, sizeof offsets);
    return setenv("TMPDIR", ls_test_directory(), 1);
}

/* The fields of data_param, with the test's folder in all paths. */
static const char *data_fields(const char *format)
{
    static char text[8000];
    text[0] = '\0';
    for (const char *at = format; *at != '\0';) {
        const size_t length = strlen(text);
        if (at[0] == '%' && at[1] == 's') {
            snprintf(text + length, sizeof text - length, "%s", ls_test_directory());
            at += 2;
        } else {
            text[length] = *at++;
            text[length + 1] = '\0';
        }
    }
    return text;
}

static struct lockstep_solver *solver_of(const struct kind *kind)
{
    return load_solver(
        "base_lr: 0.3 lr_policy: 'fixed' momentum: 0.9 max_iter: 60 random_seed: 3 %s\n"
        "net_param {\n"
        "  layer { name: 'd' type: 'Data' top: 'x' top: 'y' %s data_param { %s %s } }\n"
        "  layer { name: 'e' type: 'Embed' bottom: 'x' top: 'e' embed_param { num_output: 9\n"
        "    input_dim: 7 weight_filler { type: 'xavier' } } }\n"
        "  %s\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 'h' top: 'ip'\n"
        "    inner_product_param { axis: 2 num_output: 7 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'loss'\n"
        "    softmax_param { axis: 2 } loss_param { ignore_label: -1 } }\n"
        "}\n",
        kind->settings, kind->recurrent ? "top: 'cont'" : "", data_fields(kind->data), kind->tops,
        kind->recurrent
            ? "layer { name: 'h' type: 'LSTM' bottom: 'e' bottom: 'cont' top: 'h' recurrent_param "
              "{ num_output: 8 weight_filler { type: 'xavier' } } }"
            : "layer { name: 'h' type: 'TanH' bottom: 'e' top: 'h' }");
}

/* ---- The same bits --------------------------------------------------------------------------- */

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        struct lockstep_solver *solver = solver_of(&kinds[i]);
        check_workers(solver, NULL, UPDATES);
        lockstep_solver_free(solver);
    }
}

/* Beyond the end of an epoch, too: the smallest data have 5 updates. */
static void resumed_trainings_give_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        struct lockstep_solver *solver = solver_of(&kinds[i]);
        check_resumed(solver, 7, 9);
        lockstep_solver_free(solver);
    }
}

static void any_ranks_give_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        struct lockstep_solver *solver = solver_of(&kinds[i]);
        struct bytes expected = run_alone(solver, UPDATES);
        struct job pair = {.solver = solver, .ranks = 2, .workers = {1, 2}, .updates = UPDATES};
        struct job trio = {.solver = solver,
                           .ranks = 3,
                           .workers = {1, 1, 1},
                           .updates = UPDATES,
                           .dynamic = true,
                           .delays = 1};
        check_job(&pair, expected, kinds[i].name);
        check_job(&trio, expected, kinds[i].name);
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* ---- What fills samples up changes nothing --------------------------------------------------- */

static const char all_documents[] =
    "backend: TOKENS source: '%%s/ids.raw' batch_size: %d tokens_param { window: %d separator: 0 "
    "documents: WHOLE pad: 5 %s }";

/* The losses of the first updates, each over a batch of everything. */
static void measure(const char *data, double loss[3])
{
    const struct kind kind = {"all", "micro_batch: 1", data, false, three};
    struct lockstep_solver *solver = solver_of(&kind);
    struct training *training = start(solver, 1, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        step(training, 1);
        loss[i] = lockstep_trainer_loss(training->trainer);
    }
    finish(training);
    lockstep_solver_free(solver);
}

static void filling_up_changes_no_loss(void **state)
{
    (void)state;
    static const char *const ways[] = {"lengths: BUCKET bucket: 1", /* nothing is filled up */
                                       "lengths: PAD", "lengths: BUCKET bucket: 7"};
    int documents = 1;
    for (int i = 1; i < TEXT - 1; i++)
        documents += number_at(i) == 0;
    double plain[3], filled[3];
    for (int w = 0; w < 3; w++) {
        measure(ls_test_text(all_documents, documents, 40, ways[w]), w == 0 ? plain : filled);
        for (int i = 0; i < 3 && w > 0; i++)
            if (!(fabs(filled[i] - plain[i]) <= 1e-6 * plain[i]))
                fail_msg("%s: update %d: %.17g, and %.17g where nothing is filled up", ways[w], i,
                         filled[i], plain[i]);
    }
    assert_true(plain[2] < plain[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits),
        cmocka_unit_test(resumed_trainings_give_same_bits),
        cmocka_unit_test(any_ranks_give_same_bits),
        cmocka_unit_test(filling_up_changes_no_loss),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
