/* What the rest of the interface stands on: statuses, errors, versions, definitions. A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_BASE_H
#define LOCKSTEP_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

/* ---- Statuses and errors ---------------------------------------------------------------- */

/* What a function returns; also the exit codes of the command line. */
enum lockstep_status {
    LOCKSTEP_OK = 0,
    LOCKSTEP_INTERNAL = 1,   /* a mistake of ours */
    LOCKSTEP_USAGE = 2,      /* arguments that cannot be used */
    LOCKSTEP_DEFINITION = 3, /* the net or the solver */
    LOCKSTEP_DATA = 4,       /* a data source or a record of it */
    LOCKSTEP_WEIGHTS = 5,    /* weights or a snapshot */
    LOCKSTEP_DIVERGED = 6,   /* a loss or gradient that is not finite */
    LOCKSTEP_RESOURCE = 7,   /* out of memory or disk */
    LOCKSTEP_DIFFERENT = 8,  /* verify, ranks of a job, audits or replay found different bytes */
    LOCKSTEP_LOST = 9,       /* another rank of the job failed, or is not heard of */
    LOCKSTEP_STOPPED = 75    /* stopped by request, with a snapshot to resume from */
};

/* Why a call failed: one or more problems, each with its place, a message and a hint. */
struct lockstep_error;
LOCKSTEP_API struct lockstep_error *lockstep_error_new(void); /* NULL: out of memory */
LOCKSTEP_API void lockstep_error_free(struct lockstep_error *error);
LOCKSTEP_API int lockstep_error_status(const struct lockstep_error *error);
/* All problems, one a line: "net.prototxt:12:5: message. hint: ...". "" without any. The text
 * belongs to `error`, until it is used again. */
LOCKSTEP_API const char *lockstep_error_text(struct lockstep_error *error);

/* The version of the numerical contract (docs/numerics.md). It is raised when a bit of any trained
 * model changes on purpose, with a line in the CHANGELOG. Versions of Lockstep with the same number
 * train the same bits in the same numeric environment. */
#define LOCKSTEP_NUMERICS 3

/* "0.1.0" */
LOCKSTEP_API const char *lockstep_version(void);
/* LOCKSTEP_NUMERICS as the library was built with. */
LOCKSTEP_API int lockstep_numerics(void);
/* What the library is built on and what it found here: versions, instruction set; many lines. */
LOCKSTEP_API const char *lockstep_build_info(void);
/* How many workers a run uses unless told otherwise: the cores that this process may use. */
LOCKSTEP_API int lockstep_default_workers(void);

/* ---- Plugins ----------------------------------------------------------------------------- */

/* Loads a plugin: a shared object that brings layer types of its own (lockstep/plugin.h), which
 * definitions may name from then on. It stays loaded until the process ends; one that is loaded
 * already is left as it is. Each process of a job loads its plugins. */
LOCKSTEP_API int lockstep_plugin_load(const char *path, struct lockstep_error *error);

/* What a plugin's layer types are tested with. */
struct lockstep_plugin_check_options {
    size_t struct_size;          /* set by lockstep_plugin_check_options_init, like all the rest */
    const char *type;            /* of this type alone; NULL: of all */
    const char *const *settings; /* "key=value", as plugin_param would have them */
    size_t setting_count;
    const char *const *bottoms; /* "4x3x5x5"; without them each is 4x3x5x4 */
    size_t bottom_count;
    void (*tell)(void *user, const char *line); /* what was tested; may be NULL */
    void *user;
};
LOCKSTEP_API void lockstep_plugin_check_options_init(struct lockstep_plugin_check_options *options);

/* Loads a plugin and tests its types: whether the same inputs give the same bits, whatever was in
 * the outputs; whether all of the outputs and nothing else is written; whether rows depend on their
 * own sample alone (unless a type says otherwise); gradients by finite differences. Returns
 * LOCKSTEP_DIFFERENT where a type does not pass, and says what of it. */
LOCKSTEP_API int lockstep_plugin_check(const char *path,
                                       const struct lockstep_plugin_check_options *options,
                                       struct lockstep_error *error);

/* ---- Definitions ------------------------------------------------------------------------- */

/* A solver with its nets, parsed and checked. */
struct lockstep_solver;

/* Reads a solver prototxt and the nets that it names. `set` holds `set_count` strings
 * "field=value" that override solver fields, in the text format's notation ("base_lr=0.02");
 * "field?=value" holds only where the file does not say the field. "batch=N" overrides batch_size
 * of the data layers of the net that is trained. */
LOCKSTEP_API int lockstep_solver_load(const char *path, const char *const *set, size_t set_count,
                                      struct lockstep_solver **solver,
                                      struct lockstep_error *error);
LOCKSTEP_API void lockstep_solver_free(struct lockstep_solver *solver);

/* A solver that trains the net of a file (prototxt) as if it were one to be trained: with a rate of
 * 0 and, where the net has no loss, with the mean of each of its outputs as one. For lockstep_time.
 * `level` and `stages` are the net's state. */
LOCKSTEP_API int lockstep_solver_of_net(const char *path, int level, const char *const *stages,
                                        size_t stage_count, struct lockstep_solver **solver,
                                        struct lockstep_error *error);

/* Reads a net or a solver in any form that Caffe had (text or binary, V0 or V1 layers, older
 * fields), and writes it in the newest: as text, or with `binary` as protocol buffers have it, with
 * the weights that it holds. */
LOCKSTEP_API int lockstep_upgrade_net(const char *from, const char *to, int binary,
                                      struct lockstep_error *error);
LOCKSTEP_API int lockstep_upgrade_solver(const char *from, const char *to,
                                         struct lockstep_error *error);

/* Data in place of those that a definition names: random pictures, and labels that are random
 * classes of what they are compared with. They are a function of seed and sample, so that trainings
 * on them are as exact as others. */
struct lockstep_dummy_options {
    size_t struct_size;
    /* Shapes of tops of data layers or Input layers, with the batch: "data=10,3,224,224", also
     * several in one string: "data=10,3,224,224,label=10". A layer that is named here is replaced.
     * Other shapes come from crop_size and the like, and those of labels from what they are
     * compared with; what was assumed is told. */
    const char *const *inputs;
    size_t input_count;
    int all; /* replaces all data layers. 0: those whose data are not there */
    /* Told of each layer that was replaced, what it became and why. May be NULL. */
    void (*tell)(void *user, const char *line);
    void *user;
};
LOCKSTEP_API void lockstep_dummy_options_init(struct lockstep_dummy_options *options);
/* For all nets of a solver, before a trainer or a plan is made of it. */
LOCKSTEP_API int lockstep_solver_use_dummy_data(struct lockstep_solver *solver,
                                                const struct lockstep_dummy_options *options,
                                                struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
