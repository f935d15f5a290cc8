/* From the launcher's environment to a transport. See transport/launch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
    "build Lockstep again; LOCKSTEP_MPI=none trains alone";

/* A number of the environment, which one can be added to; 0 where it is not there or none. */
static int launch_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long value = text != NULL ? strtol(text, &end, 10) : 0;
    return text != NULL && end != text && *end == '\0' && value > 0 && value < INT_MAX ? (int)value
                                                                                       : 0;
}

/* How many tasks srun has started this process as one of; 0: it has not. A batch script and the
 * shell of an allocation, of which there is one each, know the tasks of the whole job: they have no
 * step, or one of the numbers that Slurm keeps for them. */
static int launch_slurm_tasks(void)
{
    enum { SHIFT = 4 }; /* steps 0xfffffff0 to 0xffffffff are Slurm's own */
    const char *step = getenv("SLURM_STEP_ID");
    if (getenv("SLURM_PROCID") == NULL ||
        (step != NULL && strtoul(step, NULL, 10) >> SHIFT == UINT32_MAX >> SHIFT))
        return 0;
    int tasks = launch_number("SLURM_STEP_NUM_TASKS");
    return tasks > 0 || step == NULL ? tasks : launch_number("SLURM_NTASKS");
}

/* mpirun may itself be started by srun: its own word is asked first. */
static struct launcher launch_find_launcher(void)
{
    struct launcher found = {0};
    int tasks = launch_slurm_tasks();
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        found = open_mpi;
        found.size = launch_number("OMPI_COMM_WORLD_SIZE");
    } else if (getenv("PMI_SIZE") != NULL) {
        found = mpich;
        found.size = launch_number("PMI_SIZE");
        if (tasks > 0 && found.size == tasks)
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

/* ---- Processes that each believe to be alone --------------------------------------------------
 */

/* What else says that this process is one of several: how many there are, and which one this is. */
struct claim {
    const char *launcher, *size, *rank, *other_rank;
    bool conclusive; /* one of the variables is enough; else size and a rank must be there */
};

/* MPI_LOCALNRANKS counts those of one machine. */
static const struct claim claims[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, true},
    {"mpirun", "PMI_SIZE", "PMI_RANK", NULL, true},
    {"mpirun", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", NULL, true},
    {"MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", NULL, true},
    {"a launcher that speaks PMIx", "PMIX_SIZE", "PMIX_RANK", NULL, true},
    {"PALS' mpiexec", "PALS_LOCAL_SIZE", "PALS_RANKID", NULL, true},
    {"aprun", "ALPS_APP_SIZE", "ALPS_APP_PE", NULL, true},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", NULL, true},
    {"flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", NULL, false},
    {"horovodrun", "HOROVOD_SIZE", "HOROVOD_RANK", NULL, true},
    {"torchrun or its like", "WORLD_SIZE", "RANK", "LOCAL_RANK", false},
};

/* The rank by a variable; -1: it is not there, or no number. */
static int launch_rank(const char *name)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    if (text == NULL || strcmp(text, "0") == 0)
        return text == NULL ? -1 : 0;
    return launch_number(name) > 0 ? launch_number(name) : -1;
}

/* At least how many processes a claim says that there are; 0: it says nothing. *rank: this one. */
static int launch_claimed(const struct claim *claim, int *rank)
{
    int size = launch_number(claim->size);
    *rank = launch_rank(claim->rank);
    if (*rank < 0)
        *rank = launch_rank(claim->other_rank);
    if (!claim->conclusive && *rank < 0)
        return 0;
    if (claim->conclusive && *rank >= size)
        size = *rank + 1;
    *rank = *rank > 0 ? *rank : 0;
    return size;
}

/* That this process is one of several, by the environment. */
struct others {
    const char *launcher; /* NULL: it is not */
    int size, rank;
};

/* What mpirun says of a process that it has started alone goes for srun, too, which may have
 * started mpirun. */
