/* Which instruction sets this processor has, and which one is in use.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/isa.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "ops/cpu/bf16/agree.h"
#include "ops/cpu/bf16/units.h"

static const char *const isa_names[LS_ISAS] = {"generic", "sse41", "avx2", "avx512"};
static const char *const unit_names[LS_UNITS] = {"avx512", "avx512_bf16", "amx"};

static _Atomic int isa_in_use = -1;          /* enum ls_isa; -1: not yet chosen */
static _Atomic int unit_states[LS_UNITS];    /* enum ls_bf16_unit_state */
static _Atomic int unit_most = LS_UNITS - 1; /* enum ls_bf16_unit: that the selected set has */

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

/* ---- Units ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static bool has_avx512_bf16(void)
{
    enum { AVX512_BF16 = 1 << 5 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && eax >= 1 &&
           __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & AVX512_BF16) != 0;
}

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

static enum ls_bf16_unit_state ask_for(enum ls_bf16_unit unit)
{
    const struct ls_vector_bf16_product *tiles = ls_bf16_unit_tiles(unit);
    const bool amx = unit == LS_UNIT_AMX;
    if (tiles == NULL || !ls_cpu_isa_supported(LS_ISA_AVX512) ||
        !(amx ? has_tiles() : has_avx512_bf16()))
        return LS_UNIT_ABSENT;
    if (amx && (!tiles_are_saved() || !tiles_are_permitted()))
        return LS_UNIT_REFUSED;
    bool agrees = false;
    if (ls_bf16_agrees(tiles, &agrees) != 0)
        return LS_UNIT_UNTRIED;
    return agrees ? LS_UNIT_THERE : LS_UNIT_WRONG;
}

#else

static enum ls_bf16_unit_state ask_for(enum ls_bf16_unit unit)
{
    (void)unit;
    return LS_UNIT_ABSENT;
}

#endif

const char *ls_cpu_unit_name(enum ls_bf16_unit unit)
{
    return unit_names[unit];
}

enum ls_bf16_unit_state ls_cpu_unit_state(enum ls_bf16_unit unit)
{
    int state = atomic_load_explicit(&unit_states[unit], memory_order_relaxed);
    if (state != LS_UNIT_UNKNOWN)
        return (enum ls_bf16_unit_state)state;
    /* Of threads that come here at once one may lack the memory: the first answer stays. */
    int answer = (int)ask_for(unit);
    if (atomic_compare_exchange_strong(&unit_states[unit], &state, answer))
        state = answer;
    return (enum ls_bf16_unit_state)state;
}

enum ls_bf16_unit ls_cpu_unit(void)
{
    if (ls_cpu_isa() != LS_ISA_AVX512)
        return LS_UNIT_NONE;
    int unit = atomic_load_explicit(&unit_most, memory_order_relaxed);
    while (unit > LS_UNIT_NONE && ls_cpu_unit_state((enum ls_bf16_unit)unit) != LS_UNIT_THERE)
        unit--;
    return (enum ls_bf16_unit)unit;
}

void ls_cpu_pretend_unit(enum ls_bf16_unit unit, enum ls_bf16_unit_state state)
{
    atomic_store_explicit(&unit_states[unit], (int)state, memory_order_relaxed);
}

bool ls_cpu_computes_with(const char *name)
{
    for (int unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        if (strcmp(name, unit_names[unit]) == 0)
            return (int)ls_cpu_unit() >= unit;
    return strcmp(name, isa_names[ls_cpu_isa()]) == 0;
}

/* ---- Selection ------------------------------------------------------------------------------- */

static void select_set(enum ls_isa isa, enum ls_bf16_unit unit)
{
    atomic_store_explicit(&isa_in_use, (int)isa, memory_order_relaxed);
    atomic_store_explicit(&unit_most, (int)unit, memory_order_relaxed);
}

static int select_unit(enum ls_bf16_unit unit, struct ls_error *error)
{
    const char *name = unit == LS_UNIT_AMX ? "AMX" : "AVX512_BF16";
    switch (ls_cpu_unit_state(unit)) {
    case LS_UNIT_THERE:
        select_set(LS_ISA_AVX512, unit);
        return 0;
    case LS_UNIT_REFUSED:
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "--isa avx512 gives the same bits",
                       "this processor has %s, but the system does not permit its use", name);
    case LS_UNIT_UNTRIED:
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, "--isa avx512 gives the same bits",
                       "out of memory for a product that tries %s", name);
    case LS_UNIT_WRONG:
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "--isa avx512 computes without; please tell us of this processor",
                       "%s gives other bits here than AVX-512 does, so it is not used", name);
    default:
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "this processor does not have the instruction set '%s'", unit_names[unit]);
    }
}

int ls_cpu_isa_select(const char *name, struct ls_error *error)
{
    for (int unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        if (strcmp(name, unit_names[unit]) == 0)
            return select_unit((enum ls_bf16_unit)unit, error);
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (strcmp(name, isa_names[isa]) != 0)
            continue;
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                           "this processor does not have the instruction set '%s'", name);
        select_set((enum ls_isa)isa, LS_UNIT_NONE);
        return 0;
    }
    return ls_fail(error, LOCKSTEP_USAGE, NULL,
                   "there are generic, sse41, avx2, avx512, avx512_bf16 and amx",
                   "unknown instruction set '%s'", name);
}
