/* A sweep under way: its runs, what is known of each, and what becomes of them.
 *
 * Everything that is decided follows from what the runs' logs say, so that a sweep which was ended
 * in any way goes on by the same command: there is no other state.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SWEEP_H
#define LS_CLI_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/options.h"
#include "lockstep/lockstep.h"

enum { LS_SWEEP_PATH = 4096 };

/* As the command line has them. */
struct ls_sweep_values {
    const char *solver, *output, *metric, *best, *weights, *map, *isa, *device;
    int64_t random, seed, parallel, workers, halving, factor;
    int dry_run;
    struct ls_cli_list set;
};

/* The figures at the end of a part of a training: a rung, or the end of all. */
struct ls_sweep_end {
    int64_t iteration;
    struct ls_sweep_figure {
        char *name; /* of a series of the log: "test/accuracy", "loss" */
        double value;
        int better; /* as lockstep_series.better */
    } * figures;
    size_t count;
};

enum ls_sweep_state {
    LS_SWEEP_WAITING,
    LS_SWEEP_RUNNING,
    LS_SWEEP_DONE,        /* to its own end */
    LS_SWEEP_STOPPED,     /* at a rung: others were better */
    LS_SWEEP_FAILED,      /* by itself: diverged, a value that cannot be used */
    LS_SWEEP_INTERRUPTED, /* by a signal */
};

struct ls_sweep_run {
    const char *const *set; /* its overrides */
    size_t set_count;
    char *label;         /* "base_lr=0.1 batch=64" */
    char *folder, *path; /* its folder by itself, and with that of the sweep */
    char hash[65];       /* of its definition; "" where it cannot be loaded */
    int64_t end;         /* updates of the whole training; 0: not known */
    enum ls_sweep_state state;
    bool in;         /* it has not been stopped at a rung */
    int rungs;       /* that it has passed */
    int64_t reached; /* updates, at the last rung or end */
    struct ls_sweep_end *ends;
    size_t end_count;
    int64_t logged; /* updates that log.json has */
    int code;       /* FAILED: the exit code */
    char *message;  /* FAILED: why */

    /* While it runs. */
    pid_t process;
    int workers;
    int64_t target; /* where this part ends */
    bool again;     /* an earlier sweep went past that: the part is trained again, beside */
    double begun;
    struct ls_sweep_log *log;
};

struct ls_sweep {
    const struct ls_sweep_values *values;
    struct lockstep_sweep *plan;
    struct ls_sweep_run *runs;
    size_t count, running;
    char *metric; /* what they are judged by, a series of the logs; NULL: not known yet */
    bool larger;  /* a larger figure is a better one */
    int64_t rung; /* updates at which those that are in are compared next; 0: at their ends */
    int lock;     /* of the folder, which the processes have, too */
    int lines;    /* on the screen, to be drawn anew */
    double drawn; /* when they were */
};

/* ---- The sweep (sweep_open.c) ---------------------------------------------------------------- */

/* Lists the runs and loads their definitions; those that cannot be have failed. 0, or a status
 * after a message. ls_sweep_close in any case. */
int ls_sweep_open(struct ls_sweep *sweep, const struct ls_sweep_values *values);
/* Makes the folder or takes over what is there. */
int ls_sweep_enter(struct ls_sweep *sweep);
void ls_sweep_close(struct ls_sweep *sweep);

/* ---- What a run has done (sweep_log.c) --------------------------------------------------------
 */

/* The path of the log that a run's process writes. */
void ls_sweep_log_path(const struct ls_sweep_run *run, char path[LS_SWEEP_PATH]);
/* Reads what a run's log has had since the last call, and takes over the figures at each end of a
 * part. `log` is NULL at first; ls_sweep_log_close frees it. 0, or a status after a message. */
