/* Gated linear units. See sequences.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/numbers.h"

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

template <typename T>
__global__ void glu(struct ls_cuda_glu of, const T *value, const T *gate, T *y)
{
    for (LS_EACH(i, of.n)) {
        const struct gated at = find_gated(&of, i);
        const float by = ls_number(gate[at.gate]), x = ls_number(value[at.value]);
        ls_put(&y[i], x * (of.linear ? by : ls_activation_number(&of.gate, by)));
    }
}

int ls_cuda_gate(cudaStream_t stream, const struct ls_cuda_glu *of, const void *value,
                 const void *gate, void *y)
{
    const struct ls_cuda_glu by = *of;
    return ls_by_type(by.bf16, [=](auto type) {
        using T = decltype(type);
        return LS_LAUNCH(glu<T>, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by,
                         (const T *)value, (const T *)gate, (T *)y);
    });
}

template <typename T>
__global__ void glu_backward(struct ls_cuda_glu of, const T *dy, const T *value, const T *gate,
                             T *dvalue, T *dgate)
{
    for (LS_EACH(i, of.n)) {
        const struct gated at = find_gated(&of, i);
        const float by = ls_number(gate[at.gate]), slope = ls_number(dy[i]);
        const float product = slope * ls_number(value[at.value]);
        const float f = of.linear ? by : ls_activation_number(&of.gate, by);
        if (dvalue != NULL)
            ls_put(&dvalue[at.value], slope * f);
        if (dgate != NULL)
            ls_put(&dgate[at.gate],
                   of.linear ? product
                             : ls_activation_slope(&of.gate, product, of.keeps_x ? by : f));
    }
}

int ls_cuda_gate_backward(cudaStream_t stream, const struct ls_cuda_glu *of, const void *dy,
                          const void *value, const void *gate, void *dvalue, void *dgate)
{
    const struct ls_cuda_glu by = *of;
    return ls_by_type(by.bf16, [=](auto type) {
        using T = decltype(type);
        return LS_LAUNCH(glu_backward<T>, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by,
                         (const T *)dy, (const T *)value, (const T *)gate, (T *)dvalue, (T *)dgate);
    });
}
