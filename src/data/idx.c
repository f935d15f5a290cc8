/* Source IDX: the format of the MNIST files, unpacked or gzip (known by its first bytes).
 *
 * A file is: two zero bytes, the type (8: unsigned byte, the only one here), the rank, the extents
 * (32 bits each, big-endian), the numbers. Images have rank 3 (N x H x W, one channel) or 4 (N x C
 * x H x W); labels rank 1. Images of an unpacked file are read one by one when they are wanted,
 * packed files are unpacked into memory, and labels are always kept there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

enum { RANK_MAX = 4, HEADER_MAX = 4 + 4 * RANK_MAX };

/* A file of either kind. */
struct idx_file {
    struct ls_file file; /* not open where the numbers are in memory */
    uint8_t *numbers;    /* owned; NULL: they are read from the file, */
    size_t header;       /* behind so many bytes */
    int rank;
    int64_t dim[RANK_MAX];
};

struct idx_options {
    struct ls_option_files images;
    const char *labels;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct idx_options, images),
     .least = 1,
     .most = 1,
     .help = "the file of images, of rank 3 (N x H x W) or 4 (N x C x H x W)"},
    {.name = "label_source",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct idx_options, labels),
     .help = "the file of labels; without it records have none"},
    {.name = NULL}};

struct idx {
    struct idx_file images, labels;
    int64_t size; /* of a record */
    char *path;   /* of the images */
    uint64_t stamp;
};

/* Reads the header from `available` bytes; *size is its length, *numbers how many should follow. */
static int read_header(const char *path, const uint8_t *bytes, size_t available,
                       struct idx_file *file, size_t *size, int64_t *numbers,
                       struct ls_error *error)
{
    if (available < 4)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       available == 0 ? "is empty" : "is cut off in its header");
    if (bytes[0] != 0 || bytes[1] != 0)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "is not an IDX file");
    if (bytes[2] != 8)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "is an IDX file of type 0x%02x; only unsigned bytes (0x08) are read",
                       bytes[2]);
    file->rank = bytes[3];
    if (file->rank < 1 || file->rank > RANK_MAX)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "is an IDX file of rank %d; images have 3 or 4, labels 1", file->rank);
    *size = 4 + 4 * (size_t)file->rank;
    if (available < *size)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "is cut off in its header");
    *numbers = 1;
    for (int i = 0; i < file->rank; i++) {
        const uint8_t *b = bytes + 4 + 4 * i;
        file->dim[i] = (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
        if (!ls_multiply(*numbers, file->dim[i], numbers))
            return ls_fail(error, LOCKSTEP_DATA, path, NULL, "has impossible extents");
    }
    return 0;
}

/* Fills `room` bytes from a stream; how many it had, or -1 if it is damaged. A gzip file may have
 * several members, one behind the other. */
static int64_t inflate_some(z_stream *stream, uint8_t *out, int64_t room)
{
    int64_t done = 0;
    while (done < room) {
        uInt step = room - done > (1 << 30) ? 1U << 30 : (uInt)(room - done);
        stream->next_out = out + done;
        stream->avail_out = step;
        int result = inflate(stream, Z_NO_FLUSH);
        done += step - stream->avail_out;
        if (result == Z_STREAM_END && stream->avail_in > 0 && done < room)
            result = inflateReset(stream);
        if (result == Z_STREAM_END || result == Z_BUF_ERROR)
            break;
        if (result != Z_OK)
            return -1;
    }
    return done;
}

/* Reads on to the end of the stream, where its checksum is; true if nothing else is there. */
static bool inflate_ends(z_stream *stream)
{
    uint8_t more;
    stream->next_out = &more;
    stream->avail_out = 1;
    int result = inflate(stream, Z_FINISH);
    return stream->avail_out == 1 && result == Z_STREAM_END;
}

static int damaged(const char *path, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, path, "download it again",
                   "is a damaged or incomplete gzip file");
}

