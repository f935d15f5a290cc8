/* The device of NVIDIA's cards. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_DEVICE_H
#define LS_OPS_CUDA_DEVICE_H

#include "device/device.h"

extern const struct ls_device ls_device_cuda;

extern const struct ls_device_cards ls_card_cards;

#if LS_CUDA_HAS_NCCL
extern const struct ls_device_collectives ls_card_collectives;
#endif

#endif