static struct others launch_find_others(void)
{
    struct others found;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        found.launcher = claims[i].launcher;
        found.size = launch_claimed(&claims[i], &found.rank);
        if (found.size > 1)
            return found;
    }
    found = (struct others){slurm.name, launch_slurm_tasks(), launch_rank("SLURM_PROCID")};
    bool own = getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL;
    return found.size > 1 && !own ? found : (struct others){NULL, 1, 0};
}

/* Processes that each believe to be alone would all do the same and write the same files. */
static int launch_check_alone(const struct others *others, struct ls_error *error)
{
    if (others->launcher == NULL)
        return 0;
    return ls_fail(
        error, LOCKSTEP_RESOURCE, NULL,
        "start it with the mpirun of an MPI library that Lockstep has a module for, or with srun "
        "--mpi=pmix or --mpi=pmi2; where each process is meant to train by itself, set "
        "LOCKSTEP_MPI=none",
        "%s has started this process as number %d of at least %d, but it finds no other: each "
        "would train alone and write the same files",
        others->launcher, others->rank, others->size);
}

static int launch_check_size(const struct launcher *launcher, const struct others *others,
                             const struct ls_transport *transport, struct ls_error *error)
{
    if (launcher->size == 0 || launcher->size == transport->size)
        return transport->size == 1 ? launch_check_alone(others, error) : 0;
    return ls_fail(
        error, LOCKSTEP_RESOURCE, NULL,
        "start it with the mpirun of that library, or name the other's in LOCKSTEP_MPI (openmpi, "
        "mpich); with srun, say --mpi=pmix or --mpi=pmi2",
        "%s has started %d processes, but %s, which Lockstep uses, knows of %d", launcher->name,
        launcher->size, transport->name, transport->size);
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* MPICH's libraries end the process with a code of their own where this is damaged. */
static int launch_check_descriptor(struct ls_error *error)
{
    const char *text = getenv("PMI_FD");
    char *end;
    errno = 0;
    long descriptor = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || (end != text && *end == '\0' && errno == 0 && descriptor >= 0 &&
                         descriptor <= INT_MAX && fcntl((int)descriptor, F_GETFD) >= 0))
        return 0;
    return ls_fail(
        error, LOCKSTEP_RESOURCE, "PMI_FD",
        "it is what mpirun sets for the processes that it starts, and goes to no others; "
        "LOCKSTEP_MPI=none trains without it",
        "'%s' is no descriptor of this process", text);
}

/* What the environment says was read before: MPI's libraries change it. */
static int launch_join(const struct launcher *launcher, const struct others *others,
                       const char *wish, struct ls_transport **transport, struct ls_error *error)
{
    char path[PATH_MAX];
    LS_TRY(launch_check_descriptor(error));
    LS_TRY(launch_choose_module(launcher, wish, path, error));
    LS_TRY(launch_open_module(path, transport, error));
    int status = launch_check_size(launcher, others, *transport, error);
    if (status != 0 || (*transport)->size == 1) {
        (*transport)->calls->end(*transport);
        *transport = NULL;
    }
    return status;
}

/* What LOCKSTEP_MPI says; NULL: nothing. */
static const char *launch_wish(void)
{
    const char *wish = getenv("LOCKSTEP_MPI");
    return wish != NULL && wish[0] != '\0' ? wish : NULL;
}

static bool launch_none_wished(void)
{
    const char *wish = launch_wish();
    return wish != NULL && strcmp(wish, "none") == 0;
}

int ls_launch(struct ls_transport **transport, struct ls_error *error)
{
    *transport = NULL;
    if (launch_none_wished())
        return 0;
    const char *wish = launch_wish();
    struct launcher launcher = launch_find_launcher();
    struct others others = launch_find_others();
    if (launcher.size == 1 || (launcher.name == NULL && wish == NULL))
        return launch_check_alone(&others, error);
    return launch_join(&launcher, &others, wish, transport, error);
}

int ls_launched(int *rank)
{
    struct others others = launch_find_others();
    struct launcher launcher = launch_find_launcher();
    bool none = launch_none_wished();
    if (rank != NULL)
        *rank = none ? 0 : others.rank;
    if (none || (others.launcher == NULL && launcher.name == NULL))
        return 1;
    return others.launcher != NULL ? others.size : launcher.size;
}
