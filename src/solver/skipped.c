/* Telling of bad records, and of numbers that cannot be meant; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/skipped.h"

#include <inttypes.h>

#include "base/text.h"
#include "data/bad_records.h"
#include "data/oddities.h"
#include "solver/events.h"

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

void ls_trainer_count_skipped(struct ls_trainer *trainer)
{
    ls_trainer_report_skipped(trainer);
    if (trainer->data.skipped > 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "%" PRId64 " sample%s of this run's training had bad records, and others "
                      "stood in for them; 'lockstep check' lists the records",
                      trainer->data.skipped, trainer->data.skipped == 1 ? "" : "s");
}