int ls_sweep_log_read(struct ls_sweep_run *run);
void ls_sweep_log_close(struct ls_sweep_run *run);
/* What the log says of the training under way: updates done, and its loss (NaN: not known). */
int64_t ls_sweep_log_iteration(const struct ls_sweep_run *run, double *loss);
/* The end of a part at that update; NULL: there is none. */
const struct ls_sweep_end *ls_sweep_end_at(const struct ls_sweep_run *run, int64_t iteration);
/* A figure of it; NULL: it has none of that name, or `end` is NULL. */
const struct ls_sweep_figure *ls_sweep_find_figure(const struct ls_sweep_end *end,
                                                   const char *name);
/* Its value: true, if it has it. */
bool ls_sweep_figure_of(const struct ls_sweep_end *end, const char *name, double *value);
void ls_sweep_free_ends(struct ls_sweep_run *run);

/* ---- Processes (sweep_child.c) ----------------------------------------------------------------
 */

/* Makes the run's folder where it is not there. One that has a run of another definition is
 * refused. 0, or a status after a message. */
int ls_sweep_claim(const struct ls_sweep *sweep, struct ls_sweep_run *run);
/* Starts a process that trains a run to run->target with so many workers. */
int ls_sweep_start(struct ls_sweep *sweep, struct ls_sweep_run *run, int workers);
/* Looks whether it has ended; then run->state is no longer RUNNING. */
int ls_sweep_look(struct ls_sweep *sweep, struct ls_sweep_run *run);
void ls_sweep_signal(const struct ls_sweep *sweep, int number);
/* A run that failed in a way that would come again, in an earlier sweep. */
void ls_sweep_recall_failure(struct ls_sweep_run *run);
void ls_sweep_fail(struct ls_sweep_run *run, int code, const char *message);

/* ---- Decisions (sweep_rungs.c) ----------------------------------------------------------------
 */

/* The rung behind `rung` (0: before the first) that lies before the end of the run; 0: none. */
int64_t ls_sweep_next_rung(const struct ls_sweep *sweep, const struct ls_sweep_run *run,
                           int64_t rung);
/* Where a run is to be trained to next. */
int64_t ls_sweep_target(const struct ls_sweep *sweep, const struct ls_sweep_run *run);
/* Whether it is there, or has failed on the way. */
bool ls_sweep_is_there(const struct ls_sweep *sweep, const struct ls_sweep_run *run);
/* How many runs are to be trained and wait for room. */
size_t ls_sweep_count_waiting(const struct ls_sweep *sweep);
/* Where all that are in are there: who goes on, and the next rung. `*decided` tells whether there
 * was such a decision. 0, or a status after a message. */
int ls_sweep_decide(struct ls_sweep *sweep, bool *decided, bool *finished);
/* Finds what the runs are judged by, once one of them has come to an end. */
int ls_sweep_find_metric(struct ls_sweep *sweep);
/* The figure that a run is judged by, of the last end that counts; false: there is none. */
bool ls_sweep_result(const struct ls_sweep *sweep, const struct ls_sweep_run *run, double *value);
/* All runs, the best first; `order` has room for all. */
void ls_sweep_order(const struct ls_sweep *sweep, const struct ls_sweep_run **order);

/* ---- What is shown and written (sweep_table.c, sweep_live.c) ----------------------------------
 */

void ls_sweep_put_table(const struct ls_sweep *sweep);
/* "lockstep train ..." of a run, to repeat it by hand. */
void ls_sweep_put_train(FILE *line, const struct ls_sweep *sweep, const struct ls_sweep_run *run);
/* sweep.json and, with `page`, report.html. 0, or a status after a message. */
int ls_sweep_write(const struct ls_sweep *sweep, bool page, bool finished);
/* Opens a file of a sweep's folder to be read; NULL and errno where it cannot be, or is no file. */
FILE *ls_sweep_open_file(const char *path);
/* Shows how far the runs are, if it is time to; `now` in seconds, going forward. */
void ls_sweep_live_draw(struct ls_sweep *sweep, double now);
void ls_sweep_live_clear(struct ls_sweep *sweep);
/* A line that stays. One that is not `important` is left out where the user wants quiet. */
void ls_sweep_say(struct ls_sweep *sweep, bool important, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
