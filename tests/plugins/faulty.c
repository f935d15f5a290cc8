/* Plugins with one mistake each, FAULT: tests/faults/plugin.sh says which is which.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "lockstep/plugin.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NONE,
    WRONG_ABI,
    NO_SYMBOL,
    NO_LAYERS,
    TYPE_TAKEN,
    NO_FORWARD,
    REFUSES,
    WRONG_ROWS,
    WRONG_BLOB,
    FAILS_FORWARD,
    FAILS_BACKWARD,
    MAKES_NAN,
    MIXES_SAMPLES, /* and does not say so */
    WRONG_GRADIENT,
    REMEMBERS,
    WRITES_BOTTOM,
    WRITES_BEHIND,
    LEAVES_OUT, /* elements of its output */
    NO_TERMINATOR,
    WRONG_SCRATCH,
    WRONG_FILLER,
    CHANGES_ROUNDING, /* of the thread that calls it */
    EXITS,
    EXITS_AT_ONCE,
    ENDS_THREAD,
    CRASHES
};

struct state {
    int64_t samples, size; /* of a sample */
};

static int setup(struct lockstep_plugin_setup *setup)
{
    struct state *state = setup->state;
    state->samples = setup->bottom[0].dim[0];
    state->size = 1;
    for (int i = 1; i < setup->bottom[0].axes; i++)
        state->size *= setup->bottom[0].dim[i];
    setup->top[0] = setup->bottom[0];
    if (FAULT == CHANGES_ROUNDING)
        fesetround(FE_DOWNWARD);
    if (FAULT == EXITS)
        exit(0);
    if (FAULT == EXITS_AT_ONCE)
        _exit(0);
    if (FAULT == ENDS_THREAD)
        pthread_exit(NULL);
    if (FAULT == CRASHES)
        raise(SIGSEGV);
    if (FAULT == WRONG_ROWS)
        setup->top[0].dim[0]++;
    if (FAULT == WRONG_BLOB) {
        setup->blobs = 1;
        setup->blob[0].shape = (struct lockstep_plugin_shape){2, {3, 0}};
    }
    if (FAULT == WRONG_SCRATCH)
        setup->scratch_bytes = SIZE_MAX;
    if (FAULT == WRONG_FILLER) {
        setup->blobs = 1;
        setup->blob[0].shape = (struct lockstep_plugin_shape){1, {3}};
        setup->blob[0].constant = NAN;
    }
    if (FAULT == NO_TERMINATOR)
        memset(setup->message, 'x', sizeof setup->message);
    if (FAULT == REFUSES)
        strcpy(setup->message, "not today");
    return FAULT == REFUSES || FAULT == NO_TERMINATOR;
}

static int calls; /* what no plugin should have */

static int forward(const struct lockstep_plugin_call *call)
{
    const struct state *state = call->state;
    const int64_t count = state->samples * state->size;
    const float *x = call->bottom[0];
    float *y = call->top[0];
    calls++;
    for (int64_t i = 0; i < count - (FAULT == LEAVES_OUT); i++)
        y[i] = 2 * x[i];
    if (FAULT == MAKES_NAN)
        y[count - 1] = NAN;
    if (FAULT == MIXES_SAMPLES)
        y[0] += x[count - 1];
    if (FAULT == REMEMBERS)
        y[0] += (float)(calls % 7);
    if (FAULT == WRITES_BOTTOM)
        ((float *)(uintptr_t)x)[0] = 1;
    if (FAULT == WRITES_BEHIND)
        y[count] = 1;
    if (FAULT == CHANGES_ROUNDING)
        fesetround(FE_UPWARD);
    if (FAULT == FAILS_FORWARD)
        strcpy(call->message, "the moon is full");
    return FAULT == FAILS_FORWARD ? -5 : 0;
}

static int backward(const struct lockstep_plugin_call *call)
{
    const struct state *state = call->state;
    for (int64_t i = 0; i < state->samples * state->size && call->bottom_gradient[0] != NULL; i++)
        call->bottom_gradient[0][i] =
            (FAULT == WRONG_GRADIENT ? 3.0F : 2.0F) * call->top_gradient[0][i];
    return FAULT == FAILS_BACKWARD;
}

static const struct lockstep_plugin_layer twice = {
    .struct_size = sizeof twice,
    .type = FAULT == TYPE_TAKEN ? "Convolution" : "Twice",
    .summary = "y = 2 x",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .state_size = sizeof(struct state),
    .setup = setup,
    .forward = FAULT == NO_FORWARD ? NULL : forward,
    .backward = backward,
};

static const struct lockstep_plugin_layer *const layers[] = {FAULT == NO_LAYERS ? NULL : &twice,
                                                             NULL};

#define PLUGIN                                                                                     \
    {                                                                                              \
        .abi = FAULT == WRONG_ABI ? 77 : LOCKSTEP_PLUGIN_ABI,                                      \
        .struct_size = sizeof(struct lockstep_plugin), .name = "faulty", .version = "1",           \
        .layers = layers,                                                                          \
    }
#if FAULT == 2
const struct lockstep_plugin *const another_name = &(const struct lockstep_plugin)PLUGIN;
#else
LOCKSTEP_PLUGIN_EXPORT const struct lockstep_plugin lockstep_plugin = PLUGIN;
#endif
