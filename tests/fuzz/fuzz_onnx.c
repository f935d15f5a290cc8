/* Fuzzes the import of ONNX models: the bytes are a file. What is accepted has a net whose layers
 * are a definition, and weights all of whose numbers can be read.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/import.h"
#include "schema/text_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Sums the numbers, so that a sanitizer sees all of them read. */
static float read_weights(const struct ls_onnx_net *net)
{
    float sum = 0;
    for (size_t i = 0; i < net->weight_count; i++) {
        const struct ls_onnx_net_weight *weight = &net->weights[i];
        must(weight->name != NULL && weight->numbers != NULL);
        for (int64_t k = 0; k < ls_shape_size(&weight->shape); k++)
            sum += weight->numbers[k];
    }
    return sum;
}

/* The layers can be parsed, whatever strings the model had for names. */
static void read_layers(const struct ls_onnx_net *net)
{
    struct ls_definition *definition;
    struct ls_error error = {0};
    must(net->layers.data != NULL && net->output != NULL && net->layers.length > 0);
    must(ls_text_read("fuzz", net->layers.data, net->layers.length,
                      &lockstep__net_parameter__descriptor, &definition, &error) == 0);
    ls_definition_free(definition);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char name[64];
    struct ls_onnx_net net;
    struct ls_error error = {0};
    int file = memfd_create("model.onnx", MFD_CLOEXEC);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    int status = ls_onnx_import(name, &(struct ls_onnx_import){0}, &net, &error);
    must((status == 0) == (error.count == 0));
    if (status == 0) {
        const float sum = read_weights(&net);
        must(sum >= 0 || sum < 0 || net.weight_count > 0); /* NaN: of numbers that there are */
        read_layers(&net);
    } else {
        must(net.layers.data == NULL && net.weights == NULL);
    }
    ls_onnx_net_free(&net);
    close(file);
    return 0;
}
