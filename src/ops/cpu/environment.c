/* The numeric environment, as text.
 *
 * oneDNN cuts loops by the sizes of the first two caches of one core, and with them the sums in
 * some gradients; it reads them from the processor once. They are derived here by the same rule, so
 * that machines that would choose other blocks are told apart even where probes of kernels agree.
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

#include "base/thread.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn.h"

enum { CACHE_TEXT = 64 };

static const char guess[] = "32768,524288"; /* what oneDNN takes where it does not know */

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

/* Deterministic cache parameters, leaf 4 of Intel's processors: what there is of data caches,
 * divided by the cores that share it. */
static void read_intel(char text[CACHE_TEXT])
{
    unsigned a, b, c, d, core, package, found[2] = {32 * 1024, 512 * 1024};
    int level = 0;
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
        found[level++] = size * (c + 1) / (cores > 0 ? cores : 1);
    }
    snprintf(text, CACHE_TEXT, "%u,%u", found[0], found[1]);
}

/* The same of AMD's, leaf 0x8000001D, which oneDNN asks since 3.2. The sizes stand here as the
 * processor gives them, with the number of threads that share each: what oneDNN makes of these has
 * changed between its versions, and the version is named, too. */
static void read_amd(char text[CACHE_TEXT])
{
    unsigned a, b, c, d;
    size_t length = 0;
    for (unsigned i = 0, level = 0; level < 2 && i < 16; i++) {
        __cpuid_count(0x8000001D, i, a, b, c, d);
        if (field(a, 0, 4) == 0)
            break;
        if (field(a, 0, 4) == 2)
            continue;
        unsigned size = (field(b, 22, 31) + 1) * (field(b, 12, 21) + 1) * (field(b, 0, 11) + 1);
        length += (size_t)snprintf(text + length, CACHE_TEXT - length, "%s%u/%u",
                                   level > 0 ? "," : "", size * (c + 1), field(a, 14, 25) + 1);
        level++;
    }
    if (length == 0)
        snprintf(text, CACHE_TEXT, "%s", guess);
}

/* Processors of other makers, and AMD's for older versions: oneDNN guesses. */
static void read_caches(char text[CACHE_TEXT])
{
    unsigned a, b, c, d;
    snprintf(text, CACHE_TEXT, "%s", guess);
    __cpuid(0, a, b, c, d);
    if (b == signature_INTEL_ebx && c == signature_INTEL_ecx && a >= 4)
        read_intel(text);
    else if (b == signature_AMD_ebx && c == signature_AMD_ecx && ls_onednn_is_from(3, 2) &&
             (unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x8000001D)
        read_amd(text);
}

#else

static void read_caches(char text[CACHE_TEXT])
{
    snprintf(text, CACHE_TEXT, "%s", guess);
}

#endif

static _Thread_local const char *pretended;

void ls_cpu_pretend_caches(const char *text)
{
    pretended = text;
}

void ls_cpu_describe_library(struct ls_text *text)
{
    char caches[CACHE_TEXT];
    struct ls_core_choice choice;
    ls_choose_first_core(&choice); /* as when oneDNN was opened */
    read_caches(caches);
    ls_choose_core_again(&choice);
    ls_text_format(text, "isa=%s\nonednn=%s %s\ncache=%s\n", ls_cpu_isa_name(ls_cpu_isa()),
                   ls_onednn_version(), ls_onednn_isa(), pretended != NULL ? pretended : caches);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ls_text at_first;

static void describe_once(void)
{
    ls_cpu_describe_library(&at_first);
}

const char *ls_cpu_environment(void)
{
    pthread_once(&once, describe_once);
    return at_first.data != NULL ? at_first.data : "";
}

int ls_cpu_describe(struct ls_text *text, struct ls_error *error)
{
    uint64_t hash = 0;
    ls_cpu_describe_library(text);
    LS_TRY(ls_cpu_fingerprint(&hash, error));
    static const char *const words[] = {[LS_UNIT_ABSENT] = "none",
                                        [LS_UNIT_REFUSED] = "not permitted by the system",
                                        [LS_UNIT_UNTRIED] = "no memory to try it, not used",
                                        [LS_UNIT_WRONG] = "gives other bits, not used",
                                        [LS_UNIT_THERE] = "for BF16"};
    ls_text_format(text, "kernels=%016" PRIx64 "\n", hash);
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        ls_text_format(text, "%s=%s\n", ls_cpu_unit_name(unit), words[ls_cpu_unit_state(unit)]);
    return text->failed ? ls_fail_memory(error, "the numeric environment") : 0;
}
