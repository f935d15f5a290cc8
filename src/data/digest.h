/* Sums over records, by which data are recognised.
 *
 * Every record that is read has a 64-bit hash of its number and of the bytes of its tensors as they
 * are stored (the picture before decoding, the label or map). A digest of records is two sums
 * modulo 2^64, of the hashes and of the hashes times (number + 1). Sums do not depend on an order,
 * so that workers, ranks and interruptions cannot change them; an epoch reads every record once, so
 * that all epochs have one digest. Where one record has changed, the two differences give its
 * number.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DIGEST_H
#define LS_DATA_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

struct ls_digest {
    uint64_t sum, weighted;
};

/* Of a run of ordinals: its samples in the epoch of the first of them, in the whole epochs behind
 * that, and in the epoch of the last, if that is another one. */
struct ls_digests {
    struct ls_digest first, middle, last;
    int64_t skipped; /* samples whose records were bad, so that others stood in for them */
};

/* The hash of a record of `count` tensors (at least 1) by their hashes; what is not read of it has
 * the hash 0. */
uint64_t ls_digest_hash(int64_t record, const uint64_t *tensor, int count);
/* Adds record `record`, with this hash, as sample `ordinal` to the digests of ordinals [begin,
 * end), in epochs of `size`. */
void ls_digests_add(struct ls_digests *digests, int64_t begin, int64_t end, int64_t size,
                    int64_t ordinal, int64_t record, uint64_t hash);
bool ls_digest_equal(const struct ls_digest *a, const struct ls_digest *b);
void ls_digest_add(struct ls_digest *to, const struct ls_digest *more);
/* Of two digests that differ: the number of the record, if they differ in one record of [0, count)
 * alone; else -1. */
int64_t ls_digest_culprit(const struct ls_digest *a, const struct ls_digest *b, int64_t count);

/* The digests of the epochs of a training, as far as they are known. */
struct ls_epochs {
    struct ls_digest running; /* of the epoch that goes on */
    struct ls_digest whole;   /* of a whole epoch, the first that was read to its end */
    bool partial;             /* the beginning of the running epoch is not known */
    bool known;               /* `whole` is */
};

/* Goes on by ordinals [begin, end), which follow those before. Returns whether all epochs that
 * ended there are as they should be; else *found is the digest of one that is not (`several`: the
 * sum of more than one). */
bool ls_epochs_go_on(struct ls_epochs *epochs, const struct ls_digests *digests, int64_t begin,
                     int64_t end, int64_t size, struct ls_digest *found, bool *several);

#endif
