/* See engine/recorder.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/recorder.h"

/* What is known of a run; NULL: there are too many. */
static struct ls_recorded *recorder_find(struct ls_recorder *recorder, uint64_t what)
{
    for (int i = 0; i < recorder->count; i++)
        if (recorder->run[i].what == what)
            return &recorder->run[i];
    if (recorder->count == LS_RECORDED_MAX)
        return NULL;
    recorder->run[recorder->count] = (struct ls_recorded){.what = what};
    return &recorder->run[recorder->count++];
}

static int recorder_record(const struct ls_device_recordings *recordings, struct ls_stream *stream,
                           int (*steps)(void *user), void *user, struct ls_recording **recording,
                           struct ls_error *error)
{
    LS_TRY(recordings->begin(stream, error));
    const int status = steps(user);
    if (status == 0)
        return recordings->end(stream, recording, error);
    recordings->end(stream, NULL, NULL);
    return status;
}

int ls_recorder_run(struct ls_recorder *recorder, const struct ls_device_recordings *recordings,
                    uint64_t what, struct ls_stream *stream, int (*steps)(void *user), void *user,
                    struct ls_error *error)
{
    struct ls_recorded *run = recorder_find(recorder, what);
    if (run == NULL || !run->ran) {
        const int status = steps(user);
        if (run != NULL)
            run->ran = status == 0;
        return status;
    }
    if (run->recording == NULL)
        LS_TRY(recorder_record(recordings, stream, steps, user, &run->recording, error));
    return recordings->play(run->recording, stream, error);
}

void ls_recorder_forget(struct ls_recorder *recorder, const struct ls_device_recordings *recordings)
{
    for (int i = 0; i < recorder->count; i++)
        recordings->free(recorder->run[i].recording);
    *recorder = (struct ls_recorder){.count = 0};
}
