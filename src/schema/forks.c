/* The names of forks. See schema/forks.h.
 *
 * A fork's name is looked up only where the schema does not know it: a name that becomes a field or
 * a layer type here need not be taken out at once, but should be.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/forks.h"

#include <stddef.h>
#include <string.h>

#define PLUGIN "a layer type of your own can be built as a plugin (docs/caffe.md)"

/* ---- Fields ---------------------------------------------------------------------------------- */

#define IGNORED(message, field, fork)                                                              \
    {                                                                                              \
        message, field, fork, LS_FORK_IGNORED, NULL                                                \
    }
#define RENAMED(message, field, fork, name)                                                        \
    {                                                                                              \
        message, field, fork, LS_FORK_RENAMED, name                                                \
    }
#define REFUSED(message, field, fork, hint)                                                        \
    {                                                                                              \
        message, field, fork, LS_FORK_REFUSED, hint                                                \
    }

static const struct ls_fork_field fields[] = {
    /* which implementation computes, and in which units */
    IGNORED(NULL, "engine", "Intel Caffe"),
    IGNORED("ConvolutionParameter", "conv_algorithm", "Intel Caffe"),
    IGNORED("ConvolutionParameter", "conv_algos_override", "NVIDIA Caffe"),
    IGNORED("ConvolutionParameter", "cudnn_convolution_algo_seeker", "NVIDIA Caffe"),
    IGNORED("ConvolutionParameter", "cudnn_math_override", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "cudnn_math_override", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_conv_algos_override", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_cudnn_math_override", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_forward_type", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_backward_type", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_forward_math", "NVIDIA Caffe"),
    IGNORED("NetParameter", "default_backward_math", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "forward_type", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "backward_type", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "forward_math", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "backward_math", "NVIDIA Caffe"),
    IGNORED("SolverParameter", "solver_data_type", "NVIDIA Caffe"),
    IGNORED("SolverParameter", "store_blobs_in_old_format", "NVIDIA Caffe"),
    IGNORED("NetParameter", "global_grad_scale", "NVIDIA Caffe"),
    IGNORED("NetParameter", "global_grad_scale_adaptive", "NVIDIA Caffe"),
    IGNORED("NetParameter", "reduce_buckets", "NVIDIA Caffe"),
    IGNORED("NetParameter", "eltwise_mem_sharing", "NVIDIA Caffe"),
    IGNORED("NetParameter", "quantize", "Ristretto"),
    IGNORED("LayerParameter", "quantization_param", "Ristretto"),
    IGNORED("NetParameter", "compile_net_state", "Intel Caffe"),
    IGNORED("NetParameter", "multinode", "Intel Caffe"),
    IGNORED("LayerParameter", "multinode", "Intel Caffe"),
    IGNORED("LayerParameter", "mn_activation_param", "Intel Caffe"),
    IGNORED("LayerParameter", "mn_grad_compress_param", "Intel Caffe"),
    IGNORED("LayerParameter", "split_param", "Intel Caffe"),
    IGNORED("NetParameter", "mem_param", "PSPNet"),
    IGNORED("NetParameter", "optimize_mem", "PSPNet"),
    IGNORED("NetParameter", "profile_info", "a fork of Caffe"),
    IGNORED("NetParameter", "profile_iter", "a fork of Caffe"),
    IGNORED("NetParameter", "profile_warmup", "a fork of Caffe"),
    /* how data are read ahead */
    IGNORED("DataParameter", "threads", "NVIDIA Caffe"),
    IGNORED("DataParameter", "parser_threads", "NVIDIA Caffe"),
    IGNORED("ImageDataParameter", "threads", "NVIDIA Caffe"),
    IGNORED("ImageDataParameter", "cache", "NVIDIA Caffe"),
    IGNORED("ImageDataParameter", "precache", "NVIDIA Caffe"),
    IGNORED("ImageDataParameter", "prefetch", "a fork of Caffe"),
    IGNORED("TransformationParameter", "use_gpu_transform", "NVIDIA Caffe"),
    IGNORED("TransformationParameter", "img_rand_resize_test", "NVIDIA Caffe"),
    /* a program gives MemoryData its records, whatever it reads them from */
    IGNORED("MemoryDataParameter", "source", "CaffeOnSpark"),
    IGNORED("MemoryDataParameter", "share_in_parallel", "CaffeOnSpark"),
    /* what is so here in any case: a second bottom has the size, labels are maps */
    IGNORED("InterpParameter", "use_blob_size", "a fork of Caffe"),
    IGNORED("ImageDataParameter", "label_type", "DeepLab"),
    /* what a Scale layer that follows does */
    IGNORED("BatchNormParameter", "filler", "Intel Caffe"),
    IGNORED("BatchNormParameter", "use_weight_bias", "Intel Caffe"),
    /* what is written or shown beside the top */
    IGNORED("DetectionOutputParameter", "save_output_param", "SSD"),
    IGNORED("DetectionOutputParameter", "visualize", "SSD"),
    IGNORED("DetectionOutputParameter", "visualize_threshold", "SSD"),
    IGNORED("DetectionOutputParameter", "save_file", "SSD"),
    /* what no rule of the loss reads */
    IGNORED("RegionLossParameter", "jitter", "YOLO"),
    IGNORED("RegionLossParameter", "absolute", "YOLO"),
    IGNORED("RegionLossParameter", "random", "YOLO"),
    /* of YOLO's first version, whose boxes are coded in another way */
    IGNORED("EvalDetectionParameter", "sqrt", "YOLO"),
    IGNORED("EvalDetectionParameter", "constriant", "YOLO"),
    /* of layer types that are refused by name, or whose data dummy data stand in for */
    IGNORED("LayerParameter", "yolo_seg_param", "MobileNet-YOLO"),
    IGNORED("LayerParameter", "seg_accuracy_param", "DeepLab"),
    IGNORED("LayerParameter", "selu_dropout_param", "MobileNet-YOLO"),
    IGNORED("LayerParameter", "segmentation_evaluate_param", "MobileNet-YOLO"),
    IGNORED("LayerParameter", "video_data_param", "Intel Caffe"),
    IGNORED("LayerParameter", "detectnet_groundtruth_param", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "detectnet_augmentation_param", "NVIDIA Caffe"),
    IGNORED("LayerParameter", "trt_param", "NVIDIA Caffe"),
    /* what a solver shows */
    IGNORED("SolverParameter", "richness", "TSN"),

    RENAMED("LossParameter", "class_weighting", "SegNet", "class_weight"),
    RENAMED("BatchNormParameter", "stats_batch_size", "Intel Caffe", "group"),
    RENAMED("DataParameter", "shuffle_data", "a fork of Caffe", "shuffle"),

    REFUSED("BatchNormParameter", "relu", "Intel Caffe", "write a ReLU layer behind it"),
    REFUSED("ConcatParameter", "per_fla_fuse", "Intel Caffe",
            "put Permute with order 0, 2, 3, 1 and Flatten before each bottom"),
    REFUSED("ConvolutionParameter", "relu", "Intel Caffe", "write a ReLU layer behind it"),
    REFUSED("AccuracyParameter", "min_is_better", "NormFace",
            "a Power layer with scale: -1 before it makes the smallest the best"),
    REFUSED("ROIPoolingParameter", "pad_ratio", "MS-CNN",
            "regions are pooled as they are; widen them before, or leave it out"),
    REFUSED("PriorBoxParameter", "denser_prior_boxes", "TextBoxes++",
            "boxes lie at one place of each cell; leave it out"),
    REFUSED("DetectionOutputParameter", "use_polygon", "TextBoxes++",
            "boxes have 4 numbers; leave it out"),
    REFUSED("DataParameter", "rand_skip_num", "a fork of Caffe", "leave it out"),
    REFUSED("SolverParameter", "rampup_interval", "NVIDIA Caffe",
            "warmup_iter: the same number, with warmup_start_lr"),
    REFUSED("SolverParameter", "rampup_lr", "NVIDIA Caffe",
            "warmup_start_lr: the same rate, with warmup_iter (some versions rise by the square)"),
    REFUSED("SolverParameter", "min_lr", "NVIDIA Caffe",
            "no policy but cosine ends at a rate above 0 (lr_min)"),
    REFUSED("SolverParameter", "larc", "NVIDIA Caffe",
            "rates that follow the norms of layers are not built; leave it out for plain SGD"),
    REFUSED("SolverParameter", "larc_policy", "NVIDIA Caffe", "it goes with larc; leave it out"),
    REFUSED("SolverParameter", "larc_eta", "NVIDIA Caffe", "it goes with larc; leave it out"),
    REFUSED("SolverParameter", "larc_turbo", "NVIDIA Caffe", "it goes with larc; leave it out"),
    REFUSED("SolverParameter", "local_lr_auto", "Intel Caffe",
            "rates that follow the norms of layers are not built; leave it out for plain SGD"),
    REFUSED("SolverParameter", "local_gw_ratio", "Intel Caffe",
            "it goes with local_lr_auto; leave it out"),
    REFUSED("SolverParameter", "disabled_update", "Intel Caffe",
            "lockstep time measures without a training"),
    REFUSED("SolverParameter", "momentum_policy", "NVIDIA Caffe",
            "momentum does not change during a training; give one value"),
    REFUSED("SolverParameter", "max_momentum", "NVIDIA Caffe", "it goes with momentum_policy"),
    REFUSED("SolverParameter", "momentum_power", "NVIDIA Caffe", "it goes with momentum_policy"),
    REFUSED("SolverParameter", "test_offset", "a fork of Caffe",
            "tests are at multiples of test_interval"),
    REFUSED("SolverParameter", "stepearly", "a fork of Caffe", "lr_policy: \"multistep\""),
    REFUSED("SolverParameter", "plateau_winsize", "Intel Caffe",
            "rates here depend on the iteration alone: lr_policy: \"multistep\" or \"cosine\""),
    REFUSED("TransformationParameter", "img_rand_resize_lower", "NVIDIA Caffe",
            "give new_height and new_width, and crop_size"),
    REFUSED("TransformationParameter", "img_rand_resize_upper", "NVIDIA Caffe",
            "give new_height and new_width, and crop_size"),
    REFUSED("TransformationParameter", "rand_resize_ratio_lower", "NVIDIA Caffe",
            "give new_height and new_width, and crop_size"),
    REFUSED("TransformationParameter", "rand_resize_ratio_upper", "NVIDIA Caffe",
            "give new_height and new_width, and crop_size"),
    REFUSED("TransformationParameter", "horizontal_stretch_lower", "NVIDIA Caffe",
            "leave it out, or stretch the pictures before the training"),
    REFUSED("TransformationParameter", "horizontal_stretch_upper", "NVIDIA Caffe",
            "leave it out, or stretch the pictures before the training"),
    REFUSED("TransformationParameter", "vertical_stretch_lower", "NVIDIA Caffe",
            "leave it out, or stretch the pictures before the training"),
    REFUSED("TransformationParameter", "vertical_stretch_upper", "NVIDIA Caffe",
            "leave it out, or stretch the pictures before the training"),
    REFUSED("TransformationParameter", "allow_upscale", "NVIDIA Caffe",
            "give new_height and new_width"),
    REFUSED("TransformationParameter", "scale_factors", "PSPNet",
            "pictures are not scaled by random factors; leave it out"),
};

bool ls_fork_repeats(const char *message, const char *field)
{
    return strcmp(message, "TransformationParameter") == 0 && strcmp(field, "resize_param") == 0;
}

bool ls_fork_lists(const char *message, const char *field)
{
    return strcmp(message, "SolverParameter") == 0 && strcmp(field, "device_id") == 0;
}

const struct ls_fork_field *ls_fork_field(const char *message, const char *field)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i].field, field) == 0 &&
            (fields[i].message == NULL || strcmp(fields[i].message, message) == 0))
            return &fields[i];
    return NULL;
}

