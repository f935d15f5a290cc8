/* The public interface: models of other programs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/atomic_file.h"
#include "onnx/import.h"
#include "snapshot/archive.h"

enum { BATCH = 32 }; /* of the definitions that are written */

struct importing {
    const struct ls_onnx_net *net;
    const char *prefix;
    const char *loss;
    void (*tell)(void *user, const char *line);
    void *user;
    struct ls_error *error;
};

void lockstep_import_options_init(struct lockstep_import_options *options)
{
    *options = (struct lockstep_import_options){.struct_size = sizeof *options};
}

/* Writes PREFIX and `end`, whose text is freed. */
static int write_text(const struct importing *i, const char *end, struct ls_text *text)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s%s", i->prefix, end);
    int status = path.failed || text->failed
                     ? ls_fail_memory(i->error, "a definition")
                     : ls_atomic_replace(path.data, text->data, text->length, i->error);
    if (status == 0 && i->tell != NULL)
        i->tell(i->user, path.data);
    ls_text_free(&path);
    ls_text_free(text);
    return status;
}

/* The last part of the prefix, by which files in its folder name each other. */
static const char *base_of(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    return slash != NULL ? slash + 1 : prefix;
}

static void add_quoted(struct ls_text *text, const char *string, const char *end)
{
    ls_text_add(text, "\"");
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            ls_text_add(text, "\\");
        ls_text_add_bytes(text, string, 1);
    }
    ls_text_format(text, "%s\"", end);
}

/* A shape from an axis on. */
static void add_shape(struct ls_text *text, const struct ls_shape *shape, int axis)
{
    ls_text_add(text, " shape {");
    for (; axis < shape->rank; axis++)
        ls_text_format(text, " dim: %lld", (long long)shape->dim[axis]);
    ls_text_add(text, " }");
}

static int write_deploy(const struct importing *i)
{
    struct ls_text text = {0};
    ls_text_add(&text, "name: ");
    add_quoted(&text, base_of(i->prefix), "");
    ls_text_add(&text, "\n");
    for (size_t k = 0; k < i->net->input_count; k++) {
        const struct ls_onnx_input *input = &i->net->inputs[k];
        ls_text_format(&text,
                       "layer {\n  name: \"%s\"\n  type: \"Input\"\n  top: \"%s\"\n"
                       "  input_param {",
                       input->name, input->name);
        add_shape(&text, &input->shape, 0);
        ls_text_add(&text, " }\n}\n");
    }
    ls_text_add(&text, i->net->layers.data != NULL ? i->net->layers.data : "");
    return write_text(i, "_deploy.prototxt", &text);
}

/* Arrays for each input and the label; what they are called says which phase they are for. */
static void add_data(const struct importing *i, struct ls_text *text, const char *phase,
                     const char *folder)
{
    ls_text_add(text, "layer {\n  name: \"data\"\n  type: \"Data\"\n");
    for (size_t k = 0; k < i->net->input_count; k++)
        ls_text_format(text, "  top: \"%s\"\n", i->net->inputs[k].name);
    ls_text_format(text,
                   "  top: \"label\"\n  include { phase: %s }\n  data_param {\n"
                   "    backend: NPY\n    batch_size: %d\n",
                   phase, BATCH);
    if (strcmp(phase, "TRAIN") == 0)
        ls_text_add(text, "    shuffle: true\n");
    for (size_t k = 0; k < i->net->input_count; k++)
        ls_text_format(text, "    source: \"%s/%s.npy\"\n", folder, i->net->inputs[k].name);
    ls_text_format(text, "    source: \"%s/label.npy\"\n", folder);
    for (size_t k = 0; k < i->net->input_count; k++) {
        const struct ls_onnx_input *input = &i->net->inputs[k];
        ls_text_format(text, "    tensor { name: \"%s\"", input->name);
        if (input->shape.rank > 1)
            add_shape(text, &input->shape, 1);
        ls_text_add(text, " }\n");
    }
    ls_text_add(text, "    tensor { name: \"label\" }\n  }\n}\n");
}

static void add_loss(const struct importing *i, struct ls_text *text, const char *scores)
{
    const int rank = i->net->output_shape.rank;
    if (strcmp(i->loss, "euclidean") == 0) {
        ls_text_format(text,
                       "layer {\n  name: \"loss\"\n  type: \"EuclideanLoss\"\n  bottom: \"%s\"\n"
                       "  bottom: \"label\"\n  top: \"loss\"\n}\n",
                       scores);
        return;
    }
    /* Classes lie along axis 1, of pictures too, and last in sequences. */
    const int axis = rank == 3 ? 2 : 1;
    ls_text_format(text,
                   "layer {\n  name: \"loss\"\n  type: \"SoftmaxWithLoss\"\n  bottom: \"%s\"\n"
                   "  bottom: \"label\"\n  top: \"loss\"\n  softmax_param { axis: %d }\n}\n"
                   "layer {\n  name: \"accuracy\"\n  type: \"Accuracy\"\n  bottom: \"%s\"\n"
                   "  bottom: \"label\"\n  top: \"accuracy\"\n  include { phase: TEST }\n"
                   "  accuracy_param { axis: %d }\n}\n",
                   scores, axis, scores, axis);
}

