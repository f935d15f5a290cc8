/* Logs of trainings: what --log-json writes, as curves and facts, and pages of them. A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_LOG_H
#define LOCKSTEP_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"
#include "lockstep/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the events of a training say. Memory is bounded, however long the training is: of a long one
 * neighbouring figures share a point. */
struct lockstep_log;

/* Figures of one or several updates. */
struct lockstep_point {
    int64_t first, last;      /* updates done at the first and the last of them */
    int64_t count;            /* how many figures they are */
    double mean, least, most; /* of them */
    uint64_t hash;            /* a sum over them: equal figures of equal updates have equal ones */
};

/* Figures of one kind, in the order of the updates. Where a training was resumed from a snapshot,
 * what it computed a second time stands in place of the first. */
struct lockstep_series {
    const char *name; /* "loss", "learning_rate", "samples_per_second", "penalty", "weight_norm",
                         "gradient_norm", "update_norm"; and outputs: "test/accuracy",
                         "test 1/loss", "train/accuracy", "test/recall[3]", or
                         "test/AP[3 dog]" of a class that has a name; "test/total loss" of a net
                         with several losses */
    const struct lockstep_point *points;
    size_t count;
    int better; /* which figure is: 1 a larger one, -1 a smaller one, 0: it is not known */
};

/* A fact of a run: a member of its "run" event, such as "seed" or "environment". */
struct lockstep_fact {
    const char *name, *value;
};

/* A sentence of a run: a warning, a notice, a file of a snapshot. */
struct lockstep_log_message {
    const char *kind; /* "start", "warning", "notice", "audit", "snapshot" */
    int64_t iteration;
    const char *text;
};

/* A parameter as the last "statistics" event has it. */
struct lockstep_log_parameter {
    const char *name;
    double weight_norm, gradient_norm, update_norm; /* NaN: not known */
};

struct lockstep_log_state {
    int64_t lines, events;    /* read so far */
    int64_t bad, first_bad;   /* lines that are no events, and the number of the first, from 1 */
    int64_t missing;          /* figures that were not finite */
    int cut_off;              /* the last line has no end: the program was ended while it wrote */
    int64_t runs;             /* of the program: one, and one for each time it was resumed */
    int64_t iteration;        /* updates done */
    int64_t iteration_end;    /* where the last run was to stop; 0: not known */
    int ended;                /* it did */
    double seconds;           /* of all runs */
    const char *weights_hash; /* of the last "hash" event; "" without one */
    /* Files of weights that the log names, as the training wrote them; "" without one. */
    const char *last_snapshot, *best_snapshot;
};

LOCKSTEP_API int lockstep_log_new(struct lockstep_log **log, struct lockstep_error *error);
LOCKSTEP_API void lockstep_log_free(struct lockstep_log *log);
/* Reads a file of events. Lines that are none are counted and left out; a file without any event is
 * LOCKSTEP_DATA. */
LOCKSTEP_API int lockstep_log_read(struct lockstep_log *log, const char *path,
                                   struct lockstep_error *error);
/* Takes one line, with or without its end. Only memory can run out: LOCKSTEP_RESOURCE. */
LOCKSTEP_API int lockstep_log_line(struct lockstep_log *log, const char *line, size_t length,
                                   struct lockstep_error *error);

/* What these return belongs to the log until it takes another line. */
LOCKSTEP_API const struct lockstep_series *lockstep_log_series(const struct lockstep_log *log,
                                                               size_t *count);
/* The last figure of the series `name` by itself: 1, or 0 where there is none. *iteration: updates
 * done at it. */
LOCKSTEP_API int lockstep_log_last(const struct lockstep_log *log, const char *name,
                                   int64_t *iteration, double *value);
LOCKSTEP_API const struct lockstep_fact *lockstep_log_facts(const struct lockstep_log *log,
                                                            size_t *count);
LOCKSTEP_API const struct lockstep_log_message *
lockstep_log_messages(const struct lockstep_log *log, size_t *count);
LOCKSTEP_API const struct lockstep_log_parameter *
lockstep_log_parameters(const struct lockstep_log *log, size_t *count);
LOCKSTEP_API void lockstep_log_describe(const struct lockstep_log *log,
                                        struct lockstep_log_state *state);

/* Where two trainings part. */
struct lockstep_parting {
    int64_t common;             /* updates whose figure both logs have */
    int64_t same_until;         /* updates done to where all of them are equal */
    int64_t differs_by;         /* and where the first differs at the latest; 0: nowhere. It is the
                                   first itself where it follows upon same_until in the logs */
    double first, second;       /* the figures there */
    double largest;             /* the largest difference of two figures (of points' means), */
    int64_t largest_iteration;  /* and where */
    int64_t weights_differ_by;  /* the first "hash" event with another hash; 0: none, */
    int64_t weights_same_until; /* and the last one before it with the same; -1: none */
};
LOCKSTEP_API void lockstep_log_compare(const struct lockstep_log *a, const struct lockstep_log *b,
                                       struct lockstep_parting *parting);

/* A picture on a page. */
struct lockstep_page_picture {
    const unsigned char *planes; /* red, green, blue, or grey alone: each height x width, row by
                                    row, 0 to 255 */
    int64_t shape[3];            /* planes (1 or 3), height, width */
    const char *caption;
    int mark; /* 1: what is predicted is right, -1: it is wrong, 0: neither is said */
    const struct lockstep_box *boxes; /* drawn over it */
    size_t box_count;
};

struct lockstep_page_options {
    size_t struct_size;
    const char *title;        /* NULL: the net's name, and those of several logs */
    const char *const *names; /* of the logs, as many as there are; NULL: their numbers */
    const char *definition;   /* text of the definition, shown as it is; NULL: none */
    const char *net;          /* a drawing of the net, a whole <svg> element; NULL: none */
    const char *times;        /* what `lockstep time --json` wrote; NULL: nothing */
    const struct lockstep_confusion *confusion;   /* which classes the net takes for which; NULL */
    const struct lockstep_found_boxes *found;     /* how it finds boxes; NULL: nothing */
    const struct lockstep_page_picture *pictures; /* of samples, for example the worst */
    size_t picture_count;
    const char *pictures_title; /* what they are; NULL: "Samples" */
    int refresh;                /* seconds after which a browser reads the page again; 0: never */
    const char *weights;        /* whose figures `confusion` and `found` are; NULL: not said */
};
LOCKSTEP_API void lockstep_page_options_init(struct lockstep_page_options *options);
/* Writes a page in HTML: one file that needs no other and no network. It stands there as a whole or
 * not at all. */
LOCKSTEP_API int lockstep_page_write(const char *path, const struct lockstep_log *const *logs,
                                     size_t count, const struct lockstep_page_options *options,
                                     struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
