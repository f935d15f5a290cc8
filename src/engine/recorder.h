/* Runs over micro-batches as recordings: on a device that offers them (device/stream.h), the steps
 * of a slot are named to it once and given to its stream as a whole afterwards.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_RECORDER_H
#define LS_ENGINE_RECORDER_H

#include "device/device.h"

enum { LS_RECORDED_MAX = 64 };

/* What one slot has recorded; all zeros: nothing. */
struct ls_recorder {
    struct ls_recorded {
        uint64_t what; /* names the run: its segment, and all addresses that steps get */
        bool ran;      /* once without a recording: libraries below have made themselves ready */
        struct ls_recording *recording; /* NULL: not yet */
    } run[LS_RECORDED_MAX];
    int count;
};

/* Runs the steps that `steps` gives to the stream; the second time of one `what` they are recorded,
 * and given as a recording from then on. Where there are too many of them they run as they are. */
int ls_recorder_run(struct ls_recorder *recorder, const struct ls_device_recordings *recordings,
                    uint64_t what, struct ls_stream *stream, int (*steps)(void *user), void *user,
                    struct ls_error *error);
void ls_recorder_forget(struct ls_recorder *recorder,
                        const struct ls_device_recordings *recordings);

#endif
