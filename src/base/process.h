/* Processes of this machine: whether another one is still there.
 *
 * A number is given to another process some time after its owner has ended, so a process is named
 * by its number and by when it was started, within a namespace of numbers of one boot.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PROCESS_H
#define LS_BASE_PROCESS_H

#include <stdint.h>

/* Can be sent to other processes as it is. */
struct ls_process {
    uint64_t space;   /* where numbers mean the same: boot and namespace; 0: not known */
    uint64_t started; /* in ticks since the boot */
    int64_t number;
};

enum ls_process_state {
    LS_PROCESS_UNKNOWN, /* of another machine or container, or not to be seen */
    LS_PROCESS_THERE,
    LS_PROCESS_STOPPED, /* by a signal or a debugger: it does nothing until it is let go on */
    LS_PROCESS_GONE     /* also where it is dead and only waits to be asked how it ended */
};

struct ls_process ls_process_self(void);
enum ls_process_state ls_process_state(const struct ls_process *process);

#endif
