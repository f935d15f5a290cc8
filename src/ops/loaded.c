/* See ops/loaded.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/loaded.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/module.h"
#include "base/text.h"
#include "base/thread.h"
#include "device/module.h"

const char ls_loaded_device_name[] = "cuda";

static const char build_hint[] =
    "build Lockstep where CUDA's toolkit is (nvcc, cudart; docs/gpu.md), or install that build's "
    "liblockstep_cuda.so beside this program";
static const char rebuild_hint[] = "build program and module together, or remove the module";

/* Once loaded it stays: its threads and the driver's cannot be taken out of a process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const struct ls_device *) loaded;

static int no_module(struct ls_error *error)
{
    struct ls_text where = {0};
    ls_module_tell_folders(&where);
    const int status =
        ls_fail(error, LOCKSTEP_RESOURCE, NULL, build_hint,
                "this build has no device for NVIDIA's cards: liblockstep_cuda.so is %s",
                where.data != NULL ? where.data : "not there");
    ls_text_free(&where);
    return status;
}

/* Without the driver no card can be used, and what the module links is large: it is not even
 * loaded. A module that is named is taken at its word. */
static int check_driver(struct ls_error *error)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "install NVIDIA's driver; nvidia-smi shows whether it works",
                       "no driver for NVIDIA's cards was found (libcuda.so.1)");
    dlclose(driver);
    return 0;
}

/* A name without a slash is a file of this folder, not one that dlopen looks for; and to open a
 * FIFO waits for ever. */
static int find_named(const char *named, char path[PATH_MAX], struct ls_error *error)
{
    struct stat info;
    if (realpath(named, path) == NULL || stat(path, &info) != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, "LOCKSTEP_CUDA_MODULE", NULL,
                       "there is no file '%s'", named);
    if (!S_ISREG(info.st_mode))
        return ls_fail(error, LOCKSTEP_RESOURCE, "LOCKSTEP_CUDA_MODULE",
                       "give the path of liblockstep_cuda.so", "'%s' is no regular file", named);
    return 0;
}

static int find(char path[PATH_MAX], struct ls_error *error)
{
    const char *named = getenv("LOCKSTEP_CUDA_MODULE");
    if (named == NULL || named[0] == '\0')
        return ls_module_find(ls_loaded_device_name, path) ? check_driver(error) : no_module(error);
    return find_named(named, path, error);
}

static int load(const struct ls_device **device, struct ls_error *error)
{
    static const struct ls_device_program program = {.identity = LS_DEVICE_IDENTITY,
                                                     .thread_card = ls_thread_card,
                                                     .layouts = &ls_layouts_here,
                                                     .alloc = ls_alloc,
                                                     .resize = ls_resize,
                                                     .copy_bytes = ls_copy_bytes,
                                                     .free = ls_free,
                                                     .alloc_aligned = ls_alloc_aligned,
                                                     .free_aligned = ls_free_aligned,
                                                     .note_memory = ls_note_memory,
                                                     .noted_memory = ls_noted_memory};
    char path[PATH_MAX], message[256] = "";
    LS_TRY(find(path, error));
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "it needs the libraries that it was built with: cuDNN, cuBLASLt, NCCL",
                       "the device for NVIDIA's cards cannot be loaded: %s", dlerror());
    ls_device_module *get;
    *(void **)&get = dlsym(module, LS_DEVICE_MODULE_NAME); /* POSIX's way to a function */
    *device = get != NULL ? get(&program, message, sizeof message) : NULL;
    if (*device != NULL)
        return 0;
    dlclose(module);
    return get == NULL ? ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "is no device of Lockstep's")
                       : ls_fail(error, LOCKSTEP_RESOURCE, path, rebuild_hint,
                                 "the device cannot be used: %s", message);
}

int ls_device_load(const struct ls_device **device, struct ls_error *error)
{
    int status = 0;
    pthread_mutex_lock(&lock);
    *device = atomic_load(&loaded);
    if (*device == NULL)
        status = load(device, error);
    if (status == 0)
        atomic_store(&loaded, *device);
    pthread_mutex_unlock(&lock);
    return status;
}

const struct ls_device *ls_device_loaded(void)
{
    return atomic_load(&loaded);
}
