/* Devices: what carries out plans. A device has a folder of its own in src/ops/; nothing outside
 * that folder includes its headers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_DEVICE_H
#define LS_DEVICE_DEVICE_H

#include "device/accumulator.h"
#include "device/cards.h"
#include "device/collectives.h"
#include "device/exact.h"
#include "device/factors.h"
#include "device/filler.h"
#include "device/memory.h"
#include "device/products.h"
#include "device/samples.h"
#include "device/stream.h"
#include "device/update.h"
#include "ir/kernel.h"

struct ls_device_environment;
struct ls_converter;
struct ls_text;

/* Figures of numbers in the device's memory. The same bits on every device. */
struct ls_device_sums {
    /* The bits of the largest |x[i]|; 0 for n = 0. */
    int (*largest)(const float *x, size_t n, uint32_t *bits, struct ls_error *error);
    /* Sums of x^2 and |x| in double, over chunks of LS_EXACT_CHUNK elements in a fixed order, which
     * are added in the order of ls_sum_doubles. */
    int (*squares)(const float *x, size_t n, double *sum, struct ls_error *error);
    int (*magnitudes)(const float *x, size_t n, double *sum, struct ls_error *error);
};

/* A device: kernels, the memory that parameters live in, exact sums, the update of weights.
 * Trainer, model and engine get one as an argument (ops/devices.h names them all). Members
 * that are not optional must be there, or ops/devices.h refuses the device. Arrays are in the
 * device's memory where nothing else is said. What these functions do is over when they return.
 * Those with a status return 0, or the status of what failed (LOCKSTEP_RESOURCE when memory ran
 * out, else LOCKSTEP_INTERNAL), which the error describes: it may be NULL. What they should have
 * written is meaningless then. docs/architecture.md tells which threads call what. */
