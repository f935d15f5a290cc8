"""Values for tests/unit/ops/test_proposal.c: the regions that a network proposes
(src/layers/proposal.c) in NumPy, written from its formulas, box by box.

    python3 tools/reference/proposal.py

prints, for each case and picture, how many regions there are, sums of them, and their scores.
"""

import numpy as np

N, H, W = 2, 4, 5
RATIOS, SCALES, BASE, STRIDE = (0.5, 1.5), (1.0, 2.5), 16, 8
INFO = [(40.0, 50.0, 0.5, 0.75), (30.0, 36.0, 1.0, 0.25)]


def spread(count, step, shape, scale):
    return ((np.arange(count) * step % 101 - 50) / scale).reshape(shape)


def anchors():
    boxes = []
    for ratio in RATIOS:
        width = np.floor(np.sqrt(BASE * BASE / ratio) + 0.5)
        height = np.floor(width * ratio + 0.5)
        for scale in SCALES:
            centre, w, h = (BASE - 1) / 2, width * scale, height * scale
            boxes.append((centre - (w - 1) / 2, centre - (h - 1) / 2, centre + (w - 1) / 2, centre + (h - 1) / 2))
    return boxes


def sides(box):
    return box[2] - box[0] + 1, box[3] - box[1] + 1


def iou(a, b):
    wide = min(a[2], b[2]) - max(a[0], b[0]) + 1
    high = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / (np.prod(sides(a)) + np.prod(sides(b)) - wide * high)


def propose(score, difference, info, least, before, regions, overlap):
    """Of one picture: score [2 A, H, W], difference [4 A, H, W]."""
    found, count = [], len(RATIOS) * len(SCALES)
    for j in range(H):
        for i in range(W):
            for a, anchor in enumerate(anchors()):
                w, h = sides(anchor)
                d = difference[4 * a:4 * a + 4, j, i]
                x = anchor[0] + i * STRIDE + w / 2 + d[0] * w
                y = anchor[1] + j * STRIDE + h / 2 + d[1] * h
                w, h = w * np.exp(d[2]), h * np.exp(d[3])
                box = [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
                box = [float(np.clip(v, 0, info[1 - k % 2] - 1)) for k, v in enumerate(box)]
                w, h = sides(box)
                if w >= least * info[3] and h >= least * info[2]:
                    found.append((score[count + a, j, i], box))
    found.sort(key=lambda one: -one[0])
    kept = []
    for one in found[:before]:
        if len(kept) < regions and all(iou(one[1], other[1]) <= overlap for other in kept):
            kept.append(one)
    return kept


A = len(RATIOS) * len(SCALES)
scores = spread(N * 2 * A * H * W, 37, (N, 2 * A, H, W), 50)
differences = spread(N * 4 * A * H * W, 29, (N, 4 * A, H, W), 60)
for least, before, regions, overlap in ((16, 6000, 10, 0.5), (20, 25, 12, 0.3)):
    for n in range(N):
        kept = propose(scores[n], differences[n], INFO[n], least, before, regions, overlap)
        boxes = np.array([box for _, box in kept])
        order = np.arange(len(kept))[:, None]
        print(least, n, len(kept), "%.9g, %.9g, %.9g" % (boxes.sum(), (boxes * order * (1, 2, 3, 4)).sum(), sum(s for s, _ in kept)))
