/* Lockstep: data-parallel training of neural networks whose result does not depend on how many
 * workers computed it.
 *
 * The trained model is a function of the definition (prototxt in Caffe's language and its
 * extensions), the data and the seed. This header, with those that it includes, is the whole public
 * interface; the command line is written with nothing else.
 *
 * Conventions
 *   - A function that can fail returns an `enum lockstep_status` (0 is success) and describes the
 *     failure in its last argument, which may be NULL. Nothing is printed; nothing exits.
 *   - Objects are made by `..._load`, `..._create` or `..._new` and released by the `..._free` of
 *     the same name, which accepts NULL. On failure the result is set to NULL.
 *   - Pointers that a caller hands in are valid, and not NULL where no comment says that they may
 *     be. Paths, weights, solvers and options that are NULL are LOCKSTEP_USAGE where something is
 *     loaded or created. Elsewhere they are not checked, and objects that were freed never are.
 *   - Strings are UTF-8, NUL-terminated, and belong to the object that returned them.
 *   - An object is used by one thread at a time; different objects are independent.
 *   - What the calling thread has set (rounding, floating-point traps, denormals, OpenMP's threads,
 *     the locale) does not change results and is there again afterwards; callbacks see it, too.
 *   - Tensors are fp32 in Caffe's order: samples, channels, height, width.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include "lockstep/base.h"
#include "lockstep/cards.h"
#include "lockstep/data.h"
#include "lockstep/files.h"
#include "lockstep/generate.h"
#include "lockstep/import.h"
#include "lockstep/inputs.h"
#include "lockstep/job.h"
#include "lockstep/log.h"
#include "lockstep/model.h"
#include "lockstep/net.h"
#include "lockstep/observe.h"
#include "lockstep/plan.h"
#include "lockstep/problems.h"
#include "lockstep/report.h"
#include "lockstep/scaling.h"
#include "lockstep/sweep.h"
#include "lockstep/text.h"
#include "lockstep/time.h"
#include "lockstep/train.h"
#include "lockstep/writing.h"

#endif
