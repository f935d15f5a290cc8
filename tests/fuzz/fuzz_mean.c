/* Fuzzes the reader of mean files: the bytes are the file. What is accepted is written and read
 * again, with the same numbers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/mean_file.h"
#include "data/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static int open_memory(char path[64])
{
    int file = memfd_create("mean", MFD_CLOEXEC);
    must(file >= 0);
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

/* A file with these numbers in Caffe's older form, which the writer makes. */
static void write_again(const int64_t shape[3], const float *mean)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    struct ls_error error = {0};
    char path[64];
    float *again;
    int64_t same[3];
    snprintf(path, sizeof path, "%s/lockstep-fuzz-mean-%d", folder, (int)getpid());
    must(ls_mean_write(path, shape, mean, &error) == 0);
    must(ls_mean_shape(path, same, &error) == 0 && memcmp(same, shape, sizeof same) == 0);
    must(ls_mean_read(path, shape, &again, &error) == 0);
    must(memcmp(again, mean, (size_t)ls_record_size(shape) * sizeof *mean) == 0);
    ls_free(again);
    unlink(path);
}

static void read_mean(const char *path, const int64_t shape[3])
{
    struct ls_error error = {0};
    float *mean;
    int status = ls_mean_read(path, shape, &mean, &error);
    must((status == 0) == (mean != NULL) && (status == 0) == (error.count == 0));
    if (status == 0)
        write_again(shape, mean);
    ls_free(mean);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t common[3] = {3, 2, 2};
    struct ls_error error = {0};
    char path[64];
    int64_t shape[3];
    int file = open_memory(path);
    must(write(file, bytes, size) == (ssize_t)size);
    read_mean(path, common);
    int status = ls_mean_shape(path, shape, &error);
    must((status == 0) == (error.count == 0));
    if (status == 0 && ls_record_shape_valid(shape)) /* as those of records are */
        read_mean(path, shape);
    close(file);
    return 0;
}
