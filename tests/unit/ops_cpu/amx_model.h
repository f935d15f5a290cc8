/* AMX's tiles in plain C, as Intel's manual defines them: intrinsics for processors without AMX.
 * Denormal numbers are zero where the thread flushes them (to AMX they are zero anyway).
 *
 * cmake/tests.cmake compiles the kernels with them: as tables of other names, or (AMX_MODEL_SERVES)
 * in place of the library's, so that a whole program finds AMX.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_AMX_MODEL_H
#define LS_TESTS_AMX_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AMX_MODEL_TILES = 8, AMX_MODEL_ROWS = 16, AMX_MODEL_ROW_BYTES = 64 };

/* Of the calling thread: whether tiles are configured, and how often they were used. */
extern _Thread_local bool amx_model_configured;
extern _Thread_local unsigned long amx_model_products;

#if defined(LS_AMX_TILES) /* in the file that is compiled with these tiles */

_Thread_local bool amx_model_configured;
_Thread_local unsigned long amx_model_products;

static _Thread_local struct {
    int rows, row_bytes;
    unsigned char bytes[AMX_MODEL_ROWS][AMX_MODEL_ROW_BYTES];
} amx_model_tile[AMX_MODEL_TILES];

/* What would raise an exception. */
static void amx_model_expect(bool true_of_tiles)
{
    if (!true_of_tiles)
        abort();
}

static void amx_model_release(void)
{
    memset(amx_model_tile, 0xff, sizeof amx_model_tile);
    amx_model_configured = false;
}

static void amx_model_loadconfig(const void *memory)
{
    const unsigned char *bytes = memory;
    amx_model_expect(bytes[0] == 1 && bytes[1] == 0);
    for (int t = 0; t < AMX_MODEL_TILES; t++) {
        amx_model_tile[t].row_bytes = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8;
        amx_model_tile[t].rows = bytes[48 + t];
        amx_model_expect(amx_model_tile[t].rows <= AMX_MODEL_ROWS);
        amx_model_expect(amx_model_tile[t].row_bytes <= AMX_MODEL_ROW_BYTES);
    }
    amx_model_configured = true;
}

static void amx_model_zero(int t)
{
    amx_model_expect(amx_model_configured);
    memset(amx_model_tile[t].bytes, 0, sizeof amx_model_tile[t].bytes);
}

static void amx_model_load(int t, const void *base, size_t stride)
{
    amx_model_zero(t);
    for (int row = 0; row < amx_model_tile[t].rows; row++)
        memcpy(amx_model_tile[t].bytes[row], (const char *)base + (size_t)row * stride,
               (size_t)amx_model_tile[t].row_bytes);
}

static void amx_model_store(int t, void *base, size_t stride)
{
    amx_model_expect(amx_model_configured);
    for (int row = 0; row < amx_model_tile[t].rows; row++)
        memcpy((char *)base + (size_t)row * stride, amx_model_tile[t].bytes[row],
               (size_t)amx_model_tile[t].row_bytes);
}

static float amx_model_number(int t, int row, int at)
{
    uint32_t bits = 0;
    memcpy((char *)&bits + 2, amx_model_tile[t].bytes[row] + 2 * at, 2);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void amx_model_dpbf16ps(int c, int a, int b)
{
    amx_model_expect(amx_model_configured && amx_model_tile[a].rows == amx_model_tile[c].rows);
    amx_model_products++;
    for (int m = 0; m < amx_model_tile[c].rows; m++)
        for (int n = 0; n < amx_model_tile[c].row_bytes / 4; n++) {
            float even = 0, odd = 0, sum;
            for (int k = 0; k < amx_model_tile[a].row_bytes / 4; k++) {
                even = fmaf(amx_model_number(a, m, 2 * k), amx_model_number(b, k, 2 * n), even);
                odd =
                    fmaf(amx_model_number(a, m, 2 * k + 1), amx_model_number(b, k, 2 * n + 1), odd);
            }
            memcpy(&sum, amx_model_tile[c].bytes[m] + 4 * n, sizeof sum);
            sum = sum + (even + odd);
            memcpy(amx_model_tile[c].bytes[m] + 4 * n, &sum, sizeof sum);
        }
}

#if defined(AMX_MODEL_SERVES)

#include "ops/cpu/isa.h"

__attribute__((constructor)) static void amx_model_serve(void)
{
    if (ls_cpu_isa_supported(LS_ISA_AVX512))
        ls_cpu_pretend_unit(LS_UNIT_AMX, LS_UNIT_THERE);
}

#endif

#define _tile_loadconfig(memory) amx_model_loadconfig(memory)
#define _tile_release()          amx_model_release()
#undef _tile_loadd
#define _tile_loadd(tile, base, stride) amx_model_load(tile, base, stride)
#undef _tile_stored
#define _tile_stored(tile, base, stride) amx_model_store(tile, base, stride)
#undef _tile_zero
#define _tile_zero(tile) amx_model_zero(tile)
#undef _tile_dpbf16ps
#define _tile_dpbf16ps(c, a, b) amx_model_dpbf16ps(c, a, b)

#endif

#endif
