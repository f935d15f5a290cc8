/* Which instruction sets this processor has, and which one is in use.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/isa.h"

#include <stdatomic.h>
#include <string.h>

static const char *const isa_names[LS_ISAS] = {"generic", "sse41", "avx2", "avx512"};

static _Atomic int isa_in_use = -1; /* enum ls_isa; -1: not yet chosen */

const char *ls_cpu_isa_name(enum ls_isa isa)
{
    return isa_names[isa];
}

/* The compiler's runtime also asks the system whether it saves the wide registers. */
bool ls_cpu_isa_supported(enum ls_isa isa)
{
#if defined(__x86_64__)
    switch (isa) {
    case LS_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    case LS_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case LS_ISA_SSE41:
        return __builtin_cpu_supports("sse4.1");
    default:
        return true;
    }
#else
    return isa == LS_ISA_GENERIC;
#endif
}

enum ls_isa ls_cpu_isa_widest(void)
{
    int isa = LS_ISAS - 1;
    while (!ls_cpu_isa_supported((enum ls_isa)isa))
        isa--;
    return (enum ls_isa)isa;
}

enum ls_isa ls_cpu_isa(void)
{
    int isa = atomic_load_explicit(&isa_in_use, memory_order_relaxed);
    if (isa >= 0)
        return (enum ls_isa)isa;
    isa = (int)ls_cpu_isa_widest(); /* threads that come here at once find the same answer */
    atomic_store_explicit(&isa_in_use, isa, memory_order_relaxed);
    return (enum ls_isa)isa;
}

int ls_cpu_isa_select(const char *name, struct ls_error *error)
{
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (strcmp(name, isa_names[isa]) != 0)
            continue;
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                           "this processor does not have the instruction set '%s'", name);
        atomic_store_explicit(&isa_in_use, isa, memory_order_relaxed);
        return 0;
    }
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "there are generic, sse41, avx2 and avx512",
                   "unknown instruction set '%s'", name);
}