/* ---- Layer types ----------------------------------------------------------------------------- */

const struct ls_fork_type ls_fork_types[] = {
    {"AssistedExcitation", "MobileNet-YOLO", PLUGIN},
    {"BatchNormalization", "a fork of Caffe", "BatchNorm, then Scale with bias_term: true"},
    {"BboxAccuracy", "MS-CNN", PLUGIN},
    {"BoxGroupOutput", "MS-CNN", PLUGIN},
    {"BoxOutput", "MS-CNN", PLUGIN},
    {"CONVOLUTION3D", "C3D",
     "layer { type: \"Convolution\" } takes volumes, with kernel_size: [3, 5, 5], one for each "
     "axis"},
    {"CROP", "FCN's first versions",
     "layer { type: \"Crop\" crop_param { axis: 2 offset: 19 } }, with the offset written out"},
    {"CenterLoss", "caffe-face", PLUGIN},
    {"Convolution3D", "C3D",
     "Convolution with kernel_size: [3, 5, 5], as one kernel_size for each axis"},
    {"DECONVOLUTION3D", "C3D",
     "layer { type: \"Deconvolution\" } takes volumes, with kernel_size: [3, 5, 5], one for each "
     "axis"},
    {"DecodeBBox", "MS-CNN", PLUGIN},
    {"DeformableConvolution", "Deformable R-FCN", PLUGIN},
    {"DenseCRF", "DeepLab", "it belongs behind the net, as a program that reads its scores"},
    {"DenseImageData", "SegNet", "a Data layer with backend: IMAGE_PAIRS"},
    {"DetectNetTransformation", "NVIDIA Caffe", PLUGIN},
    {"DetectionAccuracy", "MS-CNN", PLUGIN},
    {"DetectionData", "MS-CNN",
     "backend: NPY reads pictures, and rows of boxes beside them (docs/caffe.md, \"Boxes\")"},
    {"DetectionLoss", "MS-CNN", PLUGIN},
    {"DiceLoss", "a fork of Caffe", PLUGIN},
    {"EvalData", "Cascade R-CNN", PLUGIN},
    {"Flip", "caffe-windows", PLUGIN},
    {"FrcnnOutput", "Cascade R-CNN", PLUGIN},
    {"GaussianYolov3", "MobileNet-YOLO", "Yolov3, with 5 numbers and the classes for each anchor"},
    {"ImageGtData", "MS-CNN",
     "backend: NPY reads pictures, and rows of boxes beside them (docs/caffe.md, \"Boxes\")"},
    {"ImageLabelmapData", "a fork of Caffe", "a Data layer with backend: IMAGE_PAIRS"},
    {"ImageSegData", "DeepLab", "a Data layer with backend: IMAGE_PAIRS"},
    {"InnerDistance", "NormFace", PLUGIN},
    {"L1Loss", "a fork of Caffe", "Eltwise with coeff 1, -1, AbsVal and a loss_weight"},
    {"LabelSpecificRescale", "NormFace", PLUGIN},
    {"LaneData", "a fork of Caffe", "a Data layer with backend: IMAGE_PAIRS"},
    {"LargeMarginInnerProduct", "L-Softmax", PLUGIN},
    {"Lstm", "a fork of Caffe",
     "LSTM, with steps x samples x numbers, and markers that are 0 where a sequence begins"},
    {"MarginInnerProduct", "SphereFace", PLUGIN},
    {"Mult", "a fork of Caffe", "Eltwise with operation: PROD"},
    {"MultilabelImageData", "a fork of Caffe",
     "backend: NPY reads pictures, and rows of numbers beside them"},
    {"Noise", "a fork of Caffe", PLUGIN},
    {"POOLING3D", "C3D",
     "layer { type: \"Pooling\" } takes volumes, with kernel_size: [2, 3, 3], one for each axis"},
    {"Pooling3D", "C3D", "Pooling with kernel_size: [2, 3, 3], as one kernel_size for each axis"},
    {"ProposalTarget", "MS-CNN", PLUGIN},
    {"ROIAlign", "a fork of Caffe", PLUGIN},
    {"Reverse", "a fork of Caffe", PLUGIN},
    {"ScaleRoute", "Cascade R-CNN", PLUGIN},
    {"SeLuDropout", "a fork of Caffe", "Dropout"},
    {"SegAccuracy", "DeepLab", "Accuracy with ignore_label, and MeanIoU"},
    {"SegmentationEvaluate", "a fork of Caffe", "Accuracy with ignore_label, and MeanIoU"},
    {"SpatialDropout", "Intel Caffe", PLUGIN},
    {"TRT", "NVIDIA Caffe", "the definition that was compiled has the layers themselves"},
    {"Transpose", "a fork of Caffe", "Permute with its axes as order"},
    {"VIDEO_DATA", "C3D", "backend: NPY reads tensors of any shape"},
    {"VideoData", "a fork of Caffe", "backend: NPY reads tensors of any shape"},
    {"YoloSeg", "MobileNet-YOLO", PLUGIN},
    {NULL, NULL, NULL},
};

