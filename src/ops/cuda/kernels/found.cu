/* What nets of SSD and YOLO have found: candidates are listed, sorted, and those kept that overlap
 * nothing better, by a block for each class or sample. See detection.h, device/detections.h and
 * device/yolo_finds.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/detections.h"
#include "device/yolo_finds.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/detection.h"
#include "ops/cuda/kernels/kernels.h"

/* ---- SSD ------------------------------------------------------------------------------------- */

enum { CLASS_BLOCKS = 1024 }; /* at most: a block goes from class to class */

/* Scratch memory: of the block that finds a class its candidates; of each class of each sample what
 * is kept, and of each sample all of it. */
struct detection_scratch {
    struct ls_box *box;   /* by block, `most` */
    int64_t *counts;      /* by sample and class */
    struct ls_find *list; /* by block, one for each prior */
    struct ls_find *kept; /* by sample and class, `most` */
    struct ls_find *all;  /* by sample */
    int64_t most, classes;
};

static int64_t count_class_blocks(const struct ls_detection_attr *attr, int64_t samples)
{
    const int64_t classes = samples * attr->classes;
    return classes < CLASS_BLOCKS ? classes : (int64_t)CLASS_BLOCKS;
}

size_t ls_cuda_detection_scratch(const struct ls_detection_attr *attr, int64_t samples)
{
    const size_t blocks = (size_t)count_class_blocks(attr, samples);
    const size_t most = (size_t)ls_detection_most(attr),
                 classes = (size_t)(samples * attr->classes);
    return blocks * (most * sizeof(struct ls_box) + (size_t)attr->priors * sizeof(struct ls_find)) +
           classes * (sizeof(int64_t) + 2 * most * sizeof(struct ls_find));
}

static struct detection_scratch divide_detection(const struct ls_detection_attr *attr,
                                                 int64_t samples, void *scratch)
{
    const int64_t blocks = count_class_blocks(attr, samples);
    struct detection_scratch to;
    to.most = ls_detection_most(attr);
    to.classes = attr->classes;
    to.box = (struct ls_box *)scratch;
    to.counts = (int64_t *)(void *)(to.box + blocks * to.most);
    to.list = (struct ls_find *)(void *)(to.counts + samples * to.classes);
    to.kept = to.list + blocks * attr->priors;
    to.all = to.kept + samples * to.classes * to.most;
    return to;
}

/* Of the candidates of a class, sorted, those that do not overlap a better one are kept; boxes of
 * those that are kept move to the front. Returns their number. */
__device__ static int64_t keep_class(const struct ls_detection_attr *attr,
                                     const struct ls_find *list, struct ls_box *box, int64_t count,
                                     struct ls_find *kept)
{
    double threshold = (double)attr->nms_threshold; /* the same in all lanes */
    return ls_block_suppress(
        count, count,
        [&](int64_t k, int64_t i) { return ls_box_overlap(&box[i], &box[k], 0) > threshold; },
        [&](int64_t i, int64_t k, bool keep) {
            if (keep)
                threshold = ls_detection_next_threshold(attr, threshold);
            __syncwarp();
            if (!keep || threadIdx.x != 0)
                return;
            kept[k] = list[i];
            box[k] = box[i];
        });
}

__global__ void __launch_bounds__(LS_BLOCK)
    find_classes(struct ls_detection_attr attr, int64_t samples, const float *place,
                 const float *conf, const float *prior, struct detection_scratch to)
{
    const int64_t places = attr.priors * (attr.by_class ? attr.classes : 1) * 4;
    struct ls_find *list = to.list + blockIdx.x * attr.priors;
    struct ls_box *box = to.box + blockIdx.x * to.most;
    for (int64_t j = blockIdx.x; j < samples * attr.classes; j += gridDim.x) {
        const int64_t n = j / attr.classes, c = j % attr.classes;
        const float *score = conf + n * attr.priors * attr.classes + c;
        const int64_t found = ls_block_list(
            c != attr.background ? attr.priors : 0,
            [&](int64_t p) { return ls_detection_counts(&attr, score[p * attr.classes]); },
            [&](int64_t p, int64_t at) {
                list[at].kind = (int32_t)c;
                list[at].prior = (int32_t)p;
                list[at].score = score[p * attr.classes];
            });
        ls_block_sort(list, found, [](const struct ls_find &a, const struct ls_find &b) {
            return ls_find_scores_more(&a, &b);
        });
        const int64_t count = found < to.most ? found : to.most;
        for (LS_EACH_OF_BLOCK(i, count))
            box[i] = ls_detection_box(&attr, prior, place + n * places, list[i].prior, c);
        __syncthreads();
        const int64_t kept = keep_class(&attr, list, box, count, to.kept + j * to.most);
        if (threadIdx.x == 0)
            to.counts[j] = kept;
    }
}

