/* Whether oneDNN has Winograd's algorithm here. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SUPPORT_WINOGRAD_H
#define LS_TESTS_SUPPORT_WINOGRAD_H

#include <stdbool.h>
#include <string.h>

#include "ops/cpu/environment.h"

/* oneDNN 2.x has it for AVX-512 and must be found to have it; no other has. */
static inline bool winograd_is_there(void)
{
    const char *environment = ls_cpu_environment();
    return strstr(environment, "isa=avx512\n") != NULL && strstr(environment, "onednn=2.") != NULL;
}

#endif
