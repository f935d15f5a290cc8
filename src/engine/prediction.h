/* Predictions: the forward pass over samples that a caller hands in, each a micro-batch by itself.
 * Workers take them as they get free.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PREDICTION_H
#define LS_ENGINE_PREDICTION_H

#include "engine/engine.h"

struct ls_prediction;
struct ls_sample_states;

/* For a net in its test phase, which names the value that is predicted (ls_net_options.output); the
 * engine has its store. Net and engine outlive it. */
int ls_prediction_create(struct ls_engine *engine, struct ls_net *net,
                         struct ls_prediction **prediction, struct ls_error *error);
void ls_prediction_free(struct ls_prediction *prediction);

/* The input that takes the samples, as one sample has it; NULL: the net has none. (Other inputs,
 * such as labels, are zeros.) */
const struct ls_value *ls_prediction_input(const struct ls_prediction *prediction);
/* Another input that what is predicted depends on; NULL: there is none. Labels do not count: what
 * layers compute from them are figures. */
const struct ls_value *ls_prediction_other_input(const struct ls_prediction *prediction);
/* What is predicted, for one sample; NULL: the net has no such value. */
const struct ls_value *ls_prediction_output(const struct ls_prediction *prediction);

/* `count` samples, one behind the other; what is predicted for each, in plain order, to `output`.
 * Input and output must be there. A net that mixes the samples of a batch predicts for batches,
 * which are what is called a sample here. */
int ls_prediction_run(struct ls_prediction *prediction, const float *input, size_t count,
                      float *output, struct ls_error *error);

/* All inputs, as one sample has them, in the order of the graph; how many there are. */
size_t ls_prediction_inputs(const struct ls_prediction *prediction);
const struct ls_value *ls_prediction_input_at(const struct ls_prediction *prediction, size_t index);
/* The same as ls_prediction_run from all of them. */
int ls_prediction_run_inputs(struct ls_prediction *prediction, const float *const *inputs,
                             size_t count, float *output, struct ls_error *error);

/* A run whose samples go on where others have stopped: they have the states per sample of rows. */
struct ls_prediction_rows {
    /* By input: of its type, sample by sample; NULL: zeros, which a cache (struct ls_input) cannot
     * be: it is in the device's memory. */
    const void *const *inputs;
    size_t count;                    /* of samples */
    struct ls_sample_states *states; /* NULL: there are none */
    int64_t position;                /* of the first token of each in its text */
    int64_t row;                     /* of the first sample; the others have those behind it */
    int64_t begin, numbers;          /* which elements of each sample's output are wanted */
    float *output;                   /* they, sample by sample; NULL: none is */
};
int ls_prediction_run_rows(struct ls_prediction *prediction, const struct ls_prediction_rows *rows,
                           struct ls_error *error);

/* Copies elements [begin, begin + count) of a value, which lies in the host's memory, to plain
 * order, as fp32. (What is not fp32 is plain already: plan/layout.c.) */
void ls_prediction_to_plain(const struct ls_value *value, const void *numbers, int64_t begin,
                            int64_t count, float *target);

#endif
