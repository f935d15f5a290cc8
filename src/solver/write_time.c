/* Measuring how fast files are written. See solver/write_time.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/write_time.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"

enum {
    LEAST = 1 << 20,     /* bytes of a file that is worth a measurement */
    PART = 32,           /* of it is written, */
    PIECE_MAX = 8 << 20, /* but not more than this */
    TOUCH = 4096         /* bytes that show what any file takes */
};

/* Seconds for a file; negative: it could not be written. */
static double time_file(const char *path, const void *bytes, size_t size)
{
    double start = ls_clock();
    int status = ls_atomic_replace(path, bytes, size, NULL);
    double seconds = ls_clock() - start;
    unlink(path);
    return status == 0 ? seconds : -1;
}

/* Bytes that no file system makes smaller. */
static void fill(uint64_t *words, size_t count)
{
    uint64_t state = 88172645463325252;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

double ls_expected_write_time(const char *prefix, size_t bytes)
{
    size_t piece = bytes / PART < PIECE_MAX ? bytes / PART : PIECE_MAX;
    const char *slash = strrchr(prefix, '/');
    int folder = slash != NULL ? (int)(slash - prefix) + 1 : 0;
    struct ls_text path = {0};
    if (bytes < LEAST)
        return 0;
    ls_text_format(&path, "%.*s.%.100s.%ld.speed.tmp", folder, prefix, prefix + folder,
                   (long)getpid());
    uint64_t *words = ls_alloc_aligned(piece);
    double seconds = 0;
    if (words != NULL && !path.failed) {
        fill(words, piece / sizeof *words);
        double any = time_file(path.data, words, TOUCH), whole = time_file(path.data, words, piece);
        if (any >= 0 && whole >= 0)
            seconds = any + (whole > any ? whole - any : 0) * (double)bytes / (double)piece;
    }
    ls_free_aligned(words);
    ls_text_free(&path);
    return seconds;
}
