/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_DESCRIPTOR_H
#define LS_BASE_DESCRIPTOR_H

/* The same open file with a number that is none of the three standard streams': where a process was
 * started without them, what is printed must not go into a file that has got its number. Takes over
 * `fd`, which may be -1; -1 and errno on failure. */
int ls_above_streams(int fd);

#endif
