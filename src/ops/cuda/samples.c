/* Samples of records that lie on the card. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/samples.h"

#include "ops/cuda/card.h"
#include "ops/cuda/kernels/kernels.h"

int ls_card_make_samples(struct ls_stream *stream, const struct ls_sample_making *making,
                         const struct ls_sample_draw *draws, int64_t samples, void *out,
                         struct ls_error *error)
{
    static const char what[] = "make samples";
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    const int code = ls_cuda_make_samples(in, making, draws, samples, out);
    return stream != NULL ? ls_card_check(code, what, error) : ls_card_finish(code, what, error);
}
