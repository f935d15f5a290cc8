"""Values for tests/unit/ops/test_yolo.c: YOLOv3's loss (src/layers/yolov3.c) and what YOLO's nets
have found (src/layers/yolo_output.c) in NumPy, written from the formulas there, cell by cell.

    python3 tools/reference/yolo.py

prints the loss and sums of the gradient for each case, then the rows that are found.
"""

import numpy as np

A, K, H, W, N = 2, 3, 3, 4, 2
ANCHORS = [(40.0, 30.0), (16.0, 24.0), (60.0, 12.0), (8.0, 90.0)]
MASK, STEP = (2, 1), 16
OBJECT, KIND, PLACE, THRESH, ALSO, SMOOTH = 5.0, 2.0, 1.5, 0.3, 0.25, 0.1
# class, xmin, ymin, xmax, ymax; class 0: an empty row
TRUTHS = [
    [(1, 0.1, 0.2, 0.4, 0.9), (3, 0.5, 0.5, 1.0, 0.75), (0, 0.0, 0.0, 1.0, 1.0), (2, 0.52, 0.5, 0.98, 0.75)],
    [(2, 0.0, 0.0, 0.25, 0.5), (0, 0.0, 0.0, 0.0, 0.0), (3, 0.05, 0.1, 0.2, 0.4), (1, 0.4, 0.3, 0.9, 0.95)],
]


def numbers(classes=K, anchors=A, rows=H, columns=W, samples=N):
    count = samples * anchors * (5 + classes) * rows * columns
    return ((np.arange(count) * 37 % 101 - 50) / 25).reshape(samples, anchors, 5 + classes, rows, columns)


def s(t):
    return 1 / (1 + np.exp(-t))


def iou(a, b):
    """Boxes are x, y, w, h."""
    wide = min(a[0] + a[2] / 2, b[0] + b[2] / 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2)
    high = min(a[1] + a[3] / 2, b[1] + b[3] / 2) - max(a[1] - a[3] / 2, b[1] - b[3] / 2)
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / (a[2] * a[3] + b[2] * b[3] - wide * high)


def box(t, j, i, rows, columns, size):
    return ((i + s(t[0])) / columns, (j + s(t[1])) / rows, size[0] * np.exp(t[2]), size[1] * np.exp(t[3]))


def slopes(x, truths, also, logistic):
    """The slopes of one sample [A, 5 + K, H, W], and what of them the loss shows."""
    d = np.zeros_like(x)
    sizes = [(w / (W * STEP), h / (H * STEP)) for w, h in ANCHORS]
    real = [(c - 1, ((l + r) / 2, (t + b) / 2, r - l, b - t)) for c, l, t, r, b in truths if c > 0]
    for a in range(A):
        for j in range(H):
            for i in range(W):
                found = box(x[a, :, j, i], j, i, H, W, sizes[MASK[a]])
                if max([iou(found, t) for _, t in real], default=0.0) <= THRESH:
                    d[a, 4, j, i] = s(x[a, 4, j, i])
    for kind, t in real:
        i, j = int(t[0] * W), int(t[1] * H)
        fits = [iou((0, 0, w, h), (0, 0, t[2], t[3])) for w, h in sizes]
        best = int(np.argmax(fits))
        chosen = [a for a in range(A) if MASK[a] == best]
        chosen += [a for a in range(A) if MASK[a] != best and fits[MASK[a]] > also]
        for a in chosen:
            v, size = x[a, :, j, i], sizes[MASK[a]]
            c = PLACE * (2 - t[2] * t[3])
            d[a, 0, j, i] = -c * (t[0] * W - i - s(v[0]))
            d[a, 1, j, i] = -c * (t[1] * H - j - s(v[1]))
            d[a, 2, j, i] = -c * (np.log(t[2] / size[0]) - v[2])
            d[a, 3, j, i] = -c * (np.log(t[3] / size[1]) - v[3])
            d[a, 4, j, i] = -(OBJECT if logistic else 1) * (1 - s(v[4]))
            joins = d[a, 5 + kind, j, i] != 0
            for k in range(K):
                if k == kind or not joins:
                    d[a, 5 + k, j, i] = -KIND * ((k == kind) * (1 - SMOOTH) + SMOOTH / 2 - s(v[5 + k]))
    shown = (d * d).sum()
    if logistic:
        through = s(x) * (1 - s(x))
        through[:, 2:4] = 1
        d = d * through
    return d, shown


def found(planes, sizes, softmax, threshold, overlap, keep):
    """Rows of one sample: planes, and sizes of anchors, of each input."""
    rows = []
    for x, anchors in zip(planes, sizes):
        anchors_count, _, height, width = x.shape
        for a in range(anchors_count):
            for j in range(height):
                for i in range(width):
                    v = x[a, :, j, i]
                    place = box(v, j, i, height, width, anchors[a])
                    if softmax:
                        e = np.exp(v[5:] - v[5:].max())
                        score = s(v[4]) * e / e.sum()
                        if score.max() >= threshold:
                            rows.append((score.max(), int(score.argmax()), place))
                    else:
                        for k, score in enumerate(s(v[5:]) * s(v[4])):
                            if score > threshold:
                                rows.append((score, k, place))
    rows.sort(key=lambda row: -row[0])
    kept = []
    for row in rows:
        if len(kept) < keep and all(iou(row[2], other[2]) < overlap for other in kept):
            kept.append(row)
    return [(k + 1, score, x - w / 2, y - h / 2, x + w / 2, y + h / 2) for score, k, (x, y, w, h) in kept]


for also, logistic in ((1.0, False), (ALSO, False), (ALSO, True)):
    both = [slopes(x, t, also, logistic) for x, t in zip(numbers(), TRUTHS)]
    d = np.stack([slope for slope, _ in both]).reshape(-1)
    weights = np.arange(d.size) % 17 - 8
    print(also, logistic, "%.9g, %.9g, %.9g, %d" % (sum(shown for _, shown in both), d.sum(), (d * weights).sum(), (d != 0).sum()))

for softmax in (True, False):
    first, second = numbers(), numbers(rows=2, columns=2)
    groups = [[ANCHORS[0], ANCHORS[1]]] * 2 if softmax else [[ANCHORS[2], ANCHORS[0]], [ANCHORS[3], ANCHORS[1]]]
    steps = (1, 1) if softmax else (16, 32)
    extents = [(H, W), (2, 2)]
    sizes = [[(w / (c * step), h / (r * step)) for w, h in group] for group, step, (r, c) in zip(groups, steps, extents)]
    if softmax:
        sizes = [[(w / 32, h / 32) for w, h in group] for group in sizes]
    for n in range(N):
        rows = found((first[n], second[n]), sizes, softmax, 0.25, 0.45, 6)
        print(softmax, n, len(rows), "%.9g, %.9g" % (sum(map(sum, rows)), sum(i * sum(r) for i, r in enumerate(rows))))
        print("   ", ", ".join("{%d, %.6gF}" % row[:2] for row in rows))
