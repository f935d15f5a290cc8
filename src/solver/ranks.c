/* What ranks compare before they train. See solver/ranks.h.
 *
 * Each aspect is a text of lines. Ranks exchange a hash of each; only where one differs does rank 0
 * send its text, and a rank with another one reports the lines that differ.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/ranks.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "schema/canonical.h"
#include "solver/data.h"
#include "solver/environment.h"
#include "solver/masks.h"
#include "solver/matrices.h"
#include "solver/state.h"
#include "transport/comm.h"

/* The first that differs is told: kernels, which the environment lists, follow from the definition.
 */
enum aspect { OPTIONS, DATA, DEFINITION, TESTS, ENVIRONMENT, ASPECTS };

enum { SHOWN = 3, WORDS = 150 }; /* lines in a message, and bytes of each */

static const struct {
    const char *name, *hint;
} aspects[ASPECTS] = {
    [OPTIONS] = {"options", "give all ranks the same"},
    [DATA] = {"data", "the sources must hold the same records on all machines"},
    [ENVIRONMENT] = {"numeric environment",
                     "--isa pins the instruction set; the versions of libraries must be the same"},
    [DEFINITION] = {"definition", "give all ranks the same files and the same --set"},
    [TESTS] = {"test nets", "give all ranks the same files and the same --set"},
};

/* ---- Texts ----------------------------------------------------------------------------------- */

/* What decides which exchanges ranks enter. */
static void write_options(const struct ls_trainer *trainer,
                          const struct lockstep_train_options *options, struct ls_text *text)
{
    ls_text_format(text, "start: %s\n",
                   options->resume != NULL          ? "from a snapshot (--resume)"
                   : options->weights != NULL       ? "from weights (--weights)"
                   : trainer->solver->n_weights > 0 ? "from the solver's weights"
                                                    : "as the fillers say");
    ls_text_format(text, "balance: %s\n", trainer->comm->dynamic ? "dynamic" : "static");
    ls_text_format(text, "snapshots that must be written: %s\n",
                   options->snapshot_required ? "all (--snapshot-required)" : "the last one");
    char masks[LS_MASKS_TEXT];
    ls_masks_describe(trainer->parameters, masks);
    ls_text_format(text, "masks: %s\n", masks);
    ls_text_add(text, "matrices of losses:\n");
    ls_matrices_describe(trainer->train, text);
    for (size_t i = 0; i < trainer->test_count; i++)
        ls_matrices_describe(trainer->tests[i].net, text);
    ls_text_format(text, "statistics: %s\n", trainer->measures ? "at displays" : "none");
    ls_text_format(text, "trace: %s\n", options->trace != NULL ? "written" : "none");
    /* All digits: ranks that audit other micro-batches would wait for each other. */
    ls_text_format(text, "audited: %.17g of the micro-batches\n", trainer->audited_part);
}

static int write_tests(const struct ls_trainer *trainer, struct ls_text *text,
                       struct ls_error *error)
{
    const struct ls_solver_definition *definition = trainer->definition;
    for (size_t i = 0; i < definition->test_count; i++) {
        ls_text_format(text, "test_iter: %d\n", definition->test[i].test_iter);
        LS_TRY(ls_net_canonical(&definition->test[i], text, error));
    }
    return 0;
}

static int write_texts(const struct ls_trainer *trainer,
                       const struct lockstep_train_options *options, struct ls_text *texts,
                       struct ls_error *error)
{
    write_options(trainer, options, &texts[OPTIONS]);
    LS_TRY(ls_data_describe_all(trainer, &texts[DATA], error));
    LS_TRY(ls_environment_for_ranks(trainer, &texts[ENVIRONMENT], error));
    LS_TRY(ls_state_definition(trainer, &texts[DEFINITION], error));
    LS_TRY(write_tests(trainer, &texts[TESTS], error));
    for (int i = 0; i < ASPECTS; i++)
        if (texts[i].failed)
            return ls_fail_memory(error, "a comparison of ranks");
    return 0;
}

/* ---- Differences ----------------------------------------------------------------------------- */

/* Goes to the next line of a text; its length, or -1 behind the last. */
static int next_line(const char **line, const char **rest)
{
    if (**rest == '\0')
        return -1;
    size_t length = strcspn(*rest, "\n");
    *line = *rest;
    *rest += length + ((*rest)[length] == '\n');
    return (int)length;
}

static void add_difference(struct ls_text *out, const char *here, const char *there)
{
    ls_text_format(out, "%s'%.*s', there '%.*s'", out->length > 0 ? "; " : "", WORDS, here, WORDS,
                   there);
}

/* The first lines that are not the same. Where one text has a line more, all behind it differ: that
 * is enough to see where. */
