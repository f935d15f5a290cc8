/* The definitions that `lockstep init` writes.
 *
 * Pictures get a residual network with batch normalisation (He, Zhang, Ren, Sun: Deep residual
 * learning for image recognition; 2016) that ends in a mean over all places, so that it fits any
 * size; pictures with label maps a small U-net (Ronneberger, Fischer, Brox; 2015); a text gets a
 * GPT over its characters or bytes, as examples/gpt has it, and token ids one over these.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/init_net.h"

#include <math.h>
#include <string.h>

static bool is_text(const struct ls_init_data *data)
{
    return strcmp(data->backend, "TEXT") == 0 || strcmp(data->backend, "TOKENS") == 0;
}

static bool is_pairs(const struct ls_init_data *data)
{
    return strcmp(data->backend, "IMAGE_PAIRS") == 0;
}

/* What follows from the pictures and their number. */
struct choice {
    int height, width, stem_stride, width_of_stage, blocks, batch, epochs;
    bool pooled, resized, square, mirror;
    long long records; /* to train on */
    double scale;
};

static struct choice choose(const struct ls_init_data *data)
{
    const struct lockstep_source_facts *facts = &data->facts;
    struct choice choice = {.records = data->split ? facts->records * 9 / 10 : facts->records};
    int side = facts->height > facts->width ? facts->height : facts->width;
    choice.height = facts->height;
    choice.width = facts->width;
    choice.resized = strcmp(data->backend, "IMAGES") == 0;
    if (is_pairs(data)) { /* halved three times */
        choice.resized = true;
        side = side <= 128 ? 128 : side <= 256 ? 256 : 512;
        choice.height = choice.width = side;
    } else if (choice.resized) {
        side = side <= 40 ? 32 : side <= 80 ? 64 : side <= 112 ? 96 : 128;
        choice.height = choice.width = side;
    }
    choice.square = choice.height == choice.width;
    choice.mirror = facts->channels == 3; /* digits and letters are not the same in a mirror */
    choice.stem_stride = side <= 40 ? 1 : 2;
    choice.pooled = side > 80;
    choice.width_of_stage = 16;
    choice.blocks = choice.records < 20000 || !choice.mirror ? 1 : 2;
    choice.batch = is_pairs(data) ? 16 : 128;
    while (choice.batch > (is_pairs(data) ? 4 : 8) && choice.records / choice.batch < 20)
        choice.batch /= 2;
    choice.epochs = choice.records >= 20000  ? (choice.mirror ? 20 : 8)
                    : choice.records >= 3000 ? 40
                                             : 80;
    double deviation = 0;
    for (int c = 0; c < facts->channels && c < LOCKSTEP_SOURCE_CHANNELS; c++)
        deviation += facts->deviation[c];
    int channels =
        facts->channels < LOCKSTEP_SOURCE_CHANNELS ? facts->channels : LOCKSTEP_SOURCE_CHANNELS;
    deviation /= channels > 0 ? channels : 1;
    choice.scale = deviation > 0 ? 1 / deviation : 1;
    return choice;
}

/* The part of the largest class, in per cent. */
static double largest_class(const struct lockstep_source_facts *facts, int *largest, int *least)
{
    *largest = *least = 0;
    for (int c = 0; c < facts->classes; c++) {
        if (facts->class_records[c] > facts->class_records[*largest])
            *largest = c;
        if (facts->class_records[c] < facts->class_records[*least])
            *least = c;
    }
    return 100.0 * (double)facts->class_records[*largest] / (double)facts->records;
}

