/* From the launcher's environment to a transport. See transport/launch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/launch.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "base/text.h"

enum { KINDS_MAX = 3 };

/* What the environment says. */
struct launcher {
    const char *name;                 /* NULL: none */
    int size;                         /* of the job; 0: it does not say */
    const char *kinds[KINDS_MAX + 1]; /* modules that may fit, the likeliest first */
};

/* "mpi" is the module of a library that is no relative of the other two. */
static const struct launcher open_mpi = {"Open MPI's mpirun", 0, {"openmpi", "mpi"}};
static const struct launcher mpich = {"mpirun", 0, {"mpich", "mpi"}};
static const struct launcher slurm = {"srun", 0, {"openmpi", "mpich", "mpi"}};
static const struct launcher pmix = {"a launcher that speaks PMIx", 0, {"openmpi", "mpich", "mpi"}};

static const char install_hint[] =
    "install an MPI library's files for developers (on Debian libopenmpi-dev or libmpich-dev), and "
    "build Lockstep again";

/* A number of the environment; 0 where it is not there or none. */
static int launch_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long value = text != NULL ? strtol(text, &end, 10) : 0;
    return text != NULL && end != text && *end == '\0' && value > 0 && value <= INT_MAX ? (int)value
                                                                                        : 0;
}

/* Slurm sets SLURM_STEP_NUM_TASKS for what srun starts; a batch script, of which there is one, has
 * SLURM_NTASKS alone. mpirun may itself be started by srun: its own word is asked first. */
static struct launcher launch_find_launcher(void)
{
    struct launcher found = {0};
    int tasks = launch_number("SLURM_STEP_NUM_TASKS");
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        found = open_mpi;
        found.size = launch_number("OMPI_COMM_WORLD_SIZE");
    } else if (getenv("PMI_SIZE") != NULL) {
        found = mpich;
        found.size = launch_number("PMI_SIZE");
        if (tasks > 0 && getenv("SLURM_PROCID") != NULL && found.size == tasks)
            found = (struct launcher){slurm.name, tasks, {"mpich", "openmpi", "mpi"}};
    } else if (getenv("PMIX_RANK") != NULL) {
        found = tasks > 0 ? slurm : pmix;
        found.size = tasks;
    } else if (tasks > 1) {
        found = slurm;
        found.size = tasks;
    }
    return found;
}

static int launch_fail_without_module(const struct launcher *launcher, struct ls_error *error)
{
    struct ls_text names = {0}, folders = {0};
    for (int k = 0; launcher->kinds[k] != NULL; k++)
        ls_text_format(&names, "%sliblockstep_%s.so", k > 0 ? " or " : "", launcher->kinds[k]);
    ls_module_tell_folders(&folders);
    int status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, install_hint,
                         "%s has started this process as one of several, but %s is %s",
                         launcher->name, names.data != NULL ? names.data : "the module for it",
                         folders.data != NULL ? folders.data : "not there");
    ls_text_free(&folders);
    ls_text_free(&names);
    return status;
}

/* What LOCKSTEP_MPI names, or the first of the launcher's kinds that is there. */
static int launch_choose_module(const struct launcher *launcher, const char *wish,
                                char path[PATH_MAX], struct ls_error *error)
{
    if (wish != NULL && strchr(wish, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", wish);
        return 0;
    }
    if (wish != NULL && !ls_module_find(wish, path))
        return ls_fail(error, LOCKSTEP_RESOURCE, "LOCKSTEP_MPI", install_hint,
                       "there is no liblockstep_%s.so", wish);
    if (wish != NULL)
        return 0;
    for (int k = 0; launcher->kinds[k] != NULL; k++)
        if (ls_module_find(launcher->kinds[k], path))
            return 0;
    return launch_fail_without_module(launcher, error);
}

/* The module stays loaded: MPI's libraries cannot be taken out of a process. Their own modules need
 * their names, hence RTLD_GLOBAL. */
static int launch_open_module(const char *path, struct ls_transport **transport,
                              struct ls_error *error)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (module == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, install_hint, "cannot load the module: %s",
                       dlerror());
    ls_transport_open_function *open;
    *(void **)&open = dlsym(module, "lockstep_transport_open"); /* POSIX's way to a function */
    if (open == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "is no module of Lockstep's");
    char message[512] = "";
    *transport = open(LS_TRANSPORT_ABI, message, sizeof message);
    if (*transport == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, path, NULL, "%s", message);
    return 0;
}

/* Processes that each believe to be alone would all do the same and write the same files. */
static int launch_check_size(const struct launcher *launcher, struct ls_transport **transport,
                             struct ls_error *error)
{
    int size = (*transport)->size;
    if (launcher->size == 0 || launcher->size == size)
        return 0;
    int status = ls_fail(
        error, LOCKSTEP_RESOURCE, NULL,
        "start it with the mpirun of that library, or name the other's in LOCKSTEP_MPI (openmpi, "
        "mpich); with srun, say --mpi=pmix or --mpi=pmi2",
        "%s has started %d processes, but %s, which Lockstep uses, knows of %d", launcher->name,
        launcher->size, (*transport)->name, size);
    (*transport)->calls->end(*transport);
    *transport = NULL;
    return status;
}

int ls_launch(struct ls_transport **transport, struct ls_error *error)
{
    *transport = NULL;
    const char *wish = getenv("LOCKSTEP_MPI");
    if (wish != NULL && wish[0] == '\0')
        wish = NULL;
    struct launcher launcher = launch_find_launcher();
    if (launcher.size == 1 || (launcher.name == NULL && wish == NULL))
        return 0;
    char path[PATH_MAX];
    LS_TRY(launch_choose_module(&launcher, wish, path, error));
    LS_TRY(launch_open_module(path, transport, error));
    LS_TRY(launch_check_size(&launcher, transport, error));
    if ((*transport)->size == 1) {
        (*transport)->calls->end(*transport);
        *transport = NULL;
    }
    return 0;
}

int ls_launched(int *rank)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};
    struct launcher launcher = launch_find_launcher();
    if (rank != NULL)
        *rank = 0;
    if (launcher.name == NULL)
        return 1;
    for (size_t i = 0; rank != NULL && i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL) {
            *rank = launch_number(names[i]);
            break;
        }
    return launcher.size;
}