static int write_train_test(const struct importing *i)
{
    const struct ls_onnx_net *net = i->net;
    const bool scores = strcmp(i->loss, "softmax") == 0 && net->scores != NULL;
    struct ls_text text = {0};
    ls_text_add(&text,
                "# Arrays of numpy.save, samples along the first axis, as the model takes them;\n"
                "# docs/data.md says what else a Data layer reads.\nname: ");
    add_quoted(&text, base_of(i->prefix), "");
    ls_text_add(&text, "\n");
    add_data(i, &text, "TRAIN", "train");
    add_data(i, &text, "TEST", "test");
    /* A softmax at the end is the loss's own. */
    if (net->layers.data != NULL)
        ls_text_add_bytes(&text, net->layers.data,
                          scores && net->softmax_last ? net->softmax_begin : net->layers.length);
    add_loss(i, &text, scores ? net->scores : net->output);
    return write_text(i, "_train_test.prototxt", &text);
}

static int write_solver(const struct importing *i)
{
    struct ls_text text = {0};
    ls_text_add(&text, "net: ");
    add_quoted(&text, base_of(i->prefix), "_train_test.prototxt");
    ls_text_add(&text, "\nbase_lr: 0.001\nlr_policy: \"fixed\"\nmomentum: 0.9\n"
                       "weight_decay: 0.0001\nmax_iter: 1000\ndisplay: 20\n"
                       "test_iter: 10\ntest_interval: 200\nsnapshot_prefix: ");
    add_quoted(&text, base_of(i->prefix), "");
    ls_text_add(&text, "\n");
    return write_text(i, "_solver.prototxt", &text);
}

static void tell_notes(const struct importing *i, void (*note)(void *user, const char *sentence))
{
    char *rest = i->net->notes.data;
    for (char *line = strsep(&rest, "\n"); note != NULL && rest != NULL; line = strsep(&rest, "\n"))
        note(i->user, line);
}

static int write_weights(const struct importing *i)
{
    struct ls_archive archive = {0};
    struct ls_text path = {0};
    int status = 0;
    for (size_t k = 0; k < i->net->weight_count && status == 0; k++) {
        const struct ls_onnx_net_weight *weight = &i->net->weights[k];
        status = ls_archive_add(&archive, weight->name, LS_F32, &weight->shape, weight->numbers,
                                i->error);
    }
    ls_text_format(&path, "%s.safetensors", i->prefix);
    if (status == 0)
        status = path.failed ? ls_fail_memory(i->error, "a path")
                             : ls_archive_write(&archive, path.data, i->error);
    if (status == 0 && i->tell != NULL)
        i->tell(i->user, path.data);
    ls_archive_free(&archive);
    ls_text_free(&path);
    return status;
}

static int check_options(const struct lockstep_import_options *options, struct ls_error *error)
{
    if (options->loss != NULL && strcmp(options->loss, "softmax") != 0 &&
        strcmp(options->loss, "euclidean") != 0)
        return ls_fail(error, LOCKSTEP_USAGE, "loss", "give softmax or euclidean",
                       "there is no loss '%.60s'", options->loss);
    if (options->solver && options->loss == NULL)
        return ls_fail(error, LOCKSTEP_USAGE, "solver", "give a loss, too",
                       "a net without a loss cannot be trained");
    return 0;
}

int lockstep_import_onnx(const char *path, const char *prefix,
                         const struct lockstep_import_options *options,
                         void (*tell)(void *user, const char *line), void *user,
                         struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_import_options mine;
    struct ls_onnx_net net;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(ls_api_require(prefix, "prefix", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_import_options_init", inner));
    LS_TRY(check_options(&mine, inner));
    LS_TRY(ls_file_check_prefix(prefix, inner));
    if (*base_of(prefix) == '\0')
        return ls_fail(inner, LOCKSTEP_USAGE, prefix, "give a name behind it: nets/resnet18",
                       "this is a folder, and no beginning of files' names");
    const struct ls_onnx_import request = {mine.shapes, mine.shape_count, mine.tie != 0};
    LS_TRY(ls_onnx_import(path, &request, &net, inner));
    const struct importing i = {&net, prefix, mine.loss, tell, user, inner};
    int status = net.weight_count > 0 ? write_weights(&i) : 0;
    if (status == 0)
        status = write_deploy(&i);
    if (status == 0 && mine.loss != NULL)
        status = write_train_test(&i);
    if (status == 0 && mine.solver)
        status = write_solver(&i);
    if (status == 0)
        tell_notes(&i, mine.note);
    ls_onnx_net_free(&net);
    return status;
}
