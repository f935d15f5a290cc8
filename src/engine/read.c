/* What a pass has read. See engine/read.h.
 *
 * Behind a unit's record are a number, 1 where its data are bad, and for each data set the words of
 * its digests, as bytes: nothing is computed with them there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/read.h"

#include <string.h>

#include "base/memory.h"
#include "engine/residents.h"
#include "transport/comm.h"

enum { WORDS = sizeof(struct ls_digests) / sizeof(double) };

int ls_read_create(struct ls_pass *pass, struct ls_error *error)
{
    pass->tested = ls_alloc((size_t)pass->net->dataset_count + 1, sizeof *pass->tested);
    return pass->tested != NULL ? 0 : ls_fail_memory(error, "a pass");
}

void ls_read_free(struct ls_pass *pass)
{
    for (int i = 0; pass->blank != NULL && i < pass->net->input_count; i++)
        ls_free_aligned(pass->blank[i]);
    ls_free(pass->blank);
    ls_free(pass->tested);
}

static double *read_mark_of(const struct ls_pass *pass, size_t unit)
{
    return ls_pass_record(pass, unit) + pass->record_size + pass->list_size;
}

void ls_read_note(struct ls_pass *pass, size_t unit, const struct ls_prefetch_item *item)
{
    memcpy(read_mark_of(pass, unit) + 1, item->digests,
           (size_t)pass->net->dataset_count * sizeof *item->digests);
}

/* With the lock held: zeros for every input. */
static bool read_make_blank(struct ls_pass *pass)
{
    const struct ls_net *net = pass->net;
    if (pass->blank != NULL)
        return true;
    void **blank = ls_alloc((size_t)net->input_count + 1, sizeof *blank);
    bool made = blank != NULL;
    for (int i = 0; made && i < net->input_count; i++)
        made = (blank[i] = ls_alloc_aligned(ls_net_input_bytes(net, i))) != NULL;
    for (int i = 0; !made && blank != NULL && i < net->input_count; i++)
        ls_free_aligned(blank[i]);
    if (made)
        pass->blank = blank;
    else
        ls_free(blank);
    return made;
}

bool ls_read_note_bad(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    *read_mark_of(pass, unit) = 1;
    bool soft = error->status == LOCKSTEP_DATA && read_make_blank(pass);
    if (soft && unit < pass->bad_unit) {
        pass->bad_unit = unit;
        pass->bad_data = *error;
    }
    pthread_mutex_unlock(&pass->lock);
    if (!soft)
        ls_pass_note_failure(pass, unit, error);
    return soft;
}

void *const *ls_read_inputs(const struct ls_pass *pass, size_t unit)
{
    return pass->items[unit] != NULL ? pass->items[unit]->input : pass->blank;
}

const struct ls_sample_making *const *ls_read_making(const struct ls_pass *pass, size_t unit)
{
    return pass->items[unit] != NULL ? ls_residents_making(pass->net) : NULL;
}

int ls_read_check(struct ls_pass *pass, struct ls_error *error)
{
    bool bad = false;
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        bad = bad || *read_mark_of(pass, unit) != 0;
    if (!bad) /* the same on all ranks, which have all marks */
        return 0;
    int status = 0;
    if (pass->bad_unit != SIZE_MAX) {
        status = pass->bad_data.status;
        if (error != NULL)
            *error = pass->bad_data;
    }
    return ls_comm_agree(pass->engine->comm, status, error);
}

void ls_read_of(const struct ls_pass *pass, size_t unit, int dataset, struct ls_read *read)
{
    struct ls_batch its;
    int64_t left_out =
        ls_batching_of(&pass->net->batching, dataset, &pass->units[unit].range, &its);
    *read = (struct ls_read){.begin = its.ordinal,
                             .end = its.ordinal + its.count + left_out,
                             .rank = pass->owners[unit]};
    memcpy(&read->digests, read_mark_of(pass, unit) + 1 + (size_t)dataset * WORDS,
           sizeof read->digests);
}

int64_t ls_read_skipped(const struct ls_pass *pass)
{
    return pass->skipped;
}

const struct ls_digest *ls_read_tested(const struct ls_pass *pass, int dataset)
{
    return &pass->tested[dataset];
}

void ls_read_begin_test(struct ls_pass *pass)
{
    pass->skipped = 0;
    memset(pass->tested, 0, (size_t)pass->net->dataset_count * sizeof *pass->tested);
}

void ls_read_add_tested(struct ls_pass *pass)
{
    struct ls_read read;
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (int d = 0; d < pass->net->dataset_count; d++) {
            ls_read_of(pass, unit, d, &read);
            ls_digest_add(&pass->tested[d], &read.digests.first);
            ls_digest_add(&pass->tested[d], &read.digests.middle);
            ls_digest_add(&pass->tested[d], &read.digests.last);
            pass->skipped += read.digests.skipped;
        }
}
