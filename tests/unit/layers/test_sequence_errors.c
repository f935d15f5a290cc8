/* What layers of nets of sequences refuse, and how they say so: tables, losses over many classes,
 * attention, recurrent cells.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_errors.h"

#define BAG "embedding_bag_param { num_output: 2 input_dim: 9 "

static const struct error_case cases[] = {
    {LAYER("Embed") XY, "4", "l: num_output is missing", NULL},
    {LAYER("Embed") XY "embed_param { num_output: 2 input_dim: 0 }", "4",
     "l: input_dim must be 1 to 2147483647", NULL},
    {LAYER("Embed") XY "embed_param { num_output: 2 input_dim: 16777217 }", "4",
     "l: input_dim 16777217 is more than the 16777216 that an index can name", NULL},

    {LAYER("LinearSoftmaxLoss") XL, "4x3x2 4x3", "l: num_output is missing", NULL},
    {LAYER("LinearSoftmaxLoss") XL "linear_softmax_loss_param { num_output: 16777217 }",
     "4x3x2 4x3", "l: num_output must be 1 to 16777216", NULL},
    {LAYER("LinearSoftmaxLoss") XL "linear_softmax_loss_param { num_output: 5 axis: 0 }",
     "4x3x2 4x3",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on "
     "how the batch is cut into micro-batches",
     NULL},
    {LAYER("LinearSoftmaxLoss") XL "linear_softmax_loss_param { num_output: 5 }", "4x3x2 4x2",
     "l: its bottoms must have as many positions, in the same order, but 'x' is 4 3 2 (24) (all "
     "axes in front of axis 2), and 'l' is 4 2 (8)",
     NULL},
    {LAYER("LinearSoftmaxLoss") XL "top: 'z' linear_softmax_loss_param { num_output: 5 }",
     "4x3x2 4x3", "l: it has 1 tops behind the loss, and 0 times metric", NULL},
    {LAYER("LinearSoftmaxLoss") XL "linear_softmax_loss_param { num_output: 5 metric: ACCURACY }",
     "4x3x2 4x3", "l: it has 0 tops behind the loss, and 1 times metric", NULL},
    {LAYER("LinearSoftmaxLoss") XL
     "top: 'z' linear_softmax_loss_param { num_output: 5 metric: BITS_PER_BYTE }",
     "4x3x2 4x3", "l: BITS_PER_BYTE needs a third bottom, the bytes of each label", NULL},
    {LAYER("LinearSoftmaxLoss") XLS "linear_softmax_loss_param { num_output: 5 }", "4x3x2 4x3 4x3",
     "l: nothing reads its third bottom, 's'", NULL},
    {LAYER("LinearSoftmaxLoss") XL
     "linear_softmax_loss_param { num_output: 5 } loss_param { class_weight: 1 }",
     "4x3x2 4x3",
     "l: class_weight must be given once for each of the 5 classes, or not at all; it is given 1 "
     "times",
     NULL},
    {LAYER("LinearSoftmaxLoss") XL
     "linear_softmax_loss_param { num_output: 5 } loss_param { label_smoothing: 1 }",
     "4x3x2 4x3", "l: label_smoothing 1 must be at least 0 and below 1", NULL},
    {LAYER("SoftmaxWithLoss") XL "softmax_param { metric: ACCURACY }", "4x3 4",
     "l: it has 0 tops behind the loss, and 1 times metric", NULL},
    {LAYER("SoftmaxWithLoss") XL "top: 'z' top: 'u' softmax_param { metric: PERPLEXITY }", "4x3 4",
     "l: it has 2 tops behind the loss, and 1 times metric", NULL},
    {LAYER("SoftmaxWithLoss") XL "top: 'z' top: 'u' top: 'v'", "4x3 4",
     "l: it has 4 tops; without softmax_param.metric there are the loss, the probabilities and the "
     "losses of positions",
     NULL},
    {LAYER("SoftmaxWithLoss") XL "top: 'z' softmax_param { metric: BITS_PER_BYTE }", "4x3 4",
     "l: BITS_PER_BYTE needs a third bottom, the bytes of each label", NULL},
    {LAYER("SoftmaxWithLoss") XLS "top: 'z' softmax_param { metric: BITS_PER_BYTE }", "4x3x2 4x2 4",
     "l: there must be a number of bytes for each label, but 'l' is 4 2 (8), and 's' is 4 (4)",
     NULL},
    {LAYER("SoftmaxWithLoss") XLS, "4x3 4 4", "l: nothing reads its third bottom, 's'", NULL},
    {LAYER("SoftmaxWithLoss") XL
     "top: 'z' loss_weight: 1 loss_weight: 1 softmax_param { metric: PERPLEXITY }",
     "4x3 4", "l: its top 'z' has no gradient and cannot be a loss", NULL},
    {LAYER("SoftmaxWithLoss") XL
     "top: 'z' softmax_param { metric: PERPLEXITY } loss_param { label_smoothing: 0.1 }",
     "4x3 4", "l: metric is of the plain loss, without label_smoothing and class_weight", NULL},
    {LAYER("LayerNorm") XY, "4", "l: axis 1 is out of range for 'x' with shape 4 (4)", NULL},
    {LAYER("Softmax") XY "softmax_param { metric: PERPLEXITY }", "4x3",
     "l: metric is of SoftmaxWithLoss layers", NULL},
    {LAYER("EmbeddingBag") XY, "4x3", "l: num_output is missing", NULL},
    {LAYER("EmbeddingBag") XY "embedding_bag_param { num_output: 2 input_dim: 16777217 }", "4x3",
     "l: input_dim must be 1 to 16777216", NULL},
    {LAYER("EmbeddingBag") XY BAG "}", "4",
     "l: its bottom 'x' must have an axis of indices behind that of the samples, but is 4 (4)",
     NULL},
    {LAYER("EmbeddingBag") XL BAG "}", "4x3 4x2",
     "l: its bottom 'l' must have the axes of the indices (weights), or all but the last one "
     "(lengths, which stand before weights), but is 4 2 (8)",
     NULL},
    {LAYER("EmbeddingBag") XLS BAG "}", "4x3 4x3 4",
     "l: its bottom 's' must have the axes of the indices (weights), or all but the last one "
     "(lengths, which stand before weights), but is 4 (4)",
     NULL},
    {LAYER("EmbeddingBag") XL BAG "mode: MEAN }", "4x3 4x3",
     "l: 'l' has weights of indices, which are for sums, not for means", NULL},
    {LAYER("GLU") XY, "4x3", "l: axis -1 of 'x' has no two halves: its extent is 3", NULL},
    {LAYER("GLU") XL, "4x3 4x2",
     "l: its bottoms must have one shape, but 'x' is 4 3 (12) and 'l' is 4 2 (8)", NULL},
    {LAYER("GLU") XL "glu_param { axis: 1 }", "4x4 4x4",
     "l: axis is for one bottom, which has values and gates in its halves", NULL},
    {LAYER("Gather") XL, "4x3 4",
     "l: its bottom 'l' must have numbers of places for each sample, with 2 axes, but is 4 (4)",
     NULL},
    {LAYER("Gather") XL, "4x3 4x2?",
     "l: its bottom 'l' must be a list of numbers of places, with one axis, but is 4 2 (8)", NULL},
    {LAYER("MatMul") XL, "4x3x2 4x3x2",
     "l: 'x' is 4 3 2 (24) and 'l' is 4 3 2 (24): the columns of the first matrices must be as "
     "many as the rows of the second",
     NULL},
    {LAYER("MatMul") XL, "4x2x3x2 4x3x2x3",
     "l: 'x' is 4 2 3 2 (48) and 'l' is 4 3 2 3 (72): along each axis in front of the matrices "
     "both must have as many places, or one of them 1",
     NULL},
    {LAYER("MatMul") XL, "4x3x2 2x5?",
     "l: 'x' is 4 3 2 (24) and 'l' is 2 5 (10): both must have as many axes, and at least 2", NULL},
    {LAYER("MatMul") XL "matmul_param { scale: nan }", "4x3x2 4x2x2",
     "l: scale must be a finite number", NULL},
    {LAYER("Pad") XY, "4x3", "l: pad_param must have before or after, the numbers of places", NULL},
    {LAYER("Pad") XY "pad_param { before: 1 value: inf }", "4x3",
     "l: value must be a finite number", NULL},
    {LAYER("Pad") XY "pad_param { before: 1 value: 2 mode: EDGE }", "4x3",
     "l: value is for mode: CONSTANT only", NULL},
    {LAYER("Pad") XY "pad_param { before: 2 after: 3 mode: REFLECT }", "4x3",
     "l: there are 2 places to reflect at the end of axis 1 of 'x'; the outermost one is not "
     "repeated",
     NULL},
    {LAYER("Pad") XY "pad_param { before: 1 axis: 1 axis: -1 }", "4x3", "l: axis 1 is given twice",
     NULL},
    {LAYER("Pad") XY "pad_param { before: 1 before: 2 }", "4x3",
     "l: before is given 2 times; it must be given once, or once for each of the 1 axes", NULL},
    {LAYER("Pad") XY "pad_param { before: 4294967295 axis: 1 axis: 2 axis: 3 }", "4x3x2x2",
     "l: the top would be 4 x 4294967298 x 4294967297 x 4294967297, which is empty or larger "
     "than a tensor may be",
     NULL},
    {LAYER("Positions") XY, "4",
     "l: its bottom 'x' must have at least 2 axes (samples, places), but is 4 (4)", NULL},
    {LAYER("Positions") XY "positions_param { offset: 16777215 }", "4x3",
     "l: numbers of 3 places from 16777215 on go beyond those that a value can hold, -2^24 "
     "to 2^24",
     NULL},
    {LAYER("Positions") XL, "4x3 4x2",
     "l: its bottom 'l' must have a number of a segment for each place, with 2 axes, but is 4 2 "
     "(8)",
     NULL},
    {LAYER("Softmax") XL, "4x3 4x2",
     "l: its mask 'l' is 4 2 (8), but must have the axes of 'x', 4 3 (12), or 1 place along "
     "some of them; along that of the samples it has samples, or 1 place",
     NULL},

    {LAYER("Attention") XY, "4x5x12", "l: num_heads is missing", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 0 }", "4x5x12",
     "l: num_heads must be 1 to 2147483647", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 4294967295 }", "4x5x12",
     "l: num_heads must be 1 to 2147483647", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 4 num_kv_heads: 3 }", "4x5x12",
     "l: num_kv_heads 3 must divide num_heads, 4", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 5 }", "4x5x12",
     "l: its bottom 'x' has 12 channels, which are not a multiple of the 15 heads of q, k and v",
     NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 }", "4x5",
     "l: its bottom 'x' must be samples x positions x channels, but is 4 5 (20)", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 dropout_ratio: nan }", "4x5x12",
     "l: dropout_ratio nan must be at least 0 and less than 1", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 dropout_ratio: 1 }", "4x5x12",
     "l: dropout_ratio 1 must be at least 0 and less than 1", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 scale: inf }", "4x5x12",
     "l: scale must be a finite number", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 4 rotary { } }", "4x5x12",
     "l: rotary positions turn an even number of the 1 numbers of a head, not 1", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 rotary { dims: 4 } }", "4x5x12",
     "l: rotary positions turn an even number of the 2 numbers of a head, not 4", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 rotary { theta: 0 } }", "4x5x12",
     "l: theta 0 must be a number above 0", NULL},
    {LAYER("Attention") XY "attention_param { num_heads: 2 extra: KEY_MASK }", "4x5x12",
     "l: it has 1 bottom (q, k and v side by side) or 3, and one for each extra, not 1 with 1 "
     "extra",
     NULL},
    {LAYER("Attention") XL "attention_param { num_heads: 2 extra: KEY_MASK }", "4x5x12 4x6",
     "l: its bottom 'l' must have one number for each key of each sample, but is 4 6 (24)", NULL},
    {LAYER("Attention") XL "attention_param { num_heads: 2 extra: KEY_LENGTHS }", "4x5x12 4x5",
     "l: its bottom 'l' must have one number for each sample, but is 4 5 (20)", NULL},
    {LAYER("Attention") XL "attention_param { num_heads: 2 extra: POSITIONS }", "4x5x12 4x5",
     "l: POSITIONS are for rotary positions, which are not asked for", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 extra: [MASK, ADDED_MASK] }",
     "4x5x12 4x5x5 4x5x5", "l: extra lists two masks of pairs", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 extra: [SEGMENTS, SEGMENTS] }",
     "4x5x12 4x5 4x5", "l: extra lists a kind of bottom twice", NULL},
    {LAYER("Attention") XL "attention_param { num_heads: 2 extra: MASK }", "4x5x12 4x5x6",
     "l: its bottom 'l' must be samples x queries x keys, or samples x heads x queries x keys; 1 "
     "stands for all samples, or all heads, but is 4 5 6 (120)",
     NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 }", "4x5x6 4x7x4 4x7x4",
     "l: a head of 'x' has 3 numbers, but one of 'l' has 2", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 }", "4x5x4 4x7x4 4x8x4",
     "l: 'l' has 7 keys, but 's' has 8 values", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 }", "4x5x4 4x7x4 4x7x5",
     "l: its bottom 's' has 5 channels, which are not a multiple of its 2 heads", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 2 rotary { } }", "4x8x4 4x7x4 4x7x4",
     "l: rotary positions are for at most as many queries as keys, not 8 for 7", NULL},
    {LAYER("Attention") XLS "attention_param { num_heads: 1 }",
     "1x2000000x1 1x2000000x1 1x2000000x1",
     "l: the weights of a sample would be 1 x 2000000 x 2000000, which is empty or larger than a "
     "tensor may be",
     NULL},

    {LAYER("LSTM") "bottom: 'x' bottom: 'k' top: 'y'", "4x2x3@1 4x2@1", "l: num_output is missing",
     NULL},
    {LAYER("LSTM") "bottom: 'x' bottom: 'k' top: 'y' recurrent_param { num_output: 1000000000 }",
     "4x2x3@1 4x2@1", "l: num_output must be 1 to 536870911", NULL},
    {LAYER("LSTM") "bottom: 'x' bottom: 'k' top: 'y' recurrent_param { num_output: 4 }",
     "4x2x3@1 3x2@1", "l: its bottom 'k' must be steps x sequences, as bottom 0, but is 3 2 (6)",
     NULL},
    {LAYER("LSTM") "bottom: 'x' bottom: 'k' top: 'y' recurrent_param { num_output: 4 }",
     "4x2x3 4x2",
     "l: its bottom 'x' must be steps x sequences x ..., with the samples of the batch along axis "
     "1; they lie along axis 0",
     NULL},
    {LAYER("LSTM") "bottom: 'x' bottom: 'k' bottom: 's' bottom: 'h' top: 'y' "
                   "recurrent_param { num_output: 4 }",
     "4x2x3@1 4x2@1 2x5 1x2x4@1", "l: it has 2 or 3 bottoms (x, cont, perhaps x_static), not 4",
     NULL},
    {LAYER("GRU") "bottom: 'x' bottom: 'k' bottom: 'h' top: 'y' "
                  "recurrent_param { num_output: 4 expose_hidden: true }",
     "4x2x3@1 4x2@1 1x2x4@1", "l: with expose_hidden it has 2 tops, not 1", NULL},
    {LAYER("RNN") "bottom: 'x' bottom: 'k' bottom: 'h' top: 'y' top: 'z' "
                  "recurrent_param { num_output: 4 expose_hidden: true }",
     "4x2x3@1 4x2@1 1x2x5@1",
     "l: its bottom 'h' must be 1 x sequences x num_output, but is 1 2 5 (10)", NULL},
    {LAYER("LSTMUnit") "bottom: 'c' bottom: 'x' bottom: 'k' top: 'y' top: 'z'",
     "1x2x3@1 1x2x6@1 1x2@1",
     "l: its bottom 'x' must be 1 x sequences x 4 times the numbers of bottom 0, but is 1 2 6 (12)",
     NULL},
};

static void all_errors(void **state)
{
    (void)state;
    check_errors(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