const struct ls_fork_type *ls_fork_type(const char *type)
{
    for (const struct ls_fork_type *known = ls_fork_types; known->type != NULL; known++)
        if (strcmp(known->type, type) == 0)
            return known;
    return NULL;
}

/* ---- Python layers --------------------------------------------------------------------------- */

#define PAIRS(pictures, maps, mean)                                                                \
    "type: \"Data\" data_param { backend: IMAGE_PAIRS source: \"" pictures                         \
    "\" label_source: \"" maps "\" batch_size: 1 shuffle: true } " mean                            \
    "; maps are pictures whose pixels are classes"
#define MEAN "transform_param { mean_value: [104.00699, 116.66877, 122.67892] }"

static const struct {
    const char *module, *layer; /* NULL: any */
    const char *hint;
} python_layers[] = {
    {"voc_layers", NULL, PAIRS("VOC2011/JPEGImages", "VOC2011/SegmentationClass", MEAN)},
    {"siftflow_layers", NULL, PAIRS("SiftFlow/Images", "SiftFlow/SemanticLabels", MEAN)},
    {"nyud_layers", NULL, PAIRS("nyud/images", "nyud/segmentation", MEAN)},
    {"pascalcontext_layers", NULL, PAIRS("VOC2010/JPEGImages", "pascal-context/trainval", MEAN)},
    {NULL, "ImageSegDataLayer",
     "type: \"Data\" data_param { backend: IMAGE_PAIRS source: \"pictures\" label_source: \"maps\" "
     "}"},
    {NULL, "RoIDataLayer",
     "it draws pictures and their boxes: an Input layer takes data, im_info and gt_boxes from a "
     "program (docs/caffe.md)"},
    {NULL, "AnchorTargetLayer",
     "write it as a plugin that gives each anchor its label and target: --plugin FILE "
     "(docs/caffe.md)"},
    {NULL, "ProposalLayer",
     "type: \"Proposal\" computes the same: its proposal_param has feat_stride and scale of "
     "param_str, and of the program's settings pre_nms_topn, post_nms_topn, nms_thresh and "
     "min_size (docs/caffe.md)"},
    {NULL, "ProposalTargetLayer",
     "write it as a plugin that draws rois and their targets: --plugin FILE (docs/caffe.md)"},
    {NULL, "EuclideanLossLayer", "the type EuclideanLoss does the same"},
};

const char *ls_fork_python_hint(const char *module, const char *layer)
{
    for (size_t i = 0; i < sizeof python_layers / sizeof python_layers[0]; i++)
        if ((python_layers[i].module == NULL ||
             (module != NULL && strcmp(python_layers[i].module, module) == 0)) &&
            (python_layers[i].layer == NULL ||
             (layer != NULL && strcmp(python_layers[i].layer, layer) == 0)))
            return python_layers[i].hint;
    return "write it in C as a plugin, a layer type of your own: --plugin FILE (docs/caffe.md)";
}
