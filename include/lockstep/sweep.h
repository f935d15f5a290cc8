/* Sweeps: which trainings are made of fields with several values each. A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_SWEEP_H
#define LOCKSTEP_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_SWEEP_LIMIT 1000 /* runs of a sweep */

struct lockstep_sweep_options {
    size_t struct_size;
    /* Each is "field=values", the field as for lockstep_solver_load. Values have commas between
     * them ("base_lr=0.1,0.05"); a comma between quotes or brackets belongs to its value. With
     * `random` they may be a range: "base_lr=log:1e-4..1e-1" (its logarithm is uniform),
     * "momentum=lin:0.8..0.99" (uniform), "batch=int:16..256" (whole numbers). */
    const char *const *set;
    size_t set_count;
    int64_t random; /* so many runs, drawn; 0: every combination of the values */
    uint64_t seed;  /* of what is drawn: run i of a seed is the same however many there are */
};
LOCKSTEP_API void lockstep_sweep_options_init(struct lockstep_sweep_options *options);

/* The runs of a sweep, each of them other than all before it. */
struct lockstep_sweep;

/* Lists them: combinations in order, the last field changing fastest. LOCKSTEP_USAGE: what is
 * given is none, a field comes twice, or there are more runs than LOCKSTEP_SWEEP_LIMIT. Whether
 * there are such fields is asked by lockstep_solver_load. */
LOCKSTEP_API int lockstep_sweep_new(const struct lockstep_sweep_options *options,
                                    struct lockstep_sweep **sweep, struct lockstep_error *error);
LOCKSTEP_API void lockstep_sweep_free(struct lockstep_sweep *sweep);

/* What these return belongs to the sweep. */
LOCKSTEP_API size_t lockstep_sweep_run_count(const struct lockstep_sweep *sweep);
/* All overrides of a run, as lockstep_solver_load takes them; NULL where there is no such run. */
LOCKSTEP_API const char *const *lockstep_sweep_run_set(const struct lockstep_sweep *sweep,
                                                       size_t run, size_t *count);
/* The fields that have several values or a range, by their names. */
LOCKSTEP_API size_t lockstep_sweep_field_count(const struct lockstep_sweep *sweep);
LOCKSTEP_API const char *lockstep_sweep_field(const struct lockstep_sweep *sweep, size_t field);
/* The value of such a field in a run; NULL where there is none. */
LOCKSTEP_API const char *lockstep_sweep_value(const struct lockstep_sweep *sweep, size_t run,
                                              size_t field);

/* The SHA-256, in 64 digits, of what a solver trains and how it is tested: of all fields of the
 * solver and its nets that can change a figure. Where data lie is left out. */
LOCKSTEP_API int lockstep_solver_hash(const struct lockstep_solver *solver, char hash[65],
                                      struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
