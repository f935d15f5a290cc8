/* Caffe's program: its command lines, and its log.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CAFFE_H
#define LS_CLI_CAFFE_H

#include "cli/caffe_flags.h"
#include "cli/glog.h"
#include "lockstep/lockstep.h"

/* What it says of itself. */
extern const char ls_caffe_usage[];
/* The program itself, with the arguments behind its name. Returns the exit code. */
int ls_caffe_main(int count, char **arguments);

/* Where a value of Caffe's log that several commands write comes from: the outputs of a net, one
 * line for each figure, behind `what` ("    Test net output #"), numbered if `numbered`. */
void ls_caffe_put_outputs(const struct ls_glog *log, const char *place, const char *what,
                          bool numbered, const struct lockstep_output *outputs, size_t count);
/* What the library says that has no counterpart in Caffe's log, warnings and the like. */
void ls_caffe_put_event(const struct ls_glog *log, const char *place,
                        const struct lockstep_event *event);
/* The flags about dummy data, told of in the log. False: there are none. */
bool ls_caffe_dummy_options(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                            struct lockstep_dummy_options *options);
/* Says what computes, and returns its name: cards where -gpu asks for some and they are there (for
 * what does not train the first of them), else NULL, and why. `name` has room for it. */
enum { LS_CAFFE_DEVICE_ROOM = 512 };
const char *ls_caffe_choose_device(const struct ls_caffe_flags *flags, const struct ls_glog *log,
                                   char name[LS_CAFFE_DEVICE_ROOM]);
/* The problems of an error, each a line. Returns `status`. */
int ls_caffe_report(const struct ls_glog *log, int status, struct lockstep_error *error);

#endif