static void describe_pictures(FILE *out, const char *before, const struct ls_init_data *data)
{
    const struct lockstep_source_facts *facts = &data->facts;
    int largest, least;
    double part = largest_class(facts, &largest, &least);
    fprintf(out, "%s%lld pictures (%s) of %d classes, ", before, (long long)facts->records,
            data->backend, facts->classes);
    if (facts->height_least == facts->height_most && facts->width_least == facts->width_most)
        fprintf(out, "%d x %d pixels, ", facts->width, facts->height);
    else
        fprintf(out, "%d x %d to %d x %d pixels, ", facts->width_least, facts->height_least,
                facts->width_most, facts->height_most);
    fprintf(out, "%d channel%s\n", facts->channels, facts->channels == 1 ? "" : "s");
    if (facts->class_records[least] == facts->class_records[largest])
        fprintf(out, "%sclass balance: %lld records of each class\n", before,
                (long long)facts->class_records[least]);
    else
        fprintf(out, "%sclass balance: %lld records (label %d) to %lld (label %d)\n", before,
                (long long)facts->class_records[least], least,
                (long long)facts->class_records[largest], largest);
    fprintf(out, "%sa net that always says label %d has an accuracy of %.1f %%\n", before, largest,
            part);
    if (facts->class_records[largest] > 3 * facts->class_records[least])
        fprintf(out,
                "%sthe classes are unequal: accuracy says little of the rare ones;\n"
                "%sloss_param { class_weight } of SoftmaxWithLoss can make them count more\n",
                before, before);
    fprintf(out,
            data->split ? "%sa tenth is held out to test with, the same on each run\n"
                        : "%sthe data has a test set of its own\n",
            before);
}

static void describe_maps(FILE *out, const char *before, const struct ls_init_data *data)
{
    const struct lockstep_source_facts *facts = &data->facts;
    fprintf(out,
            "%s%lld pictures with label maps (IMAGE_PAIRS), %d x %d to %d x %d pixels, %d "
            "channel%s\n",
            before, (long long)facts->records, facts->width_least, facts->height_least,
            facts->width_most, facts->height_most, facts->channels,
            facts->channels == 1 ? "" : "s");
    fprintf(out,
            data->masks ? "%sall labels but 0 are one class: masks\n"
                        : "%slabels 0 to %d are classes; 255 does not count\n",
            before, facts->classes - 1);
    fprintf(out,
            data->split ? "%sa tenth is held out to test with, the same on each run\n"
                        : "%sthe data has a test set of its own\n",
            before);
}

void ls_init_describe(FILE *out, const char *before, const struct ls_init_data *data)
{
    if (is_pairs(data)) {
        describe_maps(out, before, data);
        return;
    }
    if (!is_text(data)) {
        describe_pictures(out, before, data);
        return;
    }
    if (data->type != NULL)
        fprintf(out, "%s%lld token ids (TOKENS)%s%s, below %lld\n", before, data->characters,
                data->type[0] != '\0' ? " of type " : "", data->type, data->different);
    else
        fprintf(out, "%sa text of %lld %s, %lld different ones\n", before, data->characters,
                data->bytes ? "bytes" : "characters", data->different);
    fprintf(out, "%sits last tenth is held out to test with\n", before);
}

/* A string of the definition language. */
static void put_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20)
            fprintf(out, "\\%03o", (unsigned)*text);
        else
            fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    putc('"', out);
}

static void put_sources(FILE *out, const struct ls_init_set *set)
{
    for (size_t i = 0; i < set->sources; i++) {
        fputs("    source: ", out);
        put_string(out, set->source[i]);
        putc('\n', out);
    }
    if (set->label_source[0] != '\0') {
        fputs("    label_source: ", out);
        put_string(out, set->label_source);
        putc('\n', out);
    }
}

