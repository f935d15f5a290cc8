/* A net for optimizers that look at whole matrices. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/matrices.h"

#include "trainings/training.h"

static const char net[] =
    "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'\n"
    "  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: 'msra' } } }\n"
    "layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool'\n"
    "  pooling_param { pool: AVE global_pooling: true } }\n"
    "layer { name: 'wide' type: 'InnerProduct' bottom: 'data' top: 'wide'\n"
    "  inner_product_param { num_output: 31 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 't' type: 'TanH' bottom: 'wide' top: 'wide' }\n"
    "layer { name: 'row' type: 'InnerProduct' bottom: 'wide' top: 'row'\n"
    "  inner_product_param { num_output: 1 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'column' type: 'InnerProduct' bottom: 'row' top: 'column'\n"
    "  inner_product_param { num_output: 60 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'seven' type: 'InnerProduct' bottom: 'wide' top: 'seven'\n"
    "  inner_product_param { num_output: 7 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'square' type: 'InnerProduct' bottom: 'seven' top: 'square'\n"
    "  inner_product_param { num_output: 7 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'high' type: 'InnerProduct' bottom: 'square' top: 'high'\n"
    "  inner_product_param { num_output: 60 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'dead' type: 'InnerProduct' bottom: 'wide' top: 'dead'\n"
    "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'none' type: 'Power' bottom: 'dead' top: 'none' power_param { scale: 0 } }\n"
    "layer { name: 'both' type: 'Eltwise' bottom: 'column' bottom: 'high' top: 'both' }\n"
    "layer { name: 'relu' type: 'ReLU' bottom: 'both' top: 'both' }\n"
    "layer { name: 'flat' type: 'Flatten' bottom: 'pool' top: 'flat' }\n"
    "layer { name: 'all' type: 'Concat' bottom: 'both' bottom: 'flat' top: 'all' }\n"
    "layer { name: 'ten' type: 'InnerProduct' bottom: 'all' top: 'ten'\n"
    "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'sum' type: 'Eltwise' bottom: 'ten' bottom: 'none' top: 'sum' }\n"
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'sum' bottom: 'label' top: 'l' }\n";

struct lockstep_solver *load_matrices(const char *settings, const char *options)
{
    return load_solver(
        "%s %s\n"
        "lr_policy: 'fixed' max_iter: 40 random_seed: 3 micro_batch: 3\n"
        "net_param { layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 20 } }\n%s }\n",
        settings, options, ls_test_path("images"), ls_test_path("labels"), net);
}