struct ls_device {
    const char *name;
    const struct ls_kernel *const *(*kernels)(void); /* NULL-terminated, in order of preference */
    /* Whether it has a kernel for an op at all, whatever layouts its values have. */
    bool (*supports)(const struct ls_op *op);
    const struct ls_device_memory *memory;
    const struct ls_device_streams *streams;
    const struct ls_device_recordings *recordings; /* (optional) */
    /* (optional) For ranks with a device each; without it they exchange over the host's memory. */
    const struct ls_device_collectives *collectives;
    const struct ls_device_cards *cards; /* (optional) Where there may be several. */
    /* Converts a parameter between Caffe's order, in the host's memory, and its layout. */
    int (*parameter_from_plain)(const struct ls_layout *layout, const struct ls_shape *shape,
                                const float *plain, float *laid_out, struct ls_error *error);
    int (*parameter_to_plain)(const struct ls_layout *layout, const struct ls_shape *shape,
                              const float *laid_out, float *plain, struct ls_error *error);
    /* Makes ready what converts a parameter, fp32 in its own layout, to the layout and type that a
     * kernel asked for; LOCKSTEP_INTERNAL if there is no such conversion. It runs after every
     * update, on one thread at a time, and allocates nothing then. */
    int (*converter_new)(const struct ls_layout *from, const struct ls_layout *to,
                         const struct ls_shape *shape, enum ls_dtype type,
                         struct ls_converter **converter, struct ls_error *error);
    int (*converter_run)(struct ls_converter *converter, const float *source, void *target,
                         struct ls_error *error);
    void (*converter_free)(struct ls_converter *converter);
    /* Merges the rows of a group's parts, `count` of them in order, for channels [begin, end)
     * (multiples of LS_SYNC_BLOCK), along the binary tree: neighbours first. `merged` is the
     * group's. Any number of threads may merge different channels. It is done in the order of the
     * stream; NULL: before the function returns. */
    int (*merge)(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                 int count, int64_t begin, int64_t end, float *merged, struct ls_error *error);
    /* Fills the n numbers of one blob, all of it, in the host's memory: rows of UNITBALL are not
     * cut. */
    void (*fill)(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                 size_t n);
    const struct ls_device_sums *sums;
    const struct ls_device_accumulator *accumulator; /* exact sums of gradients */
    /* Computes the piece of the gradient of the weights, or of the bias, without gaps. */
    int (*weight_gradient)(const struct ls_factoring *factoring,
                           const struct ls_factor_rows *factors,
                           const struct ls_gradient_piece *piece, float *gradient,
                           struct ls_error *error);
    int (*bias_gradient)(const struct ls_factoring *factoring, const struct ls_factor_rows *factors,
                         const struct ls_gradient_piece *piece, float *gradient,
                         struct ls_error *error);
    /* Applies the rule to a slice, and says what it saw. */
    int (*update)(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                  struct ls_update_seen *seen, struct ls_error *error);
    /* (optional) Does to weights what reading their sums, `update` and `clear_masked` do one after
     * the other, in the order of the stream, for a device that is not to be waited for. */
    int (*update_from_sums)(struct ls_stream *stream, const struct ls_sum_update *update,
                            struct ls_error *error);
    /* numbers[i] becomes +0 where bit first + i of a mask is set (ir/mask.h, but with a bit for
     * each element of the parameter's layout). All lie in the device's memory. */
    int (*clear_masked)(const uint32_t *mask, size_t first, float *numbers, size_t n,
                        struct ls_error *error);
    /* (optional) Makes a tensor of a micro-batch: sample s of draws[s], in the order of the
     * stream. All arrays are in the device's memory. The bits are those of data/transform.h. */
    int (*make_samples)(struct ls_stream *stream, const struct ls_sample_making *making,
                        const struct ls_sample_draw *draws, int64_t samples, void *out,
                        struct ls_error *error);
    const struct ls_device_products *products;
    /* Products of layers in TF32 take their factors so (ls_op.tf32); others refuse such layers. */
    bool tf32;
    /* (optional) Called first thing by every thread that runs kernels. */
    void (*enter_thread)(void);
    /* (optional) Around what a library's caller asks for on a thread of its own: libraries below
     * use no threads besides. `take_thread` returns what `give_thread_back` wants. */
    int (*take_thread)(void);
    void (*give_thread_back)(int threads);
    /* (optional) Chooses the instruction set, before the first net is planned. */
    int (*select_isa)(const char *name, struct ls_error *error);
    /* Where there is select_isa: whether the set in use has this name, or contains the set of this
     * name and gives its bits ("amx" contains "avx512"). */
    bool (*computes_with)(const char *name);
    /* (optional) What `lockstep --version` says of it: lines "key=value". */
    int (*describe)(struct ls_text *text, struct ls_error *error);
    /* What decides the bits of kernels (docs/numerics.md, section 11). */
    const struct ls_device_environment *environment;
};

/* The numeric environment as a device knows it. Texts are of lines "key=value". */
struct ls_device_environment {
    /* Every snapshot names the device: the lines of `describe` are in the environment of all
     * trainings, not only of those that the kernel library computes a part of. */
    bool named;
    /* What portable nets compute (ls_graph.portable) has the bits that it has on the default
     * device, whose environment is theirs. */
    bool portable;
    /* The instruction set in use ("avx2"), and the widest that this processor has. */
    const char *(*isa)(void);
    const char *(*widest_isa)(void);
    /* Appends what the kernel library's arithmetic depends on: isa, its version, caches. */
    void (*describe)(struct ls_text *text);
    /* That in words, behind "bits depend on"; NULL: no kernel is a library's. */
    const char *library;
    /* A hash of what the kernels that are not the library's give for fixed inputs, the same with
     * every instruction set. LOCKSTEP_RESOURCE when memory runs out. NULL: they use arithmetic that
     * rounds correctly and SLEEF's functions in double, of which there is a hash anyway. */
    int (*own)(uint64_t *hash, struct ls_error *error);
    /* Whether the bits of a step depend on its shapes and the kernel that was chosen for them, so
     * that `probe` is for it; NULL: of none. */
    bool (*probes)(const struct ls_prepared *prepared);
    /* A hash of what a prepared step gives for one fixed input, in its own shapes, or for one of
     * `samples`; where even that is more than *work allows, of what it is. *work: multiply-adds
     * that may still be spent on probes. */
    int (*probe)(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error);
};

#endif
