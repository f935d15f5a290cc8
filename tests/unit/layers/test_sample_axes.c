/* What every layer type does with samples that do not simply lie along axis 0: of several rows
 * each (/R), along another axis (@A), none (?), and bottoms that differ in it. Either the top says
 * where they are, or the layer is refused: nothing may mix the samples of a micro-batch.
 * A new type needs lines here, one of nets of sequences in sample_axes_sequences.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "sample_axes_sequences.h"

#include "ir/op_type.h"

#define YOLO                                                                                       \
    "yolov3_param { num: 2 num_class: 2 biases: [9, 9, 5, 5, 2, 2] mask: [0, 2] iou_thresh: 1 }"
#define YOLO_V2 "yolo_detection_output_param { num_box: 2 num_classes: 2 biases: [1, 1, 2, 2] }"
#define YOLO_V3                                                                                    \
    "yolov3_detection_output_param { num_box: 2 num_classes: 2 biases: [9, 9, 5, 5, 2, 2] "        \
    "mask: [0, 2, 1, 0] anchors_scale: [32, 16] keep_top_k: 6 }"
#define PROPOSAL                                                                                   \
    LAYER("Proposal")                                                                              \
    "bottom: 'a' bottom: 'b' bottom: 's' top: 'y' top: 'z' "                                       \
    "proposal_param { ratio: 1 scale: [1, 2] post_nms_topn: 5 } "
#define JUDGED "detection_evaluate_param { num_classes: 3 }"
#define EVAL   "eval_detection_param { num_object: 2 num_class: 2 biases: [1, 1, 2, 2] }"
#define HARDEST                                                                                    \
    LAYER("BoxAnnotatorOHEM")                                                                      \
    "bottom: 'a' bottom: 'b' bottom: 's' bottom: 'd' top: 'y' top: 'z' "                           \
    "box_annotator_ohem_param { roi_per_img: 2 } "
#define REGION "region_loss_param { num: 2 num_class: 2 biases: [1, 1, 2, 2] }"
#define BOXES_BY_CLASS                                                                             \
    "bottom: 'a' bottom: 'b' bottom: 'p' bottom: 's' top: 'y' "                                    \
    "multibox_loss_param { num_classes: 3 share_location: false mining_type: NONE } "
#define BOXES                                                                                      \
    "bottom: 'a' bottom: 'b' bottom: 'p' bottom: 's' top: 'y' "                                    \
    "multibox_loss_param { num_classes: 3 } "
#define DETECT_BY_CLASS                                                                            \
    "detection_output_param { num_classes: 3 keep_top_k: 2 share_location: false } "
#define DETECT "detection_output_param { num_classes: 3 keep_top_k: 2 } "
#define OUTPUT "bottom: 'a' bottom: 'b' hdf5_output_param { file_name: 'f' } "
#define ROI    "roi_pooling_param { pooled_h: 2 pooled_w: 3 } "
#define PSROI  "psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 2 } "

/* A function of each number by itself. */
#define ELEMENTWISE(type, parameter)                                                               \
    {LAYER(type) XY parameter, "8x3/2", "8x3/2"}, {LAYER(type) XY parameter, "3x8@1", "3x8@1"},    \
    {                                                                                              \
        LAYER(type) XY parameter, "8x3?", "8x3?"                                                   \
    }
/* One that must know the channels, or a whole batch, and so wants samples in front. */
#define CHANNELS(type, parameter, learned)                                                         \
    {LAYER(type) XY parameter, "8x3x5x5/2", "8x3x5x5/2" learned},                                  \
        {LAYER(type) XY parameter, "3x8x5x5@1", "no: " NOT_IN_FRONT},                              \
    {                                                                                              \
        LAYER(type) XY parameter, "8x3x5x5?", "no: " NOT_IN_FRONT                                  \
    }

