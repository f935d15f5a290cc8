/* Writing what a training tells for other programs to show: TensorBoard's event files, and
 * Prometheus' text format. A part of lockstep/lockstep.h.
 *
 * Both are consumers of events (struct lockstep_callbacks): hand them every event of a training,
 * from one thread at a time, on rank 0. Nothing that they write goes back into a training.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_OBSERVE_H
#define LOCKSTEP_OBSERVE_H

#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Event files in a folder, which is a run of TensorBoard: losses, rates, outputs of tests, norms
 * and histograms of parameters (for trainings with options.statistics), filters of the first
 * convolution as a picture, the definition as text. */
struct lockstep_tensorboard;
/* Makes the folder, with those that it lies in, where it is not there yet. */
LOCKSTEP_API int lockstep_tensorboard_new(const char *folder, struct lockstep_tensorboard **board,
                                          struct lockstep_error *error);
/* Writes an event. The RUN event of a training begins a file of its own: what earlier files of the
 * folder say of updates that this run will make is void then, and they stay as they are. After a
 * failure (LOCKSTEP_RESOURCE, which every call returns from then on) nothing more is written. */
LOCKSTEP_API int lockstep_tensorboard_event(struct lockstep_tensorboard *board,
                                            const struct lockstep_event *event,
                                            struct lockstep_error *error);
/* Closes the file; whatever of it could not be written has failed in an event before, or is told by
 * lockstep_tensorboard_flush. */
LOCKSTEP_API void lockstep_tensorboard_free(struct lockstep_tensorboard *board);
/* Writes what is held back: at most a second of events. */
LOCKSTEP_API int lockstep_tensorboard_flush(struct lockstep_tensorboard *board,
                                            struct lockstep_error *error);

/* The form that numbers have in logs and metrics: whole ones with all digits, of others the
 * shortest that reads back to the same float. `text` has room for 32 bytes. */
LOCKSTEP_API void lockstep_number_text(double value, char *text);

/* Prometheus' text format in a file that is replaced as a whole, as node_exporter's textfile
 * collector wants it: where a training is, its loss, speed, memory, and what has gone wrong. */
struct lockstep_metrics;
LOCKSTEP_API int lockstep_metrics_new(const char *path, struct lockstep_metrics **metrics,
                                      struct lockstep_error *error);
/* Takes an event; at most every five seconds, and with END, the file is written. A failure
 * (LOCKSTEP_RESOURCE) leaves what was there. */
LOCKSTEP_API int lockstep_metrics_event(struct lockstep_metrics *metrics,
                                        const struct lockstep_event *event,
                                        struct lockstep_error *error);
/* Writes the file as it is now. */
LOCKSTEP_API int lockstep_metrics_flush(struct lockstep_metrics *metrics,
                                        struct lockstep_error *error);
/* The run has ended, with an exit code: so does lockstep_running. From any thread; what comes after
 * it changes nothing. */
LOCKSTEP_API int lockstep_metrics_end(struct lockstep_metrics *metrics, int code,
                                      struct lockstep_error *error);
LOCKSTEP_API void lockstep_metrics_free(struct lockstep_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