static void put_data(FILE *out, const struct ls_init_data *data, const struct choice *choice,
                     bool training)
{
    const struct lockstep_source_facts *facts = &data->facts;
    fprintf(out,
            "layer {\n  name: \"data\"\n  type: \"Data\"\n  top: \"data\"\n  top: \"label\"\n"
            "  include { phase: %s }\n  transform_param {\n",
            training ? "TRAIN" : "TEST");
    if (training)
        fputs("    # the mean of the channels and 1 / their deviation: inputs of about 1\n", out);
    for (int c = 0; c < facts->channels && c < LOCKSTEP_SOURCE_CHANNELS &&
                    facts->channels <= LOCKSTEP_SOURCE_CHANNELS;
         c++)
        fprintf(out, "    mean_value: %.1f\n", facts->mean[c]);
    fprintf(out, "    scale: %.4g\n", choice->scale);
    if (training && choice->square)
        fprintf(out,
                "    # augmentation: shifts by up to %d pixels\n    pad: %d\n    crop_size: %d\n",
                choice->height / 8, choice->height / 8, choice->height);
    if (training && choice->mirror)
        fputs("    mirror: true   # false where left and right matter\n", out);
    fprintf(out, "  }\n  data_param {\n    backend: %s\n", data->backend);
    put_sources(out, training || data->split ? &data->train : &data->test);
    if (data->split)
        fprintf(out,
                "    split: \"%s:0.9\"   # which records are held out follows from their "
                "numbers alone\n",
                training ? "train" : "test");
    if (choice->resized)
        fprintf(out,
                "    new_height: %d\n    new_width: %d\n    is_color: %s\n"
                "    on_bad_record: SKIP   # files that cannot be decoded are left out\n",
                choice->height, choice->width, facts->channels == 3 ? "true" : "false");
    if (is_pairs(data) && data->masks)
        fputs("    label_clip: 1   # labels beyond 1 become 1\n", out);
    fprintf(out, "    batch_size: %d\n%s  }\n}\n", training || is_pairs(data) ? choice->batch : 100,
            training ? "    shuffle: true\n" : "");
}

/* A convolution with batch normalisation; `relu`: and a ReLU. */
static void put_convolution(FILE *out, const char *name, const char *bottom, int outputs,
                            int kernel, int stride, bool relu)
{
    fprintf(out,
            "layer {\n  name: \"%s\"\n  type: \"Convolution\"\n  bottom: \"%s\"\n  top: \"%s\"\n"
            "  convolution_param { num_output: %d kernel_size: %d stride: %d pad: %d "
            "bias_term: false weight_filler { type: \"msra\" } }\n}\n",
            name, bottom, name, outputs, kernel, stride, kernel / 2);
    fprintf(out,
            "layer { name: \"%s/bn\" type: \"BatchNorm\" bottom: \"%s\" top: \"%s\" "
            "batch_norm_param { moving_average_fraction: 0.9 } }\n"
            "layer { name: \"%s/scale\" type: \"Scale\" bottom: \"%s\" top: \"%s\" "
            "scale_param { bias_term: true } }\n",
            name, name, name, name, name, name);
    if (relu)
        fprintf(out, "layer { name: \"%s/relu\" type: \"ReLU\" bottom: \"%s\" top: \"%s\" }\n",
                name, name, name);
}

static void put_residual_block(FILE *out, const char *name, const char *bottom, int outputs,
                               int stride, bool projects)
{
    char first[48], second[48], shortcut[48];
    snprintf(first, sizeof first, "%s_1", name);
    snprintf(second, sizeof second, "%s_2", name);
    snprintf(shortcut, sizeof shortcut, "%s_shortcut", name);
    put_convolution(out, first, bottom, outputs, 3, stride, true);
    put_convolution(out, second, first, outputs, 3, 1, false);
    if (projects)
        put_convolution(out, shortcut, bottom, outputs, 1, stride, false);
    fprintf(out,
            "layer { name: \"%s\" type: \"Eltwise\" bottom: \"%s\" bottom: \"%s\" top: \"%s\" }\n"
            "layer { name: \"%s/relu\" type: \"ReLU\" bottom: \"%s\" top: \"%s\" }\n",
            name, projects ? shortcut : bottom, second, name, name, name, name);
}

/* The beginning of a net: what the data are, its name, the two data layers. */
static void put_beginning(FILE *out, const struct ls_init_data *data, const char *name,
                          const struct choice *choice)
{
    ls_init_describe(out, "# ", data);
    fprintf(out, "name: \"%s\"\n", name);
    put_data(out, data, choice, true);
    put_data(out, data, choice, false);
}