/* Puts what is kept of all classes of a sample in a list; returns how many there are. */
__device__ static int64_t gather_classes(const struct detection_scratch *to, int64_t n,
                                         struct ls_find *all)
{
    int64_t count = 0;
    for (int64_t j = n * to->classes; j < (n + 1) * to->classes; j++) {
        for (LS_EACH_OF_BLOCK(i, to->counts[j]))
            all[count + i] = to->kept[j * to->most + i];
        count += to->counts[j];
    }
    __syncthreads();
    return count;
}

__global__ void __launch_bounds__(LS_BLOCK)
    write_detections(struct ls_detection_attr attr, const struct ls_batch_numbers *numbers,
                     const float *place, const float *prior, struct detection_scratch to,
                     float *rows)
{
    const int64_t n = blockIdx.x, places = attr.priors * (attr.by_class ? attr.classes : 1) * 4;
    struct ls_find *all = to.all + n * to.classes * to.most;
    int64_t count = gather_classes(&to, n, all);
    if (attr.keep_top_k >= 0 && count > attr.keep_top_k) {
        ls_block_sort(all, count, [](const struct ls_find &a, const struct ls_find &b) {
            return ls_find_scores_more(&a, &b);
        });
        count = attr.keep_top_k;
    }
    ls_block_sort(all, count, [](const struct ls_find &a, const struct ls_find &b) {
        return ls_find_is_reported_first(&a, &b);
    });
    for (LS_EACH_OF_BLOCK(i, attr.keep)) {
        const struct ls_find *find = i < count ? &all[i] : NULL;
        struct ls_box box;
        if (find != NULL)
            box = ls_detection_box(&attr, prior, place + n * places, find->prior, find->kind);
        ls_detection_write((double)(numbers->first_ordinal + n), find, &box,
                           rows + (n * attr.keep + i) * LS_FOUND_ROW);
    }
}

int ls_cuda_detect(cudaStream_t stream, const struct ls_detection_attr *attr, int64_t samples,
                   const struct ls_batch_numbers *numbers, const float *place, const float *conf,
                   const float *prior, void *scratch, float *rows)
{
    const struct ls_detection_attr by = *attr;
    const struct detection_scratch to = divide_detection(attr, samples, scratch);
    int code = LS_LAUNCH(find_classes, (unsigned)count_class_blocks(attr, samples), LS_BLOCK,
                         stream, by, samples, place, conf, prior, to);
    if (code == 0)
        code = LS_LAUNCH(write_detections, (unsigned)samples, LS_BLOCK, stream, by, numbers, place,
                         prior, to, rows);
    return code;
}

/* ---- YOLO ------------------------------------------------------------------------------------ */

/* Scratch memory: of each sample its boxes by cell, cells that are kept, candidates. */
struct yolo_output_scratch {
    struct ls_yolo_box *box;
    unsigned *counts;
    int32_t *kept;
    struct ls_yolo_find *find;
    int64_t cells, finds; /* of a sample; most of them */
};

static int64_t most_finds(const struct ls_yolo_output_attr *attr, int64_t cells)
{
    return attr->softmax ? cells : cells * attr->classes;
}

size_t ls_cuda_yolo_output_scratch(const struct ls_yolo_output_attr *attr, int64_t samples,
                                   int64_t cells)
{
    return (size_t)samples * ((size_t)cells * sizeof(struct ls_yolo_box) + sizeof(unsigned) +
                              (size_t)attr->keep * sizeof(int32_t) +
                              (size_t)most_finds(attr, cells) * sizeof(struct ls_yolo_find));
}

static struct yolo_output_scratch divide_yolo(const struct ls_yolo_output_attr *attr,
                                              int64_t samples, int64_t cells, void *scratch)
{
    struct yolo_output_scratch to;
    to.cells = cells;
    to.finds = most_finds(attr, cells);
    to.box = (struct ls_yolo_box *)scratch;
    to.counts = (unsigned *)(void *)(to.box + samples * cells);
    to.kept = (int32_t *)(void *)(to.counts + samples);
    to.find = (struct ls_yolo_find *)(void *)(to.kept + samples * attr->keep);
    return to;
}

/* Adds a candidate to those of sample n: in any order, they are sorted afterwards. */
__device__ static void add_find(const struct yolo_output_scratch *to, int64_t n, float score,
                                int64_t cell, int64_t kind)
{
    struct ls_yolo_find *find = to->find + n * to->finds + atomicAdd(&to->counts[n], 1u);
    find->score = score;
    find->cell = (int32_t)cell;
    find->kind = (int32_t)kind;
}