static const struct axes_case cases[] = {
    ELEMENTWISE("AbsVal", ""),

    {LAYER("Accuracy") XLY, "8x3/2 8/2", "figure"},
    {LAYER("Accuracy") XLY, "8x3/2 4x2", "figure"},
    {LAYER("Accuracy") XLY, "1x8x3@1 8", "no: " RUNS},
    {LAYER("Accuracy") XLY "accuracy_param { axis: 2 }", "1x8x3@1 8", "figure"},
    {LAYER("Accuracy") XLY "accuracy_param { axis: 2 }", "5x8x3@1 5x8@1", "figure"},
    {LAYER("Accuracy") XLY "accuracy_param { axis: 2 }", "5x8x3@1 8x5", "no: labels must lie"},
    {LAYER("Accuracy") XLY, "8x3? 8?", "no: " NO_SAMPLES},
    {LAYER("Accuracy") XLY, "8x3 8?", "no: " NO_SAMPLES},

    {LAYER("ArgMax") XY, "8x3/2", "8x1x1/2"},
    {LAYER("ArgMax") XY, "1x8x3@1", "no: without axis"},
    {LAYER("ArgMax") XY "argmax_param { axis: 0 }", "5x8x3@1", "1x8x3@1"},
    {LAYER("ArgMax") XY "argmax_param { axis: 1 }", "5x8x3@1", "no: " RUNS},
    {LAYER("ArgMax") XY, "8x3?", "8x1x1?"},

    {LAYER("Axpy") ABSY, "8x3/2 8x3x4/2 8x3x4/2", "8x3x4/2"},
    {LAYER("Axpy") ABSY, "8x3x1x1 8x3x4x4 8x3x4x4", "8x3x4x4"},
    {LAYER("Axpy") ABSY, "8x3/2 8x3x4 8x3x4/2", "no: " ALIKE},
    {LAYER("Axpy") ABSY, "3x8@1 3x8x4@1 3x8x4@1", "no: " NOT_IN_FRONT},
    {LAYER("Axpy") ABSY, "8x3? 8x3x4? 8x3x4?", "no: " NOT_IN_FRONT},

    CHANNELS("BN", "", "!"),
    ELEMENTWISE("BNLL", ""),
    CHANNELS("BatchNorm", "", ""),

    /* Rows that are picked are those of the list. */
    {LAYER("BatchReindex") ABY, "8x3/2 5", "5x3"},
    {LAYER("BatchReindex") ABY, "6x8x3@1 5", "5x8x3"},
    {LAYER("BatchReindex") ABY, "8x3? 6/2", "6x3/2"},
    {LAYER("BatchReindex") ABY, "8x3 5?", "5x3?"},
    {LAYER("BatchReindex") ABY, "8x3 5x1", "no: with one axis"},

    {LAYER("Bias") XY, "8x3/2", "8x3/2!"},
    {LAYER("Bias") XY, "5x8x3@1", "no: " RUNS},
    {LAYER("Bias") XY "bias_param { axis: 2 }", "5x8x3@1", "5x8x3@1!"},
    {LAYER("Bias") XY "bias_param { axis: 0 }", "8x3/2", "no: " RUNS},
    {LAYER("Bias") XY, "8x3?", "8x3?!"},
    {LAYER("Bias") ABY "bias_param { axis: 0 }", "8x3x2/2 8x3/2", "8x3x2/2"},
    {LAYER("Bias") ABY "bias_param { axis: 0 }", "8x3x2/2 8x3", "no: other samples"},

    ELEMENTWISE("Clip", "clip_param { min: 0 max: 1 }"),

    {HARDEST, "8x5 8x1 8 8x4", "8, 8x4"},
    {HARDEST, "8x5/2 8x1/2 8/2 8x4/2", "8/2, 8x4/2"},
    {HARDEST, "8x5x1x1 8x1x1x1 8x1x1x1 8x4x1x1", "8x1x1x1, 8x4x1x1"},
    {HARDEST, "8x5x3x2 8x1x3x2 8x6 8x4x6", "8x6, 8x4x6"},
    {HARDEST, "8x5? 8 8 8x4?", "8, 8x4?"},
    {HARDEST, "5x5@1 5 5 5x4", "no: " NOT_IN_FRONT},

    {LAYER("Concat") ABY, "8x3/2 8x4/2", "8x7/2"},
    {LAYER("Concat") ABY, "8x3/2 8x3", "no: " ALIKE},
    {LAYER("Concat") ABY, "8x3/2 8x3?", "no: " ALIKE},
    {LAYER("Concat") ABY, "5x8@1 5x8@1", "no: " RUNS},
    {LAYER("Concat") ABY "concat_param { axis: 0 }", "5x8@1 2x8@1", "7x8@1"},
    {LAYER("Concat") ABY "concat_param { axis: 0 }", "8x3 8x3", "no: " RUNS},
    {LAYER("Concat") ABY "concat_param { axis: 0 }", "8x3? 8x3?", "16x3?"},

    {LAYER("ContrastiveLoss") ABSY, "8x3/2 8x3/2 8/2", "figure"},
    {LAYER("ContrastiveLoss") ABSY, "8x3/2 8x3/2 8", "no: one number for each row"},
    {LAYER("ContrastiveLoss") ABSY, "8x3/2 8x3 8/2", "no: agree in axis 0"},
    {LAYER("ContrastiveLoss") ABSY, "3x8@1 3x8@1 8", "no: " NOT_IN_FRONT},
    {LAYER("ContrastiveLoss") ABSY, "8x3? 8x3? 8", "no: " NOT_IN_FRONT},

    {LAYER("Convolution") XY "convolution_param { num_output: 2 kernel_size: 3 }", "8x3x5x5/2",
     "8x2x3x3/2!"},
    {LAYER("Convolution") XY "convolution_param { num_output: 2 kernel_size: 3 }", "3x8x5x5@1",
     "no: " NOT_IN_FRONT},
    {LAYER("Convolution") XY "convolution_param { num_output: 2 kernel_size: 3 }", "8x3x5x5?",
     "no: " NOT_IN_FRONT},

    {LAYER("Crop") ABY, "8x3x5x5/2 4x3x2x2", "8x3x2x2/2"},
    {LAYER("Crop") ABY, "5x5x8x5@2 5x5x8x5@2", "no: " RUNS},
    {LAYER("Crop") ABY, "8x3x5x5 8x3x2x2@2", "no: " RUNS},
    {LAYER("Crop") ABY, "8x3x5x5? 8x3x2x2", "8x3x2x2?"},

    {LAYER("Data") "top: 'y' data_param { source: 's' batch_size: 4 }", "", "no: is not open"},
    {LAYER("AnnotatedData") "top: 'y' data_param { source: 's' batch_size: 4 }", "",
     "no: is not open"},

    CHANNELS("Deconvolution", "convolution_param { num_output: 3 kernel_size: 1 }", "!"),

    {LAYER("DetectionEvaluate") XLY JUDGED, "10x1x6x7 10x3x8", "figure"},
    {LAYER("DetectionEvaluate") XLY JUDGED, "10x6x7 30x8/3", "no: " ALIKE},
    {LAYER("DetectionEvaluate") XLY JUDGED, "20x3x7/2 20x3x8/2", "figure"},
    {LAYER("DetectionEvaluate") XLY JUDGED, "8x6x7 6x3x8", "no: has rows for 6 samples"},
    {LAYER("DetectionEvaluate") XLY JUDGED, "6x10x7@1 6x10x8@1", "no: " NOT_IN_FRONT},
    {LAYER("DetectionEvaluate") XLY JUDGED, "10x6x7? 10x3x8", "no: " NOT_IN_FRONT},

    {LAYER("DetectionOutput") ABSY DETECT, "8x8 8x6 1x2x8?", "8x1x2x7"},
    {LAYER("DetectionOutput") "bottom: 'a' bottom: 'b' bottom: 's' bottom: 'd' top: 'y' " DETECT,
     "8x8 8x6 1x2x8? 8x3x5x5", "8x1x2x7"},
    {LAYER("DetectionOutput") ABSY DETECT, "16x4/2 16x3/2 1x2x8?", "8x1x2x7"},
    {LAYER("DetectionOutput") ABSY DETECT_BY_CLASS, "8x24 8x6 1x2x8?", "8x1x2x7"},
    {LAYER("DetectionOutput") ABSY DETECT, "8x8 8x6 1x2x8", "no: for samples"},
    {LAYER("DetectionOutput") ABSY DETECT, "2x8@1 2x8@1 1x2x8?", "no: " NOT_IN_FRONT},

    {LAYER("Dropout") XY, "8x3/2", "8x3/2"},
    {LAYER("Dropout") XY, "3x8@1", "3x8@1"},
    {LAYER("Dropout") XY, "8x3?", "no: no axis of samples"},

    {LAYER("DummyData") "top: 'y' dummy_data_param { shape { dim: [4, 3] } }", "", "10x3"},

    {LAYER("Eltwise") ABY, "8x3/2 8x3/2", "8x3/2"},
    {LAYER("Eltwise") ABY, "8x3/2 8x3", "no: " ALIKE},
    {LAYER("Eltwise") ABY, "8x8@1 8x8", "no: " ALIKE},
    {LAYER("Eltwise") ABY, "8x3 8x3?", "no: " ALIKE},
    {LAYER("Eltwise") ABY, "8x3@1 8x3@1", "8x3@1"},
    {LAYER("Eltwise") ABY, "8x3? 8x3?", "8x3?"},

    ELEMENTWISE("ELU", ""),

    {LAYER("EuclideanLoss") XLY, "8x3/2 8x3/2", "figure"},
    {LAYER("EuclideanLoss") XLY, "3x8@1 3x8@1", "figure"},
    {LAYER("EuclideanLoss") XLY, "8x8@1 8x8", "no: " ALIKE},
    {LAYER("EuclideanLoss") XLY, "8x3? 8x3", "no: " NO_SAMPLES},

    {LAYER("EvalDetection") XLY EVAL, "10x14x5x5 10x3x8", "figure"},
    {LAYER("EvalDetection") XLY EVAL, "10x14x5x5 30x8/3", "no: " ALIKE},
    {LAYER("EvalDetection") XLY EVAL, "8x14x5x5 6x3x8", "no: has rows for 6 samples"},
    {LAYER("EvalDetection") XLY EVAL, "14x10x5x5@1 10x3x8", "no: " NOT_IN_FRONT},
    {LAYER("EvalDetection") XLY EVAL, "10x14x5x5? 10x3x8", "no: " NOT_IN_FRONT},

    ELEMENTWISE("Exp", ""),

    {LAYER("Filter") ABY, "8x3/2 8/2", "8x3/2"},
    {LAYER("Filter") ABY, "8x3/2 8", "no: must agree in axis 0"},
    {LAYER("Filter") ABY, "8x3 8x2", "no: must be one number a sample"},
    {LAYER("Filter") ABY, "3x8@1 8", "no: " NOT_IN_FRONT},
    {LAYER("Filter") ABY, "8x3 1x8@1", "no: " NOT_IN_FRONT},
    {LAYER("Filter") ABY, "8x3? 8", "no: " NOT_IN_FRONT},

    {LAYER("Flatten") XY, "8x3x2/2", "8x6/2"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 end_axis: 1 }", "8x3x2/2", "24x2/6"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 end_axis: 1 }", "5x8x2@1", "no: mix samples"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 end_axis: 1 }", "1x8x2@1", "8x2"},
    {LAYER("Flatten") XY "flatten_param { axis: 0 end_axis: 1 }", "5x3x8x2@2", "15x8x2@1"},
    {LAYER("Flatten") XY, "8x3x2?", "8x6?"},

    ELEMENTWISE("GELU", ""),

    CHANNELS("GroupNorm", "group_norm_param { groups: 3 }", "!"),

    {LAYER("HDF5Output") OUTPUT, "8x3/2 8/2", "no: this net is trained"},
    {LAYER("HDF5Output") OUTPUT, "8x3/2 8", "no: must agree in axis 0"},
    {LAYER("HDF5Output") OUTPUT, "3x8@1 8", "no: " NOT_IN_FRONT},
    {LAYER("HDF5Output") OUTPUT, "8x3 8?", "no: " NOT_IN_FRONT},

    {LAYER("HingeLoss") XLY, "8x3/2 8/2", "figure"},
    {LAYER("HingeLoss") XLY, "8x3/2 4x2", "no: agree in axis 0"},
    {LAYER("HingeLoss") XLY, "3x8@1 8", "no: " NOT_IN_FRONT},
    {LAYER("HingeLoss") XLY, "8x3? 8", "no: " NOT_IN_FRONT},

    {LAYER("Im2col") XY "convolution_param { kernel_size: 2 }", "8x3x3x3/2", "8x12x2x2/2"},
    {LAYER("Im2col") XY "convolution_param { kernel_size: 2 }", "3x8x3x3@1", "no: " NOT_IN_FRONT},
    {LAYER("Im2col") XY "convolution_param { kernel_size: 2 }", "8x3x3x3?", "no: " NOT_IN_FRONT},

    {LAYER("InfogainLoss") ABSY, "8x3/2 8/2 3x3?", "figure"},
    {LAYER("InfogainLoss") ABSY, "8x3 8 3x3", "no: one for each sample"},
    {LAYER("InfogainLoss") ABSY, "8x3/2 4x2 3x3?", "no: agree in axis 0"},
    {LAYER("InfogainLoss") ABSY, "3x8@1 8 3x3?", "no: " RUNS},
    {LAYER("InfogainLoss") ABSY "infogain_loss_param { axis: 2 }", "5x8x3@1 5x8@1 3x3?", "figure"},
    {LAYER("InfogainLoss") ABSY, "8x3? 8 3x3?", "no: " NO_SAMPLES},

    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2 }", "8x3/2", "8x2/2!"},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2 axis: 0 }", "8x3/2",
     "no: " RUNS},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2 axis: 0 }", "5x8x3@1",
     "no: " RUN},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2 axis: 2 }", "5x8x3@1",
     "5x8x2@1!"},
    {LAYER("InnerProduct") XY "inner_product_param { num_output: 2 }", "8x3?", "8x2?!"},

    {LAYER("HDF5Data") "top: 'y' hdf5_data_param { source: 's' batch_size: 4 }", "",
     "no: is not open"},

    {LAYER("ImageData") "top: 'y' image_data_param { source: 's' }", "", "no: is not open"},

    {LAYER("Input") "top: 'y' input_param { shape { dim: [4, 3] } }", "", "10x3"},

    CHANNELS("InstanceNorm", "", ""),

    CHANNELS("Interp", "interp_param { height: 5 width: 5 }", ""),
    {LAYER("Interp") ABY, "8x3x5x5/2 4x3x5x5", "8x3x5x5/2"},
    {LAYER("Interp") ABY, "8x3x5x5/2 5x3x4x5@2", "no: " RUNS},

    {LAYER("LayerNorm") XY, "8x3x2/2", "8x3x2/2!"},
    {LAYER("LayerNorm") XY, "5x8x3@1", "no: " RUNS},
    {LAYER("LayerNorm") XY "layer_norm_param { axis: 0 }", "5x8x3@1", "no: " RUN},
    {LAYER("LayerNorm") XY "layer_norm_param { axis: 2 }", "5x8x3@1", "5x8x3@1!"},
    {LAYER("LayerNorm") XY, "8x3x2?", "8x3x2?!"},

    ELEMENTWISE("Log", ""),

    {LAYER("LRN") XY, "8x3x2x2/2", "8x3x2x2/2"},
    {LAYER("LRN") XY, "3x8x2x2@1", "no: " NOT_IN_FRONT},
    {LAYER("LRN") XY, "8x3x2x2?", "no: " NOT_IN_FRONT},

    CHANNELS("MVN", "", ""),

    {LAYER("MeanIoU") XLY, "8x3/2 8/2", "figure"},
    {LAYER("MeanIoU") XLY, "8x3/2 4x2", "figure"},
    {LAYER("MeanIoU") XLY, "1x8x3@1 8", "no: " RUNS},
    {LAYER("MeanIoU") XLY "mean_iou_param { axis: 2 }", "5x8x3@1 5x8@1", "figure"},
    {LAYER("MeanIoU") XLY, "8x3? 8?", "no: " NO_SAMPLES},

    {LAYER(
         "MemoryData") "top: 'y' top: 'z' memory_data_param { batch_size: 4 channels: 3 height: 2 "
                       "width: 2 }",
     "", "10x3x2x2, 10"},

    {LAYER("MultiBoxLoss") BOXES, "8x8 8x6 1x2x8? 8x4x8", "figure"},
    {LAYER("MultiBoxLoss") BOXES, "16x4/2 16x3/2 1x2x8? 16x2x8/2", "figure"},
    {LAYER("MultiBoxLoss") BOXES_BY_CLASS, "8x24 8x6 1x2x8? 8x4x8", "figure"},
    {LAYER("MultiBoxLoss") BOXES, "8x8 8x6 1x2x8? 8x32", "no: rows of 8 numbers"},
    {LAYER("MultiBoxLoss") BOXES, "8x8 8x6 1x2x8? 4x8x8@1", "no: " NOT_IN_FRONT},

    {LAYER("MultinomialLogisticLoss") XLY, "8x3/2 8/2", "figure"},
    {LAYER("MultinomialLogisticLoss") XLY, "8x3/2 4x2", "no: agree in axis 0"},
    {LAYER("MultinomialLogisticLoss") XLY, "3x8@1 8", "no: " NOT_IN_FRONT},
    {LAYER("MultinomialLogisticLoss") XLY, "8x3? 8", "no: " NOT_IN_FRONT},

    CHANNELS("Normalize", "", "!"),
    CHANNELS("Normalize", "norm_param { across_spatial: false channel_shared: false }", "!"),

    CHANNELS("PReLU", "", "!"),

    {LAYER("PSROIPooling") ABY PSROI, "8x8x5x5/2 6x5/2", "6x2x2x2/2"},
    {LAYER("PSROIPooling") ABY PSROI, "4x8x5x5@1 6x5", "no: " NOT_IN_FRONT},
    {LAYER("PSROIPooling") ABY PSROI, "8x8x5x5? 6x5", "no: " NOT_IN_FRONT},

    {LAYER("Parameter") "top: 'y' parameter_param { shape { dim: [8, 3] } }", "", "8x3?!"},

    {LAYER("Permute") XY "permute_param { order: 0 order: 2 order: 3 order: 1 }", "8x3x4x5/2",
     "8x4x5x3/2"},
    {LAYER("Permute") XY "permute_param { order: 1 }", "8x3x4/2", "3x8x4@1/2"},
    {LAYER("Permute") XY "permute_param { order: 1 }", "3x8x4@1", "8x3x4"},
    {LAYER("Permute") XY "permute_param { order: 1 }", "8x3x4?", "3x8x4?"},

    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "8x3x2x2/2", "8x3x1x1/2"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "3x8x2x2@1", "no: " NOT_IN_FRONT},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "8x3x2x2?", "no: " NOT_IN_FRONT},

    ELEMENTWISE("Power", "power_param { power: 2 }"),

    {LAYER("PriorBox") ABY "prior_box_param { min_size: 3 }", "8x3x4x5/2 8x3x9x9/2", "1x2x80?"},
    {LAYER("PriorBox") ABY "prior_box_param { min_size: 3 }", "3x8x4x5@1 8x3x9x9?", "1x2x80?"},

    {PROPOSAL, "8x4x3x2 8x8x3x2 8x3", "40x5, 40x1"},
    {PROPOSAL, "8x4x3x2/2 8x8x3x2/2 8x3/2", "40x5/2, 40x1/2"},
    {PROPOSAL, "8x4x3x2/2 8x8x3x2 8x3", "no: " ALIKE},
    {PROPOSAL, "1x4x1x1 1x8x1x1 1x6", "2x5, 2x1"},
    {PROPOSAL, "8x4x3x2? 8x8x3x2 8x3", "no: " NOT_IN_FRONT},
    {PROPOSAL, "4x8x3x2@1 8x8x3x2 8x3", "no: " NOT_IN_FRONT},

    {LAYER("ROIPooling") ABY ROI, "8x3x5x5/2 6x5x1x1/2", "6x3x2x3/2"},
    {LAYER("ROIPooling") ABY ROI, "8x3x5x5 6x5?", "6x3x2x3?"},
    {LAYER("ROIPooling") ABY ROI, "3x8x5x5@1 6x5", "no: " NOT_IN_FRONT},

    ELEMENTWISE("ReLU", ""),

    ELEMENTWISE("ReLU6", ""),

    {LAYER("Reduction") XY "reduction_param { axis: 1 }", "8x3/2", "8/2"},
    {LAYER("Reduction") XY, "8x3/2", "figure"},
    {LAYER("Reduction") XY, "5x8x3@1", "figure"},
    {LAYER("Reduction") XY "reduction_param { axis: 1 }", "5x8x3@1", "no: include that of the sam"},
    {LAYER("Reduction") XY "reduction_param { axis: 2 }", "5x8x3@1", "5x8@1"},
    {LAYER("Reduction") XY, "8x3?", "?"},

    {LAYER("RegionLoss") XLY REGION, "8x14x5x5/2 8x6x8/2", "figure"},
    {LAYER("RegionLoss") XLY REGION, "8x14x5x5 8x6x8/2", "no: " ALIKE},
    {LAYER("RegionLoss") XLY REGION, "8x14x5x5 8x48", "no: rows of 8 numbers"},
    {LAYER("RegionLoss") XLY REGION, "8x14x5x5 6x8x8@1", "no: " NOT_IN_FRONT},
    {LAYER("RegionLoss") XLY REGION, "8x14x5x5 8x6x8?", "no: " NOT_IN_FRONT},

    CHANNELS("Reorg", "reorg_param { stride: 1 }", ""),

    {LAYER("Reshape") XY "reshape_param { shape { dim: [0, 3, 1] } }", "8x3/2", "8x3x1/2"},
    {LAYER("Reshape") XY "reshape_param { shape { dim: [4, 6] } }", "8x3/2", "4x6"},
    {LAYER("Reshape") XY "reshape_param { shape { dim: [2, 12] } }", "8x3/2", "no: it could not"},
    {LAYER("Reshape") XY "reshape_param { shape { dim: [0, 0, 1] } }", "5x8@1", "5x8x1@1"},
    {LAYER("Reshape") XY "reshape_param { shape { dim: [8, 5] } }", "5x8@1", "no: it could not"},
    {LAYER("Reshape") XY "reshape_param { shape { dim: [2, 12] } }", "8x3?", "2x12?"},

    ELEMENTWISE("SELU", ""),

    {LAYER("SPP") XY "spp_param { pyramid_height: 2 }", "8x3x4x4/2", "8x15/2"},
    {LAYER("SPP") XY "spp_param { pyramid_height: 2 }", "3x8x4x4@1", "no: " NOT_IN_FRONT},
    {LAYER("SPP") XY "spp_param { pyramid_height: 2 }", "8x3x4x4?", "no: " NOT_IN_FRONT},

    {LAYER("Scale") XY, "8x3/2", "8x3/2!"},
    {LAYER("Scale") XY, "5x8x3@1", "no: " RUNS},
    {LAYER("Scale") XY "scale_param { axis: 0 }", "5x8x3@1", "no: " RUN},
    {LAYER("Scale") XY "scale_param { axis: 2 }", "5x8x3@1", "5x8x3@1!"},
    {LAYER("Scale") XY, "8x3?", "8x3?!"},
    {LAYER("Scale") ABY "scale_param { axis: 0 }", "8x3x2/2 8x3/2", "8x3x2/2"},
    {LAYER("Scale") ABY "scale_param { axis: 0 }", "8x3x2/2 8x3", "no: other samples"},
    {LAYER("Scale") ABY, "8x8@1 8?", "no: other samples"},

    CHANNELS("ShuffleChannel", "shuffle_channel_param { group: 3 }", ""),

    ELEMENTWISE("SiLU", ""),
    ELEMENTWISE("Sigmoid", ""),

    {LAYER("SigmoidCrossEntropyLoss") XLY, "8x3/2 8x3/2", "figure"},
    {LAYER("SigmoidCrossEntropyLoss") XLY, "8x3/2 4x6", "no: agree in axis 0"},
    {LAYER("SigmoidCrossEntropyLoss") XLY, "3x8@1 3x8@1", "figure"},
    {LAYER("SigmoidCrossEntropyLoss") XLY, "8x8@1 8x8", "no: " ALIKE},
    {LAYER("SigmoidCrossEntropyLoss") XLY, "8x3? 8x3?", "no: " NO_SAMPLES},

    {LAYER("Silence") "bottom: 'x'", "8x3/2", ""},
    {LAYER("Silence") "bottom: 'x'", "3x8@1", ""},
    {LAYER("Silence") "bottom: 'x'", "8x3?", ""},

    {LAYER("Slice") "bottom: 'x' top: 'a' top: 'b'", "8x4/2", "8x2/2, 8x2/2"},
    {LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' slice_param { axis: 0 }", "8x4/2", "no: " RUNS},
    {LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' slice_param { axis: 0 }", "6x8@1",
     "3x8@1, 3x8@1"},
    {LAYER("Slice") "bottom: 'x' top: 'a' top: 'b'", "6x8@1", "no: " RUNS},
    {LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' slice_param { axis: 0 }", "8x3?", "4x3?, 4x3?"},

    {LAYER("SmoothL1Loss") XLY, "8x3/2 8x3/2", "figure"},
    {LAYER("SmoothL1Loss") XLY, "3x8@1 3x8@1", "figure"},
    {LAYER("SmoothL1Loss") ABSY, "8x3/2 8x3/2 8x3", "no: " ALIKE},
    {LAYER("SmoothL1Loss") ABSY, "8x3 8x3 8x3?", "no: " NO_SAMPLES},
    {LAYER("SmoothL1Loss") XLY, "8x3? 8x3", "no: " NO_SAMPLES},
    {LAYER("SmoothL1Loss") XLY "top: 'z'", "8x3/2 8x3/2", "figure, 8x1x1x1/2"},
    {LAYER("SmoothL1Loss") XLY "top: 'z'", "8x3x4x5x6 8x3x4x5x6", "figure, 8x1x4x5x6"},
    {LAYER("SmoothL1Loss") XLY "top: 'z'", "3x8@1 3x8@1", "no: " NOT_IN_FRONT},
    {LAYER("SmoothL1Loss") XLY "loss_param { normalization: VALID }", "3x8@1 3x8@1",
     "no: " NOT_IN_FRONT},

    {LAYER("SmoothL1LossOHEM") XLY, "8x3/2 8x3/2", "figure"},
    {LAYER("SmoothL1LossOHEM") ABSY "top: 'z'", "8x3x4 8x12 8x3x4", "figure, 8x1x4x1"},
    {LAYER("SmoothL1LossOHEM") XLY, "3x8@1 3x8@1", "no: " NOT_IN_FRONT},
    {LAYER("SmoothL1LossOHEM") XLY, "8x3? 8x3", "no: " NO_SAMPLES},
    {LAYER("SmoothL1LossOHEM") ABSY, "8x3/2 8x3/2 8x3", "no: " ALIKE},

    {LAYER("Softmax") XY, "8x3/2", "8x3/2"},
    {LAYER("Softmax") XY "softmax_param { axis: 0 }", "8x3/2", "no: " RUNS},
    {LAYER("Softmax") XY "softmax_param { axis: 0 }", "5x8@1", "5x8@1"},
    {LAYER("Softmax") XY, "5x8@1", "no: " RUNS},
    {LAYER("Softmax") XY "softmax_param { axis: 0 }", "8x3?", "8x3?"},
    {LAYER("Softmax") ABY, "8x3/2 8x3/2", "8x3/2"},
    {LAYER("Softmax") ABY, "8x3x2/2 8x3x1/2", "8x3x2/2"},
    {LAYER("Softmax") ABY, "8x3 1x3?", "8x3"},
    {LAYER("Softmax") ABY, "8x3 8x3?", "no: must have the axes of"},
    {LAYER("Softmax") ABY, "8x3/2 8x1", "no: " ALIKE},
    {LAYER("Softmax") ABY "softmax_param { axis: 0 }", "5x8@1 5x1?", "5x8@1"},

    {LAYER("SoftmaxWithLoss") XLY, "8x3/2 8/2", "figure"},
    {LAYER("SoftmaxWithLoss") XLY "top: 'p' top: 'z'", "8x3/2 8/2", "figure, 8x3/2, 8/2"},
    {LAYER("SoftmaxWithLoss") XLY "top: 'p' top: 'z'", "8x3x4x5 8x1x20", "figure, 8x3x4x5, 8x1x20"},
    {LAYER("SoftmaxWithLoss") XLY, "8x3/2 4x2", "no: agree in axis 0"},
    {LAYER("SoftmaxWithLoss") XLY, "3x8@1 8", "no: " RUNS},
    {LAYER("SoftmaxWithLoss") XLY "softmax_param { axis: 2 }", "1x8x3@1 8", "figure"},
    {LAYER("SoftmaxWithLoss") XLY "softmax_param { axis: 2 }", "5x8x3@1 5x8@1", "figure"},
    {LAYER("SoftmaxWithLoss") XLY "softmax_param { axis: 2 }", "8x8x3@1 8x8",
     "no: labels must lie"},
    {LAYER("SoftmaxWithLoss") XLY, "8x3? 8", "no: " NO_SAMPLES},

    {LAYER("Split") "bottom: 'x' top: 'a' top: 'b'", "8x3/2", "8x3/2, 8x3/2"},
    {LAYER("Split") "bottom: 'x' top: 'a' top: 'b'", "3x8@1", "3x8@1, 3x8@1"},
    {LAYER("Split") "bottom: 'x' top: 'a' top: 'b'", "8x3?", "8x3?, 8x3?"},

    ELEMENTWISE("Swish", ""),
    CHANNELS("SyncBN", "", ""),
    CHANNELS("SyncBatchNorm", "", ""),

    ELEMENTWISE("TanH", ""),

    ELEMENTWISE("Threshold", ""),

    {LAYER("Tile") XY "tile_param { tiles: 2 }", "8x3/2", "8x6/2"},
    {LAYER("Tile") XY "tile_param { tiles: 2 axis: 0 }", "8x3/2", "no: " RUNS},
    {LAYER("Tile") XY "tile_param { tiles: 2 axis: 0 }", "5x8@1", "10x8@1"},
    {LAYER("Tile") XY "tile_param { tiles: 2 }", "5x8@1", "no: " RUNS},
    {LAYER("Tile") XY "tile_param { tiles: 2 axis: 0 }", "8x3?", "16x3?"},

    CHANNELS("Upsample", "upsample_param { scale: 1 }", ""),

    {LAYER("WindowData") "top: 'y' window_data_param { source: 's' batch_size: 4 }", "",
     "no: is not open"},

    {LAYER("YoloDetectionOutput") XY YOLO_V2, "8x14x5x5", "8x1x100x7"},
    {LAYER("YoloDetectionOutput") XLY YOLO_V2, "8x14x5x5 8x14x2x3", "8x1x124x7"},
    {LAYER("YoloDetectionOutput") XY YOLO_V2, "8x14x5x5/2", "no: it must have one"},
    {LAYER("YoloDetectionOutput") XY YOLO_V2, "14x8x5x5@1", "no: " NOT_IN_FRONT},
    {LAYER("YoloDetectionOutput") XY YOLO_V2, "8x14x5x5?", "no: " NOT_IN_FRONT},

    {LAYER("Yolov3") XLY YOLO, "8x14x5x5/2 8x6x8/2", "figure"},
    {LAYER("Yolov3") XLY YOLO, "8x14x5x5 8x6x8/2", "no: " ALIKE},
    {LAYER("Yolov3") XLY YOLO, "8x14x5x5 8x48", "no: rows of 8 numbers"},
    {LAYER("Yolov3") XLY YOLO, "8x14x5x5 6x8x8@1", "no: " NOT_IN_FRONT},
    {LAYER("Yolov3") XLY YOLO, "8x14x5x5? 8x6x8", "no: " NOT_IN_FRONT},

    {LAYER("Yolov3DetectionOutput") XLY YOLO_V3, "8x14x5x5 8x14x9x9", "8x1x6x7"},
    {LAYER("Yolov3DetectionOutput") XLY YOLO_V3, "8x14x5x5 14x8x9x9@1", "no: " NOT_IN_FRONT},
    {LAYER("Yolov3DetectionOutput") XLY YOLO_V3, "8x14x5x5 8x14x9x9?", "no: " NOT_IN_FRONT},
    {LAYER("Yolov3DetectionOutput") XLY YOLO_V3, "8x14x5x5 16x14x9x9/2", "no: " ALIKE},
};
enum {
    SEQUENCE_CASES = sizeof sequence_cases / sizeof *sequence_cases,
    OTHER_CASES = sizeof cases / sizeof *cases,
    CASES = OTHER_CASES + SEQUENCE_CASES
};

static const struct axes_case *case_at(int i)
{
    return i < OTHER_CASES ? &cases[i] : &sequence_cases[i - OTHER_CASES];
}

static void check_refusal(const struct axes_case *c, const struct one_layer *one, int status)
{
    const char *wanted = c->tops + strlen("no: ");
    if (status == 0)
        fail_msg("%s on %s was accepted", c->text, c->bottoms);
    assert_int_equal(status, LOCKSTEP_DEFINITION);
    if (strstr(one->error.problems[0].message, wanted) == NULL)
        fail_msg("%s on %s: %s", c->text, c->bottoms, one->error.problems[0].message);
}

static void check_tops(const struct axes_case *c, struct one_layer *one, int status)
{
    struct ls_text tops = {0};
    if (status != 0)
        fail_msg("%s on %s: %s", c->text, c->bottoms, one->error.problems[0].message);
    describe_tops(&tops, one);
    if (strcmp(tops.data != NULL ? tops.data : "", c->tops) != 0)
        fail_msg("%s on %s: %s, not %s", c->text, c->bottoms, tops.data, c->tops);
    ls_text_free(&tops);
}

/* Gradients are values like others: they must lie as what they are of. */
static void check_gradients(const struct axes_case *c, struct one_layer *one)
{
    const struct ls_graph *graph = one->graph;
    for (int i = 0; i < one->layer->bottoms; i++)
        one->layer->bottom[i]->needs_grad = i == 0;
    if (run_backward(one) != 0)
        return; /* types without a gradient */
    for (size_t v = 0; v < graph->value_count; v++) {
        const struct ls_value *value = graph->values[v], *of = value->gradient_of;
        if (of != NULL && (value->sample_axis != of->sample_axis || value->rows != of->rows ||
                           !ls_shape_equal(&value->shape, &of->shape)))
            fail_msg("%s on %s: %s lies differently", c->text, c->bottoms, value->name);
    }
}

static void samples_lie_where_the_table_says(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct one_layer one;
        open_layer(&one, case_at(i)->text, case_at(i)->bottoms, !is_for_tests(case_at(i)->text));
        int status = run_forward(&one);
        if (strncmp(case_at(i)->tops, "no: ", 4) == 0) {
            check_refusal(case_at(i), &one, status);
        } else {
            check_tops(case_at(i), &one, status);
            check_gradients(case_at(i), &one);
        }
        close_layer(&one);
    }
}

