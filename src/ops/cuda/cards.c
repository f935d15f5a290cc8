/* What there is of cards, drivers and libraries. See device/cards.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/cards.h"

#include <cuda_runtime_api.h>
#if LS_CUDA_HAS_NCCL
#include <nccl.h>
#endif
#if LS_CUDA_HAS_CUDNN
#include <cudnn.h>
#endif
#if LS_CUDA_HAS_CUBLASLT
#include <cublasLt.h>
#endif
#include <stdio.h>

#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

enum { LEAST_MAJOR = 8 }; /* there is code for sm_80 and all that follow */

/* ---- Drivers --------------------------------------------------------------------------------- */

static int major_of(int version)
{
    return version / 1000;
}

static int minor_of(int version)
{
    return version % 1000 / 10;
}

/* The driver is older than the runtime that this was built with, or is not there. */
static int fail_by_driver(struct ls_error *error)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "install NVIDIA's driver (libcuda.so.1); nvidia-smi shows whether it works",
                       "no driver for NVIDIA's cards was found");
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                   "install a newer driver, or build Lockstep with an older toolkit",
                   "NVIDIA's driver is too old: it knows CUDA %d.%d, and Lockstep was built with "
                   "CUDA %d.%d",
                   major_of(driver), minor_of(driver), major_of(CUDART_VERSION),
                   minor_of(CUDART_VERSION));
}

static int count(int *number, struct ls_error *error)
{
    *number = 0;
    const cudaError_t code = cudaGetDeviceCount(number);
    (void)cudaGetLastError();
    if (code == cudaSuccess && *number > 0)
        return 0;
    *number = 0;
    if (code == cudaErrorInsufficientDriver)
        return fail_by_driver(error);
    if (code == cudaSuccess || code == cudaErrorNoDevice)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                       "nvidia-smi lists the cards of this machine; CUDA_VISIBLE_DEVICES in the "
                       "environment may hide some",
                       "there is no card of NVIDIA's here");
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, "nvidia-smi shows whether the driver works",
                   "NVIDIA's driver finds no cards: %s", cudaGetErrorString(code));
}

/* ---- Cards ----------------------------------------------------------------------------------- */

static void write_uuid(const unsigned char bytes[16], char *text, size_t size)
{
    static const int group[] = {4, 2, 2, 2, 6};
    int length = snprintf(text, size, "GPU");
    for (size_t g = 0; g < sizeof group / sizeof *group; g++)
        for (int i = 0; i < group[g]; i++, bytes++)
            length +=
                snprintf(text + length, size - (size_t)length, "%s%02x", i == 0 ? "-" : "", *bytes);
}

static int describe(int card, struct ls_card_facts *facts, struct ls_error *error)
{
    struct cudaDeviceProp properties;
    *facts = (struct ls_card_facts){.runs = false};
    const cudaError_t code = cudaGetDeviceProperties(&properties, card);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "card %d cannot be asked: %s", card,
                       cudaGetErrorString(code));
    }
    snprintf(facts->name, sizeof facts->name, "%s", properties.name);
    write_uuid((const unsigned char *)properties.uuid.bytes, facts->uuid, sizeof facts->uuid);
    facts->major = properties.major;
    facts->minor = properties.minor;
    facts->multiprocessors = properties.multiProcessorCount;
    facts->memory = properties.totalGlobalMem;
    facts->runs = properties.major >= LEAST_MAJOR;
    return 0;
}

/* ---- Libraries ------------------------------------------------------------------------------- */

static void put_version(struct ls_text *text, const char *key, int version)
{
    if (version > 0)
        ls_text_format(text, "%s=%d.%d\n", key, major_of(version), minor_of(version));
    else
        ls_text_format(text, "%s=none\n", key);
}

static void libraries(struct ls_text *text)
{
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        runtime = 0;
    (void)cudaGetLastError();
    put_version(text, "cuda.driver", driver);
    put_version(text, "cuda.runtime", runtime);
    ls_text_add(text, "cuda.code=sm_80 sm_90 compute_90\n");
#if LS_CUDA_HAS_CUDNN
    const size_t cudnn = cudnnGetVersion();
    ls_text_format(text, "cudnn=%zu.%zu.%zu\n", cudnn / 10000, cudnn / 100 % 100, cudnn % 100);
#else
    ls_text_add(text, "cudnn=none\n");
#endif
#if LS_CUDA_HAS_CUBLASLT
    const size_t cublaslt = cublasLtGetVersion();
    ls_text_format(text, "cublaslt=%zu.%zu.%zu\n", cublaslt / 10000, cublaslt / 100 % 100,
                   cublaslt % 100);
#else
    ls_text_add(text, "cublaslt=none\n");
#endif
#if LS_CUDA_HAS_NCCL
    int nccl = 0;
    if (ncclGetVersion(&nccl) == ncclSuccess && nccl > 0)
        ls_text_format(text, "nccl=%d.%d.%d\n", nccl / 10000, nccl / 100 % 100, nccl % 100);
#else
    ls_text_add(text, "nccl=none\n");
#endif
}

const struct ls_device_cards ls_card_cards = {
    .count = count,
    .describe = describe,
    .libraries = libraries,
    .tested = "the CUDA device has been tested on a stand-in only, never on a card",
};
