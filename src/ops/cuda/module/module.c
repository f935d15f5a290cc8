/* What the loaded device exports, and what it takes from the program. See device/module.h.
 *
 * Allocation is the program's: the functions that follow are those of base/memory.c, which the
 * linker then leaves out of the copy of src/base.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/module.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

static struct ls_device_program program;

void *ls_alloc(size_t count, size_t size)
{
    return program.alloc(count, size);
}

void *ls_resize(void *memory, size_t count, size_t size)
{
    return program.resize(memory, count, size);
}

char *ls_copy_bytes(const void *bytes, size_t length)
{
    return program.copy_bytes(bytes, length);
}

void ls_free(void *memory)
{
    program.free(memory);
}

void *ls_alloc_aligned(size_t bytes)
{
    return program.alloc_aligned(bytes);
}

void ls_free_aligned(void *memory)
{
    program.free_aligned(memory);
}

void ls_note_memory(const char *why)
{
    program.note_memory(why);
}

const char *ls_noted_memory(void)
{
    return program.noted_memory();
}

__attribute__((visibility("default"))) const struct ls_device *
lockstep_device_module(const struct ls_device_program *from, char *message, size_t size);

const struct ls_device *lockstep_device_module(const struct ls_device_program *from, char *message,
                                               size_t size)
{
    if (strcmp(from->identity, LS_DEVICE_IDENTITY) != 0) {
        snprintf(message, size, "it is of another build (%s) than this program (%s)",
                 LS_DEVICE_IDENTITY, from->identity);
        return NULL;
    }
    program = *from;
    ls_layouts = program.layouts;
    ls_card_of_thread = program.thread_card;
    return &ls_device_cuda;
}