static int unpack_stream(const char *path, z_stream *stream, struct idx_file *file,
                         struct ls_error *error)
{
    uint8_t header[HEADER_MAX];
    size_t size;
    int64_t numbers;
    /* The rank first, then as many extents as it says. */
    int64_t got = inflate_some(stream, header, 4);
    if (got == 4 && header[3] >= 1 && header[3] <= RANK_MAX)
        got += inflate_some(stream, header + 4, 4 * header[3]);
    if (got < 0)
        return damaged(path, error);
    LS_TRY(read_header(path, header, (size_t)got, file, &size, &numbers, error));
    /* Deflate packs at most 1032 to 1: a small file that states more is damaged. */
    if (numbers / 1032 > (int64_t)file->file.size)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "is cut off: %" PRId64 " numbers cannot be in it", numbers);
    file->numbers = ls_alloc((size_t)numbers, 1);
    if (file->numbers == NULL)
        return ls_fail_memory(error, path);
    got = inflate_some(stream, file->numbers, numbers);
    return got == numbers && inflate_ends(stream) ? 0 : damaged(path, error);
}

static int unpack(const char *path, struct idx_file *file, struct ls_error *error)
{
    if (file->file.size > UINT32_MAX)
        return ls_fail(error, LOCKSTEP_DATA, path, "unpack it with gunzip",
                       "is a gzip file of more than 4 GiB");
    uint8_t *packed = ls_alloc(file->file.size, 1);
    if (packed == NULL)
        return ls_fail_memory(error, path);
    z_stream stream = {.next_in = packed, .avail_in = (uInt)file->file.size};
    int status =
        ls_file_read_at(&file->file, path, 0, packed, file->file.size, LOCKSTEP_DATA, error);
    bool begun = status == 0 && inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK; /* 16: gzip */
    if (status == 0)
        status = begun ? unpack_stream(path, &stream, file, error) : ls_fail_memory(error, path);
    if (begun)
        inflateEnd(&stream);
    ls_free(packed);
    ls_file_close(&file->file);
    return status;
}

