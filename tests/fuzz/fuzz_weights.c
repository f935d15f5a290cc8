/* Fuzzes the readers of weights: any bytes as a file, read in each way and given to a small net.
 * Seeds: a safetensors file and caffemodels of each form.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "snapshot/weights.h"
#include "support/read_weights.h"

enum { LAYERS = 9 /* enough of them: each one looks at all layers */ };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_weights(const char *path, enum ls_weights_set set)
{
    struct ls_weights weights;
    struct ls_error error = {0};
    if (ls_weights_read(path, set, &weights, &error) != 0) {
        if (error.count == 0 || weights.layer_count != 0)
            abort(); /* a failure without a reason, or with half a result */
        return;
    }
    ls_test_read_weights(&weights, LAYERS, &error);
    ls_weights_free(&weights);
}

static void read_archive(const char *path)
{
    struct ls_archive archive;
    struct ls_error error = {0};
    if (ls_archive_read(path, LS_ARCHIVE_HEADER, &archive, &error) == 0) {
        for (size_t i = 0; i < archive.tensor_count; i++) {
            const struct ls_tensor *tensor = &archive.tensors[i];
            if (ls_archive_find(&archive, tensor->name) != tensor)
                abort();
            void *copy = malloc(tensor->size + 1);
            ls_tensor_copy(tensor, copy);
            free(copy);
        }
    }
    ls_archive_free(&archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("weights", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size)
        return 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    read_weights(path, LS_WEIGHTS_BEST);
    read_weights(path, LS_WEIGHTS_PLAIN);
    read_archive(path);
    return 0;
}
