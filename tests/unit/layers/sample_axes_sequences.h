/* Where samples may lie in the bottoms of layers of nets of sequences.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_SAMPLE_AXES_SEQUENCES_H
#define LS_TESTS_SAMPLE_AXES_SEQUENCES_H

#include "sample_axes.h"

#define XCY         "bottom: 'x' bottom: 'cont' top: 'y' "
#define RECURRENT   "recurrent_param { num_output: 4 } "
#define EMBED       "embed_param { num_output: 5 input_dim: 7 } "
#define LINEAR_LOSS "linear_softmax_loss_param { num_output: 5 } "
#define BAG         "embedding_bag_param { num_output: 5 input_dim: 7 } "
#define SEQUENCES   "with the samples of the batch along axis 1"

static const struct axes_case sequence_cases[] = {
    {LAYER("Attention") XY "attention_param { num_heads: 2 }", "8x5x12/2", "8x5x4/2"},
    {LAYER("Attention") XY "attention_param { num_heads: 2 }", "5x8x12@1", "no: " NOT_IN_FRONT},
    {LAYER("Attention") XY "attention_param { num_heads: 2 }", "8x5x12?", "no: " NOT_IN_FRONT},
    {LAYER("Attention") ABSY "attention_param { num_heads: 2 }", "8x5x4 8x7x4 8x7x6", "8x5x6"},
    {LAYER("Attention") ABSY "attention_param { num_heads: 2 }", "8x5x4 8x7x4/2 8x7x6",
     "no: " ALIKE},
    {LAYER("Attention") ABY "attention_param { num_heads: 2 extra: KEY_MASK }", "8x5x12 8x5",
     "8x5x4"},
    {LAYER("Attention") ABY "attention_param { num_heads: 2 extra: KEY_MASK }", "8x5x12 8x5/2",
     "no: " ALIKE},
    {LAYER("Attention") ABY "attention_param { num_heads: 2 extra: MASK }", "8x5x12 1x5x5?",
     "8x5x4"},
    {LAYER("Attention") ABY "attention_param { num_heads: 2 extra: MASK }", "8x5x12 8x2x5x5",
     "8x5x4"},

    {LAYER("Embed") XY EMBED, "8x3/2", "8x3x5/2!"},
    {LAYER("Embed") XY EMBED, "3x8@1", "3x8x5@1!"},
    {LAYER("Embed") XY EMBED, "8x3?", "8x3x5?!"},

    {LAYER("EmbeddingBag") XY BAG, "8x3/2", "8x5/2!"},
    {LAYER("EmbeddingBag") XY BAG, "3x8x2@1", "3x8x5@1!"},
    {LAYER("EmbeddingBag") XY BAG, "3x8@1", "no: behind that of the samples"},
    {LAYER("EmbeddingBag") XY BAG, "8x3?", "8x5?!"},
    {LAYER("EmbeddingBag") ABY BAG, "8x3/2 8/2", "8x5/2!"},
    {LAYER("EmbeddingBag") ABY BAG, "8x3/2 8", "no: " ALIKE},
    {LAYER("EmbeddingBag") ABSY BAG, "8x3 8 8x3", "8x5!"},

    {LAYER("GLU") XY, "8x4/2", "8x2/2"},
    {LAYER("GLU") XY, "4x8@1", "no: " RUNS},
    {LAYER("GLU") XY "glu_param { axis: 2 }", "5x8x4@1", "5x8x2@1"},
    {LAYER("GLU") XY, "8x4?", "8x2?"},
    {LAYER("GLU") ABY, "8x3/2 8x3/2", "8x3/2"},
    {LAYER("GLU") ABY, "3x8@1 3x8@1", "3x8@1"},
    {LAYER("GLU") ABY, "8x3/2 8x3", "no: " ALIKE},
    {LAYER("GLU") ABY, "8x3? 8x3?", "8x3?"},

    {LAYER("Gather") ABY, "8x3x2 8x5", "8x5x2"},
    {LAYER("Gather") ABY, "8x3x2/2 8x5/2", "8x5x2/2"},
    {LAYER("Gather") ABY, "8x3x2 8x5/2", "no: " ALIKE},
    {LAYER("Gather") ABY, "8x3x2 5?", "8x5x2"},
    {LAYER("Gather") ABY, "8x3? 5?", "8x5?"},
    {LAYER("Gather") ABY, "8x3? 8x5", "no: " NOT_IN_FRONT},
    {LAYER("Gather") ABY "gather_param { axis: 2 }", "5x8x3@1 4?", "5x8x4@1"},
    {LAYER("Gather") ABY "gather_param { axis: 2 }", "5x8x3@1 8x2", "no: " NOT_IN_FRONT},
    {LAYER("Gather") ABY "gather_param { axis: 0 }", "8x3 4?", "no: " RUNS},

    {LAYER("GRU") XCY RECURRENT, "5x8x3@1 5x8@1", "5x8x4@1!"},
    {LAYER("GRU") XCY RECURRENT, "5x8x3@1/2 5x8@1/2", "5x8x4@1/2!"},
    {LAYER("GRU") XCY RECURRENT, "8x5x3 8x5", "no: " SEQUENCES},
    {LAYER("GRU") XCY RECURRENT, "5x8x3? 5x8?", "no: " SEQUENCES},

    {LAYER("LSTM") XCY RECURRENT, "5x8x3@1 5x8@1", "5x8x4@1!"},
    {LAYER("LSTM") XCY RECURRENT, "5x8x3x2@1/2 5x8@1/2", "5x8x4@1/2!"},
    {LAYER("LSTM") XCY RECURRENT "bottom: 's'", "5x8x3@1 5x8@1 8x7", "5x8x4@1!"},
    {LAYER("LSTM") XCY RECURRENT "bottom: 's'", "5x8x3@1 5x8@1 8x7@1", "no: along axis 0"},
    {LAYER("LSTM") XCY RECURRENT "bottom: 's'", "5x8x3@1 5x8@1 8x7?", "no: along axis 0"},
    {LAYER("LSTM") XCY RECURRENT, "5x8x3 5x8", "no: " SEQUENCES},
    {LAYER("LSTM") XCY RECURRENT, "5x8x3@1 5x8", "no: " ALIKE},
    {LAYER("LSTM") XCY RECURRENT, "5x8x3? 5x8?", "no: " SEQUENCES},
    {LAYER("LSTM") XCY "bottom: 'h' bottom: 'c' top: 'h_T' top: 'c_T' "
                       "recurrent_param { num_output: 4 expose_hidden: true }",
     "5x8x3@1 5x8@1 1x8x4@1 1x8x4@1", "5x8x4@1!, 1x8x4@1!, 1x8x4@1!"},
    {LAYER("LSTM") XCY "bottom: 'h' bottom: 'c' top: 'h_T' top: 'c_T' "
                       "recurrent_param { num_output: 4 expose_hidden: true }",
     "5x1x3@1 5x1@1 1x1x4 1x1x4@1", "no: " ALIKE},

    {LAYER("LSTMUnit") "bottom: 'c' bottom: 'x' bottom: 'cont' top: 'c2' top: 'h'",
     "1x8x3@1 1x8x12@1 1x8@1", "1x8x3@1, 1x8x3@1"},
    {LAYER("LSTMUnit") "bottom: 'c' bottom: 'x' bottom: 'cont' top: 'c2' top: 'h'",
     "1x8x3@1/2 1x8x12@1/2 1x8@1/2", "1x8x3@1/2, 1x8x3@1/2"},
    {LAYER("LSTMUnit") "bottom: 'c' bottom: 'x' bottom: 'cont' top: 'c2' top: 'h'",
     "1x8x3? 1x8x12? 1x8?", "1x8x3?, 1x8x3?"},
    {LAYER("LSTMUnit") "bottom: 'c' bottom: 'x' bottom: 'cont' top: 'c2' top: 'h'",
     "1x1x3@1 1x1x12 1x1@1", "no: " ALIKE},

    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "8x3x2/2 8x3/2", "figure"},
    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "3x8x2@1 3x8@1", "figure"},
    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "8x8x2@1 8x8", "no: in the same order"},
    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "8x3x2/2 8x3", "no: agree in axis 0"},
    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "3x8@1 3", "no: " RUNS},
    {LAYER("LinearSoftmaxLoss") XLY LINEAR_LOSS, "8x3x2? 8x3", "no: " NO_SAMPLES},

    {LAYER("MatMul") ABY, "8x3x4/2 8x4x5/2", "8x3x5/2"},
    {LAYER("MatMul") ABY, "8x3x4 1x4x5?", "8x3x5"},
    {LAYER("MatMul") ABY, "1x3x4? 8x4x5/2", "8x3x5/2"},
    {LAYER("MatMul") ABY, "3x4? 4x5?", "3x5?"},
    {LAYER("MatMul") ABY, "8x3x4 8x4x5/2", "no: " ALIKE},
    {LAYER("MatMul") ABY, "8x3x4 8x4x5?", "no: must have one place there"},
    {LAYER("MatMul") ABY, "3x8x4@1 3x4x5?", "no: along an axis of its matrices"},
    {LAYER("MatMul") ABY, "8x3 3x5?", "no: along an axis of its matrices"},

    {LAYER("Pad") XY "pad_param { before: 1 }", "8x3/2", "8x4/2"},
    {LAYER("Pad") XY "pad_param { before: 1 }", "3x8@1", "no: " RUNS},
    {LAYER("Pad") XY "pad_param { before: 1 axis: 0 }", "5x8@1", "no: " RUN},
    {LAYER("Pad") XY "pad_param { after: 1 }", "8x3?", "8x4?"},

    {LAYER("Positions") XY, "8x3x2/2", "8x3/2"},
    {LAYER("Positions") XY, "3x8@1", "no: " NOT_IN_FRONT},
    {LAYER("Positions") XY, "8x3?", "no: " NOT_IN_FRONT},
    {LAYER("Positions") ABY, "8x3x2 8x3", "8x3"},
    {LAYER("Positions") ABY, "8x3/2 8x3", "no: " ALIKE},

    {LAYER("RMSNorm") XY, "8x3x2/2", "8x3x2/2!"},
    {LAYER("RMSNorm") XY, "5x8@1", "no: " RUNS},
    {LAYER("RMSNorm") XY "rms_norm_param { axis: 0 }", "5x8x3@1", "no: " RUN},
    {LAYER("RMSNorm") XY, "5x8x3@1", "5x8x3@1!"},
    {LAYER("RMSNorm") XY, "8x3x2?", "8x3x2?!"},

    {LAYER("RNN") XCY RECURRENT, "5x8x3@1 5x8@1", "5x8x4@1!"},
    {LAYER("RNN") XCY RECURRENT, "5x8x3@1/2 5x8@1/2", "5x8x4@1/2!"},
    {LAYER("RNN") XCY RECURRENT, "5x8x3 5x8", "no: " SEQUENCES},
    {LAYER("RNN") XCY RECURRENT, "5x8x3? 5x8?", "no: " SEQUENCES},
};

#endif
