/* Which instruction sets this processor has, and which one is in use.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/isa.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__) && defined(LS_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/cpu/amx/bf16_product.h"
#include "ops/cpu/bf16/agree.h"
#endif

static const char *const isa_names[LS_ISAS] = {"generic", "sse41", "avx2", "avx512"};

static _Atomic int isa_in_use = -1;      /* enum ls_isa; -1: not yet chosen */
static _Atomic int amx_state = -1;       /* enum ls_amx; -1: not yet asked */
static atomic_bool amx_left_out = false; /* a set without it was selected */

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

/* ---- AMX ------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(LS_AMX)

static bool has_tiles(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & AMX_BF16) != 0 &&
           (edx & AMX_TILE) != 0;
}

/* Whether the system saves tiles when it switches threads. (It saves the registers of AVX-512, and
 * so there is XGETBV.) */
static bool tiles_are_saved(void)
{
    enum { CONFIGURATION_AND_DATA = 3 << 17 };
    unsigned saved, unused;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
    return (saved & CONFIGURATION_AND_DATA) == CONFIGURATION_AND_DATA;
}

/* Linux gives a process the memory to save tiles in when it asks for it. */
static bool tiles_are_permitted(void)
{
    enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    unsigned long permitted = 0;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &permitted) == 0 &&
           (permitted >> TILE_DATA & 1) != 0;
}

static enum ls_amx ask_for_amx(void)
{
    if (!ls_cpu_isa_supported(LS_ISA_AVX512) || !has_tiles())
        return LS_AMX_ABSENT;
    if (!tiles_are_saved() || !tiles_are_permitted())
        return LS_AMX_REFUSED;
    return ls_bf16_agrees(&ls_bf16_amx) ? LS_AMX_THERE : LS_AMX_WRONG;
}

#else

static enum ls_amx ask_for_amx(void)
{
    return LS_AMX_ABSENT;
}

#endif

enum ls_amx ls_cpu_amx_state(void)
{
    int state = atomic_load_explicit(&amx_state, memory_order_relaxed);
    if (state >= 0)
        return (enum ls_amx)state;
    state = (int)ask_for_amx(); /* threads that come here at once find the same answer */
    atomic_store_explicit(&amx_state, state, memory_order_relaxed);
    return (enum ls_amx)state;
}

bool ls_cpu_amx(void)
{
    return !atomic_load_explicit(&amx_left_out, memory_order_relaxed) &&
           ls_cpu_isa() == LS_ISA_AVX512 && ls_cpu_amx_state() == LS_AMX_THERE;
}

void ls_cpu_pretend_amx(enum ls_amx state)
{
    atomic_store_explicit(&amx_state, (int)state, memory_order_relaxed);
}

bool ls_cpu_computes_with(const char *name)
{
    return strcmp(name, "amx") == 0 ? ls_cpu_amx() : strcmp(name, isa_names[ls_cpu_isa()]) == 0;
}

/* ---- Selection ------------------------------------------------------------------------------- */

static int select_amx(struct ls_error *error)
{
    if (ls_cpu_amx_state() == LS_AMX_REFUSED)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "--isa avx512 gives the same bits",
                       "this processor has AMX, but the system does not permit its use");
    if (ls_cpu_amx_state() == LS_AMX_WRONG)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "--isa avx512 computes without; please tell us of this processor",
                       "AMX gives other bits here than AVX-512 does, so it is not used");
    if (ls_cpu_amx_state() != LS_AMX_THERE)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "this processor does not have the instruction set 'amx'");
    atomic_store_explicit(&isa_in_use, LS_ISA_AVX512, memory_order_relaxed);
    atomic_store_explicit(&amx_left_out, false, memory_order_relaxed);
    return 0;
}

int ls_cpu_isa_select(const char *name, struct ls_error *error)
{
    if (strcmp(name, "amx") == 0)
        return select_amx(error);
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (strcmp(name, isa_names[isa]) != 0)
            continue;
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                           "this processor does not have the instruction set '%s'", name);
        atomic_store_explicit(&isa_in_use, isa, memory_order_relaxed);
        atomic_store_explicit(&amx_left_out, true, memory_order_relaxed);
        return 0;
    }
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "there are generic, sse41, avx2, avx512 and amx",
                   "unknown instruction set '%s'", name);
}
