/* Kernels of ops that all devices compute alike (device/defined.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/defined.h"
#include "device/regions.h"

#include "ops/cpu/kernels.h"

static bool defined_accepts(const struct ls_op *op)
{
    return ls_defined_find(op) != NULL;
}

static int defined_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_defined *defined = ls_defined_find(prepared->op);
    if (defined->scratch != NULL)
        prepared->scratch_bytes = defined->scratch(prepared->op);
    return ls_own_prepare(prepared, error);
}

static int defined_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_defined_call call = {prepared->op, in, out, scratch, context};
    LS_TRY(ls_check_numbers(prepared->op, in, context->error));
    ls_defined_find(prepared->op)->run(&call);
    return 0;
}

#define DEFINED_KERNEL(symbol, kind_, bits_, name_)                                                \
    const struct ls_kernel ls_kernel_##symbol = {                                                  \
        .kind = kind_,                                                                             \
        .bits = bits_,                                                                             \
        .name = name_,                                                                             \
        .accepts = defined_accepts,                                                                \
        .prepare = defined_prepare,                                                                \
        .run = defined_run,                                                                        \
        .in_place = -1,                                                                            \
    }

DEFINED_KERNEL(pooling_stochastic, LS_OP_POOLING, LS_BITS_DEFINED, "stochastic pooling");
DEFINED_KERNEL(hinge_loss, LS_OP_HINGE_LOSS, LS_BITS_DEFINED, "hinge loss");
DEFINED_KERNEL(hinge_loss_backward, LS_OP_HINGE_LOSS_BACKWARD, LS_BITS_DEFINED,
               "hinge loss backward");
DEFINED_KERNEL(contrastive_loss, LS_OP_CONTRASTIVE_LOSS, LS_BITS_DEFINED, "contrastive loss");
DEFINED_KERNEL(contrastive_loss_backward, LS_OP_CONTRASTIVE_LOSS_BACKWARD, LS_BITS_DEFINED,
               "contrastive loss backward");
DEFINED_KERNEL(infogain_loss, LS_OP_INFOGAIN_LOSS, LS_BITS_DEFINED, "infogain loss");
DEFINED_KERNEL(infogain_loss_backward, LS_OP_INFOGAIN_LOSS_BACKWARD, LS_BITS_DEFINED,
               "infogain loss backward");
DEFINED_KERNEL(smooth_l1_loss, LS_OP_SMOOTH_L1_LOSS, LS_BITS_DEFINED, "smooth L1 loss");
DEFINED_KERNEL(smooth_l1_loss_backward, LS_OP_SMOOTH_L1_LOSS_BACKWARD, LS_BITS_DEFINED,
               "smooth L1 loss backward");
DEFINED_KERNEL(multibox_loss, LS_OP_MULTIBOX_LOSS, LS_BITS_DEFINED, "multibox loss");
DEFINED_KERNEL(multibox_loss_backward, LS_OP_MULTIBOX_LOSS_BACKWARD, LS_BITS_DEFINED,
               "multibox loss backward");
DEFINED_KERNEL(count_matches, LS_OP_COUNT_MATCHES, LS_BITS_DEFINED, "count matches");
DEFINED_KERNEL(detection_output, LS_OP_DETECTION_OUTPUT, LS_BITS_DEFINED, "detection output");
DEFINED_KERNEL(detection_evaluate, LS_OP_DETECTION_EVALUATE, LS_BITS_DEFINED, "detection evaluate");
DEFINED_KERNEL(region_evaluate, LS_OP_REGION_EVALUATE, LS_BITS_DEFINED, "region evaluate");
DEFINED_KERNEL(permute, LS_OP_PERMUTE, LS_BITS_EXACT, "permute");
DEFINED_KERNEL(im2col, LS_OP_IM2COL, LS_BITS_EXACT, "windows to columns");
DEFINED_KERNEL(col2im, LS_OP_COL2IM, LS_BITS_DEFINED, "columns to windows");
DEFINED_KERNEL(constant, LS_OP_CONSTANT, LS_BITS_EXACT, "constant");
DEFINED_KERNEL(select_rows, LS_OP_SELECT, LS_BITS_EXACT, "select rows");
DEFINED_KERNEL(filter_rows, LS_OP_FILTER, LS_BITS_EXACT, "filter rows");
DEFINED_KERNEL(embed, LS_OP_EMBED, LS_BITS_DEFINED, "embed");
DEFINED_KERNEL(embed_weights, LS_OP_EMBED_WEIGHTS, LS_BITS_DEFINED, "embed backward weights");
DEFINED_KERNEL(embed_rows, LS_OP_EMBED_ROWS, LS_BITS_DEFINED, "embed backward rows");
DEFINED_KERNEL(gather, LS_OP_GATHER, LS_BITS_EXACT, "gather");
DEFINED_KERNEL(gather_backward, LS_OP_GATHER_BACKWARD, LS_BITS_DEFINED, "gather backward");
DEFINED_KERNEL(pad, LS_OP_PAD, LS_BITS_EXACT, "pad");
DEFINED_KERNEL(pad_backward, LS_OP_PAD_BACKWARD, LS_BITS_DEFINED, "pad backward");
DEFINED_KERNEL(positions, LS_OP_POSITIONS, LS_BITS_EXACT, "positions");
DEFINED_KERNEL(embed_bag, LS_OP_EMBED_BAG, LS_BITS_DEFINED, "embedding bag");
DEFINED_KERNEL(embed_bag_rows, LS_OP_EMBED_BAG_ROWS, LS_BITS_DEFINED,
               "embedding bag backward rows");
DEFINED_KERNEL(embed_bag_factors, LS_OP_EMBED_BAG_FACTORS, LS_BITS_DEFINED,
               "embedding bag backward weights");
DEFINED_KERNEL(region_loss, LS_OP_REGION_LOSS, LS_BITS_DEFINED, "region loss");
DEFINED_KERNEL(region_loss_backward, LS_OP_REGION_LOSS_BACKWARD, LS_BITS_DEFINED,
               "region loss backward");
DEFINED_KERNEL(yolo_loss, LS_OP_YOLO_LOSS, LS_BITS_DEFINED, "YOLO loss");
DEFINED_KERNEL(yolo_loss_backward, LS_OP_YOLO_LOSS_BACKWARD, LS_BITS_DEFINED, "YOLO loss backward");
DEFINED_KERNEL(yolo_output, LS_OP_YOLO_OUTPUT, LS_BITS_DEFINED, "YOLO output");
DEFINED_KERNEL(proposal, LS_OP_PROPOSAL, LS_BITS_DEFINED, "proposal");
DEFINED_KERNEL(softmax_each, LS_OP_SOFTMAX_EACH, LS_BITS_DEFINED, "softmax losses");
DEFINED_KERNEL(smooth_l1_each, LS_OP_SMOOTH_L1_EACH, LS_BITS_DEFINED, "smooth L1 losses");
DEFINED_KERNEL(hardest_regions, LS_OP_HARDEST_REGIONS, LS_BITS_EXACT, "hardest regions");