static void find_lines(const char *here, const char *there, struct ls_text *out)
{
    for (int shown = 0; shown < SHOWN;) {
        const char *a = "", *b = "";
        int a_length = next_line(&a, &here), b_length = next_line(&b, &there);
        if (a_length < 0 && b_length < 0)
            return;
        if (a_length == b_length && memcmp(a, b, (size_t)a_length) == 0)
            continue;
        char mine[WORDS + 1], theirs[WORDS + 1];
        snprintf(mine, sizeof mine, "%.*s", a_length > 0 ? a_length : 0, a);
        snprintf(theirs, sizeof theirs, "%.*s", b_length > 0 ? b_length : 0, b);
        add_difference(out, mine, theirs);
        shown++;
    }
}

/* Fields by their names, as far as the texts can be read. */
static void find_fields(const char *here, const char *there, struct ls_text *out)
{
    struct ls_changes changes = {0};
    if (ls_canonical_compare(NULL, there, strlen(there), here, strlen(here), &changes, NULL) == 0)
        for (size_t i = 0; i < changes.count && i < SHOWN; i++)
            ls_text_format(out, "%s%s %s, there %s", i > 0 ? "; " : "", changes.change[i].what,
                           changes.change[i].after, changes.change[i].before);
    ls_changes_free(&changes);
    if (out->length == 0)
        find_lines(here, there, out);
}

static int say_difference(enum aspect aspect, const char *here, const char *there, const char *host,
                          struct ls_error *error)
{
    struct ls_text differences = {0};
    (aspect == DEFINITION ? find_fields : find_lines)(here, there, &differences);
    int status =
        ls_fail(error, LOCKSTEP_DIFFERENT, NULL, aspects[aspect].hint,
                "other %s than on rank 0 (%.63s): here %s", aspects[aspect].name, host,
                differences.data != NULL ? differences.data : "there are no lines to show");
    ls_text_free(&differences);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* The first aspect that some rank has otherwise than rank 0; ASPECTS: none. */
static int first_difference(const uint64_t *all, int size)
{
    for (int aspect = 0; aspect < ASPECTS; aspect++)
        for (int r = 1; r < size; r++)
            if (all[r * ASPECTS + aspect] != all[aspect])
                return aspect;
    return ASPECTS;
}

/* Rank 0 shows its text of an aspect; whose is another one fails. */
static int show(struct ls_trainer *trainer, enum aspect aspect, const char *text,
                struct ls_error *error)
{
    struct {
        uint64_t size;
        char host[64];
    } head = {.size = strlen(text)};
    snprintf(head.host, sizeof head.host, "%s", trainer->comm->transport->host);
    LS_TRY(ls_comm_broadcast(trainer->comm, &head, sizeof head, error));
    size_t room = (head.size / 4 + 1) * 4; /* and what ends it */
    char *there = ls_alloc(room, 1);
    int status = ls_comm_agree(
        trainer->comm, there == NULL ? ls_fail_memory(error, "a comparison of ranks") : 0, error);
    LS_ASSERT(status != 0 || there != NULL); /* ranks agree on 0 only where all have memory */
    if (status == 0 && trainer->comm->rank == 0)
        memcpy(there, text, head.size);
    if (status == 0)
        status = ls_comm_broadcast(trainer->comm, there, room, error);
    if (status == 0 && strcmp(text, there) != 0)
        status = say_difference(aspect, text, there, head.host, error);
    ls_free(there);
    return status;
}

static int compare(struct ls_trainer *trainer, const struct ls_text *texts, uint64_t *all,
                   struct ls_error *error)
{
    uint64_t mine[ASPECTS];
    for (int i = 0; i < ASPECTS; i++)
        mine[i] = ls_hash(texts[i].data, texts[i].length, 0);
    LS_TRY(ls_comm_all_gather(trainer->comm, mine, sizeof mine, all, error));
    int aspect = first_difference(all, trainer->comm->size);
    if (aspect == ASPECTS)
        return 0;
    const char *text = texts[aspect].data != NULL ? texts[aspect].data : "";
    return ls_comm_agree(trainer->comm, show(trainer, (enum aspect)aspect, text, error), error);
}

int ls_ranks_compare(struct ls_trainer *trainer, const struct lockstep_train_options *options,
                     struct ls_error *error)
{
    if (trainer->comm->size == 1)
        return 0;
    struct ls_text texts[ASPECTS] = {{0}};
    uint64_t *all = ls_alloc((size_t)trainer->comm->size * ASPECTS, sizeof *all);
    int status = all == NULL ? ls_fail_memory(error, "a comparison of ranks")
                             : write_texts(trainer, options, texts, error);
    status = ls_comm_agree(trainer->comm, status, error);
    if (status == 0)
        status = compare(trainer, texts, all, error);
    for (int i = 0; i < ASPECTS; i++)
        ls_text_free(&texts[i]);
    ls_free(all);
    return status;
}

int ls_ranks_compare_end(struct ls_trainer *trainer, int64_t end, struct ls_error *error)
{
    int64_t first = end;
    LS_TRY(ls_comm_broadcast(trainer->comm, &first, sizeof first, error));
    if (first == end)
        return 0;
    return ls_fail(error, LOCKSTEP_DIFFERENT, NULL, "give all ranks the same --iterations",
                   "trains until iteration %lld, rank 0 until %lld", (long long)end,
                   (long long)first);
}
