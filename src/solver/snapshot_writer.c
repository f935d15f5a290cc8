/* Writing snapshots from copies. See solver/snapshot_writer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/snapshot_writer.h"

#include <signal.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "snapshot/catalog.h"
#include "solver/caffe_files.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

enum { ASK_AGAIN = 100000000 /* nanoseconds between two looks at a thread that writes */ };

void ls_snapshot_writer_init(struct ls_snapshot_writer *writer, const struct ls_trainer *trainer)
{
    writer->trainer = trainer;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void count_piece(void *user)
{
    struct ls_snapshot_writer *writer = user;
    atomic_fetch_add(&writer->pieces, 1);
}

static int write_copy(struct ls_snapshot_writer *writer, struct ls_error *error)
{
    const struct ls_trainer *trainer = writer->trainer;
    char *path = ls_catalog_path(trainer->prefix, writer->latest.iteration);
    int status = path == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    writer->staged.archive.wrote = count_piece;
    writer->staged.archive.user = writer;
    if (status == 0)
        status = ls_archive_write(&writer->staged.archive, path, error);
    if (status == 0 && ls_caffe_files_wanted(trainer))
        status = ls_caffe_files_write(trainer, writer->latest.iteration, &writer->staged.archive,
                                      writer->staged.gradients, error);
    ls_free(path);
    return status;
}

void ls_snapshot_writer_prune(struct ls_snapshot_writer *writer)
{
    const struct ls_trainer *trainer = writer->trainer;
    ls_catalog_prune(trainer->prefix, writer->latest.iteration, trainer->solver->snapshot_keep,
                     &writer->latest.besides);
}

static void *write_apart(void *user)
{
    struct ls_snapshot_writer *writer = user;
    struct ls_written *latest = &writer->latest;
    ls_unpin_thread();
    ls_set_float_mode();
    int status = write_copy(writer, &latest->problem);
    if (status == 0)
        ls_snapshot_writer_prune(writer);
    pthread_mutex_lock(&writer->lock);
    if (status == 0 && latest->best) /* found meanwhile, by a test */
        ls_catalog_mark_best(writer->trainer->prefix, latest->iteration, &latest->besides);
    latest->status = status;
    atomic_store(&writer->done, true);
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* ---- The thread that trains ------------------------------------------------------------------ */

void ls_snapshot_writer_start(struct ls_snapshot_writer *writer)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
    writer->has_thread = ls_thread_create(&writer->thread, write_apart, writer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!writer->has_thread)
        write_apart(writer);
}

bool ls_snapshot_writer_is_done(const struct ls_snapshot_writer *writer)
{
    return atomic_load_explicit(&writer->done, memory_order_acquire);
}

void ls_snapshot_writer_wait(struct ls_snapshot_writer *writer)
{
    const struct ls_trainer *trainer = writer->trainer;
    uint64_t seen = 0;
    pthread_mutex_lock(&writer->lock);
    while (writer->has_thread && !atomic_load(&writer->done)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += ASK_AGAIN;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&writer->changed, &writer->lock, &until);
        uint64_t pieces = atomic_load(&writer->pieces);
        if (pieces != seen)
            ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
        seen = pieces;
    }
    pthread_mutex_unlock(&writer->lock);
    if (writer->has_thread)
        pthread_join(writer->thread, NULL);
    writer->has_thread = false;
    atomic_store(&writer->done, false);
}

bool ls_snapshot_writer_mark_best(struct ls_snapshot_writer *writer, double score)
{
    pthread_mutex_lock(&writer->lock);
    bool writing = writer->has_thread && !atomic_load(&writer->done);
    if (writing) {
        writer->latest.best = true;
        writer->latest.score = score;
    }
    pthread_mutex_unlock(&writer->lock);
    return writing;
}

void ls_snapshot_writer_free(struct ls_snapshot_writer *writer)
{
    ls_snapshot_writer_wait(writer);
    ls_staged_free(writer->trainer, &writer->staged);
    pthread_mutex_destroy(&writer->lock);
    pthread_cond_destroy(&writer->changed);
}
