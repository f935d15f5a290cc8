/* caffe train: a training with the log of Caffe's.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CAFFE_TRAIN_H
#define LS_CLI_CAFFE_TRAIN_H

#include "cli/caffe_flags.h"
#include "cli/glog.h"

/* The exit code. A training that a signal has stopped is a success, as in Caffe. */
int ls_caffe_train(const struct ls_caffe_flags *flags, const struct ls_glog *log);

#endif
