/* The device that is loaded when it is asked for: that of NVIDIA's cards, liblockstep_cuda.so
 * (base/module.h says where it is looked for), or the file that LOCKSTEP_CUDA_MODULE names.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_LOADED_H
#define LS_OPS_LOADED_H

#include "device/device.h"

extern const char ls_loaded_device_name[]; /* "cuda" */

/* Loads it, once in a process. LOCKSTEP_RESOURCE where it cannot be: with a hint that says how to
 * get it. */
int ls_device_load(const struct ls_device **device, struct ls_error *error);
/* The device, where it was loaded; else NULL. */
const struct ls_device *ls_device_loaded(void);

#endif
