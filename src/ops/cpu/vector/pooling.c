/* Pooling loops for channels in blocks, from a template.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/pooling.h"

#include <float.h>

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* What to do with a window. */
enum task {
    MAX,
    MAX_INDEXED,
    MAX_BACKWARD,
    MAX_BACKWARD_DISJOINT,
    AVERAGE,
    AVERAGE_BACKWARD,
};

/* Positions from one slice (row) of a plane to the next. */
struct strides {
    int64_t slice, row;
};

/* How many inputs a window covers along each axis. */
struct box {
    int64_t d, h, w;
};

/* x or dx, y or dy, and the winners of one plane. Which of them are written depends on the task;
 * the functions of the table restore what is const. */
struct arrays {
    float *inner, *outer;
    int32_t *index;
};

#define BLOCK   16
#define NAME(x) x##16
#include "ops/cpu/vector/pooling_registers.h"
#include "ops/cpu/vector/pooling_blocked.h"
#undef BLOCK
#undef NAME
#undef LANES

#define BLOCK   8
#define NAME(x) x##8
#include "ops/cpu/vector/pooling_registers.h"
#include "ops/cpu/vector/pooling_blocked.h"
#undef BLOCK
#undef NAME
#undef LANES

static int64_t no_scratch(const struct ls_windows *windows)
{
    (void)windows;
    return 0;
}

const struct ls_vector_pooling LS_ISA_NAME(ls_vector_pooling) = {
    .blocked8 = {no_scratch, maximum8, maximum_backward8, average8, average_backward8},
    .blocked16 = {no_scratch, maximum16, maximum_backward16, average16, average_backward16},
};
