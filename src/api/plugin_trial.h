/* Layers of plugins, set up for some samples and called directly, with memory of ours around all
 * that they read and write.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PLUGIN_TRIAL_H
#define LS_API_PLUGIN_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "lockstep/lockstep.h"
#include "lockstep/plugin.h"

enum { LS_PLUGIN_SETTINGS_MAX = 32 };

/* Numbers with a guard behind them. */
struct ls_plugin_numbers {
    float *data;
    size_t count;
};

/* A layer of a type for some samples, with its tensors. */
struct ls_plugin_trial {
    const struct lockstep_plugin_layer *of;
    struct lockstep_plugin_setup setup;
    struct lockstep_plugin_shape shape[LOCKSTEP_PLUGIN_VALUES];
    struct ls_plugin_numbers bottom[LOCKSTEP_PLUGIN_VALUES], top[LOCKSTEP_PLUGIN_VALUES],
        top_gradient[LOCKSTEP_PLUGIN_VALUES], bottom_gradient[LOCKSTEP_PLUGIN_VALUES];
    struct ls_plugin_numbers blob[LOCKSTEP_PLUGIN_BLOBS], blob_gradient[LOCKSTEP_PLUGIN_BLOBS];
    void *scratch;
    const char *wrong; /* what a call did wrong */
    char message[LOCKSTEP_PLUGIN_TEXT];
};

/* What all trials of a check have in common. */
struct ls_plugin_check {
    const struct lockstep_plugin_check_options *options;
    const struct lockstep_plugin_layer *of;
    struct lockstep_plugin_setting setting[LS_PLUGIN_SETTINGS_MAX];
    const char *value[LS_PLUGIN_SETTINGS_MAX];
    char *text[LS_PLUGIN_SETTINGS_MAX]; /* keys and values */
    struct lockstep_plugin_shape shape[LOCKSTEP_PLUGIN_VALUES];
    int bottoms;
    struct ls_error *error;
};

/* How many elements a shape has. */
size_t ls_plugin_elements(const struct lockstep_plugin_shape *shape);
/* `hash` goes on with the bits of `count` tensors. */
uint64_t ls_plugin_hash(const struct ls_plugin_numbers *numbers, int count, uint64_t hash);

/* Sets up a layer for some samples of a batch; NULL after a report. */
struct ls_plugin_trial *ls_plugin_trial_new(const struct ls_plugin_check *check, int64_t samples,
                                            int64_t first);
void ls_plugin_trial_free(struct ls_plugin_trial *trial);
/* Calls forward or backward; false: trial->wrong says what it did. */
bool ls_plugin_trial_call(struct ls_plugin_trial *trial, bool backward, int64_t first);

#endif
