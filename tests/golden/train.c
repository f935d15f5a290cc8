/* Trains a network of tests/golden/nets and takes the hashes of what it becomes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/hash.h"
#include "ir/op_type.h"
#include "lockstep/lockstep.h"
#include "ops/cpu/environment.h"
#include "snapshot/weights.h"
#include "engine/audit.h"
#include "solver/trainer.h"
#include "support/support.h"

enum { SLOW_UPDATES = 4 }; /* on a device that is not there to be fast */

struct run {
    const char *net;
    struct lockstep_error *error;
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
};

static void check(const struct run *run, int status, const char *what)
{
    if (status != 0)
        fail_msg("%s: %s: %s", run->net, what, lockstep_error_text(run->error));
}

static uint32_t short_hash(const void *bytes, size_t size, uint32_t seed)
{
    uint64_t hash = ls_hash(bytes, size, seed);
    return (uint32_t)(hash ^ hash >> 32);
}

/* ---- What decides the bits ------------------------------------------------------------------- */

/* Lockstep's own kernels have names; reorders change no bit, with any kernel. */
static bool is_own(const struct ls_step *step)
{
    enum ls_op_kind kind = step->prepared.op->kind;
    const char *name = step->prepared.implementation;
    return kind == LS_OP_REORDER || ls_op_type(kind)->by_engine || name[0] == '\0' ||
           strncmp(name, "lockstep", 8) == 0;
}

static bool depends_on_onednn(const struct ls_net *net)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++)
            if (!is_own(&plan->steps[s]))
                return true;
    }
    return false;
}

/* The first word behind "name=" in the numeric environment. */
static void take_word(const char *name, char *word, size_t size)
{
    const char *place = strstr(ls_cpu_environment(), name);
    assert_non_null(place);
    place += strlen(name);
    snprintf(word, size, "%.*s", (int)strcspn(place, " \n"), place);
}

static void take_key(const struct run *run, const char *isa, struct golden_key *key)
{
    const struct ls_trainer *trainer = run->trainer->inner;
    bool depends = depends_on_onednn(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        depends = depends || depends_on_onednn(trainer->tests[i].net);
    *key = (struct golden_key){
        .numerics = LOCKSTEP_NUMERICS, .isa = "any", .onednn = "-", .cache = "-"};
    snprintf(key->net, sizeof key->net, "%s", run->net);
    if (!depends)
        return;
    if (isa != NULL && (strcmp(isa, "amx") == 0 || strcmp(isa, "avx512_bf16") == 0))
        isa = "avx512"; /* what these do has an entry for any set */
    snprintf(key->isa, sizeof key->isa, "%s", isa != NULL ? isa : "");
    take_word("onednn=", key->onednn, sizeof key->onednn);
    take_word("cache=", key->cache, sizeof key->cache);
}

/* ---- Results --------------------------------------------------------------------------------- */

static void take_names(const struct run *run, struct golden_bits *bits)
{
    size_t count = lockstep_trainer_parameter_count(run->trainer);
    assert_in_range(count, 1, GOLDEN_PARAMETERS_MAX);
    bits->parameters = (int)count;
    for (size_t i = 0; i < count; i++)
        snprintf(bits->name[i], sizeof bits->name[i], "%s",
                 lockstep_trainer_parameter_name(run->trainer, i));
}

static void take_update(const struct run *run, struct golden_bits *bits)
{
    double loss = lockstep_trainer_loss(run->trainer);
    int u = bits->updates++;
    bits->loss[u] = u > 0 ? short_hash(&loss, sizeof loss, 0) : 0;
    bits->figure[u] = u > 0 ? loss : 0;
    for (int i = 0; i < bits->parameters; i++) {
        size_t size = lockstep_trainer_parameter_size(run->trainer, (size_t)i);
        float *numbers = calloc(size, sizeof *numbers);
        check(run,
              lockstep_trainer_read_parameter(run->trainer, (size_t)i, numbers, size, run->error),
              "read");
        bits->weights[u][i] = short_hash(numbers, size * sizeof *numbers, 0);
        for (size_t k = 0; k < size; k++)
            bits->norm[u] += (double)numbers[k] * (double)numbers[k];
        free(numbers);
    }
}

static void take_tests(const struct run *run, struct golden_bits *bits)
{
    const struct lockstep_output *outputs;
    size_t count;
    for (size_t t = 0; t < run->trainer->inner->test_count; t++) {
        check(run, lockstep_trainer_evaluate(run->trainer, (int)t, &outputs, &count, run->error),
              "test");
        for (size_t i = 0; i < count; i++)
            bits->tests =
                short_hash(outputs[i].values, outputs[i].count * sizeof(double), bits->tests + 1);
    }
}

/* Bytes of mean pictures, which are the data's and lie behind all else. */
static size_t mean_bytes(const char *path)
{
    struct ls_archive archive;
    size_t bytes = 0;
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &archive, NULL), 0);
    const char *end = (const char *)archive.mapping.data + archive.mapping.size;
    for (size_t i = archive.tensor_count; i-- > 0;) {
        const struct ls_tensor *tensor = &archive.tensors[i];
        if (strncmp(tensor->name, LS_PREFIX_MEAN, strlen(LS_PREFIX_MEAN)) != 0)
            continue;
        bytes += tensor->size;
        assert_ptr_equal(tensor->data, end - bytes);
    }
    ls_archive_free(&archive);
    return bytes;
}

