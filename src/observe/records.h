/* TensorBoard's messages and the files that they lie in.
 *
 * A file is a sequence of records: the length in 8 bytes, its CRC-32C, the bytes, their CRC-32C. A
 * record is an Event message. Field numbers are those of TensorFlow's event.proto, summary.proto
 * and tensor.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OBSERVE_RECORDS_H
#define LS_OBSERVE_RECORDS_H

#include <stdint.h>

#include "base/text.h"
#include "lockstep/report.h"

/* Adds a record that holds `message` to a file's bytes. */
void ls_records_add(struct ls_text *file, const struct ls_text *message);

/* Values of a Summary. */
void ls_summary_scalar(struct ls_text *summary, const char *tag, double value);
void ls_summary_text(struct ls_text *summary, const char *tag, const char *markdown);
void ls_summary_png(struct ls_text *summary, const char *tag, int64_t height, int64_t width,
                    int channels, const void *bytes, size_t size);
/* `squares` is the sum of all squares. */
void ls_summary_histogram(struct ls_text *summary, const char *tag,
                          const struct lockstep_histogram *histogram, double squares);

/* Events. `time` is in seconds since 1970. */
void ls_record_version(struct ls_text *event, double time);
/* A run begins; what other files of the folder say of `step` and later ones is void. */
void ls_record_start(struct ls_text *event, double time, int64_t step);
void ls_record_summary(struct ls_text *event, double time, int64_t step,
                       const struct ls_text *summary);

#endif
