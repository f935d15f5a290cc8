/* The command line of Caffe's program: flags as the library gflags reads them.
 *
 * "-x value", "-x=value" and "--x..." alike; "-flag", "-noflag" and "-flag=false" for those that
 * are true or false; the last of several holds. What is no flag is an argument.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CAFFE_FLAGS_H
#define LS_CLI_CAFFE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/glog.h"

enum { LS_CAFFE_STAGES = 32, LS_CAFFE_ARGUMENTS = 16, LS_CAFFE_INPUTS = 16 };

struct ls_caffe_flags {
    const char *solver, *model, *weights, *snapshot, *gpu, *phase, *log_dir;
    const char *sigint_effect, *sighup_effect;
    int64_t level, iterations, workers, minloglevel, stderrthreshold;
    bool logtostderr, alsologtostderr, dummy_data, partial_weights, help, version;
    char *stage_text; /* freed by ls_caffe_flags_free */
    const char *stage[LS_CAFFE_STAGES];
    size_t stages;
    const char *input[LS_CAFFE_INPUTS]; /* our own: shapes */
    size_t inputs;
    const char *argument[LS_CAFFE_ARGUMENTS];
    size_t arguments;
};

/* 0, or LOCKSTEP_USAGE after a message. */
int ls_caffe_flags_parse(int count, char **arguments, struct ls_caffe_flags *flags);
void ls_caffe_flags_free(struct ls_caffe_flags *flags);
/* Where lines of the log go, as the flags say. 0 or a status after a message. */
int ls_caffe_flags_log(const struct ls_caffe_flags *flags, struct ls_glog *log);

#endif
