/* A test of a plugin's type in a process of its own: whatever it does there, exit and crashes
 * included, is told.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PLUGIN_CHILD_H
#define LS_API_PLUGIN_CHILD_H

#include "api/plugin_trial.h"

/* Calls `test` in a child, and hands on what it says and fails with. */
int ls_plugin_test_in_child(const struct ls_plugin_check *check,
                            int (*test)(const struct ls_plugin_check *check));

#endif
