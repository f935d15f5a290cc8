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


def decode(prior, variance, difference, code, in_target):
    size = prior[:, 2:] - prior[:, :2]
    difference = difference if in_target else difference * variance
    if code == "CENTER_SIZE":
        middle = difference[:, :2] * size + (prior[:, :2] + prior[:, 2:]) / 2
        half = torch.exp(difference[:, 2:]) * size / 2
        return torch.cat([middle - half, middle + half], 1)
    return prior + (difference * torch.cat([size, size], 1) if code == "CORNER_SIZE" else difference)


def match(overlap, threshold, bipartite, usable):
    """By prior: the number of the true box, or -1."""
    found = torch.full((overlap.shape[0],), -1)
    left = overlap.clone()
    left[~usable] = -1
    while left.numel() and left.max() > 1e-6:
        place = int(left.argmax())
        i, j = place // left.shape[1], place % left.shape[1]
        found[i] = j
        left[i], left[:, j] = -1, -1
    for i in range(overlap.shape[0]):
        if bipartite or found[i] >= 0 or not usable[i] or not overlap.numel():
            continue
        if overlap[i].max() >= threshold:
            found[i] = int(overlap[i].argmax())
    return found


def suppressed(order, boxes, nms):
    """Of the priors in `order`, those that are left by non-maximum suppression."""
    kept = []
    top = nms.get("top_k", -1)
    for i in order[:top] if top >= 0 else order:
        box = boxes[i : i + 1]
        if (box[:, 2:] - box[:, :2]).clamp(min=0).prod() < 1e-5:
            continue
        if all(overlaps(boxes[k : k + 1], box).item() <= nms.get("nms_threshold", 0.3) for k in kept):
            kept.append(i)
    return kept


