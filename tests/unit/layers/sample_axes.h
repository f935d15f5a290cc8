/* Tables of where samples may lie in the bottoms of layers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SAMPLE_AXES_H
#define LS_TESTS_SAMPLE_AXES_H

#include "one_layer.h"

#define LAYER(type)  "name: 'l' type: '" type "' "
#define XY           "bottom: 'x' top: 'y' "
#define XLY          "bottom: 'x' bottom: 'l' top: 'y' "
#define ABY          "bottom: 'a' bottom: 'b' top: 'y' "
#define ABSY         "bottom: 'a' bottom: 'b' bottom: 's' top: 'y' "
#define NOT_IN_FRONT "does not hold the samples of the batch"
#define NO_SAMPLES   "holds the samples of the batch"
#define RUNS         "runs over the samples"
#define RUN          "and those behind it run over the samples"
#define ALIKE        "the samples of its bottoms must lie in the same way"

/* `tops` as describe_tops has them; behind "no: " a part of what is said instead. */
struct axes_case {
    const char *text, *bottoms, *tops;
};

#endif
