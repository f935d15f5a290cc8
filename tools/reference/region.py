"""Values for tests/unit/ops/test_region_loss.c: YOLOv2's loss of regions (src/layers/region_loss.c)
in NumPy, written from its formulas, position by position.

    python3 tools/reference/region.py

prints the loss, and sums and some elements of the gradient, for each case.
"""

import numpy as np

A, K, H, W, N = 2, 3, 3, 4, 2
ANCHORS = [(1.0, 1.5), (2.5, 0.75)]
OBJECT, NO_OBJECT, KIND, PLACE, THRESH = 5.0, 0.5, 2.0, 1.5, 0.3
# class, xmin, ymin, xmax, ymax; class 0: an empty row
TRUTHS = [
    [(1, 0.1, 0.2, 0.4, 0.9), (3, 0.5, 0.5, 1.0, 0.75), (0, 0.0, 0.0, 1.0, 1.0)],
    [(2, 0.0, 0.0, 0.25, 0.5), (0, 0.0, 0.0, 0.0, 0.0), (3, 0.05, 0.1, 0.2, 0.4)],
]


def numbers():
    count = N * A * (5 + K) * H * W
    return ((np.arange(count) * 37 % 101 - 50) / 25).reshape(N, A, 5 + K, H, W)


def s(t):
    return 1 / (1 + np.exp(-t))


def iou(a, b):
    """Boxes are x, y, w, h."""
    wide = min(a[0] + a[2] / 2, b[0] + b[2] / 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2)
    high = min(a[1] + a[3] / 2, b[1] + b[3] / 2) - max(a[1] - a[3] / 2, b[1] - b[3] / 2)
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / (a[2] * a[3] + b[2] * b[3] - wide * high)


def gradient(x, truths, bias_match, rescore=None):
    """d[a, k, row, column] of one sample."""
    d = np.zeros_like(x)
    real = [(c - 1, ((l + r) / 2, (t + b) / 2, r - l, b - t)) for c, l, t, r, b in truths if c > 0]

    def box(a, j, i):
        t = x[a, :, j, i]
        w, h = ANCHORS[a]
        return ((i + s(t[0])) / W, (j + s(t[1])) / H, w * np.exp(t[2]) / W, h * np.exp(t[3]) / H)

    for a in range(A):
        for j in range(H):
            for i in range(W):
                o = s(x[a, 4, j, i])
                if max([iou(box(a, j, i), t) for _, t in real], default=0.0) <= THRESH:
                    d[a, 4, j, i] = NO_OBJECT * o * o * (1 - o)
    for kind, t in real:
        i, j = int(t[0] * W), int(t[1] * H)
        sizes = [(w / W, h / H) if bias_match else box(a, j, i)[2:] for a, (w, h) in enumerate(ANCHORS)]
        fits = [iou((0, 0, w, h), (0, 0, t[2], t[3])) for w, h in sizes]
        a = int(np.argmax(fits))
        v = x[a, :, j, i]
        limit = 1 if rescore is None else np.inf
        scale = PLACE * (2 - t[2] * t[3] if rescore == 0 else 1)
        for k, wanted in enumerate((t[0] * W - i, t[1] * H - j)):
            p = s(v[k])
            d[a, k, j, i] = -scale * np.clip(wanted - p, -limit, limit) * p * (1 - p)
        for k, wanted in enumerate((np.log(t[2] * W / ANCHORS[a][0]), np.log(t[3] * H / ANCHORS[a][1]))):
            d[a, 2 + k, j, i] = -scale * np.clip(wanted - v[2 + k], -limit, limit)
        o = s(v[4])
        if rescore is None:
            d[a, 4, j, i] = -2 * OBJECT * (1 - o) ** 4 * o
        else:
            d[a, 4, j, i] = -OBJECT * ((iou(box(a, j, i), t) if rescore else 1) - o) * o * (1 - o)
        scores = np.exp(v[5:]) / np.exp(v[5:]).sum()
        scores[kind] -= 1
        d[a, 5:, j, i] = KIND * scores
    return d


for bias_match, rescore in ((True, None), (False, None), (True, 0), (True, 1)):
    d = np.stack([gradient(x, t, bias_match, rescore) for x, t in zip(numbers(), TRUTHS)]).reshape(-1)
    weights = np.arange(d.size) % 17 - 8
    print(bias_match, rescore, "%.9g, %.9g, %.9g, %d" % ((d * d).sum(), d.sum(), (d * weights).sum(), (d != 0).sum()))