static int open_file(const char *path, struct idx_file *file, struct ls_error *error)
{
    uint8_t head[HEADER_MAX] = {0};
    LS_TRY(ls_file_open(path, LOCKSTEP_DATA, &file->file, error));
    size_t available = file->file.size < sizeof head ? file->file.size : sizeof head;
    LS_TRY(ls_file_read_at(&file->file, path, 0, head, available, LOCKSTEP_DATA, error));
    if (available >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        return unpack(path, file, error);
    int64_t numbers;
    LS_TRY(read_header(path, head, available, file, &file->header, &numbers, error));
    int64_t there = (int64_t)(file->file.size - file->header);
    if (there != numbers)
        return ls_fail(error, LOCKSTEP_DATA, path, there < numbers ? "download it again" : NULL,
                       "%s: %" PRId64 " numbers where %" PRId64 " should be",
                       there < numbers ? "is cut off" : "has something behind its end", there,
                       numbers);
    return 0;
}

static void close_file(struct idx_file *file)
{
    ls_file_close(&file->file);
    ls_free(file->numbers);
}

/* Reads the numbers of a file into memory, where they are not there yet. */
static int load(const char *path, struct idx_file *file, struct ls_error *error)
{
    if (file->numbers != NULL)
        return 0;
    size_t size = file->file.size - file->header;
    file->numbers = ls_alloc(size, 1);
    if (file->numbers == NULL)
        return ls_fail_memory(error, path);
    LS_TRY(ls_file_read_at(&file->file, path, file->header, file->numbers, size, LOCKSTEP_DATA,
                           error));
    ls_file_close(&file->file);
    return 0;
}

static int open_labels(const char *path, struct idx *idx, struct ls_source *source,
                       struct ls_error *error)
{
    LS_TRY(open_file(path, &idx->labels, error));
    if (idx->labels.rank != 1)
        return ls_fail(error, LOCKSTEP_DATA, path, "are images and labels exchanged?",
                       "has rank %d; a file of labels has 1", idx->labels.rank);
    if (idx->labels.dim[0] != source->count)
        return ls_fail(error, LOCKSTEP_DATA, path, "do the two files belong together?",
                       "has %" PRId64 " labels for %" PRId64 " images", idx->labels.dim[0],
                       source->count);
    LS_TRY(load(path, &idx->labels, error));
    struct ls_tensor_info *label = ls_source_add_label(source);
    source->labels_hash = ls_hash(idx->labels.numbers, (size_t)source->count, 0);
    label->largest = 0;
    for (int64_t i = 0; i < source->count; i++)
        if (idx->labels.numbers[i] > label->largest)
            label->largest = idx->labels.numbers[i];
    return 0;
}

static int open_idx(const struct ls_source_options *options, struct ls_source *source,
                    struct ls_error *error)
{
    const struct idx_options *own = options->own;
    struct idx *idx = source->state = ls_alloc(1, sizeof *idx);
    if (idx == NULL)
        return ls_fail_memory(error, "a data source");
    idx->images.file.fd = idx->labels.file.fd = -1;
    const char *path = own->images.item[0];
    idx->path = ls_copy_string(path);
    if (idx->path == NULL)
        return ls_fail_memory(error, "a path");
    idx->stamp = ls_file_stamp(path);
    if (own->labels != NULL)
        idx->stamp += 3 * ls_file_stamp(own->labels);
    LS_TRY(open_file(path, &idx->images, error));
    const struct idx_file *images = &idx->images;
    if (images->rank < 3)
        return ls_fail(error, LOCKSTEP_DATA, path,
                       images->rank == 1 ? "are images and labels exchanged?" : NULL,
                       "has rank %d; images have 3 (one channel) or 4", images->rank);
    source->count = images->dim[0];
    ls_source_add_image(source);
    int64_t *shape = source->tensor[0].shape.dim;
    shape[0] = images->rank == 4 ? images->dim[1] : 1;
    shape[1] = images->dim[images->rank - 2];
    shape[2] = images->dim[images->rank - 1];
    if (source->count == 0)
        return 0; /* without records the extents may be anything; ls_source_open reports it */
    if (!ls_record_shape_valid(shape))
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "has records of %" PRId64 " x %" PRId64 " x %" PRId64
                       " numbers, which makes no sense",
                       shape[0], shape[1], shape[2]);
    idx->size = ls_record_size(shape);
    if (images->numbers == NULL)
        ls_source_note_bytes(source, (size_t)idx->size);
    return own->labels != NULL ? open_labels(own->labels, idx, source, error) : 0;
}

static void close_idx(struct ls_source *source)
{
    struct idx *idx = source->state;
    if (idx == NULL)
        return;
    close_file(&idx->images);
    close_file(&idx->labels);
    ls_free(idx->path);
    ls_free(idx);
}

static int read_idx(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    const struct idx *idx = source->state;
    struct ls_record_tensor *image = &record->tensor[0];
    if (source->tensors > 1)
        ls_record_set_label(reader, record, idx->labels.numbers[index]);
    if ((wanted & LS_TENSOR(0)) == 0)
        return 0;
    size_t size = (size_t)idx->size;
    if (idx->images.numbers != NULL) {
        image->data = idx->images.numbers + (size_t)index * size;
    } else {
        uint8_t *bytes = ls_buffer_reserve(&reader->record, size, 1);
        if (bytes == NULL)
            return ls_fail_memory(error, "a record");
        LS_TRY(ls_file_read_at(&idx->images.file, idx->path,
                               idx->images.header + (uint64_t)index * size, bytes, size,
                               LOCKSTEP_DATA, error));
        image->data = bytes;
    }
    image->hash = ls_hash_wide(image->data, size, 0);
    return 0;
}

static uint64_t stamp_idx(const struct ls_source *source)
{
    return ((const struct idx *)source->state)->stamp;
}

const struct ls_source_type ls_source_idx = {
    .name = "IDX",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__IDX,
    .summary = "MNIST's format: a file of images and a file of labels, unpacked or gzip",
    .options = options_table,
    .options_size = sizeof(struct idx_options),
    .open = open_idx,
    .close = close_idx,
    .read = read_idx,
    .stamp = stamp_idx,
};
