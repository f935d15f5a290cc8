/* ls_device.products of the CPU: those of ops/cpu/bf16/product.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_PRODUCTS_H
#define LS_OPS_CPU_PRODUCTS_H

#include "device/products.h"

extern const struct ls_device_products ls_cpu_products;

#endif