static void put_picture_net(FILE *out, const struct ls_init_data *data)
{
    enum { STAGES = 3 };
    struct choice choice = choose(data);
    char bottom[32] = "stem", name[32];
    put_beginning(out, data, "ResNet", &choice);
    put_convolution(out, "stem", "data", choice.width_of_stage, 3, choice.stem_stride, true);
    if (choice.pooled) {
        fputs("layer { name: \"stem/pool\" type: \"Pooling\" bottom: \"stem\" top: \"stem/pool\" "
              "pooling_param { pool: MAX kernel_size: 3 stride: 2 } }\n",
              out);
        snprintf(bottom, sizeof bottom, "stem/pool");
    }
    for (int stage = 0; stage < STAGES; stage++) {
        for (int block = 0; block < choice.blocks; block++) {
            snprintf(name, sizeof name, "res%d%c", stage + 1, 'a' + block);
            put_residual_block(out, name, bottom, choice.width_of_stage << stage,
                               stage > 0 && block == 0 ? 2 : 1, stage > 0 && block == 0);
            snprintf(bottom, sizeof bottom, "%s", name);
        }
    }
    fprintf(out,
            "layer { name: \"pool\" type: \"Pooling\" bottom: \"%s\" top: \"pool\" pooling_param { "
            "pool: AVE global_pooling: true } }\n",
            bottom);
    fprintf(out,
            "layer {\n  name: \"fc\"\n  type: \"InnerProduct\"\n  bottom: \"pool\"\n  top: \"fc\"\n"
            "  inner_product_param { num_output: %d weight_filler { type: \"msra\" } }\n}\n"
            "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"fc\" bottom: \"label\" top: "
            "\"accuracy\" include { phase: TEST } }\n"
            "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"fc\" bottom: \"label\" "
            "top: \"loss\" }\n",
            data->facts.classes);
}

/* ---- Pictures with label maps ---------------------------------------------------------------- */

/* Two convolutions. */
static void put_level(FILE *out, const char *name, const char *bottom, int outputs)
{
    char first[32], second[32];
    snprintf(first, sizeof first, "%sa", name);
    snprintf(second, sizeof second, "%sb", name);
    put_convolution(out, first, bottom, outputs, 3, 1, true);
    put_convolution(out, second, first, outputs, 3, 1, true);
}

