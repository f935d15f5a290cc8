/* Cards: what a device with several of them says of each. A thread works with the card that
 * ls_thread_card names (base/thread.h). SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_CARDS_H
#define LS_DEVICE_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct ls_card_facts {
    char name[256], uuid[48]; /* "GPU-" and 32 digits in groups */
    int major, minor;         /* the compute capability */
    int multiprocessors;
    uint64_t memory; /* bytes in all */
    bool runs;       /* this device has code for it */
};

struct ls_device_cards {
    /* How many there are, at least 1; LOCKSTEP_RESOURCE where there is none, or no driver that
     * finds them, with a hint. */
    int (*count)(int *count, struct ls_error *error);
    int (*describe)(int card, struct ls_card_facts *facts, struct ls_error *error);
    /* Appends lines "key=value": versions of the driver and of the libraries below. */
    void (*libraries)(struct ls_text *text);
    const char *tested; /* a sentence about what the device was tested on */
};

#endif
