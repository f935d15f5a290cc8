/* Gated linear units. See sequences.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "device/activation.h"
#include "ops/cuda/kernels/sequences.h"

/* Where the value and the gate of element i of y are. */
struct gated {
    uint64_t value, gate;
};

__device__ static struct gated find_gated(const struct ls_cuda_glu *of, uint64_t i)
{
    struct gated at;
    at.value = at.gate = i;
    if (of->halves) {
        const uint64_t run = (uint64_t)of->run, first = i / run * 2 * run + i % run;
        at.value = of->gate_first ? first + run : first;
        at.gate = of->gate_first ? first : first + run;
    }
    return at;
}

__global__ void glu(struct ls_cuda_glu of, const float *value, const float *gate, float *y)
{
    for (LS_EACH(i, of.n)) {
        const struct gated at = find_gated(&of, i);
        const float by = gate[at.gate];
        y[i] = value[at.value] * (of.linear ? by : ls_activation_number(&of.gate, by));
    }
}

int ls_cuda_gate(cudaStream_t stream, const struct ls_cuda_glu *of, const float *value,
                 const float *gate, float *y)
{
    const struct ls_cuda_glu by = *of;
    return LS_LAUNCH(glu, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, value, gate, y);
}

__global__ void glu_backward(struct ls_cuda_glu of, const float *dy, const float *value,
                             const float *gate, float *dvalue, float *dgate)
{
    for (LS_EACH(i, of.n)) {
        const struct gated at = find_gated(&of, i);
        const float by = gate[at.gate], product = dy[i] * value[at.value];
        const float f = of.linear ? by : ls_activation_number(&of.gate, by);
        if (dvalue != NULL)
            dvalue[at.value] = dy[i] * f;
        if (dgate != NULL)
            dgate[at.gate] =
                of.linear ? product : ls_activation_slope(&of.gate, product, of.keeps_x ? by : f);
    }
}

int ls_cuda_gate_backward(cudaStream_t stream, const struct ls_cuda_glu *of, const float *dy,
                          const float *value, const float *gate, float *dvalue, float *dgate)
{
    const struct ls_cuda_glu by = *of;
    return LS_LAUNCH(glu_backward, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, dy, value,
                     gate, dvalue, dgate);
}
