/* Our graphs and cuDNN itself, without a card: it makes plans for cards that are described to it
 * (since 9.8), so that what it thinks of our descriptors, and which engines it has, is known before
 * a card is there. Nothing is carried out. Engines that compile their kernels need a driver, and
 * are not seen here. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "ops/cuda/cudnn.h"
#include "support/support.h"

/* ---- Cards that are described ---------------------------------------------------------------- */

static cudnnBackendDescriptor_t card; /* for all that is made */

struct card {
    const char *name;
    int compute, processors, shared_memory, l2_cache;
};

static const struct card cards[] = {{"NVIDIA H100 80GB HBM3", 900, 132, 232448, 52428800},
                                    {"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040}};

/* As cuDNN's own description of a card. */
static void describe(const struct card *of)
{
    char text[2048];
    const int length = snprintf(
        text, sizeof text,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,"
        "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,"
        "\"smClockRateKHz\":1500000,\"memClockRateKHz\":2000000,\"l2CacheSize\":%d,"
        "\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,\"deviceName\":\"%s\"}",
        of->processors, of->shared_memory, of->l2_cache, of->compute, of->name);
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &card);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(card, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, length, text);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(card);
    if (status != CUDNN_STATUS_SUCCESS)
        ls_test_skip("this cuDNN (%zu) takes no such description of a card: %s", cudnnGetVersion(),
                     cudnnGetErrorString(status));
}

/* A description stands where a handle would. */
cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);

cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return __real_cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card);
    const cudnnStatus_t status =
        __real_cudnnBackendSetAttribute(descriptor, name, type, count, values);
    if (status != CUDNN_STATUS_SUCCESS || name != CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
        return status;
    return __real_cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

struct shape {
    const char *name;
    int axes;
    int64_t samples, channels, size, outputs, kernel, stride, pad, groups;
};

static const struct shape shapes[] = {
    {"ResNet-50, 3 x 3", 2, 32, 64, 56, 64, 3, 1, 1, 1},
    {"ResNet-50, 3 x 3, stride 2", 2, 32, 128, 56, 128, 3, 2, 1, 1},
    {"ResNet-50, 1 x 1", 2, 32, 256, 56, 64, 1, 1, 0, 1},
    {"ResNet-50, 1 x 1, stride 2", 2, 32, 256, 56, 512, 1, 2, 0, 1},
    {"ResNet-50, first", 2, 32, 3, 224, 64, 7, 2, 3, 1},
    {"ResNet-50, 3 x 3, many", 2, 256, 64, 56, 64, 3, 1, 1, 1},
    {"ResNet-50, first, many", 2, 256, 3, 224, 64, 7, 2, 3, 1},
    {"VGG-16", 2, 64, 64, 224, 64, 3, 1, 1, 1},
    {"ResNet-20", 2, 128, 16, 32, 16, 3, 1, 1, 1},
    {"cifar10_quick", 2, 100, 3, 32, 32, 5, 1, 2, 1},
    {"LeNet", 2, 64, 1, 28, 20, 5, 1, 0, 1},
    {"MobileNet, depthwise", 2, 16, 32, 112, 32, 3, 1, 1, 32},
    {"CaffeNet, groups", 2, 32, 96, 27, 256, 5, 1, 2, 2},
    {"3-D U-Net", 3, 4, 16, 32, 32, 3, 1, 1, 1},
};

enum math { FP32, TF32, BF16 };
static const char *const math_names[] = {"FP32", "TF32", "BF16"};
static const char *const pass_names[] = {"forward", "by data", "by weights"};

static struct ls_cudnn_tensor tensor_of(cudnnDataType_t type, int axes, const int64_t *dim,
                                        bool last)
{
    struct ls_cudnn_tensor tensor = {.type = type};
    int64_t step = last ? dim[1] : 1;
    memcpy(tensor.dim, dim, (size_t)(axes + 2) * sizeof *dim);
    for (int a = axes + 1; a >= 2; a--) {
        tensor.stride[a] = step;
        step *= dim[a];
    }
    tensor.stride[1] = last ? 1 : step;
    tensor.stride[0] = last ? step : step * dim[1];
    return tensor;
}

/* As ops/cuda/cudnn_ops.c asks for it. */
static struct ls_cudnn_convolution convolution_of(const struct shape *of, enum ls_cudnn_pass pass,
                                                  enum math math, bool last)
{
    const int64_t k = of->kernel, h = of->size, p = (h + 2 * of->pad - k) / of->stride + 1;
    const int64_t x[] = {of->samples, of->channels, h, h, h};
    const int64_t w[] = {of->outputs, of->channels / of->groups, k, k, k};
    const int64_t y[] = {of->samples, of->outputs, p, p, p};
    const cudnnDataType_t type = math == BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    struct ls_cudnn_convolution all = {.pass = pass,
                                       .axes = of->axes,
                                       .x = tensor_of(type, of->axes, x, last),
                                       .w = tensor_of(type, of->axes, w, last),
                                       .y = tensor_of(type, of->axes, y, last)};
    for (int a = 0; a < 3; a++) {
        all.stride[a] = of->stride;
        all.dilation[a] = 1;
        all.pad[a] = of->pad;
    }
    return all;
}

static void expect_plan(const struct shape *of, enum ls_cudnn_pass pass, enum math math, bool ends)
{
    struct ls_cudnn_convolution all = convolution_of(of, pass, math, math != FP32);
    const struct ls_cudnn_demand demand = {.tensor_cores = math != FP32};
    struct ls_cudnn_plan plan;
    all.bias = all.relu = ends;
    ls_cudnn_plan_make(&all, &demand, NULL, &plan);
    if (plan.plan == NULL)
        fail_msg("%s, %s, %s%s: cuDNN has no plan: %s", of->name, math_names[math],
                 pass_names[pass], ends ? " with bias and ReLU" : "",
                 cudnnGetErrorString(plan.set.status));
    printf("%-28s %-5s %-10s%-11s engine %2d, %6.1f MiB\n", of->name, math_names[math],
           pass_names[pass], ends ? " with ends" : "", (int)plan.engine,
           (double)plan.workspace / 1048576);
    ls_cudnn_plan_free(&plan);
}

static void every_convolution_has_a_plan(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cards / sizeof *cards; c++) {
        describe(&cards[c]);
        printf("%s, cuDNN %zu\n", cards[c].name, cudnnGetVersion());
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int pass = LS_CUDNN_TO_Y; pass <= LS_CUDNN_TO_W; pass++) {
                expect_plan(&shapes[i], (enum ls_cudnn_pass)pass, FP32, false);
                expect_plan(&shapes[i], (enum ls_cudnn_pass)pass, TF32, false);
                if (pass != LS_CUDNN_TO_W) /* whose sums are fp32: widened, then TF32 */
                    expect_plan(&shapes[i], (enum ls_cudnn_pass)pass, BF16, false);
            }
        cudnnBackendDestroyDescriptor(card);
    }
}

/* In fp32 without tensor cores bias and ReLU, if it has no slope, are in an engine's own kernel. */
static void ends_are_fused(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cards / sizeof *cards; c++) {
        describe(&cards[c]);
        expect_plan(&shapes[0], LS_CUDNN_TO_Y, FP32, true);
        cudnnBackendDestroyDescriptor(card);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_has_a_plan),
        cmocka_unit_test(ends_are_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
