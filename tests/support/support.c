/* Helpers of the tests: see support.h. SPDX-License-Identifier: BSD-2-Clause */
#include "support/support.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef LOCKSTEP_SOURCE_DIR
#error "the build says where the source tree is"
#endif

/* LOCKSTEP_TEST_FILTER: the name of the only case that a program shall run; with * and ?. */
__attribute__((constructor)) static void set_filter(void)
{
    if (getenv("LOCKSTEP_TEST_FILTER") != NULL)
        cmocka_set_test_filter(getenv("LOCKSTEP_TEST_FILTER"));
}

static char directory[PATH_MAX];
static pid_t owner; /* a child that a test forks must not remove its parent's files */

/* One of eight buffers in turn, holding "<folder>/<name>". */
static const char *join(const char *folder, const char *name)
{
    static char buffers[8][PATH_MAX];
    static unsigned next;
    char *buffer = buffers[next++ % 8];
    if (snprintf(buffer, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        fail_msg("path too long: %s/%s", folder, name);
    return buffer;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    (void)chmod(path, 0700); /* a test may have taken our rights away */
    return remove(path);
}

static void remove_directory(void)
{
    if (directory[0] != '\0' && getpid() == owner)
        nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *ls_test_directory(void)
{
    if (directory[0] == '\0') {
        const char *base = getenv("TMPDIR");
        snprintf(directory, sizeof directory, "%s/lockstep-test-XXXXXX",
                 base != NULL && base[0] != '\0' ? base : "/tmp");
        if (mkdtemp(directory) == NULL)
            fail_msg("cannot make %s", directory);
        owner = getpid();
        atexit(remove_directory);
    }
    return directory;
}

const char *ls_test_path(const char *name)
{
    return join(ls_test_directory(), name);
}

static const char *source_root(void)
{
    const char *root = getenv("LOCKSTEP_SOURCE");
    return root != NULL && root[0] != '\0' ? root : LOCKSTEP_SOURCE_DIR;
}

const char *ls_test_data(const char *name)
{
    const char *root = getenv("LOCKSTEP_DATA");
    if (root == NULL || root[0] == '\0')
        root = join(source_root(), "../shared/data");
    const char *path = join(root, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *ls_test_data_or_skip(const char *name)
{
    const char *path = ls_test_data(name);
    if (path == NULL)
        ls_test_skip("needs the data set '%s' (LOCKSTEP_DATA names the folder)", name);
    return path;
}

const char *ls_test_source(const char *name)
{
    return join(source_root(), name);
}

void ls_test_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("skipped: ", stdout);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
    skip();
    abort(); /* skip() does not return */
}

void ls_test_write(const char *path, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    if (stream == NULL)
        fail_msg("cannot create %s", path);
    bool good = size == 0 || fwrite(bytes, 1, size, stream) == size;
    if (fclose(stream) != 0 || !good)
        fail_msg("cannot write %s", path);
}

void ls_test_write_text(const char *path, const char *text)
{
    ls_test_write(path, text, strlen(text));
}

char *ls_test_read(const char *path, size_t *size)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        fail_msg("cannot open %s", path);
    struct stat info;
    if (fstat(fileno(stream), &info) != 0)
        fail_msg("cannot look at %s", path);
    char *bytes = malloc((size_t)info.st_size + 1);
    if (bytes == NULL)
        fail_msg("no memory for %s", path);
    *size = fread(bytes, 1, (size_t)info.st_size, stream);
    bytes[*size] = '\0';
    fclose(stream);
    return bytes;
}

size_t ls_test_count_files(const char *folder)
{
    DIR *stream = opendir(folder);
    if (stream == NULL)
        fail_msg("cannot list %s", folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            count++;
    }
    closedir(stream);
    return count;
}
