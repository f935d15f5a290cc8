/* Fuzzes what a resume reads of a snapshot, behind the checksum. The input says what is changed of
 * a sound snapshot, which is made at the start by training a small net:
 *
 *   byte 0  bit 0: --allow-other-numerics; bit 1: --resume auto
 *   then    changes, one after the other, each a letter and its operands (other bytes mean
 * nothing): n  NOTE OFFSET REMOVED LENGTH TEXT   a piece of a note's value is replaced k  NOTE
 * LENGTH TEXT                  a note gets another key x  NOTE                              a note
 * is removed t  TENSOR OFFSET LENGTH BYTES        elements are overwritten s  TENSOR TYPE RANK
 * DIMENSION...     a tensor gets another type and shape, with zeros m  TENSOR LENGTH TEXT a tensor
 * gets another name r  TENSOR                            a tensor is removed w  PLACE BYTE at the
 * end: a byte of the file, whatever it is; the checksum is made right again Numbers are one byte,
 * offsets and places two.
 *
 * A snapshot that is refused is refused with a reason. One that is accepted is trained with, and
 * what is written then is accepted, too. Other readers of snapshots see the same file.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "inspect/diff.h"
#include "snapshot/archive_layout.h"
#include "solver/checkpoint.h"
#include "solver/environment.h"
#include "solver/history.h"
#include "solver/notes.h"
#include "solver/resume.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { ITEMS_MAX = 64, VALUE_MAX = 1 << 15, ZEROS = 4096, PLACES_MAX = 16 };

static const char definition[] =
    "base_lr: 0.01 lr_policy: 'step' stepsize: 2 gamma: 0.5 max_iter: 1000 random_seed: 5\n"
    "average_loss: 3 type: 'Adam' momentum: 0.9 clip_gradients: 10 weight_average { decay: 0.8 }\n"
    "micro_batch: 2\n"
    "net_param {\n"
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
    "  data_param { backend: SYNTHETIC batch_size: 4 shuffle: true\n"
    "    synthetic_param { count: 6 height: 8 width: 8 } } }\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
    "  convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'c' }\n"
    "layer { name: 'i' type: 'InnerProduct' bottom: 'c' top: 'i'\n"
    "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'label' top: 'loss' } }\n";

static char folder[40];
static char solver_path[64], base_path[64], changed_path[64], again_path[64], prefix[64];
static struct ls_solver_definition *solver;
static struct ls_trainer *trainer;
static struct ls_archive base;

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* What has to go well at the start. */
static void must_succeed(int status, const struct ls_error *error)
{
    if (status != 0)
        fprintf(stderr, "%s\n", error->count > 0 ? error->problems[0].message : "no reason");
    must(status == 0);
}

/* ---- The sound snapshot ---------------------------------------------------------------------- */

static void clean_up(void)
{
    static const char *const left[] = {"/s_iter_4.safetensors", "/.s.lock", "/s_status.json"};
    char path[96];
    ls_archive_free(&base);
    ls_trainer_free(trainer);
    ls_solver_definition_free(solver);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s%s", folder, left[i]);
        unlink(path);
    }
    unlink(solver_path);
    unlink(base_path);
    unlink(changed_path);
    unlink(again_path);
    rmdir(folder);
}

