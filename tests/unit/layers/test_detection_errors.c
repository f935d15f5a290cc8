/* What layer types of nets that detect objects refuse, and how they say so.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_errors.h"
#include "support/support.h"

#define REGION   LAYER("RegionLoss") XL "region_loss_param { "
#define YOLO     LAYER("Yolov3") XL "yolov3_param { "
#define YOLO_V2  LAYER("YoloDetectionOutput") XY "yolo_detection_output_param { "
#define YOLO_V3  LAYER("Yolov3DetectionOutput") XY "yolov3_detection_output_param { "
#define PROPOSAL LAYER("Proposal") XLS "proposal_param { "
#define HARDEST                                                                                    \
    LAYER("BoxAnnotatorOHEM")                                                                      \
    "bottom: 'x' bottom: 'l' bottom: 's' bottom: 't' top: 'y' top: 'z' "
#define ROI(scale) "roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: " #scale " }"
#define MULTIBOX                                                                                   \
    LAYER("MultiBoxLoss")                                                                          \
    "bottom: 'x' bottom: 'l' bottom: 's' bottom: 't' top: 'y' multibox_loss_param { "

static const struct error_case cases[] = {
    {REGION "num: 2 num_class: 2 biases: 1 }", "4x14x3x3 4x2x8",
     "l: 1 biases for 2 anchors; there must be two for each", NULL},
    {REGION "num: 1 num_class: 2 biases: [1, 0] }", "4x7x3x3 4x2x8",
     "l: the size 0 of an anchor must be a number above 0", NULL},
    {REGION "num: 1 num_class: 2 biases: [1, 1] }", "4x8x3x3 4x2x8",
     "l: its bottom 'x' must have 4 axes with 7 channels (1 anchors, 5 numbers and 2 classes "
     "each), "
     "but is 4 8 3 3 (288)",
     NULL},
    {REGION "num: 0 }", "4x7x3x3 4x2x8", "l: num, the anchors, must be 1 to 32767", NULL},
    {REGION "num: 1 num_class: 0 }", "4x7x3x3 4x2x8", "l: num_class must be 1 to 2147483647", NULL},
    {REGION "coords: 5 num: 1 num_class: 2 biases: [1, 1] }", "4x7x3x3 4x2x8",
     "l: coords 5: a box has 4 numbers for its place", NULL},
    {REGION "thresh: nan num: 1 num_class: 2 biases: [1, 1] }", "4x7x3x3 4x2x8",
     "l: thresh must be a finite number", NULL},
    {REGION "softmax_tree: 't' num: 1 num_class: 2 biases: [1, 1] }", "4x7x3x3 4x2x8",
     "l: trees of classes are not supported", NULL},
    {REGION "class_map: 'm' num: 1 num_class: 2 biases: [1, 1] }", "4x7x3x3 4x2x8",
     "l: a map of classes is not supported", NULL},
    {REGION "softmax: 0 num: 1 num_class: 2 biases: [1, 1] }", "4x7x3x3 4x2x8",
     "l: softmax: 0: classes always go through a softmax", NULL},

    {YOLO "num_class: 0 }", "4x14x3x3 4x2x8", "l: num_class must be 1 to 2147483647", NULL},
    {YOLO "num_class: 2 anchors_scale: 0 }", "4x14x3x3 4x2x8",
     "l: anchors_scale must be 1 to 32767 pixels", NULL},
    {YOLO "num_class: 2 }", "4x14x3x3 4x2x8", "l: 0 biases; there must be 2 to 32767", NULL},
    {YOLO "num_class: 2 biases: [1, 2, 3] }", "4x14x3x3 4x2x8",
     "l: 3 biases for 2 anchors; there must be two for each", NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, inf] mask: 0 }", "4x7x3x3 4x2x8",
     "l: the size inf of an anchor must be a number above 0", NULL},
    {YOLO "num_class: 2 num: 2 biases: [1, 2, 3, 4] mask: 0 }", "4x14x3x3 4x2x8",
     "l: mask names 1 anchors, but num is 2", NULL},
    {YOLO "num_class: 2 num: 2 biases: [1, 2, 3, 4]\n mask: [0, 2] }", "4x14x3x3 4x2x8",
     "l: mask names anchor 2, but there are 2, from 0", "2:9"},
    {YOLO "num_class: 2 num: 2 biases: [1, 2, 3, 4] mask: [1, 1] }", "4x14x3x3 4x2x8",
     "l: mask names anchor 1 twice", NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, 2] mask: 0 }", "4x8x3x3 4x2x8",
     "l: its bottom 'x' must have 4 axes with 7 channels (1 anchors, 5 numbers and 2 classes "
     "each), "
     "but is 4 8 3 3 (288)",
     NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, 2] mask: 0 coord_scale: nan }", "4x7x3x3 4x2x8",
     "l: coord_scale must be a finite number", NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, 2] mask: 0 label_smooth_eps: 1 }", "4x7x3x3 4x2x8",
     "l: label_smooth_eps must be at least 0 and less than 1", NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, 2] mask: 0 iou_loss: GIOU }", "4x7x3x3 4x2x8",
     "l: losses of overlaps are not supported", NULL},
    {YOLO "num_class: 2 num: 1 biases: [1, 2] mask: 0 use_focal_loss: true }", "4x7x3x3 4x2x8",
     "l: use_focal_loss: true is not supported", NULL},

    {YOLO_V2 "num_classes: 0 }", "4x7x3x3", "l: num_classes must be 1 to 32767", NULL},
    {YOLO_V2 "num_box: 0 }", "4x7x3x3", "l: num_box, the anchors, must be 1 to 32767", NULL},
    {YOLO_V2 "keep_top_k: 0 }", "4x7x3x3", "l: keep_top_k must be 1 to 2147483647", NULL},
    {YOLO_V2 "confidence_threshold: nan }", "4x7x3x3",
     "l: confidence_threshold must be a finite number", NULL},
    {YOLO_V2 "nms_threshold: 0 }", "4x7x3x3", "l: nms_threshold must be a number above 0", NULL},
    {YOLO_V2 "coords: 5 }", "4x7x3x3", "l: coords 5: a box has 4 numbers for its place", NULL},
    {YOLO_V2 "num_box: 1 num_classes: 2 biases: [1] }", "4x7x3x3",
     "l: 1 biases for 1 anchors; there must be two for each", NULL},
    {YOLO_V2 "num_box: 1 num_classes: 2 biases: [1, 1] }", "4x7x40000x40000",
     "l: its bottoms have 3200000000 scores a sample; the limit is 2147483647", NULL},
    {YOLO_V3 "num_box: 1 biases: [1, 1] }", "4x7x3x3",
     "l: mask_group_num is 2, but there are 1 bottoms", NULL},
    {YOLO_V3 "mask_group_num: 1 num_box: 1 biases: [1, 1] }", "4x7x3x3",
     "l: mask names 0 anchors; there must be 1 for each of 1 bottoms", NULL},
    {YOLO_V3 "mask_group_num: 1 num_box: 1 biases: [1, 1] mask: 1 }", "4x7x3x3",
     "l: mask names anchor 1, but there are 1, from 0", NULL},
    {YOLO_V3 "mask_group_num: 1 num_box: 1 biases: [1, 1] mask: 0 }", "4x7x3x3",
     "l: 0 numbers of anchors_scale for 1 bottoms", NULL},
    {YOLO_V3 "mask_group_num: 1 num_box: 1 biases: [1, 1] mask: 0 anchors_scale: 0 }", "4x7x3x3",
     "l: anchors_scale must be 1 to 32767 pixels", NULL},
    {YOLO_V3 "gaussian_box: true }", "4x7x3x3", "l: gaussian_box: true is not supported", NULL},

    {HARDEST, "4x5 4 4 4x8",
     "l: roi_per_img, the regions of a picture that count, must be at least 1", NULL},
    {HARDEST "box_annotator_ohem_param {\n roi_per_img: 0 }", "4x5 4 4 4x8",
     "l: roi_per_img, the regions of a picture that count, must be at least 1", "2:2"},
    {HARDEST "box_annotator_ohem_param { roi_per_img: 9\n ignore_label: 16777217 }", "4x5 4 4 4x8",
     "l: labels are floats, which do not hold ignore_label 16777217", "2:2"},
    {HARDEST "box_annotator_ohem_param { roi_per_img: 9 }", "4x4 4 4 4x8",
     "l: its bottom 'x' must have 5 numbers for each region (number of the picture, left, top, "
     "right, bottom), but is 4 4 (16)",
     NULL},
    {HARDEST "box_annotator_ohem_param { roi_per_img: 9 }", "4x5 4x2 4 4x8",
     "l: its bottom 'l' must have one number for each region, but is 4 2 (8)", NULL},
    {HARDEST "box_annotator_ohem_param { roi_per_img: 9 }", "4x5x2 4x2 2x4 4x8x2",
     "l: its bottom 's' must have one number for each region, but is 2 4 (8)", NULL},
    {HARDEST "box_annotator_ohem_param { roi_per_img: 9 }", "4x5x2 4x2 4x2 4x8x3",
     "l: its bottom 't' must have equally many numbers for each region, but is 4 8 3 (96)", NULL},

    {PROPOSAL "feat_stride: 0 }", "1x18x3x3 1x36x3x3 1x3", "l: feat_stride must be 1 to 1048576",
     NULL},
    {PROPOSAL "base_size: 4294967295 }", "1x18x3x3 1x36x3x3 1x3",
     "l: base_size must be 1 to 1048576", NULL},
    {PROPOSAL "pre_nms_topn: 0 }", "1x18x3x3 1x36x3x3 1x3",
     "l: pre_nms_topn must be 1 to 2147483647", NULL},
    {PROPOSAL "post_nms_topn: 0 }", "1x18x3x3 1x36x3x3 1x3",
     "l: post_nms_topn must be 1 to 2147483647", NULL},
    {PROPOSAL "nms_thresh: nan }", "1x18x3x3 1x36x3x3 1x3",
     "l: nms_thresh must be a number above 0", NULL},
    {PROPOSAL "ratio: 1 ratio: -1 }", "1x18x3x3 1x36x3x3 1x3",
     "l: ratio -1 must be a number above 0", NULL},
    {PROPOSAL "scale: inf }", "1x18x3x3 1x36x3x3 1x3", "l: scale inf must be a number above 0",
     NULL},
    {PROPOSAL "}", "1x9x3x3 1x36x3x3 1x3",
     "l: its bottom 'x' must have 4 axes with 18 channels, 2 for each of 9 anchors, but is 1 9 3 3 "
     "(81)",
     NULL},
    {PROPOSAL "}", "1x18x3x3 1x36x3x4 1x3",
     "l: its bottoms 'x' and 'l' must have equally many positions", NULL},
    {PROPOSAL "}", "1x18x20000x20000 1x36x3x4 1x3",
     "l: 'x' has more than 2147483647 anchors a picture", NULL},
    {PROPOSAL "}", "1x18x3x3 1x36x3x3 1x2",
     "l: its bottom 's' must have at least 3 numbers for each picture: height, width and the "
     "factor that it was scaled by, but is 1 2 (2)",
     NULL},

    {LAYER("ROIPooling") XL, "2x3x8x8 4x5", "l: pooled_h must be at least 1", NULL},
    {LAYER("ROIPooling") XL "roi_pooling_param { pooled_h: 2 }", "2x3x8x8 4x5",
     "l: pooled_w must be at least 1", NULL},
    {LAYER("ROIPooling") XL ROI(-1), "2x3x8x8 4x5", "l: spatial_scale -1 must be a number above 0",
     NULL},
    {LAYER("ROIPooling") XL ROI(nan), "2x3x8x8 4x5",
     "l: spatial_scale nan must be a number above 0", NULL},
    {LAYER("ROIPooling") XL ROI(1), "2x3x8 4x5",
     "l: its bottom 'x' must have 4 axes (pictures, channels, height, width), but is 2 3 8 (48)",
     NULL},
    {LAYER("ROIPooling") XL ROI(1), "2x3x8x8 4x4",
     "l: 'l' must have 5 numbers for each region (number of the picture, left, top, right, "
     "bottom), but is 4 4 (16)",
     NULL},
    {LAYER("PSROIPooling") XL, "2x8x8x8 4x5", "l: spatial_scale is missing", NULL},
    {LAYER("PSROIPooling") XL "psroi_pooling_param { spatial_scale: 1 group_size: 2 }",
     "2x8x8x8 4x5", "l: output_dim must be at least 1", NULL},
    {LAYER("PSROIPooling") XL "psroi_pooling_param { spatial_scale: 1 output_dim: 2 }",
     "2x8x8x8 4x5", "l: group_size must be at least 1", NULL},
    {LAYER("PSROIPooling") XL
     "psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 3 }",
     "2x8x8x8 4x5", "l: 'x' has 8 channels, but output_dim 2 times group_size 3 times 3 are wanted",
     NULL},

    {LAYER("PriorBox") XL, "2x3x8x8 2x3x9x9", "l: min_size is missing", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 0.5 }", "2x3x8x8 2x3x9x9",
     "l: min_size 0.5 must be at least 1 pixel", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 max_size: 3 }", "2x3x8x8 2x3x9x9",
     "l: max_size 3 must be larger than min_size 3", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 max_size: 4 max_size: 5 }",
     "2x3x8x8 2x3x9x9",
     "l: max_size must be given once for each of the 1 min_sizes, or not at all; it is given 2 "
     "times",
     NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 variance: [1, 2] }", "2x3x8x8 2x3x9x9",
     "l: variance must be given once, or four times; it is given 2 times", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 aspect_ratio: 0 }", "2x3x8x8 2x3x9x9",
     "l: aspect_ratio 0 must be a number above 0", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 step: 2 step_h: 2 }", "2x3x8x8 2x3x9x9",
     "l: step and step_h, step_w cannot both be given", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 step_h: 2 }", "2x3x8x8 2x3x9x9",
     "l: step_h and step_w must be given together", NULL},
    {LAYER("PriorBox") XL "prior_box_param { min_size: 3 img_w: 9 }", "2x3x8x8 2x3x9x9",
     "l: img_h and img_w must be given together", NULL},
    {MULTIBOX "}", "2x8 2x6 1x2x8? 2x4x8", "l: num_classes is missing", NULL},
    {MULTIBOX "num_classes: 3 mining_type: HARD_EXAMPLE do_neg_mining: false }",
     "2x8 2x6 1x2x8? 2x4x8", "l: do_neg_mining: false contradicts mining_type: HARD_EXAMPLE", NULL},
    {MULTIBOX "num_classes: 3 mining_type: HARD_EXAMPLE sample_size: 0 }", "2x8 2x6 1x2x8? 2x4x8",
     "l: sample_size 0 must be at least 1", NULL},
    {MULTIBOX "num_classes: 3 nms_param { top_k: 0 } }", "2x8 2x6 1x2x8? 2x4x8",
     "l: top_k 0 must be at least 1, or -1 for all", NULL},
    {MULTIBOX "num_classes: 3 nms_param { nms_threshold: nan } }", "2x8 2x6 1x2x8? 2x4x8",
     "l: nms_threshold must be a number of at least 0", NULL},
    {MULTIBOX "num_classes: 3 share_location: false }", "2x24 2x6 1x2x8? 2x4x8",
     "l: share_location: false takes all priors, and cannot choose some", NULL},
    {MULTIBOX "num_classes: 3 share_location: false mining_type: NONE }", "2x8 2x6 1x2x8? 2x4x8",
     "l: its bottom 'x' must have 12 numbers for each of 2 boxes (share_location: false has 4 for "
     "each class), but is 2 8 (16)",
     NULL},
    {MULTIBOX "num_classes: 3 map_object_to_agnostic: true }", "2x8 2x6 1x2x8? 2x4x8",
     "l: map_object_to_agnostic has two classes, the background first", NULL},
    {MULTIBOX "num_classes: 3 background_label_id: 3 }", "2x8 2x6 1x2x8? 2x4x8",
     "l: background_label_id 3 is none of the 3 classes", NULL},
    {MULTIBOX "num_classes: 3 }", "2x7 2x6 1x2x8? 2x4x8",
     "l: its bottom 'x' must have 4 numbers for each of 2 boxes, but is 2 7 (14)", NULL},
    {MULTIBOX "num_classes: 3 }", "2x8 2x4 1x2x8? 2x4x8",
     "l: its bottom 'l' must have 3 numbers for each of 2 boxes, but is 2 4 (8)", NULL},
    {MULTIBOX "num_classes: 3 }", "2x8 2x6 2x2x4? 2x4x8",
     "l: its bottom 's' must be the boxes of PriorBox layers, joined along axis 2, but is 2 2 4 "
     "(16)",
     NULL},
    {LAYER("DetectionEvaluate") XL "detection_evaluate_param { }", "10x6x7 10x3x8",
     "l: num_classes is missing", NULL},
    {LAYER("DetectionEvaluate") XL "detection_evaluate_param { num_classes: 3 "
                                   "background_label_id: 3 }",
     "10x6x7 10x3x8", "l: background_label_id 3 is none of the 3 classes, nor -1", NULL},
    {LAYER("DetectionEvaluate") XL "detection_evaluate_param { num_classes: 3 "
                                   "overlap_threshold: 0 }",
     "10x6x7 10x3x8", "l: overlap_threshold must be above 0 and at most 1", NULL},
    {LAYER("DetectionEvaluate") XL "detection_evaluate_param { num_classes: 3 }", "10x6x6 10x3x8",
     "l: its bottom 'x' must have rows of 7 numbers, those of DetectionOutput, but is 10 6 6 (360)",
     NULL},
    {LAYER("DetectionEvaluate") XL "detection_evaluate_param { num_classes: 3 "
                                   "resize_param { } }",
     "10x6x7 10x3x8", "l: resize_param needs the sizes of the pictures", NULL},
    {LAYER("DetectionEvaluate") XL "loss_weight: 1 detection_evaluate_param { num_classes: 3 }",
     "10x6x7 10x3x8", "l: a layer of type DetectionEvaluate has no gradient and cannot be a loss",
     NULL},
    {LAYER("EvalDetection") XL "eval_detection_param { num_object: 0 }", "10x14x5x5 10x3x8",
     "l: num_object must be 1 to 32767", NULL},
    {LAYER("EvalDetection") XL "eval_detection_param { num_object: 2 biases: 1 }",
     "10x50x5x5 10x3x8", "l: 1 biases for 2 anchors; there must be two for each", NULL},
    {LAYER("EvalDetection") XL "eval_detection_param { threshold: nan }", "10x14x5x5 10x3x8",
     "l: threshold must be above 0 and at most 1", NULL},
    {LAYER("DetectionOutput") XLS "detection_output_param { num_classes: 3 keep_top_k: 0 }",
     "2x8 2x6 1x2x8?", "l: keep_top_k 0 must be at least 1, or -1 for all", NULL},
    {LAYER("DetectionOutput") XLS "detection_output_param { num_classes: 3 share_location: false }",
     "2x8 2x6 1x2x8?",
     "l: its bottom 'x' must have 12 numbers for each of 2 boxes (share_location: false has 4 for "
     "each class), but is 2 8 (16)",
     NULL},
    {LAYER("DetectionOutput") XLS
     "detection_output_param { num_classes: 3 nms_param { nms_threshold: 0 } }",
     "2x8 2x6 1x2x8?", "l: nms_threshold must be a number above 0", NULL},
};

static void all_errors(void **state)
{
    (void)state;
    check_errors(cases, sizeof cases / sizeof *cases);
}

static void what_judges_a_test_is_refused_in_trainings(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LAYER("DetectionEvaluate") XL "detection_evaluate_param { num_classes: 3 }",
               "10x6x7 10x3x8", true);
    assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
    assert_string_equal(one.error.problems[0].message,
                        "l: DetectionEvaluate judges a whole test, and is for test nets");
    close_layer(&one);
}

/* Sizes of pictures, of files that are damaged in several ways. */
static void sizes_of_pictures_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *content, *message;
    } files[] = {
        {"a 3 4\nb 500 375", NULL},     {" a\t3\r\n4 ", NULL},
        {"", "has no sizes"},           {"a 3", "entry 1 of"},
        {"a 3 4\nb 5 x", "entry 2 of"}, {"a 0 4", "entry 1 of"},
        {"a 3 40000", "entry 1 of"},    {"a 3 99999999999999999999", "entry 1 of"},
        {"a -3 4", "entry 1 of"},
    };
    char text[512];
    snprintf(text, sizeof text,
             LAYER("DetectionEvaluate") XL
             "detection_evaluate_param { num_classes: 3 "
             "name_size_file: '%s' resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 3 "
             "width: 3 } }",
             ls_test_path("sizes"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct one_layer one;
        ls_test_write_text(ls_test_path("sizes"), files[i].content);
        open_layer(&one, text, "10x6x7 10x3x8", false);
        const int status = run_forward(&one);
        assert_int_equal(status, files[i].message != NULL ? LOCKSTEP_DEFINITION : 0);
        if (status != 0 && strstr(one.error.problems[0].message, files[i].message) == NULL)
            fail_msg("'%s': %s", files[i].content, one.error.problems[0].message);
        if (status == 0) {
            const struct ls_picture_sizes *pictures = &one.graph->ops[0]->attr.evaluate.pictures;
            assert_int_equal(pictures->sizes[0], 3);
            assert_int_equal(pictures->sizes[1], 4);
            assert_int_equal(pictures->fit, LS_FIT_PADDED);
        }
        close_layer(&one);
    }
}

/* A zero byte would end the sizes early. */
static void sizes_of_pictures_are_text(void **state)
{
    (void)state;
    static const char content[] = "a 3 4\nb 5 6\0\nc 7 8\n";
    char text[512];
    struct one_layer one;
    ls_test_write(ls_test_path("sizes"), content, sizeof content - 1);
    snprintf(text, sizeof text,
             LAYER("DetectionEvaluate") XL
             "detection_evaluate_param { num_classes: 3 name_size_file: '%s' }",
             ls_test_path("sizes"));
    open_layer(&one, text, "10x6x7 10x3x8", false);
    assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(one.error.problems[0].message, "sizes' is not a text file"));
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_errors),
        cmocka_unit_test(what_judges_a_test_is_refused_in_trainings),
        cmocka_unit_test(sizes_of_pictures_are_read),
        cmocka_unit_test(sizes_of_pictures_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
