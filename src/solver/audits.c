/* What audits of micro-batches have found, as events and in status.json.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/audits.h"

#include <stdio.h>

#include "engine/audit.h"
#include "solver/events.h"
#include "solver/trainer.h"
#include "transport/comm.h"
#include "transport/failure_end.h"

static void report(struct ls_trainer *trainer, const struct ls_audit_finding *finding)
{
    char text[1024], rank[128] = "", more[64] = "";
    if (finding->host != NULL)
        snprintf(rank, sizeof rank, "rank %d on %.63s, ", finding->rank, finding->host);
    if (finding->differing > 1)
        snprintf(more, sizeof more, " and %zu more", finding->differing - 1);
    snprintf(text, sizeof text,
             "Iteration %lld: %sworker %d on core %d computed micro-batch %zu (samples %lld to "
             "%lld) wrongly, as others show: %.300s%s; %s",
             (long long)trainer->iteration, rank, finding->worker, finding->core,
             finding->micro_batch, (long long)finding->first, (long long)finding->last,
             finding->name, more,
             finding->own ? "the update is computed again. What that core computed before without "
                            "an audit may be wrong: 'lockstep replay' tells"
                          : "that was the audit; the update is right");
    struct lockstep_audit audit = {.own = finding->own,
                                   .host = finding->host,
                                   .rank = finding->rank,
                                   .worker = finding->worker,
                                   .core = finding->core,
                                   .micro_batch = (int64_t)finding->micro_batch,
                                   .first_sample = finding->first,
                                   .last_sample = finding->last,
                                   .name = finding->name,
                                   .differing = (int64_t)finding->differing};
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_AUDIT, .text = text, .audit = &audit};
    ls_events_send(trainer, &event);
    ls_detector_found(trainer->comm->detector, text);
}

void ls_trainer_report_findings(struct ls_trainer *trainer)
{
    size_t count = 0;
    if (trainer->train_pass->audit == NULL)
        return;
    const struct ls_audit_finding *findings = ls_audit_findings(trainer->train_pass->audit, &count);
    for (size_t i = 0; i < count; i++)
        report(trainer, &findings[i]);
}

void ls_trainer_report_audits(struct ls_trainer *trainer)
{
    int64_t audited, wrong;
    if (trainer->train_pass->audit == NULL)
        return;
    ls_audit_count(trainer->train_pass->audit, &audited, &wrong);
    if (wrong == 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "Audits: %lld micro-batches were computed a second time, with the same bits",
                      (long long)audited);
    else
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                      "audits: %lld micro-batches were computed a second time; %lld computations "
                      "were wrong, see above",
                      (long long)audited, (long long)wrong);
}
