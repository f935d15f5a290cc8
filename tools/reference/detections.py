"""What a net has found: SSD's DetectionOutput, and average precisions over a whole test, number by
number, as the papers and SSD's and Intel's sources have them.

SPDX-License-Identifier: BSD-2-Clause
"""

import numpy as np
import torch


def decode(prior, variance, code, place):
    """Boxes [P, 4] of corners."""
    size = prior[:, 2:] - prior[:, :2]
    d = place * variance
    if code == "CENTER_SIZE":
        middle = d[:, :2] * size + (prior[:, :2] + prior[:, 2:]) / 2
        half = np.exp(d[:, 2:]) * size / 2
        return np.concatenate([middle - half, middle + half], 1)
    return prior + (d * np.concatenate([size, size], 1) if code == "CORNER_SIZE" else d)


def overlap(a, b, more=0.0):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + more
    if sides.min() <= 0:
        return 0.0
    area = lambda box: (box[2:] - box[:2] + more).prod()
    return sides.prod() / (area(a) + area(b) - sides.prod())


def suppress(order, box, threshold, eta):
    kept = []
    for i in order:
        if all(overlap(box[i], box[k]) <= threshold for k in kept):
            kept.append(i)
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return kept


def detection_output(layer, x, parameters, net):
    p = layer.sub("detection_output_param")
    classes, background = p.get("num_classes"), p.get("background_label_id", 0)
    share = p.get("share_location", True)
    samples = x[0].shape[0]
    place = x[0].numpy().reshape(samples, -1, 1 if share else classes, 4)
    score = x[1].numpy().reshape(samples, -1, classes)
    prior, variance = x[2][0].numpy().reshape(2, -1, 4)
    if p.get("variance_encoded_in_target", False):
        variance = np.ones_like(variance)
    nms, keep = p.sub("nms_param"), p.get("keep_top_k", -1)
    tops = np.full((samples, 1, keep, 7), -1.0)
    for n in range(samples):
        found = []
        for c in range(classes):
            if c == background:
                continue
            box = decode(prior, variance, p.get("code_type", "CORNER"), place[n, :, 0 if share else c])
            order = np.argsort(-score[n, :, c], kind="stable")
            order = [i for i in order if score[n, i, c] > p.get("confidence_threshold", -np.inf)]
            order = order[: nms.get("top_k", len(order))]
            for i in suppress(order, box, nms.get("nms_threshold", 0.3), nms.get("eta", 1.0)):
                found.append((c, score[n, i, c], *box[i]))
        found = sorted(sorted(found, key=lambda f: -f[1])[:keep], key=lambda f: (f[0], -f[1]))
        for i, f in enumerate(found):
            tops[n, 0, i] = [n, *f]
    return [torch.tensor(tops)]


def average_precision(finds, truths, rule):
    """`finds` are pairs (score, whether it is right), in the order of the test."""
    if not truths or not finds:
        return 0.0
    order = np.argsort([-f[0] for f in finds], kind="stable")
    right = np.array([finds[i][1] for i in order], dtype=float)
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    recall = np.cumsum(right) / truths
    if rule == "11point":
        levels = [precision[recall * 10 >= j - 1e-9] for j in range(11)]
        return sum(l.max() if len(l) else 0.0 for l in levels) / 11
    if rule == "MaxIntegral":
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float((precision * np.diff(recall, prepend=0.0)).sum())


def judge(found, truth, threshold, difficult, more=0.0):
    """`found`: (class, score, box) of a sample, best first; `truth`: (class, box, is difficult).
    Yields (class, score, whether it is right) of those that count."""
    taken = set()
    for c, score, box in found:
        mine = [(overlap(box, t[1], more), -g) for g, t in enumerate(truth) if t[0] == c]
        best, g = max(mine) if mine else (-1.0, 0)
        if best < threshold:
            yield c, score, False
        elif difficult or not truth[-g][2]:
            yield c, score, -g not in taken
            taken.add(-g)


def figures(samples, classes, background, threshold, difficult, rule, more=0.0):
    """Tops: the mean over classes, and each. `samples` are pairs of lists, see judge."""
    finds, truths = {c: [] for c in classes}, {c: 0 for c in classes}
    for found, truth in samples:
        found = sorted(found, key=lambda f: -f[1])
        for c, score, right in judge(found, truth, threshold, difficult, more):
            finds[c].append((score, right))
        for c, _, hard in truth:
            truths[c] += difficult or not hard
    each = [average_precision(finds[c], truths[c], rule) for c in classes]
    ranked = [f for c, f in zip(classes, each) if c != background]
    return [torch.tensor(sum(ranked) / len(ranked)), torch.tensor(each)]


def true_boxes(rows, first):
    return [(int(r[1]) - first, r[3:7], r[7] > 0.5) for r in rows if r[0] >= 0 and r[1] >= 0]


def detection_evaluate(layer, x, parameters, net):
    p = layer.sub("detection_evaluate_param")
    classes, background = p.get("num_classes"), p.get("background_label_id", 0)
    found = x[0].numpy().reshape(x[0].shape[0], -1, 7)
    truth = x[1].numpy().reshape(x[1].shape[0], -1, 8)
    samples = []
    for n in range(len(found)):
        rows = [
            (int(r[1]), r[2], r[3:])
            for r in found[n]
            if r[0] >= 0 and 0 <= r[1] < classes and r[1] != background
        ]
        samples.append((rows, true_boxes(truth[n], 0)))
    return figures(
        samples,
        range(classes),
        background,
        p.get("overlap_threshold", 0.5),
        p.get("evaluate_difficult_gt", True),
        net.average_precision,
    )


def eval_detection(layer, x, parameters, net):
    p = layer.sub("eval_detection_param")
    classes, anchors, kind = p.get("num_class", 20), p.get("num_object", 2), p.get("score_type", "MULTIPLY")
    sizes = np.array(p.all("biases")).reshape(-1, 2)
    samples, _, height, width = x[0].shape
    value = x[0].numpy().reshape(samples, anchors, 5 + classes, height, width)
    truth = x[1].numpy().reshape(samples, -1, 8)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    tops = []
    for n in range(samples):
        found = []
        for j in range(height):
            for i in range(width):
                for a in range(anchors):
                    t = value[n, a, :, j, i]
                    middle = np.array([(i + sigmoid(t[0])) / width, (j + sigmoid(t[1])) / height])
                    half = np.exp(t[2:4]) * sizes[a] / [width, height] / 2
                    prob = np.exp(t[5:] - t[5:].max())
                    prob = prob / prob.sum()
                    score = {"OBJ": sigmoid(t[4]), "PROB": prob.max()}.get(kind, sigmoid(t[4]) * prob.max())
                    found.append((int(prob.argmax()), score, np.concatenate([middle - half, middle + half])))
        found.sort(key=lambda f: -f[1])
        if p.get("nms", -1) >= 0:
            kept = []
            for f in found:
                if all(overlap(f[2], k[2]) < p.get("nms") for k in kept):
                    kept.append(f)
            found = kept
        tops.append(([f for f in found if f[1] >= 0.005], true_boxes(truth[n], 1)))
    threshold = p.get("threshold", 0.5)
    return figures(tops, range(classes), -1, threshold, True, net.average_precision)


TYPES = {
    "DetectionOutput": detection_output,
    "DetectionEvaluate": detection_evaluate,
    "EvalDetection": eval_detection,
}