static void put_map_net(FILE *out, const struct ls_init_data *data)
{
    enum { LEVELS = 3, WIDTH = 16 };
    struct choice choice = choose(data);
    char bottom[32] = "data", name[32];
    put_beginning(out, data, "UNet", &choice);
    for (int level = 1; level <= LEVELS; level++) {
        snprintf(name, sizeof name, "down%d", level);
        put_level(out, name, bottom, WIDTH << (level - 1));
        fprintf(out,
                "layer { name: \"pool%d\" type: \"Pooling\" bottom: \"down%db\" top: \"pool%d\" "
                "pooling_param { pool: MAX kernel_size: 2 stride: 2 } }\n",
                level, level, level);
        snprintf(bottom, sizeof bottom, "pool%d", level);
    }
    put_level(out, "bridge", bottom, WIDTH << LEVELS);
    snprintf(bottom, sizeof bottom, "bridgeb");
    for (int level = LEVELS; level >= 1; level--) {
        const int outputs = WIDTH << (level - 1);
        fprintf(out,
                "layer {\n  name: \"wide%d\"\n  type: \"Deconvolution\"\n  bottom: \"%s\"\n  top: "
                "\"wide%d\"\n  convolution_param { num_output: %d kernel_size: 2 stride: 2 "
                "weight_filler { type: \"msra\" } }\n}\n"
                "layer { name: \"join%d\" type: \"Concat\" bottom: \"down%db\" bottom: \"wide%d\" "
                "top: \"join%d\" }\n",
                level, bottom, level, outputs, level, level, level, level);
        snprintf(bottom, sizeof bottom, "join%d", level);
        snprintf(name, sizeof name, "up%d", level);
        put_level(out, name, bottom, outputs);
        snprintf(bottom, sizeof bottom, "up%db", level);
    }
    fprintf(
        out,
        "layer {\n  name: \"score\"\n  type: \"Convolution\"\n  bottom: \"%s\"\n  top: "
        "\"score\"\n  convolution_param { num_output: %d kernel_size: 1 weight_filler { type: "
        "\"msra\" } }\n}\n"
        "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"score\" bottom: \"label\" top: "
        "\"accuracy\" include { phase: TEST } accuracy_param { ignore_label: 255 } }\n"
        "layer { name: \"mean_iou\" type: \"MeanIoU\" bottom: \"score\" bottom: \"label\" top: "
        "\"mean_iou\" include { phase: TEST } mean_iou_param { ignore_label: 255 } }\n"
        "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" "
        "top: \"loss\" loss_param { ignore_label: 255 } }\n",
        bottom, data->facts.classes);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

enum { WINDOW = 64, CHANNELS = 128, HEADS = 4, DEPTH = 4, TEXT_BATCH = 16 };

static void put_text_data(FILE *out, const struct ls_init_data *data, bool training)
{
    fprintf(out,
            "layer {\n  name: \"text\"\n  type: \"Data\"\n  top: \"tokens\"\n  top: \"target\"\n"
            "  include { phase: %s }\n  data_param {\n    backend: %s\n",
            training ? "TRAIN" : "TEST", data->backend);
    put_sources(out, &data->train);
    fprintf(out, "    split: \"%s:0.9\"\n    batch_size: %d\n%s", training ? "train" : "test",
            TEXT_BATCH, training ? "    shuffle: true\n" : "");
    fprintf(out, "    %s { window: %d%s%s", data->type != NULL ? "tokens_param" : "text_param",
            WINDOW, training ? " stride: 1" : " documents: WHOLE ignore_label: -1",
            data->bytes ? " unit: BYTE" : "");
    if (data->type != NULL)
        fprintf(out, " vocab_size: %lld%s%s", data->different,
                data->type[0] != '\0' ? " type: " : "", data->type);
    fputs(" }\n  }\n}\n", out);
}

static void put_product(FILE *out, const char *name, const char *bottom, int outputs, double std)
{
    fprintf(out,
            "  layer {\n    name: \"%s\"\n    type: \"InnerProduct\"\n    bottom: \"%s\"\n    top: "
            "\"%s\"\n    inner_product_param { num_output: %d axis: 2 bias_term: false "
            "weight_filler { type: \"gaussian\" std: %.4g } }\n  }\n",
            name, bottom, name, outputs, std);
}

static void put_norm(FILE *out, const char *before, const char *name, const char *bottom)
{
    fprintf(out,
            "%slayer { name: \"%s\" type: \"LayerNorm\" bottom: \"%s\" top: \"%s\" "
            "layer_norm_param { axis: -1 } }\n",
            before, name, bottom, name);
}

static void put_text_net(FILE *out, const struct ls_init_data *data)
{
    static const double std = 0.02;
    ls_init_describe(out, "# ", data);
    fputs("name: \"GPT\"\n", out);
    put_text_data(out, data, true);
    put_text_data(out, data, false);
    fprintf(out,
            "layer {\n  name: \"wte\"\n  type: \"Embed\"\n  bottom: \"tokens\"\n  top: \"token\"\n"
            "  param { name: \"wte\" }\n  embed_param { input_dim: %lld num_output: %d bias_term: "
            "false weight_filler { type: \"gaussian\" std: %g } }\n}\n"
            "layer { name: \"place\" type: \"Positions\" bottom: \"tokens\" top: \"place\" }\n",
            data->different, CHANNELS, std);
    fprintf(
        out,
        "layer {\n  name: \"wpe\"\n  type: \"Embed\"\n  bottom: \"place\"\n  top: \"position\"\n"
        "  embed_param { input_dim: %d num_output: %d bias_term: false weight_filler { type: "
        "\"gaussian\" std: %g } }\n}\n"
        "layer { name: \"embedding\" type: \"Eltwise\" bottom: \"token\" bottom: \"position\" "
        "top: \"x\" }\nblock {\n  name: \"h\"\n  repeat: %d\n  bottom: \"x\"\n  top: \"x\"\n",
        WINDOW, CHANNELS, std, DEPTH);
    put_norm(out, "  ", "ln_1", "x");
    put_product(out, "qkv", "ln_1", 3 * CHANNELS, std);
    fprintf(out,
            "  layer { name: \"attn\" type: \"Attention\" bottom: \"qkv\" top: \"attn\" "
            "attention_param { num_heads: %d causal: true } }\n",
            HEADS);
    put_product(out, "proj", "attn", CHANNELS, std / sqrt(2 * DEPTH));
    fputs("  layer { name: \"sum_1\" type: \"Eltwise\" bottom: \"x\" bottom: \"proj\" top: "
          "\"between\" }\n",
          out);
    put_norm(out, "  ", "ln_2", "between");
    put_product(out, "up", "ln_2", 4 * CHANNELS, std);
    fputs("  layer { name: \"gelu\" type: \"GELU\" bottom: \"up\" top: \"gelu\" }\n", out);
    put_product(out, "down", "gelu", CHANNELS, std / sqrt(2 * DEPTH));
    fputs("  layer { name: \"sum_2\" type: \"Eltwise\" bottom: \"between\" bottom: \"down\" top: "
          "\"x\" }\n}\n",
          out);
    put_norm(out, "", "ln_f", "x");
    fprintf(out,
            "layer {\n  name: \"lm_head\"\n  type: \"LinearSoftmaxLoss\"\n  bottom: \"ln_f\"\n"
            "  bottom: \"target\"\n  top: \"loss\"\n  param { name: \"wte\" }\n  loss_param { "
            "ignore_label: -1 }\n  linear_softmax_loss_param { num_output: %lld weight_filler { "
            "type: \"gaussian\" std: %g } }\n}\n",
            data->different, std);
}

void ls_init_put_net(FILE *out, const struct ls_init_data *data)
{
    if (is_text(data))
        put_text_net(out, data);
    else if (is_pairs(data))
        put_map_net(out, data);
    else
        put_picture_net(out, data);
}

void ls_init_put_solver(FILE *out, const struct ls_init_data *data, const char *net)
{
    bool text = is_text(data);
    fputs("# lockstep train --solver this file. Snapshots go where the training is started.\n"
          "net: ",
          out);
    put_string(out, net);
    if (text) {
        fputs("\ntype: \"AdamW\"\nbase_lr: 2e-3\nlr_policy: \"cosine\"\nlr_min: 1e-4\n"
              "warmup_iter: 100\ncosine_after_warmup: true\nmomentum: 0.9\nmomentum2: 0.99\n"
              "corrected_delta: true\nweight_decay: 0.1\n"
              "param_group { max_axes: 1 decay_mult: 0 }   # norms\nclip_gradients: 1\n"
              "max_iter: 2000\ntest_interval: 500\ndisplay: 100\n",
              out);
    } else {
        struct choice choice = choose(data);
        int every = choice.epochs >= 10 ? choice.epochs / 10 : 1;
        fprintf(out,
                "\ntype: \"Nesterov\"\nbase_lr: %.4g\n"
                "lr_policy: \"cosine\"\nwarmup_epoch: 1\nmomentum: 0.9\nweight_decay: 0.0005\n"
                "max_epoch: %d\ntest_interval_epoch: %d\ntest_initialization: false\n"
                "display: 50\n"
                "snapshot_best: \"%s\"   # the best of the tests stays, too\n",
                is_pairs(data) ? 0.01 : 0.1 * choice.batch / 128, choice.epochs, every,
                is_pairs(data) ? "mean_iou" : "accuracy");
    }
    fprintf(out, "average_loss: 20\nsnapshot_prefix: \"%s\"\nrandom_seed: 1\n",
            text             ? "gpt"
            : is_pairs(data) ? "unet"
                             : "resnet");
}
