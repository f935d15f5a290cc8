/* Shared by the files of the fake library: notes of calls, counted objects, answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_FAKE_INNER_H
#define LS_TESTS_FAKE_INNER_H

#include "fake_library.h"

struct lockstep_error {
    char text[256];
};

/* Appends to fake.calls. */
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Appends "device(NAME) " where one is named. */
void fake_note_device(const char *device);
/* Appends "dummy(ALL|INPUT|...) " where data are replaced that are there, and tells of one. */
void fake_note_dummy(const struct lockstep_dummy_options *options);
/* The string, or "-". */
const char *fake_text(const char *string);
/* Objects that fake.live_objects counts. */
void *fake_make(size_t size);
void fake_unmake(void *object);
/* Returns `status`; where it is a failure `error` gets fake.message. */
int fake_answer(int status, struct lockstep_error *error);
void fake_send_events(const struct lockstep_callbacks *callbacks);

#endif
