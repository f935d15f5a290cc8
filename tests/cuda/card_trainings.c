/* See card_trainings.h. SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/card_trainings.h"

#include "base/thread.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "ops/devices.h"
#include "support/npy_files.h"
#include "transport/failure_detector.h"

enum { PICTURES = 12, SEQUENCES = 12, STEPS = 4, INPUTS = 3, WORDS = 9 };

/* ---- The device ------------------------------------------------------------------------------ */

static struct ls_device device;
static struct ls_device_memory memory;

int __real_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);
int __wrap_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);

int __wrap_ls_device_find(const char *name, const struct ls_device **found, struct ls_error *error)
{
    if (name == NULL || strcmp(name, ls_device_cuda.name) != 0)
        return __real_ls_device_find(name, found, error);
    *found = &device;
    return 0;
}

static void choose(enum card_data way)
{
    memory = ls_card_memory;
    device = ls_device_cuda;
    device.memory = &memory;
    if (way != CARD_DATA_MADE)
        device.make_samples = NULL;
    if (way == CARD_DATA_PAGEABLE)
        memory.pinning = NULL;
}

/* ---- Nets ------------------------------------------------------------------------------------ */

static const char *normed(void)
{
    return ls_test_net("rank_threads", LS_TEST_VALUES({"batch", "5"}));
}

static const char *free_batches(void)
{
    return ls_test_net("card_data", LS_TEST_VALUES({"norm", ""}, {"loss", ""}));
}

static const char *recurrent(void)
{
    return ls_test_net("card_recurrent", NULL);
}

static const char *language(void)
{
    return ls_test_net("card_language", NULL);
}

const struct card_net card_nets[] = {
    {"batch norm", "momentum: 0.9 weight_decay: 0.0005 clip_gradients: 2", normed},
    {"several batches", "momentum: 0.9 iter_size: 2 test_iter: 1 test_interval: 2", free_batches},
    {"recurrent", "type: 'Adam' momentum: 0.9 momentum2: 0.99", recurrent},
    {"language", "type: 'LAMB' momentum: 0.9 momentum2: 0.99 weight_decay: 0.1", language},
};
const int card_net_count = sizeof card_nets / sizeof *card_nets;

void card_write_data(void)
{
    static float x[SEQUENCES * STEPS * INPUTS], cont[SEQUENCES * STEPS];
    static int32_t class[SEQUENCES * STEPS], tokens[SEQUENCES * STEPS], next[SEQUENCES * STEPS];
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "cards");
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), PICTURES, 12);
    for (int i = 0; i < SEQUENCES * STEPS; i++) {
        for (int k = 0; k < INPUTS; k++)
            x[i * INPUTS + k] = ls_random_uniform(key, 0, (uint64_t)(i * INPUTS + k)) - 0.5F;
        cont[i] = i % STEPS == 0 || ls_random_below(key, 1, (uint64_t)i, 5) == 0 ? 0 : 1;
        class[i] = (int32_t)ls_random_below(key, 2, (uint64_t)i, 4);
        tokens[i] = (int32_t)ls_random_below(key, 3, (uint64_t)i, WORDS);
        next[i] = (int32_t)ls_random_below(key, 4, (uint64_t)i, WORDS + 1) - 1;
    }
    write_npy(ls_test_path("x.npy"), "<f4", "(12, 4, 3)", x, sizeof x);
    write_npy(ls_test_path("cont.npy"), "<f4", "(12, 4)", cont, sizeof cont);
    write_npy(ls_test_path("class.npy"), "<i4", "(12, 4)", class, sizeof class);
    write_npy(ls_test_path("tokens.npy"), "<i4", "(12, 4)", tokens, sizeof tokens);
    write_npy(ls_test_path("next.npy"), "<i4", "(12, 4)", next, sizeof next);
}

struct lockstep_solver *card_solver(const struct card_net *net, const char *settings)
{
    return load_solver("base_lr: 0.02 lr_policy: 'fixed' snapshot: 1 test_initialization: false\n"
                       "micro_batch: 2 random_seed: 5 %s %s net_param { %s }\n",
                       net->settings, settings, net->text());
}

/* ---- Trainings ------------------------------------------------------------------------------- */

/* A rank that is lost is waited for: here by a fast clock. */
static double fast_clock(void *user)
{
    (void)user;
    return 20 * ls_clock();
}

int card_train(const struct lockstep_solver *solver, const struct card_run *run,
               struct lockstep_error *error)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    choose(run->data);
    (void)ls_card_take_thread(); /* a new fake begins with card 0 */
    lockstep_train_options_init(&options);
    options.device = "cuda";
    options.workers = run->workers;
    options.snapshot_prefix = ls_test_path(run->prefix);
    options.resume = run->resume;
    options.memory = run->memory;
    options.overwrite = 1;
    int status = ls_api_trainer_create(solver, &options, run->ranks, run->cards, &trainer,
                                       ls_api_error(error));
    for (int r = 0; r < run->ranks && run->ranks > 1 && status == 0; r++) {
        const struct ls_detector_senses senses = {.clock = fast_clock};
        ls_detector_set_senses(trainer->ranks[r]->comm->detector, &senses);
    }
    if (status == 0)
        status = lockstep_trainer_run(trainer, -1, error);
    if (status == 0 && run->hash != NULL)
        status = lockstep_trainer_hash(trainer, run->hash, error);
    lockstep_trainer_free(trainer);
    ls_card_end_thread();
    return status;
}

const char *card_snapshot(const char *prefix, int64_t iteration)
{
    char name[64];
    snprintf(name, sizeof name, "%s_iter_%d.safetensors", prefix, (int)iteration);
    return ls_test_path(name);
}