/* Every type has lines: with rows, with samples behind another axis, and with none. */
static void every_type_has_lines_for_every_place_of_samples(void **state)
{
    (void)state;
    for (size_t i = 0; ls_layer_types[i] != NULL; i++) {
        const struct ls_layer_type *type = ls_layer_types[i];
        char text[100];
        int rows = 0, behind = 0, none = 0, lines = 0;
        snprintf(text, sizeof text, "type: '%s' ", type->type);
        for (int c = 0; c < CASES; c++) {
            if (strstr(case_at(c)->text, text) == NULL)
                continue;
            lines++;
            rows += strchr(case_at(c)->bottoms, '/') != NULL;
            behind += strchr(case_at(c)->bottoms, '@') != NULL;
            none += strchr(case_at(c)->bottoms, '?') != NULL;
        }
        if (lines == 0 || (type->bottoms_min > 0 && (rows == 0 || behind == 0 || none == 0)))
            fail_msg("%s: what does it do with samples in other places?", type->type);
    }
}

static bool reads_integers(const struct ls_op *op)
{
    for (int i = 0; i < op->inputs && op->kind != LS_OP_VIEW; i++)
        if (op->input[i] != NULL && op->input[i]->type == LS_I32 &&
            (ls_op_input_types(op->kind, i) >> LS_I32 & 1) == 0)
            return true;
    return false;
}

