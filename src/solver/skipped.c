/* Telling of bad records, and of numbers that cannot be meant; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/skipped.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/bad_records.h"
#include "data/oddities.h"
#include "solver/events.h"
#include "transport/comm.h"

void ls_net_tell_skipped(const struct ls_net *net, void (*say)(void *user, const char *sentence),
                         void *user)
{
    char reason[512];
    int64_t record;
    for (int d = 0; d < net->dataset_count; d++)
        while (net->datasets[d] != NULL &&
               ls_dataset_next_bad(net->datasets[d], &record, reason, sizeof reason)) {
            struct ls_text text = {0};
            ls_text_format(&text, "%s net, %s: ",
                           net->options.phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test",
                           ls_dataset_name(net->datasets[d]));
            ls_dataset_name_record(net->datasets[d], record, &text);
            ls_text_format(&text, " is bad, and the next good one stands in for it: %s", reason);
            if (!text.failed)
                say(user, text.data);
            ls_text_free(&text);
        }
}

void ls_net_tell_odd(const struct ls_net *net, int dataset, int64_t end,
                     void (*say)(void *user, const char *sentence), void *user)
{
    const struct ls_dataset *of = net->datasets[dataset];
    char reason[800];
    int64_t record;
    while (of != NULL && ls_dataset_next_oddity(of, end, &record, reason, sizeof reason)) {
        struct ls_text text = {0};
        ls_text_format(
            &text, "%s net, %s: ", net->options.phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test",
            ls_dataset_name(of));
        ls_dataset_name_record(of, record, &text);
        ls_text_format(&text, ": %s", reason);
        if (!text.failed)
            say(user, text.data);
        ls_text_free(&text);
    }
}

static void warn(void *user, const char *sentence)
{
    struct ls_trainer *trainer = user;
    ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, "%s", sentence);
}

void ls_trainer_report_skipped(struct ls_trainer *trainer)
{
    ls_net_tell_skipped(trainer->train, warn, trainer);
    for (size_t i = 0; i < trainer->test_count; i++)
        ls_net_tell_skipped(trainer->tests[i].net, warn, trainer);
}

void ls_trainer_report_odd(struct ls_trainer *trainer, const struct ls_net *net, int dataset,
                           int64_t end)
{
    ls_net_tell_odd(net, dataset, end, warn, trainer);
}

static int share_odd(struct ls_comm *comm, const struct ls_dataset *dataset, struct ls_error *error)
{
    const size_t bytes = dataset != NULL ? ls_dataset_oddity_bytes(dataset) : 0;
    if (bytes == 0)
        return 0;
    unsigned char *found = ls_alloc((size_t)comm->size + 1, bytes);
    if (found == NULL)
        return ls_fail_memory(error, "what ranks have found");
    unsigned char *mine = found + (size_t)comm->size * bytes;
    ls_dataset_put_oddities(dataset, mine);
    int status = ls_comm_all_gather(comm, mine, bytes, found, error);
    for (int rank = 0; rank < comm->size && status == 0; rank++)
        ls_dataset_take_oddities(dataset, found + (size_t)rank * bytes);
    ls_free(found);
    return status;
}

int ls_trainer_share_odd(struct ls_trainer *trainer, const struct ls_net *net,
                         struct ls_error *error)
{
    for (int d = 0; d < net->dataset_count && trainer->comm->size > 1; d++)
        LS_TRY(share_odd(trainer->comm, net->datasets[d], error));
    return 0;
}

void ls_trainer_count_skipped(struct ls_trainer *trainer)
{
    ls_trainer_report_skipped(trainer);
    if (trainer->data.skipped > 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "%" PRId64 " sample%s of this run's training had bad records, and others "
                      "stood in for them; 'lockstep check' lists the records",
                      trainer->data.skipped, trainer->data.skipped == 1 ? "" : "s");
}
