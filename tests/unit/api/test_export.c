/* Export to ONNX: a net's bytes are those that the ONNX package writes for the same model, what has
 * no equivalent is named, all of it, and nothing is left behind by a failure.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "lockstep/lockstep.h"
#include "snapshot/archive.h"
#include "support/support.h"

static const char tiny[] =
    "name: 'tiny'\n"
    "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [4, 3] } } }\n"
    "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc'\n"
    "  inner_product_param { num_output: 2 } }\n"
    "layer { name: 'drop' type: 'Dropout' bottom: 'fc' top: 'fc' }\n"
    "layer { name: 'prob' type: 'Softmax' bottom: 'fc' top: 'prob' }\n";

/* The same model as onnx.helper makes it (version 1.23 of the package), with the operators of
 * version 17, by version 0.1.0 of Lockstep. */
enum { VERSION_SIZE = 5 };
static const char written_by_onnx[] =
    "\010\010\022\010Lockstep\032\0050.1.0:\354\001\012<\012\004data\012\011fc.weight\012\007"
    "fc.bias\022\002fc\032\007fc/Gemm\"\004Gemm*\015\012\006transB\030\001\240\001\002\012."
    "\012\002fc\022\004prob\032\014prob/Softmax\"\007Softmax*\013\012\004axis\030\001\240\001"
    "\002\022\004tiny*+\010\002\010\003\020\001B\011fc.weightJ\030\000\000\200\077\000\000"
    "\000@\000\000@@\000\000\200@\000\000\240@\000\000\300@*\027\010\002\020\001B\007fc.biasJ"
    "\010\000\000\000\077\000\000\000\277Z\027\012\004data\022\017\012\015\010\001\022\011"
    "\012\003\022\001N\012\002\010\003b\027\012\004prob\022\017\012\015\010\001\022\011\012"
    "\003\022\001N\012\002\010\002B\004\012\000\020\021r\031\012\020lockstep.version\022\0050"
    ".1.0r,\012\026lockstep.preprocessing\022\022left to the callerr\023\012\016lockstep.scal"
    "e\022\0011";

static const float weight[] = {1, 2, 3, 4, 5, 6}, bias[] = {0.5F, -0.5F};

static void write_weights(const char *path)
{
    struct ls_archive archive = {0};
    const struct ls_shape matrix = {.rank = 2, .dim = {2, 3}}, row = {.rank = 1, .dim = {2}};
    assert_int_equal(ls_archive_add(&archive, "fc.weight", LS_F32, &matrix, weight, NULL), 0);
    assert_int_equal(ls_archive_add(&archive, "fc.bias", LS_F32, &row, bias, NULL), 0);
    assert_int_equal(ls_archive_write(&archive, path, NULL), 0);
    ls_archive_free(&archive);
}

