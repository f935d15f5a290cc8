/* The numeric environment, as text.
 *
 * oneDNN cuts loops by the sizes of the first two caches of one core, and with them the sums in
 * some gradients; it reads them from the processor once. They are derived here by the same rule, so
 * that machines that would choose other blocks are told apart even where the fingerprint of small
 * inputs agrees.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/environment.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "ops/cpu/isa.h"
#include "ops/cpu/onednn.h"

struct caches {
    unsigned size[2]; /* bytes of level 1 (data) and 2, for one core */
};

#if defined(__x86_64__)

static unsigned field(unsigned value, int from, int to)
{
    return value >> from & ((1U << (to - from + 1)) - 1);
}

/* Logical processors of a core, and of the package; 0 where unknown. */
static void count_processors(unsigned *core, unsigned *package)
{
    unsigned a, b, c, d;
    *core = *package = 0;
    if (__get_cpuid_max(0, NULL) < 0xb)
        return;
    for (unsigned level = 0; level < 2; level++) {
        __cpuid_count(0xb, level, a, b, c, d);
        unsigned type = field(c, 8, 15); /* 1: threads of a core, 2: of all cores */
        if (type == 1)
            *core = field(b, 0, 15);
        else if (type == 2)
            *package = field(b, 0, 15);
    }
    if (*core == 0)
        *core = 1;
    if (*package < *core)
        *package = *core;
}

/* Deterministic cache parameters, leaf 4: what there is of data caches, divided by the cores that
 * share it. Processors of other makers do not have that leaf; oneDNN guesses then. */
static void read_caches(struct caches *caches)
{
    unsigned a, b, c, d, core, package;
    int level = 0;
    *caches = (struct caches){{32 * 1024, 512 * 1024}};
    __cpuid(0, a, b, c, d);
    if (b != signature_INTEL_ebx || c != signature_INTEL_ecx || a < 4)
        return;
    count_processors(&core, &package);
    for (unsigned i = 0; level < 2 && i < 16; i++) {
        __cpuid_count(4, i, a, b, c, d);
        unsigned type = field(a, 0, 4); /* 0: no more, 1: data, 2: instructions, 3: both */
        if (type == 0)
            break;
        if (type == 2)
            continue;
        unsigned sharing = field(a, 14, 25) + 1;
        if (package != 0 && sharing > package)
            sharing = package;
        if (core == 0)
            core = sharing;
        unsigned size = (field(b, 22, 31) + 1) * (field(b, 12, 21) + 1) * (field(b, 0, 11) + 1);
        unsigned cores = sharing / core;
        caches->size[level++] = size * (c + 1) / (cores > 0 ? cores : 1);
    }
}

#else

static void read_caches(struct caches *caches)
{
    *caches = (struct caches){{32 * 1024, 512 * 1024}};
}

#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char text[512];

static void describe(void)
{
    struct caches caches;
    uint64_t hash = 0;
    char kernels[24] = "failed";
    read_caches(&caches);
    if (ls_cpu_fingerprint(&hash))
        snprintf(kernels, sizeof kernels, "%016" PRIx64, hash);
    snprintf(text, sizeof text, "isa=%s\nonednn=%s %s\ncache=%u,%u\nkernels=%s\n",
             ls_cpu_isa_name(ls_cpu_isa()), ls_onednn_version(), ls_onednn_isa(), caches.size[0],
             caches.size[1], kernels);
}

const char *ls_cpu_environment(void)
{
    pthread_once(&once, describe);
    return text;
}
