/* Readers: samples of a data set by their ordinals.
 *
 * A reader is what one thread needs to fetch them: buffers, decoders, a database transaction. Any
 * number of readers may read one data set at the same time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_READER_H
#define LS_DATA_READER_H

#include "data/dataset.h"
#include "data/record.h"

struct ls_reader;

int ls_reader_open(struct ls_dataset *dataset, struct ls_reader **reader, struct ls_error *error);
void ls_reader_close(struct ls_reader *reader);
/* Writes the tensors of a sample to `out`, a pointer for each of ls_dataset_tensors (NULL: it is
 * not wanted, and not decoded). A bad record is LOCKSTEP_DATA, naming file and record; so is one
 * whose size has changed, or with a number that the tensor's type does not have. */
int ls_reader_fetch(struct ls_reader *reader, int64_t ordinal, void *const *out,
                    struct ls_error *error);
/* Reads the record behind an ordinal, all of it, without making a sample of it. */
int ls_reader_read(struct ls_reader *reader, int64_t ordinal, struct ls_record *record,
                   struct ls_error *error);
/* Where the samples of a micro-batch go that are tensors `tensor` of it. Each has `bytes` in `runs`
 * equal parts; part r of sample s lies behind r * samples + s others. With one part samples lie one
 * after the other. */
struct ls_sample_place {
    void *tensor; /* NULL: not wanted */
    size_t bytes;
    size_t runs;
    bool rounded; /* fp32 numbers become bf16 there, of which a sample has so many bytes */
};
/* Fetches a sample to its place as number `s` of `samples`; `place` has an entry for each of
 * ls_dataset_tensors. */
int ls_reader_fetch_to(struct ls_reader *reader, int64_t ordinal,
                       const struct ls_sample_place *place, int64_t s, int64_t samples,
                       struct ls_error *error);
/* The number of the record behind an ordinal, and the hash of what ls_reader_fetch would read of it
 * (data/digest.h), without decoding; bit k of `wanted` is tensor k. Where bad records are skipped,
 * it is the number of the bad one with the bytes of the other one, and what was not read before
 * must be decoded once. */
int ls_reader_hash(struct ls_reader *reader, int64_t ordinal, uint32_t wanted, int64_t *record,
                   uint64_t *hash, struct ls_error *error);
/* The same of a record by its number, all of it. */
int ls_reader_hash_record(struct ls_reader *reader, int64_t record, uint64_t *hash,
                          struct ls_error *error);
/* Whether records that were not read before are taken for good when they are hashed. */
void ls_reader_trust(struct ls_reader *reader, bool trust);
/* Those of the last sample that was fetched; and whether another record stood in for it. */
void ls_reader_last(const struct ls_reader *reader, int64_t *record, uint64_t *hash);
bool ls_reader_replaced(const struct ls_reader *reader);
/* Appends what the record behind an ordinal is called to `text`. */
void ls_reader_name(struct ls_reader *reader, int64_t ordinal, struct ls_text *text);
/* Fails with a problem of the record behind an ordinal, naming source and record. */
int ls_reader_fail(struct ls_reader *reader, int64_t ordinal, const struct ls_problem *problem,
                   struct ls_error *error);
/* The image behind an ordinal as it is stored, before transformation: shape and 0..255 pixels, to
 * show to people, colours as red, green, blue; and its label, 0 where it is not one number.
 * `pixels` has room for what `shape` says, or is NULL to ask for the shape. */
int ls_reader_fetch_raw(struct ls_reader *reader, int64_t ordinal, int64_t shape[3], float *pixels,
                        int *label, struct ls_error *error);
/* The image of a sample as the net gets it, with mean and scale undone: shape and 0..255 pixels, as
 * above. Numbers that no pixels can be made of again lie from 0 (the least) to 255. */
int ls_reader_fetch_shown(struct ls_reader *reader, int64_t ordinal, int64_t shape[3],
                          float *pixels, struct ls_error *error);
/* Decodes a picture file as this data set's transformation would have it in the test phase; resized
 * to the records' size, where they are not cropped. The sample has the shape of ls_dataset_shape.
 * *turned (may be NULL): whether it has an orientation mark. */
int ls_reader_picture(struct ls_reader *reader, const char *path, float *sample, bool *turned,
                      struct ls_error *error);
/* Fails where that is not possible at all: the data set has no pictures of one or three channels.
 */
int ls_reader_check_pictures(const struct ls_reader *reader, struct ls_error *error);

#endif
