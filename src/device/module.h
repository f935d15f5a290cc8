/* A device in a shared object, which the program loads when it is asked for (ops/loaded.h).
 *
 * The object has copies of src/base, src/ir and src/device of its own, hidden from all others. What
 * must not exist twice it gets from the program in a struct. The two must have been built from the
 * same headers, because each reads the other's structs: the object compares the program's identity
 * with its own before it touches anything else.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_MODULE_H
#define LS_DEVICE_MODULE_H

#include <stddef.h>

#include "device_interface.h" /* made by the build: LS_DEVICE_INTERFACE, a hash of these headers */
#include "ir/layout.h"

struct ls_device;

#define LS_DEVICE_IDENTITY LOCKSTEP_VERSION ", interface " LS_DEVICE_INTERFACE

/* What a device uses of the program. */
struct ls_device_program {
    const char *identity; /* LS_DEVICE_IDENTITY; first in every version */
    int (*thread_card)(void);
    const struct ls_layouts *layouts;
    /* See base/memory.h: so that tests count its allocations, too, and make them fail. */
    void *(*alloc)(size_t count, size_t size);
    void *(*resize)(void *memory, size_t count, size_t size);
    char *(*copy_bytes)(const void *bytes, size_t length);
    void (*free)(void *memory);
    void *(*alloc_aligned)(size_t bytes);
    void (*free_aligned)(void *memory);
    void (*note_memory)(const char *why);
    const char *(*noted_memory)(void);
};

/* The one function that the object exports, as LS_DEVICE_MODULE_NAME. NULL where the program is
 * another one than it was built for: `message` says so. The struct must stay. */
typedef const struct ls_device *ls_device_module(const struct ls_device_program *program,
                                                 char *message, size_t size);
#define LS_DEVICE_MODULE_NAME "lockstep_device_module"

#endif
