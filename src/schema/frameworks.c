/* Names of other frameworks. See schema/frameworks.h.
 *
 * They are looked up only where the schema does not know a name, and are never taken for the one
 * that is meant: what they count, and their defaults, may differ.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/frameworks.h"

#include <string.h>
#include <strings.h>

#include "schema/fields.h"

#define ATTENTION                                                                                  \
    "write Attention; its projections are InnerProduct layers (docs/caffe.md, \"Attention\")"
#define PRODUCT "write InnerProduct; axis: 2 is for [samples, places, channels]"
#define BATCH   "write BatchNorm with batch_norm_param { scale_bias: true }"
#define BLOCK                                                                                      \
    "write a block of LayerNorm, Attention, InnerProduct and Eltwise layers (examples/gpt)"
#define PLACES "write Positions, and Embed behind it"

static const struct {
    const char *type, *hint;
} types[] = {
    {"Add", "write Eltwise"},
    {"AvgPool2d", "write Pooling with pool: AVE"},
    {"AdaptiveAvgPool2d", "write Pooling with pool: AVE global_pooling: true"},
    {"BatchNorm1d", BATCH},
    {"BatchNorm2d", BATCH},
    {"BatchNorm3d", BATCH},
    {"BCEWithLogitsLoss", "write SigmoidCrossEntropyLoss"},
    {"Cat", "write Concat"},
    {"Conv1d", "write Convolution"},
    {"Conv2d", "write Convolution"},
    {"Conv3d", "write Convolution"},
    {"ConvTranspose2d", "write Deconvolution"},
    {"CrossEntropyLoss",
     "write SoftmaxWithLoss; softmax_param { axis: -1 } where the classes are the last axis"},
    {"Dense", PRODUCT},
    {"Embedding", "write Embed with embed_param { input_dim: ROWS num_output: CHANNELS }"},
    {"LeakyReLU", "write ReLU with relu_param { negative_slope: 0.01 }"},
    {"Linear", PRODUCT},
    {"MaxPool2d", "write Pooling with pool: MAX"},
    {"MSELoss", "write EuclideanLoss, which is half of the sum over a sample"},
    {"Mul", "write Eltwise with operation: PROD"},
    {"MultiheadAttention", ATTENTION},
    {"NLLLoss", "write SoftmaxWithLoss in place of log-softmax and this loss"},
    {"PositionalEmbedding", PLACES},
    {"PositionalEncoding", PLACES},
    {"PositionEmbedding", PLACES},
    {"Residual", "write Eltwise, with what goes around as a bottom"},
    {"ScaledDotProductAttention", ATTENTION},
    {"SelfAttention", ATTENTION},
    {"TransformerBlock", BLOCK},
    {"TransformerDecoderLayer", BLOCK},
    {"TransformerEncoderLayer", BLOCK},
};

/* A name counts for every message that has a field of the other one. */
static const struct {
    const char *field, *ours;
} names[] = {
    {"accumulate_grad_batches", "iter_size"},
    {"accumulation_steps", "iter_size"},
    {"beta1", "momentum"},
    {"beta2", "momentum2"},
    {"bias", "bias_term"},
    {"block_size", "window"},
    {"clip_grad_norm", "clip_gradients"},
    {"clip_norm", "clip_gradients"},
    {"context_length", "window"},
    {"dim", "axis"},
    {"dropout", "dropout_ratio"},
    {"dropout_p", "dropout_ratio"},
    {"dtype", "type"},
    {"embedding_dim", "num_output"},
    {"eos", "separator"},
    {"epochs", "max_epoch"},
    {"eps", "delta"},
    {"epsilon", "delta"},
    {"epsilon", "eps"},
    {"eta_min", "lr_min"},
    {"eval_interval", "test_interval"},
    {"grad_clip", "clip_gradients"},
    {"gradient_accumulation", "iter_size"},
    {"gradient_accumulation_steps", "iter_size"},
    {"groups", "group"},
    {"heads", "num_heads"},
    {"ignore_index", "ignore_label"},
    {"is_causal", "causal"},
    {"learning_rate", "base_lr"},
    {"log_interval", "display"},
    {"lr", "base_lr"},
    {"lr_scheduler", "lr_policy"},
    {"max_epochs", "max_epoch"},
    {"max_grad_norm", "clip_gradients"},
    {"max_iters", "max_iter"},
    {"max_steps", "max_iter"},
    {"min_lr", "lr_min"},
    {"n_head", "num_heads"},
    {"n_layer", "repeat"},
    {"num_attention_heads", "num_heads"},
    {"num_embeddings", "input_dim"},
    {"num_epochs", "max_epoch"},
    {"num_layers", "repeat"},
    {"optimizer", "type"},
    {"out_channels", "num_output"},
    {"out_features", "num_output"},
    {"p", "dropout_ratio"},
    {"padding", "pad"},
    {"rate", "dropout_ratio"},
    {"scheduler", "lr_policy"},
    {"seed", "random_seed"},
    {"seq_len", "window"},
    {"sequence_length", "window"},
    {"units", "num_output"},
    {"vocab_size", "input_dim"},
    {"warmup", "warmup_iter"},
    {"warmup_epochs", "warmup_epoch"},
    {"warmup_iters", "warmup_iter"},
    {"warmup_steps", "warmup_iter"},
};

#define FOLLOWS  "leave it out: the shape of the bottom says it"
#define OF_LAYER "it belongs to the layer: layer { precision: BF16 }"
#define MASK                                                                                       \
    "a mask is a further bottom, and extra says what it is: extra: KEY_MASK for [samples, keys]"

/* A hint for a field of one message. */
static const struct {
    const char *message, *field, *hint;
} hints[] = {
    {"AttentionParameter", "attention_mask", MASK},
    {"AttentionParameter", "attn_mask", MASK},
    {"AttentionParameter", "embed_dim", FOLLOWS},
    {"AttentionParameter", "key_padding_mask", MASK},
    {"AttentionParameter", "mask", MASK},
    {"ConvolutionParameter", "in_channels", FOLLOWS},
    {"ConvolutionParameter", "precision", OF_LAYER},
    {"InnerProductParameter", "in_features", FOLLOWS},
    {"InnerProductParameter", "precision", OF_LAYER},
    {"LayerNormParameter", "normalized_shape", "axis: -1 takes the last axis"},
    {"SolverParameter", "allow_tf32", "precision: TF32"},
    {"SolverParameter", "bf16", "precision: BF16"},
    {"SolverParameter", "betas", "momentum: 0.9 momentum2: 0.999"},
    {"SolverParameter", "ema_decay", "weight_average { decay: 0.999 }"},
};

const char *ls_framework_type(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].type, type) == 0)
            return types[i].hint;
    return NULL;
}

bool ls_framework_field(const ProtobufCMessageDescriptor *type, const char *field,
                        struct ls_text *hint)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(hints[i].message, type->short_name) == 0 && strcmp(hints[i].field, field) == 0) {
            ls_text_add(hint, hints[i].hint);
            return true;
        }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].field, field) == 0 && ls_field_named(type, names[i].ours) != NULL) {
            ls_text_format(hint, "it is called '%s' here", names[i].ours);
            return true;
        }
    return false;
}