/* Lists what the cells of an input may have found; its first cell has number `first`. */
__global__ void list_cells(struct ls_yolo_output_attr attr, int input, struct ls_cuda_planes of,
                           int64_t first, struct yolo_output_scratch to)
{
    const int64_t plane = of.rows * of.columns, cells = plane * attr.anchors;
    for (LS_EACH(k, of.samples * cells)) {
        const int64_t n = (int64_t)k / cells, i = (int64_t)k % cells, at = i % plane;
        const int a = (int)(i / plane);
        struct ls_yolo_planes planes;
        planes.x = of.x + n * cells * (LS_YOLO_CLASSES + attr.classes);
        planes.rows = of.rows;
        planes.columns = of.columns;
        planes.classes = attr.classes;
        const struct ls_yolo_cell cell =
            ls_yolo_cell_at(&planes, at / of.columns, at % of.columns, a);
        const struct ls_yolo_box size = ls_yolo_output_size(&attr, &planes, input, a);
        to.box[n * to.cells + first + i] = ls_yolo_box_of(&planes, &cell, &size);
        const double object = ls_yolo_sigmoid(ls_yolo_number(&planes, &cell, LS_YOLO_OBJECT));
        if (attr.softmax) {
            int64_t best = 0;
            const float score = ls_yolo_best_score(&planes, &cell, object, &best);
            if (score >= attr.threshold)
                add_find(&to, n, score, first + i, best);
            continue;
        }
        for (int64_t c = 0; c < attr.classes; c++) {
            const float score = ls_yolo_class_score(&planes, &cell, object, c);
            if (score > attr.threshold)
                add_find(&to, n, score, first + i, c);
        }
    }
}

int ls_cuda_yolo_list(cudaStream_t stream, const struct ls_yolo_output_attr *attr, int input,
                      const struct ls_cuda_planes *of, int64_t cells, int64_t first, void *scratch)
{
    const struct ls_yolo_output_attr by = *attr;
    const struct ls_cuda_planes planes = *of;
    const struct yolo_output_scratch to = divide_yolo(attr, of->samples, cells, scratch);
    const int64_t all = of->samples * of->rows * of->columns * by.anchors;
    int code = 0;
    if (first == 0)
        code = ls_cuda_fill_words(stream, to.counts, 0, (size_t)of->samples);
    if (code == 0)
        code = LS_LAUNCH(list_cells, ls_blocks((uint64_t)all), LS_THREADS, stream, by, input,
                         planes, first, to);
    return code;
}

/* Sorts the candidates of a sample, and writes what does not overlap what it has written, of any
 * class; then empty rows. */
__global__ void __launch_bounds__(LS_BLOCK)
    keep_finds(struct ls_yolo_output_attr attr, const struct ls_batch_numbers *numbers,
               struct yolo_output_scratch to, float *rows)
{
    const int64_t n = blockIdx.x, count = to.counts[n];
    const double ordinal = (double)(numbers->first_ordinal + n);
    const struct ls_yolo_box *box = to.box + n * to.cells;
    struct ls_yolo_find *find = to.find + n * to.finds;
    int32_t *kept = to.kept + n * attr.keep;
    float *row = rows + n * attr.keep * LS_FOUND_ROW;
    ls_block_sort(find, count, [](const struct ls_yolo_find &a, const struct ls_yolo_find &b) {
        return ls_yolo_find_is_before(&a, &b);
    });
    const int64_t all = ls_block_suppress(
        count, attr.keep,
        [&](int64_t k, int64_t i) {
            return ls_yolo_overlap(&box[kept[k]], &box[find[i].cell]) >= (double)attr.nms_threshold;
        },
        [&](int64_t i, int64_t k, bool keep) {
            if (!keep || threadIdx.x != 0)
                return;
            kept[k] = find[i].cell;
            ls_yolo_write_find(ordinal, &find[i], &box[find[i].cell], row + k * LS_FOUND_ROW);
        });
    for (LS_EACH_OF_BLOCK(i, (attr.keep - all) * LS_FOUND_ROW))
        row[all * LS_FOUND_ROW + i] = -1;
}

int ls_cuda_yolo_keep(cudaStream_t stream, const struct ls_yolo_output_attr *attr, int64_t samples,
                      int64_t cells, const struct ls_batch_numbers *numbers, void *scratch,
                      float *rows)
{
    const struct ls_yolo_output_attr by = *attr;
    const struct yolo_output_scratch to = divide_yolo(attr, samples, cells, scratch);
    return LS_LAUNCH(keep_finds, (unsigned)samples, LS_BLOCK, stream, by, numbers, to, rows);
}