class Sample:
    """One sample of a MultiBoxLoss: what it predicts, and its true boxes."""

    def __init__(self, p, place, score, prior, variance, rows):
        self.p, self.score, self.prior, self.variance = p, score, prior, variance
        self.background = p.get("background_label_id", 0)
        self.code = p.get("code_type", "CORNER")
        self.in_target = p.get("encode_variance_in_target", False)
        self.place = place.reshape(prior.shape[0], -1, 4)
        true = rows[(rows[:, 0] >= 0) & (rows[:, 1] >= 0)]
        self.true = true if p.get("use_difficult_gt", True) else true[true[:, 7] < 0.5]
        self.kind = self.true[:, 1].round().long()
        if p.get("map_object_to_agnostic", False):
            self.kind = torch.full_like(self.kind, self.background + 1)

    def predicted(self, group):
        return decode(self.prior, self.variance, self.place[:, group].detach(), self.code, self.in_target)

    def find(self, group, true):
        """Of the true boxes with these numbers: matches, largest overlaps, priors that count."""
        p = self.p
        boxes = self.prior if p.get("use_prior_for_matching", True) else self.predicted(group)
        usable = torch.ones(len(boxes), dtype=torch.bool)
        if p.get("ignore_cross_boundary_bbox", False):
            usable = ((boxes >= 0) & (boxes <= 1)).all(1)
        overlap = overlaps(boxes, self.true[true, 3:7])
        bipartite = p.get("match_type", "PER_PREDICTION") == "BIPARTITE"
        found = match(overlap, p.get("overlap_threshold", 0.5), bipartite, usable)
        found[found >= 0] = true[found[found >= 0]]
        most = overlap.max(1).values if overlap.numel() else torch.zeros(len(boxes))
        return found, most, usable

    def place_losses(self, found, group):
        """By prior, without loc_weight. group: whose place it is; None: that of its true box."""
        p, each = self.p, torch.zeros(len(found), dtype=self.place.dtype)
        for i in (found >= 0).nonzero()[:, 0].tolist():
            at = group
            if at is None:
                at = int(self.kind[found[i]]) if self.place.shape[1] > 1 else 0
            one = slice(i, i + 1)
            box = self.true[found[i] : found[i] + 1, 3:7]
            apart = self.place[one, at]
            if self.in_target:
                apart = apart / self.variance[one]
            apart = apart - encode(self.prior[one], box, self.variance[one], self.code)
            if p.get("bp_inside", False):
                by_prior = p.get("use_prior_for_matching", True)
                where = (self.prior if by_prior else self.predicted(at))[one]
                apart = apart[(where >= 0) & (where <= 1)]
            if p.get("loc_loss_type", "SMOOTH_L1") == "L2":
                each[i] = (apart**2).sum() / 2
            else:
                each[i] = F.smooth_l1_loss(apart, torch.zeros_like(apart), reduction="sum")
        return each

    def class_losses(self, wanted):
        if self.p.get("conf_loss_type", "SOFTMAX") == "LOGISTIC":
            hot = F.one_hot(wanted, self.score.shape[1]).to(self.score.dtype)
            return F.binary_cross_entropy_with_logits(self.score, hot, reduction="none").sum(1)
        return F.cross_entropy(self.score, wanted, reduction="none")

    def choose(self, found, most, usable, losses):
        """Which priors learn: matched ones, and negatives."""
        p = self.p
        mining = p.get("mining_type", "MAX_NEGATIVE")
        matched = found >= 0
        if mining == "NONE":
            return matched, ~matched
        if mining == "HARD_EXAMPLE":
            free, count = torch.arange(len(found)), p.get("sample_size", 64)
        else:
            free = (~matched & usable & (most < p.get("neg_overlap", 0.5))).nonzero()[:, 0]
            count = int(matched.sum() * p.get("neg_pos_ratio", 3.0))
        order = free[torch.argsort(losses[free], descending=True, stable=True)].tolist()
        if p.has("nms_param"):
            by_prior = p.get("use_prior_for_nms", False)
            order = suppressed(order, self.prior if by_prior else self.predicted(0), p.sub("nms_param"))
        chosen = torch.zeros(len(found), dtype=torch.bool)
        chosen[order[: count if len(self.true) else 0]] = True
        if mining == "HARD_EXAMPLE":
            return matched & chosen, ~matched & usable & chosen
        return matched, chosen

    def loss(self):
        """The sum of the losses, and the number of matches."""
        weight = self.p.get("loc_weight", 1.0)
        wanted = torch.full((len(self.prior),), self.background)
        if self.place.shape[1] > 1 and not self.p.get("use_prior_for_matching", True):
            total, matches = 0.0, 0
            for c in range(self.place.shape[1]):
                if c == self.background:
                    continue
                found = self.find(c, (self.kind == c).nonzero()[:, 0])[0]
                total = total + weight * self.place_losses(found, c).sum()
                wanted[found >= 0] = c
                matches += int((found >= 0).sum())
            return total + self.class_losses(wanted).sum(), matches
        found, most, usable = self.find(0, torch.arange(len(self.true)))
        wanted[found >= 0] = self.kind[found[found >= 0]]
        places, classes = self.place_losses(found, None), self.class_losses(wanted)
        positive, negative = self.choose(found, most, usable, (places + classes).detach())
        total = weight * places[positive].sum() + classes[positive | negative].sum()
        return total, int(positive.sum())


def multibox_loss(layer, x, parameters, net):
    p = layer.sub("multibox_loss_param")
    samples = x[0].shape[0]
    place, score = x[0].reshape(samples, -1), x[1].reshape(samples, -1, p.get("num_classes"))
    prior, variance = x[2][0].reshape(2, -1, 4)
    rows = x[3].reshape(samples, -1, 8)
    total, matches = 0.0, 0
    for n in range(samples):
        loss, found = Sample(p, place[n], score[n], prior, variance, rows[n]).loss()
        total, matches = total + loss, matches + found
    modes = {"VALID": matches, "BATCH_SIZE": samples, "FULL": samples * len(prior), "NONE": 1}
    return [total / max(1, modes[layer.sub("loss_param").get("normalization", "VALID")])]


TYPES = {"MultiBoxLoss": multibox_loss, "PriorBox": prior_box}