/* The SHA-256 of all tensors of a snapshot: weights, what the optimizer keeps, averages, exponents,
 * as they lie in the file behind its header; coreutils compute it. */
static void take_sha256(const struct run *run, struct golden_bits *bits)
{
    char path[4096], command[8192];
    uint64_t header;
    size_t size;
    snprintf(path, sizeof path, "%s", ls_test_path("golden.safetensors"));
    check(run, lockstep_trainer_snapshot(run->trainer, path, run->error), "snapshot");
    char *file = ls_test_read(path, &size);
    size -= mean_bytes(path);
    assert_true(size > sizeof header);
    memcpy(&header, file, sizeof header);
    header += sizeof header;
    assert_true(header < size);
    snprintf(command, sizeof command, "sha256sum >'%s.sha256'", path);
    FILE *pipe = popen(command, "w");
    assert_non_null(pipe);
    assert_int_equal(fwrite(file + header, 1, size - header, pipe), size - header);
    assert_int_equal(pclose(pipe), 0);
    free(file);
    snprintf(command, sizeof command, "%s.sha256", path);
    char *text = ls_test_read(command, &size);
    snprintf(bits->sha256, sizeof bits->sha256, "%.64s", text);
    free(text);
}

/* The number behind "# <kind>: ". */
static int setting(const char *text, const char *kind, int missing)
{
    char word[64];
    snprintf(word, sizeof word, "# %s: ", kind);
    const char *place = strstr(text, word);
    return place != NULL ? atoi(place + strlen(word)) : missing;
}

/* Nothing that an audit computed again had other bits. */
static void check_audits(const struct run *run)
{
    const struct ls_audit *audit = run->trainer->inner->train_pass->audit;
    int64_t audited, wrong = 0;
    if (audit != NULL)
        ls_audit_count(audit, &audited, &wrong);
    if (wrong > 0)
        fail_msg("%s: %lld micro-batches had other bits when they were audited", run->net,
                 (long long)wrong);
}

bool golden_is_portable(const char *net)
{
    static const char *const nets[] = {"own_bf16", "own_bf16_layers", "own_blocks", "own_language",
                                       "own_portable"};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (strcmp(net, nets[i]) == 0)
            return true;
    return false;
}

void golden_train(const char *net, const char *device, const char *isa, int workers,
                  struct golden_entry *entry)
{
    struct run run = {.net = net, .error = lockstep_error_new()};
    struct lockstep_train_options options;
    char name[128], folder[4096];
    snprintf(name, sizeof name, "tests/golden/nets/%s.prototxt", net);
    size_t size;
    char *text = ls_test_read(ls_test_source(name), &size);
    snprintf(folder, sizeof folder, "%s", ls_test_path(net));
    bool made = mkdir(folder, 0700) == 0; /* one run makes the data for all */
    if (chdir(folder) != 0)
        fail_msg("cannot make %s", folder);
    if (made)
        golden_write_data(text);
    ls_test_write_text("solver.prototxt", text);
    check(&run, lockstep_solver_load("solver.prototxt", NULL, 0, &run.solver, run.error), "load");
    lockstep_train_options_init(&options);
    options.workers = workers;
    options.device = device;
    options.isa = isa;
    options.audit = workers > 1 ? 0.5 : 0; /* each kernel must give the same bits twice */
    check(&run, lockstep_trainer_create(run.solver, &options, &run.trainer, run.error), "create");
    memset(entry, 0, sizeof *entry);
    take_key(&run, isa, &entry->key);
    take_names(&run, &entry->bits);
    int updates = setting(text, "updates", 6);
    assert_in_range(updates, 1, GOLDEN_UPDATES_MAX - 1);
    if (strcmp(device, "cpu") != 0 && !golden_is_portable(net) && updates > SLOW_UPDATES)
        updates = SLOW_UPDATES;
    take_update(&run, &entry->bits); /* what the fillers made */
    while (entry->bits.updates <= updates) {
        check(&run, lockstep_trainer_step(run.trainer, 1, run.error), "step");
        take_update(&run, &entry->bits);
    }
    take_tests(&run, &entry->bits);
    take_sha256(&run, &entry->bits);
    check_audits(&run);
    if (strcmp(device, "cpu") == 0)
        golden_note_use(run.trainer->inner);
    lockstep_trainer_free(run.trainer);
    lockstep_solver_free(run.solver);
    lockstep_error_free(run.error);
    free(text);
    assert_int_equal(chdir("/"), 0);
}
