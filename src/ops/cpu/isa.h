/* The instruction set that Lockstep's own loops use: chosen once, the same bits with each.
 *
 * Files in vector/ are compiled once per instruction set (cmake/vector.cmake) with LS_ISA defined
 * as its name; each exports one constant table of functions, named after its type and the set:
 *
 *     vector/pooling.h    struct ls_vector_pooling { void (*maximum)(...); ... };
 *                         LS_VECTOR_TABLES(ls_vector_pooling)
 *     vector/pooling.c    const struct ls_vector_pooling LS_ISA_NAME(ls_vector_pooling) = {...};
 *     pooling.c           ls_vector_pooling()->maximum(...);
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ISA_H
#define LS_OPS_CPU_ISA_H

#include <stdbool.h>

#include "base/arithmetic.h"
#include "base/error.h"

/* SSE4.1 limits oneDNN alone: our loops are the generic ones there. */
enum ls_isa { LS_ISA_GENERIC, LS_ISA_SSE41, LS_ISA_AVX2, LS_ISA_AVX512, LS_ISAS };

/* The one in use: what was selected, else the widest that this processor has. */
enum ls_isa ls_cpu_isa(void);
/* The widest that this processor has. */
enum ls_isa ls_cpu_isa_widest(void);
const char *ls_cpu_isa_name(enum ls_isa isa); /* "avx512" */
bool ls_cpu_isa_supported(enum ls_isa isa);
/* Selects one by name, for `--isa`; LOCKSTEP_USAGE when there is no such set or this processor
 * lacks it. "avx512_bf16" and "amx" are AVX-512 with these units beside it, and with those in front
 * of them; "avx512" is without. Must be called before kernels are prepared, and not while any of
 * them runs. */
int ls_cpu_isa_select(const char *name, struct ls_error *error);

/* Whether the set in use has this name, or contains the set of this name and gives its bits. */
bool ls_cpu_computes_with(const char *name);

/* What multiplies numbers of bf16 beside AVX-512, each faster than the one in front of it; they
 * concern no other kernel. */
enum ls_bf16_unit { LS_UNIT_NONE, LS_UNIT_AVX512_BF16, LS_UNIT_AMX, LS_UNITS };

/* REFUSED: the system does not permit it, as it may do with AMX, for which a process must ask.
 * UNTRIED: there was no memory to try it. WRONG: it gives other bits than AVX-512. */
enum ls_bf16_unit_state {
    LS_UNIT_UNKNOWN, /* not yet asked */
    LS_UNIT_ABSENT,
    LS_UNIT_REFUSED,
    LS_UNIT_UNTRIED,
    LS_UNIT_WRONG,
    LS_UNIT_THERE
};

const char *ls_cpu_unit_name(enum ls_bf16_unit unit); /* "amx" */
/* What this processor has and the system permits; asks and tries once, at the first call. */
enum ls_bf16_unit_state ls_cpu_unit_state(enum ls_bf16_unit unit);
/* The one in use: the fastest that is there, unless a set without it has been selected. */
enum ls_bf16_unit ls_cpu_unit(void);
/* For tests: from now on the state is this one; UNKNOWN: the next call asks. */
void ls_cpu_pretend_unit(enum ls_bf16_unit unit, enum ls_bf16_unit_state state);

/* Declares the tables of one type, and a function named like the type that gives the one in use. */
#if defined(__x86_64__)
#define LS_VECTOR_TABLES(type)                                                                     \
    extern const struct type type##_generic, type##_avx2, type##_avx512;                           \
    static inline const struct type *type(void)                                                    \
    {                                                                                              \
        switch (ls_cpu_isa()) {                                                                    \
        case LS_ISA_AVX512:                                                                        \
            return &type##_avx512;                                                                 \
        case LS_ISA_AVX2:                                                                          \
            return &type##_avx2;                                                                   \
        default:                                                                                   \
            return &type##_generic;                                                                \
        }                                                                                          \
    }
#else
#define LS_VECTOR_TABLES(type)                                                                     \
    extern const struct type type##_generic;                                                       \
    static inline const struct type *type(void)                                                    \
    {                                                                                              \
        return &type##_generic;                                                                    \
    }
#endif

/* Inside vector/: LS_ISA_NAME(x) is x_avx512; `#if LS_ISA_IS(AVX512)` asks which set it is. */
#if defined(LS_ISA)
#define LS_ISA_PASTE_(a, b)   a##b
#define LS_ISA_PASTE(a, b)    LS_ISA_PASTE_(a, b)
#define LS_ISA_NAME(name)     LS_ISA_PASTE(name##_, LS_ISA)
#define LS_ISA_NUMBER_generic 0
#define LS_ISA_NUMBER_avx2    2
#define LS_ISA_NUMBER_avx512  3
#define LS_ISA_NUMBER_GENERIC 0
#define LS_ISA_NUMBER_AVX2    2
#define LS_ISA_NUMBER_AVX512  3
#define LS_ISA_IS(name)       (LS_ISA_PASTE(LS_ISA_NUMBER_, LS_ISA) == LS_ISA_NUMBER_##name)
#endif

#endif