static struct lockstep_model *load(const char *text)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    char net[512];
    snprintf(net, sizeof net, "%s", ls_test_path("net.prototxt"));
    ls_test_write_text(net, text);
    const char *weights = ls_test_path("net.safetensors");
    write_weights(weights);
    lockstep_model_options_init(&options);
    options.workers = 1;
    if (lockstep_model_load(net, weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

static int export_to(struct lockstep_model *model, const char *path, int opset, int64_t batch,
                     int external, struct lockstep_error *error)
{
    struct lockstep_onnx_options options;
    lockstep_onnx_options_init(&options);
    options.opset = opset;
    options.batch = batch;
    options.external = external;
    return lockstep_model_export_onnx(model, path, &options, error);
}

static void bytes_are_those_of_the_package(void **state)
{
    (void)state;
    struct lockstep_model *model = load(tiny);
    struct lockstep_error *error = lockstep_error_new();
    const char *path = ls_test_path("tiny.onnx");
    char *bytes;
    size_t size;
    if (export_to(model, path, 0, 0, 0, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(ls_file_read(path, 10000, LOCKSTEP_DATA, &bytes, &size, NULL), 0);
    char expected[sizeof written_by_onnx];
    memcpy(expected, written_by_onnx, sizeof expected);
    assert_int_equal(strlen(LOCKSTEP_VERSION), VERSION_SIZE);
    for (size_t i = 0; i + VERSION_SIZE < sizeof expected; i++)
        if (memcmp(expected + i, "0.1.0", VERSION_SIZE) == 0)
            memcpy(expected + i, LOCKSTEP_VERSION, VERSION_SIZE);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(bytes, expected, size);
    ls_free(bytes);
    lockstep_error_free(error);
    lockstep_model_free(model);
}

/* Weights of 1 KiB and more go outside; these are smaller, but the file is there. */
static void assert_no_file_after_failures(const char *net)
{
    struct lockstep_model *model = load(net);
    char path[512], beside[600];
    snprintf(path, sizeof path, "%s", ls_test_path("failed.onnx"));
    snprintf(beside, sizeof beside, "%s.data", path);
    int status = LOCKSTEP_RESOURCE;
    for (long n = 0; status != 0; n++) {
        (void)unlink(path);
        (void)unlink(beside);
        ls_fail_allocation_after(n);
        status = export_to(model, path, 13, 5, 1, NULL);
        ls_fail_allocation_after(-1);
        assert_true(status == 0 || status == LOCKSTEP_RESOURCE);
        assert_int_equal(ls_file_exists(path), status == 0);
        assert_int_equal(ls_file_exists(beside), status == 0);
        assert_true(n < 2000);
    }
    lockstep_model_free(model);
}

static void a_failure_leaves_no_file(void **state)
{
    (void)state;
    assert_no_file_after_failures(tiny);
    assert_no_file_after_failures(
        "layer { name: 'in' type: 'Input' top: 'data' top: 'label'\n"
        "  input_param { shape { dim: [4, 3] } shape { dim: 4 } } }\n"
        "layer { name: 'fc' type: 'LinearSoftmaxLoss' bottom: 'data' bottom: 'label'\n"
        "  linear_softmax_loss_param { num_output: 2 bias_term: true } }\n");
}

static void refused(struct lockstep_model *model, int opset, int64_t batch, int status,
                    const char *words)
{
    struct lockstep_error *error = lockstep_error_new();
    assert_int_equal(export_to(model, ls_test_path("refused.onnx"), opset, batch, 0, error),
                     status);
    if (strstr(lockstep_error_text(error), words) == NULL)
        fail_msg("'%s' does not say '%s'", lockstep_error_text(error), words);
    assert_false(ls_file_exists(ls_test_path("refused.onnx")));
    lockstep_error_free(error);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct lockstep_model *model = load(tiny);
    refused(model, 12, 0, LOCKSTEP_USAGE, "version 12 of ONNX's operators");
    refused(model, 18, 0, LOCKSTEP_USAGE, "13 to 17");
    refused(model, 17, -1, LOCKSTEP_USAGE, "-1 samples");
    lockstep_model_free(model);
}

/* Both layers are named, with their places. */
static void what_has_no_equivalent_is_named(void **state)
{
    (void)state;
    static const char layers[] =
        "layer { name: 'regions' type: 'Input' top: 'regions'\n"
        "  input_param { shape { dim: [2, 5] } } }\n"
        "layer { name: 'planes' type: 'Input' top: 'planes'\n"
        "  input_param { shape { dim: [1, 8, 4, 4] } } }\n"
        "layer { name: 'bins' type: 'PSROIPooling' bottom: 'planes' bottom: 'regions' top: 'bins'\n"
        "  psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 2 } }\n"
        "layer { name: 'again' type: 'PSROIPooling' bottom: 'planes' bottom: 'regions' "
        "top: 'again'\n"
        "  psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 2 } }\n";
    char text[2000];
    snprintf(text, sizeof text, "%s%s", tiny, layers);
    struct lockstep_model *model = load(text);
    refused(model, 0, 0, LOCKSTEP_DEFINITION, "bins: a layer of type PSROIPooling has no");
    refused(model, 0, 0, LOCKSTEP_DEFINITION, "no operator averages bins with rounded edges");
    refused(model, 0, 0, LOCKSTEP_DEFINITION, "again: a layer of type PSROIPooling has no");
    refused(model, 0, 7, LOCKSTEP_USAGE, "mixes the samples of a batch");
    lockstep_model_free(model);
}

/* ---- Losses that make logits of their own ---------------------------------------------------- */

static const char before_end[] = "layer { name: 'in' type: 'Input' top: 'data' top: 'label'\n"
                                 "  input_param { shape { dim: [4, 3] } shape { dim: 4 } } }\n";

static void export_text(const char *end, char **bytes, size_t *size)
{
    char text[2000];
    snprintf(text, sizeof text, "%s%s", before_end, end);
    struct lockstep_model *model = load(text);
    struct lockstep_error *error = lockstep_error_new();
    const char *path = ls_test_path("logits.onnx");
    if (export_to(model, path, 0, 0, 0, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(ls_file_read(path, 10000, LOCKSTEP_DATA, bytes, size, NULL), 0);
    lockstep_error_free(error);
    lockstep_model_free(model);
}

/* The model of a net with the loss has the bytes of that with the product. */
static void assert_same_model(const char *loss, const char *product)
{
    char *a, *b;
    size_t a_size, b_size;
    export_text(loss, &a, &a_size);
    export_text(product, &b, &b_size);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    ls_free(a);
    ls_free(b);
}

static void a_linear_loss_gives_its_logits(void **state)
{
    (void)state;
    assert_same_model(
        "layer { name: 'fc' type: 'LinearSoftmaxLoss' bottom: 'data' bottom: 'label'\n"
        "  top: 'loss' top: 'hits'\n"
        "  linear_softmax_loss_param { num_output: 2 bias_term: true\n"
        "    metric: ACCURACY } }\n"
        "layer { name: 'quiet' type: 'Silence' bottom: 'hits' }\n",
        "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'logits'\n"
        "  inner_product_param { num_output: 2 } }\n");
}

/* A blob of the net is called logits, and another one as those that are called otherwise. */
static void names_of_logits_are_free_ones(void **state)
{
    (void)state;
    static const char named[] =
        "layer { name: 'a' type: 'ReLU' bottom: 'data' top: 'logits' }\n"
        "layer { name: 'b' type: 'TanH' bottom: 'data' top: 'fc_logits' }\n";
    char loss[1000], product[1000];
    snprintf(loss, sizeof loss,
             "%slayer { name: 'fc' type: 'LinearSoftmaxLoss' bottom: 'data' bottom: 'label'\n"
             "  linear_softmax_loss_param { num_output: 2 bias_term: true } }\n",
             named);
    snprintf(product, sizeof product,
             "%slayer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc_logits_'\n"
             "  inner_product_param { num_output: 2 } }\n",
             named);
    assert_same_model(loss, product);
}

/* ---- Samples that are left out --------------------------------------------------------------- */

static const char filtered[] =
    "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc'\n"
    "  inner_product_param { num_output: 2 } }\n"
    "layer { name: 'left' type: 'Filter' bottom: 'fc' bottom: 'label' top: 'left' }\n";

static bool has_bytes(const char *bytes, size_t size, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= size; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0)
            return true;
    return false;
}

/* The output says that it has other samples than the input. */
static void a_filter_compresses(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    export_text(filtered, &bytes, &size);
    assert_true(has_bytes(bytes, size, "Compress"));
    assert_true(has_bytes(bytes, size, "selected"));
    ls_free(bytes);
}

static void sizes_by_samples_that_are_left_are_refused(void **state)
{
    (void)state;
    char text[2000];
    snprintf(text, sizeof text, "%s%s%s", before_end, filtered,
             "layer { name: 'place' type: 'Positions' bottom: 'left' top: 'place' }\n");
    struct lockstep_model *model = load(text);
    refused(model, 0, 0, LOCKSTEP_DEFINITION,
            "place: its size goes with the samples that a Filter");
    lockstep_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_package),
        cmocka_unit_test(a_failure_leaves_no_file),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(what_has_no_equivalent_is_named),
        cmocka_unit_test(a_linear_loss_gives_its_logits),
        cmocka_unit_test(names_of_logits_are_free_ones),
        cmocka_unit_test(a_filter_compresses),
        cmocka_unit_test(sizes_by_samples_that_are_left_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
