"""SSD's boxes: priors, matches, losses, number by number, as SSD's sources and paper have them.

SPDX-License-Identifier: BSD-2-Clause
"""

import math

import torch
import torch.nn.functional as F


def prior_box(layer, x, parameters, net):
    p = layer.sub("prior_box_param")
    height, width = x[0].shape[2:]
    image = [x[1].shape[2], x[1].shape[3]]
    if p.has("img_size"):
        image = [p.get("img_size")] * 2
    step = [image[0] / height, image[1] / width]
    if p.has("step"):
        step = [p.get("step")] * 2
    ratios = []
    for r in p.all("aspect_ratio"):
        for ratio in [r, 1 / r] if p.get("flip", True) else [r]:
            if all(abs(ratio - other) > 1e-6 for other in ratios + [1.0]):
                ratios.append(ratio)
    boxes = []
    for i in range(height):
        for j in range(width):
            y, c = (i + p.get("offset", 0.5)) * step[0], (j + p.get("offset", 0.5)) * step[1]
            for k, s in enumerate(p.all("min_size")):
                sizes = [(s, s)]
                if p.has("max_size"):
                    sizes.append((math.sqrt(s * p.all("max_size")[k]),) * 2)
                sizes += [(s * math.sqrt(r), s / math.sqrt(r)) for r in ratios]
                for w, h in sizes:
                    boxes += [c - w / 2, y - h / 2, c + w / 2, y + h / 2]
    boxes = torch.tensor(boxes, dtype=x[0].dtype).reshape(-1, 2)
    boxes = (boxes / torch.tensor([image[1], image[0]], dtype=x[0].dtype)).reshape(-1)
    if p.get("clip", False):
        boxes = boxes.clamp(0, 1)
    variance = p.all("variance") or [0.1]
    variance = variance * 4 if len(variance) == 1 else variance
    variance = torch.tensor(variance, dtype=x[0].dtype).repeat(boxes.numel() // 4)
    return [torch.stack([boxes, variance])[None]]


def overlaps(a, b):
    least = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (least - torch.maximum(a[:, None, :2], b[None, :, :2])).clamp(min=0).prod(2)
    area = lambda box: (box[:, 2:] - box[:, :2]).prod(1)
    return both / (area(a)[:, None] + area(b)[None, :] - both)


def encode(prior, box, variance, code):
    size = prior[:, 2:] - prior[:, :2]
    if code == "CENTER_SIZE":
        middle = (box[:, :2] + box[:, 2:] - prior[:, :2] - prior[:, 2:]) / 2 / size
        return torch.cat([middle, torch.log((box[:, 2:] - box[:, :2]) / size)], 1) / variance
    apart = box - prior
    return (apart / torch.cat([size, size], 1) if code == "CORNER_SIZE" else apart) / variance


def match(overlap, threshold, bipartite):
    """By prior: the number of the true box, or -1."""
    found = torch.full((overlap.shape[0],), -1)
    left = overlap.clone()
    while left.numel() and left.max() > 1e-6:
        place = int(left.argmax())
        i, j = place // left.shape[1], place % left.shape[1]
        found[i] = j
        left[i], left[:, j] = -1, -1
    for i in range(overlap.shape[0]):
        if not bipartite and found[i] < 0 and overlap.numel() and overlap[i].max() >= threshold:
            found[i] = int(overlap[i].argmax())
    return found


def multibox_loss(layer, x, parameters, net):
    p = layer.sub("multibox_loss_param")
    classes, background = p.get("num_classes"), p.get("background_label_id", 0)
    samples = x[0].shape[0]
    place, score = x[0].reshape(samples, -1, 4), x[1].reshape(samples, -1, classes)
    prior, variance = x[2][0].reshape(2, -1, 4)
    rows = x[3].reshape(samples, -1, 8)
    total, matches = 0.0, 0
    for n in range(samples):
        true = rows[n][(rows[n][:, 0] >= 0) & (rows[n][:, 1] >= 0)]
        if not p.get("use_difficult_gt", True):
            true = true[true[:, 7] < 0.5]
        overlap = overlaps(prior, true[:, 3:7])
        bipartite = p.get("match_type", "PER_PREDICTION") == "BIPARTITE"
        found = match(overlap, p.get("overlap_threshold", 0.5), bipartite)
        mine = (found >= 0).nonzero()[:, 0]
        target = encode(prior[mine], true[found[mine], 3:7], variance[mine], p.get("code_type", "CORNER"))
        predicted = place[n][mine]
        if p.get("encode_variance_in_target", False):
            predicted = predicted / variance[mine]
        if p.get("loc_loss_type", "SMOOTH_L1") == "L2":
            total = total + p.get("loc_weight", 1.0) * ((predicted - target) ** 2).sum() / 2
        else:
            total = total + p.get("loc_weight", 1.0) * F.smooth_l1_loss(
                predicted, target, reduction="sum"
            )
        wanted = torch.full((prior.shape[0],), background)
        wanted[mine] = true[found[mine], 1].round().long()
        if p.get("conf_loss_type", "SOFTMAX") == "LOGISTIC":
            hot = F.one_hot(wanted, classes).to(score.dtype)
            each = F.binary_cross_entropy_with_logits(score[n], hot, reduction="none").sum(1)
        else:
            each = F.cross_entropy(score[n], wanted, reduction="none")
        chosen = found >= 0
        if p.get("mining_type", "MAX_NEGATIVE") == "NONE":
            chosen[:] = True
        else:
            most = overlap.max(1).values if overlap.numel() else torch.zeros(prior.shape[0])
            free = ((found < 0) & (most < p.get("neg_overlap", 0.5))).nonzero()[:, 0]
            count = min(len(free), int(len(mine) * p.get("neg_pos_ratio", 3.0)))
            order = torch.argsort(each[free].detach(), descending=True, stable=True)
            chosen[free[order[:count]]] = True
        total = total + each[chosen].sum()
        matches += len(mine)
    modes = {"VALID": matches, "BATCH_SIZE": samples, "FULL": samples * len(prior), "NONE": 1}
    return [total / max(1, modes[layer.sub("loss_param").get("normalization", "VALID")])]


TYPES = {"MultiBoxLoss": multibox_loss, "PriorBox": prior_box}