static void set_up(void)
{
    struct lockstep_train_options options;
    struct ls_error error = {0};
    snprintf(folder, sizeof folder, "%s/lockstep-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    must(mkdtemp(folder) != NULL);
    atexit(clean_up);
    snprintf(solver_path, sizeof solver_path, "%s/solver.prototxt", folder);
    snprintf(base_path, sizeof base_path, "%s/base.safetensors", folder);
    snprintf(again_path, sizeof again_path, "%s/again.safetensors", folder);
    snprintf(prefix, sizeof prefix, "%s/s", folder);
    snprintf(changed_path, sizeof changed_path, "%s/s_iter_3.safetensors", folder);
    must_succeed(ls_atomic_replace(solver_path, definition, strlen(definition), &error), &error);
    must_succeed(ls_solver_read(solver_path, NULL, 0, &solver, &error), &error);
    lockstep_train_options_init(&options);
    options.workers = 1;
    options.overwrite = 1;
    options.snapshot_prefix = prefix;
    must_succeed(ls_trainer_create(solver, &options, &trainer, &error), &error);
    for (int i = 0; i < 3; i++)
        must_succeed(ls_trainer_update(trainer, &error), &error);
    trainer->gradients.outgrew_first = 1; /* so that every note is there */
    trainer->gradients.outgrew_last = 2;
    trainer->best.now = (struct ls_best){true, 0.5};
    trainer->course = ls_copy_string("2 base_lr: 0.02 -> 0.01");
    must_succeed(ls_trainer_write(trainer, base_path, &error), &error);
    must_succeed(ls_archive_read(base_path, LS_ARCHIVE_CHECK, &base, &error), &error);
    must(base.tensor_count <= ITEMS_MAX && base.note_count <= ITEMS_MAX);
}

/* ---- Changing it ----------------------------------------------------------------------------- */

struct note {
    bool there;
    char key[64], value[VALUE_MAX];
};

struct tensor {
    bool there;
    char name[128];
    enum ls_dtype type;
    struct ls_shape shape;
    const void *data;
    unsigned char *own; /* its data, once they are changed */
    size_t size;
};

struct script {
    const uint8_t *at, *end;
    struct note notes[ITEMS_MAX];
    struct tensor tensors[ITEMS_MAX];
    struct {
        unsigned place;
        uint8_t byte;
    } places[PLACES_MAX];
    int place_count;
};

static unsigned take(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static unsigned take_two(struct script *script)
{
    unsigned high = take(script);
    return high << 8 | take(script);
}

static size_t take_bytes(struct script *script, const uint8_t **bytes)
{
    size_t length = take(script), left = (size_t)(script->end - script->at);
    length = length < left ? length : left;
    *bytes = script->at;
    script->at += length;
    return length;
}

static struct note *take_note(struct script *script)
{
    return &script->notes[take(script) % base.note_count];
}

static struct tensor *take_tensor(struct script *script)
{
    return &script->tensors[take(script) % base.tensor_count];
}

static void begin(struct script *script)
{
    for (size_t i = 0; i < base.note_count; i++) {
        script->notes[i].there = true;
        must(strlen(base.notes[i].value) < VALUE_MAX - 256);
        snprintf(script->notes[i].key, sizeof script->notes[i].key, "%s", base.notes[i].key);
        snprintf(script->notes[i].value, VALUE_MAX, "%s", base.notes[i].value);
    }
    for (size_t i = 0; i < base.tensor_count; i++) {
        const struct ls_tensor *tensor = &base.tensors[i];
        script->tensors[i] = (struct tensor){.there = true,
                                             .type = tensor->type,
                                             .shape = tensor->shape,
                                             .data = tensor->data,
                                             .size = tensor->size};
        snprintf(script->tensors[i].name, sizeof script->tensors[i].name, "%s", tensor->name);
    }
}

static void replace_piece(struct script *script)
{
    struct note *note = take_note(script);
    const uint8_t *text;
    size_t length = strlen(note->value), offset = take_two(script), removed = take(script);
    size_t added = take_bytes(script, &text);
    offset = offset < length ? offset : length;
    removed = removed < length - offset ? removed : length - offset;
    if (length - removed + added >= VALUE_MAX)
        return;
    memmove(note->value + offset + added, note->value + offset + removed,
            length - offset - removed + 1);
    memcpy(note->value + offset, text, added);
    note->value[length - removed + added] = '\0';
}

static void rename_it(struct script *script, char *name, size_t room)
{
    const uint8_t *text;
    size_t length = take_bytes(script, &text);
    length = length < room - 1 ? length : room - 1;
    memcpy(name, text, length);
    name[length] = '\0';
}

static void own(struct tensor *tensor, size_t size)
{
    unsigned char *data = calloc(size + 1, 1);
    must(data != NULL);
    memcpy(data, tensor->data, tensor->size < size ? tensor->size : size);
    free(tensor->own);
    tensor->data = tensor->own = data;
    tensor->size = size;
}

static void overwrite(struct script *script)
{
    struct tensor *tensor = take_tensor(script);
    const uint8_t *bytes;
    size_t offset = take_two(script), length = take_bytes(script, &bytes);
    if (tensor->size == 0)
        return;
    own(tensor, tensor->size);
    for (size_t i = 0; i < length; i++)
        tensor->own[(offset + i) % tensor->size] = bytes[i];
}

static void reshape(struct script *script)
{
    struct tensor *tensor = take_tensor(script);
    struct ls_shape shape = {.rank = 0};
    enum ls_dtype type = (enum ls_dtype)(take(script) % LS_DTYPES);
    int rank = (int)(take(script) % 4);
    for (int i = 0; i < rank; i++)
        shape.dim[shape.rank++] = (int64_t)(take(script) % 64);
    if (ls_shape_size(&shape) > ZEROS)
        return;
    tensor->type = type;
    tensor->shape = shape;
    own(tensor, (size_t)ls_shape_size(&shape) * ls_dtype_size(type));
}

static void change(struct script *script)
{
    switch (take(script)) {
    case 'n':
        replace_piece(script);
        break;
    case 'k': {
        struct note *note = take_note(script);
        rename_it(script, note->key, sizeof note->key);
        break;
    }
    case 'x':
        take_note(script)->there = false;
        break;
    case 't':
        overwrite(script);
        break;
    case 's':
        reshape(script);
        break;
    case 'm': {
        struct tensor *tensor = take_tensor(script);
        rename_it(script, tensor->name, sizeof tensor->name);
        break;
    }
    case 'r':
        take_tensor(script)->there = false;
        break;
    case 'w':
        if (script->place_count < PLACES_MAX) {
            script->places[script->place_count].place = take_two(script);
            script->places[script->place_count++].byte = (uint8_t)take(script);
        }
        break;
    default:
        break;
    }
}

/* ---- Writing it ------------------------------------------------------------------------------ */

/* What no archive can hold is left out. */
static bool write_changed(const struct script *script)
{
    struct ls_archive archive = {0};
    for (size_t i = 0; i < base.tensor_count; i++) {
        const struct tensor *t = &script->tensors[i];
        if (t->there)
            ls_archive_add(&archive, t->name, t->type, &t->shape, t->data, NULL);
    }
    for (size_t i = 0; i < base.note_count; i++) {
        const struct note *note = &script->notes[i];
        if (note->there && ls_utf8_valid(note->key, strlen(note->key)) &&
            ls_utf8_valid(note->value, strlen(note->value)))
            ls_archive_add_note(&archive, note->key, note->value, NULL);
    }
    int status = ls_archive_write(&archive, changed_path, NULL);
    ls_archive_free(&archive);
    return status == 0;
}

/* Changes bytes of the file and makes its checksum right, where the reader still finds it. */
static void change_bytes(const struct script *script)
{
    static const char mark[] = LS_NOTE_CHECKSUM "\":\"" LS_CHECKSUM_KIND;
    char *file, digits[9];
    size_t size;
    if (script->place_count == 0)
        return;
    must(ls_file_read(changed_path, (size_t)1 << 30, LOCKSTEP_WEIGHTS, &file, &size, NULL) == 0);
    for (int i = 0; i < script->place_count; i++)
        file[script->places[i].place % size] = (char)script->places[i].byte;
    char *found = memmem(file, size, mark, strlen(mark));
    if (found != NULL && (size_t)(file + size - found) >= strlen(mark) + 8) {
        found += strlen(mark);
        memset(found, '0', 8);
        snprintf(digits, sizeof digits, "%08x", (unsigned)ls_archive_crc(0, file, size));
        memcpy(found, digits, 8);
    }
    must(ls_atomic_replace(changed_path, file, size, NULL) == 0);
    ls_free(file);
}

/* ---- Reading it ------------------------------------------------------------------------------ */

static void ignore_line(void *user, const char *line)
{
    (void)user;
    must(line != NULL);
}

/* Other readers of snapshots. */
static void look_at(const char *path)
{
    struct ls_error error = {0};
    struct ls_archive archive;
    char isa[16];
    must(ls_environment_isa(prefix, "auto", isa, NULL) == 0);
    int status = ls_diff(base_path, path, ignore_line, NULL, &error);
    must(status == 0 || status == LOCKSTEP_DIFFERENT || error.count > 0);
    if (ls_archive_read(path, LS_ARCHIVE_CHECK, &archive, NULL) != 0)
        return;
    const char *history = ls_archive_note(&archive, LS_NOTE_HISTORY);
    struct ls_text text = {0};
    if (history != NULL)
        ls_environment_say_history(history, &text);
    ls_text_free(&text);
    ls_archive_free(&archive);
}

static bool resume(const char *from)
{
    struct ls_error error = {0};
    trainer->data.mixed = false;
    int status = ls_trainer_resume(trainer, from, &error);
    must((status == 0) == (error.count == 0));
    must(status != 0 || trainer->iteration >= 0);
    return status == 0;
}

static void read_changed(bool automatic)
{
    struct ls_error error = {0};
    look_at(changed_path);
    if (!resume(automatic ? "auto" : changed_path))
        return;
    int status = ls_trainer_update(trainer, &error);
    must((status == 0) == (error.count == 0));
    if (status != 0)
        return;
    must(ls_trainer_write(trainer, again_path, &error) == 0);
    must(resume(again_path));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct script script;
    if (trainer == NULL)
        set_up();
    if (size == 0)
        return 0;
    script.at = bytes + 1;
    script.end = bytes + size;
    script.place_count = 0;
    begin(&script);
    while (script.at < script.end)
        change(&script);
    trainer->numerics.allow_other = (bytes[0] & 1) != 0;
    if (write_changed(&script)) {
        change_bytes(&script);
        read_changed((bytes[0] & 2) != 0);
    }
    for (size_t i = 0; i < base.tensor_count; i++)
        free(script.tensors[i].own);
    return 0;
}
