/* A net in its test phase with weights: what stands behind struct lockstep_model.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_MODEL_H
#define LS_API_MODEL_H

#include "api/picture_rule.h"
#include "api/trained.h"
#include "engine/prediction.h"
#include "schema/net.h"
#include "solver/trainer.h"

struct ls_confusion;
struct ls_found_boxes;
struct ls_picture_reader;
struct lockstep_model {
    struct ls_net_definition definition;                  /* its file is owned */
    struct lockstep_callbacks outer_callbacks, callbacks; /* the caller's, and around them */
    struct ls_parameter_set *parameters;
    struct ls_view_set views;
    const struct ls_device *device;
    int workers, card;           /* the card that it is on; -1: none */
    struct ls_forecast forecast; /* what it takes */
    struct ls_engine *engine;
    struct ls_comm *comm; /* of one rank */
    struct ls_store *store;
    struct ls_net *net;
    struct ls_pass *pass; /* NULL: its data come from outside */
    struct ls_outputs outputs;
    int64_t iterations; /* batches to test; 0: every sample once */
    char **classes;     /* names, NULL where not known */
    size_t class_count;
    uint64_t tokenizer; /* whose ids it was trained on (text/token_sheet.h); 0: not known */

    struct ls_prediction *prediction;
    struct ls_confusion *confusion;     /* the last one; NULL: none yet */
    struct ls_found_boxes *found;       /* the same */
    int64_t input_size;                 /* numbers of a sample; 0: the net has no input */
    size_t output_size;                 /* numbers that a sample yields; 0: none */
    const char *blob;                   /* that predictions are of; NULL: the net's own output */
    struct ls_reader *reader;           /* of the first data layer, or NULL */
    struct ls_picture_rule rule;        /* of pictures, where there is no data layer */
    struct ls_picture_reader *pictures; /* by worker; NULL: no picture was read yet */
    bool turned;                        /* a single one had an orientation mark, which was said */
    struct ls_trained trained;          /* what the weights file says of its training */
    char *mean;                         /* as in lockstep_model_options, with scale and resize */
    double scale;
    int resize;
    bool oversample;
};

/* A model with its net and nothing else: a plan. micro_batch 0: the rule. */
int ls_model_plan(const char *path, const struct lockstep_model_options *options, int workers,
                  int64_t micro_batch, struct lockstep_model **model, struct ls_error *error);
/* What `fit` needs to know of it (solver/fit.h); `user` is kept for trials. */
struct ls_fit;
struct ls_model_trial {
    const char *path;
    const struct lockstep_model_options *options;
    struct lockstep_model *model;
};
void ls_model_fit(struct ls_model_trial *trial, struct ls_fit *fit);
/* Tells the caller of the model `user`. */
void ls_model_warn(void *user, const char *sentence);

#endif