/* A layer that reads a bottom with elements of another type is refused, where the definition names
 * it; one that does not read it hands it on with its type. */
static void other_types_are_refused_or_handed_on(void **state)
{
    (void)state;
    int refused = 0, handed_on = 0;
    for (int i = 0; i < CASES; i++) {
        for (int b = 0; strncmp(case_at(i)->tops, "no: ", 4) != 0; b++) {
            struct one_layer one;
            open_layer(&one, case_at(i)->text, case_at(i)->bottoms,
                       !is_for_tests(case_at(i)->text));
            bool there = b < one.layer->bottoms;
            if (there)
                one.layer->bottom[b]->type = LS_I32;
            int status = there ? run_forward(&one) : 0;
            for (size_t o = 0; there && status == 0 && o < one.graph->op_count; o++)
                if (reads_integers(one.graph->ops[o]))
                    fail_msg("%s on %s: bottom %d was read as what it is not", case_at(i)->text,
                             case_at(i)->bottoms, b);
            for (int t = 0; there && status == 0 && t < one.layer->tops;)
                handed_on += one.layer->top[t++]->type == LS_I32;
            if (status != 0) {
                const struct ls_problem *problem = &one.error.problems[0];
                assert_int_equal(status, LOCKSTEP_DEFINITION);
                assert_non_null(strstr(problem->message, "has elements of type I32, but the "));
                assert_non_null(strstr(problem->hint, "declare it as F32"));
                assert_memory_equal(problem->place, "net.prototxt:1:", 15);
                refused++;
            }
            close_layer(&one);
            if (!there)
                break;
        }
    }
    assert_true(refused > CASES / 3 && handed_on > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_types_are_refused_or_handed_on),
        cmocka_unit_test(samples_lie_where_the_table_says),
        cmocka_unit_test(every_type_has_lines_for_every_place_of_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
