/* oneDNN itself: opening it, its instruction set and version, its threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

#include "base/thread.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn_layout.h"

/* One thread at a time is asked for through OpenMP; others would go on with all they have. */
#if DNNL_CPU_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_RUNTIME != DNNL_RUNTIME_SEQ
#error "oneDNN must be built with gcc's OpenMP runtime, or sequential"
#endif

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* NULL: oneDNN would not start */
static enum ls_isa engine_isa;

/* oneDNN fixes its instruction set when it is first asked for anything. */
static void open_library(void)
{
    static const dnnl_cpu_isa_t limits[LS_ISAS] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41,
                                                   dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core};
    struct ls_core_choice choice;
    ls_choose_first_core(&choice); /* it looks at the caches now, and never again */
    engine_isa = ls_cpu_isa();
    if (dnnl_set_max_cpu_isa(limits[engine_isa]) != dnnl_success ||
        dnnl_set_cpu_isa_hints(dnnl_cpu_isa_no_hints) != dnnl_success ||
        dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict) != dnnl_success ||
        dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
    (void)dnnl_get_effective_cpu_isa(); /* by now it has looked */
    ls_choose_core_again(&choice);
}

int ls_onednn_engine(dnnl_engine_t *result, struct ls_error *error)
{
    pthread_once(&opened, open_library);
    if (engine == NULL)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "oneDNN does not start, or was used in this process before Lockstep");
    if (engine_isa != ls_cpu_isa())
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "choose it before the first net is planned",
                       "the instruction set cannot change from %s to %s in a running process",
                       ls_cpu_isa_name(engine_isa), ls_cpu_isa_name(ls_cpu_isa()));
    *result = engine;
    return 0;
}

int ls_onednn_one_thread(void)
{
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

void ls_onednn_restore_threads(int threads)
{
    omp_set_num_threads(threads);
}

const char *ls_onednn_isa(void)
{
    pthread_once(&opened, open_library);
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx512_core:
        return "avx512";
    default:
        return "other";
    }
}

bool ls_onednn_is_from(int major, int minor)
{
    const dnnl_version_t *version = dnnl_version();
    return version->major > major || (version->major == major && version->minor >= minor);
}

static pthread_once_t version_once = PTHREAD_ONCE_INIT;
static char version_text[32];

static void write_version(void)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(version_text, sizeof version_text, "%d.%d.%d", version->major, version->minor,
             version->patch);
}

const char *ls_onednn_version(void)
{
    pthread_once(&version_once, write_version);
    return version_text;
}
